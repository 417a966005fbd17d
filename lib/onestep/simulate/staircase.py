"""Losses of the limit features themselves: untrained features plus spikes of infinite strength."""

from __future__ import annotations

import numpy as np
from numpy.polynomial.hermite_e import hermevander
from scipy.linalg import cho_solve, solve_triangular
from scipy.special import factorial

from ..checks import flag, whole
from ..problem import Problem
from .network import Draw, draw, gram_factor, readout
from .replicates import memory, replicated

_MOST = 10  # orders: higher powers of z are too close to dependent


@replicated(lambda p, orders, *, redraws=1, **rest: memory(p, **rest) + 300 * redraws * (float(p.n) + p.N) / 2**30)
def plateaus(p: Problem, orders, *, redraws=1, growing_rows=False, rng):
    """Losses of ridge regression on F0 and ℓ spikes of infinite strength, for ℓ in orders (0: F0 itself).

    A step n^α, (ℓ-1)/2ℓ < α < ℓ/(2ℓ+2), ends in these features when n → ∞. Spike k of F_ℓ is s z^{∘k}(a^{∘k})ᵀ with
    z = X̃β/‖β‖ and s → ∞: then z, …, z^{∘ℓ} are fitted free of penalty, and the coefficients of F0 are orthogonal to
    a, …, a^{∘ℓ}.

    Parameters
    ----------
    p : the `Problem`.
    orders : whole numbers ℓ >= 0 with c_1, …, c_ℓ not 0.
    redraws : draws of β⋆, a and the noises over which each replicate is averaged, all on its W0, X and X̃: one
        factorisation serves them all, and drops of the losses are nearly independent between them.
    growing_rows : False for the spikes of F_ℓ; True for the network's, which keep the whole gradient G in place of
        c_1 a βᵀ: the mean over units of sign(a_i)^k (X̃g_i)^{∘k} is spike k's left vector. Each redraw takes a gradient.
    trials, seed, jobs, executor : as in `repeat`.

    Returns
    -------
    `Result` with train, test : (trials, len(orders)); test errors by leaving one sample out, exact at n - 1 samples.
    Its variates (trials, 3 ℓ) are the second sample's means of h_k(z), k <= 2ℓ, and of y h_k(z), k <= ℓ, less their
    expectations, h_k = H_k/√k!, for the largest ℓ: they explain most of the spread of the stairs.
    """
    orders, redraws = _orders(p, orders), whole("redraws", redraws, 1)
    flag("growing_rows", growing_rows)
    top, draws = max(orders), _redrawn(p, draw(p, rng), redraws, rng)
    units = draws.X.T @ draws.y
    units /= np.linalg.norm(units, axis=0)
    z, k = draws.X2 @ units, np.arange(1, top + 1)
    left = _left_vectors(p, draws, k) if growing_rows else z.T[:, None] ** k[:, None]
    found = _fits(p.student(draws.X2 @ draws.W0.T), p.ridge, draws.y2, left, np.sqrt(p.N) * draws.a)
    controls = _moments(p, z, draws.y2, np.sum(draws.beta_star * units, axis=0), top)
    train, test = found[orders].mean(axis=2).T
    return {"train": train, "test": test, "variates": controls.mean(axis=0)}


def _orders(p, orders):
    if not np.iterable(orders) or isinstance(orders, str) or len(orders) == 0:
        raise ValueError(f"orders = {orders!r}: must be a list of whole numbers >= 0")
    orders, most = [whole("orders", order, 0) for order in orders], min(_MOST, p.n - 1, p.N - 1)
    if max(orders) > most:
        raise ValueError(f"orders = {orders}: must be at most {most} here")
    missing = np.flatnonzero(p.student.coefficients(max(orders))[1:] == 0)
    if missing.size:
        raise ValueError(
            f"orders = {orders}: c_{missing[0] + 1} = 0, so that no step bears spike {missing[0] + 1}; stop below it"
        )
    return orders


def _redrawn(p, first, redraws, rng):
    """R draws on the W0, X and X̃ of `first`, the first of them: β⋆, a, y and ỹ with R columns, y less the output."""
    a = np.column_stack([first.a, *(readout(p, rng) for _ in range(1, redraws))])
    teachers = rng.standard_normal((p.d, redraws))
    teachers /= np.linalg.norm(teachers, axis=0)
    teachers[:, 0] = first.beta_star
    y, y2 = (p.target(X @ teachers) + p.noise * rng.standard_normal((len(X), redraws)) for X in (first.X, first.X2))
    y[:, 0], y2[:, 0] = first.y, first.y2
    if p.initial_output == "full":
        y -= p.student(first.X @ first.W0.T) @ a
    return Draw(teachers, first.W0, a, first.X, y, first.X2, y2)


def _left_vectors(p, draws, k):
    """Mean over units of (sign(a_i) X̃g_i)^{∘k} for each draw and each k, (R, len(k), n), up to a factor."""
    slope, left = p.student.derivative(draws.X @ draws.W0.T), []
    for a, y in zip(draws.a.T, draws.y.T, strict=True):
        move = draws.X2 @ ((slope * y[:, None]).T @ draws.X * np.abs(a)[:, None]).T
        move /= np.sqrt(np.mean(move**2))
        left.append([np.mean(move**power, axis=1) for power in k])
    return np.reshape(left, (len(left), len(k), -1))


def _fits(F0, penalty, y, left, a):
    """Training loss and leave-one-out test error with ℓ = 0, …, top spikes, (top + 1, 2, R).

    y (n, R) and a (N, R) are the labels and the readouts of R draws, left (R, top, n) the left vectors of their spikes.

    The Lagrangian of min ‖y - F0 b - Zc‖²/n + penalty ‖b‖² under Bᵀb = 0 leaves, with S = F0ᵀF0 + penalty n and the
    columns A = [y, Z, 0] beside C = [F0ᵀy, F0ᵀZ, B], the Schur complement M = AᵀA - CᵀS⁻¹C and the residuals
    P = A - F0 S⁻¹C. In the code all are transposed, one matrix for each draw.
    """
    (n, N), (draws, top, _) = F0.shape, left.shape
    A = np.concatenate([y.T[:, None], left], axis=1)
    B = np.linalg.qr(a.T[:, :, None] ** np.arange(1, top + 1))[0].swapaxes(1, 2)
    C = np.concatenate([(A.reshape(-1, n) @ F0).reshape(draws, -1, N), B], axis=1)
    factor = gram_factor(F0, penalty * n)
    solved = cho_solve(factor, C.reshape(-1, N).T, check_finite=False).T
    P = -(solved @ F0.T).reshape(draws, -1, n)
    P[:, : 1 + top] += A
    M = -C @ solved.reshape(C.shape).swapaxes(1, 2)
    M[:, : 1 + top, : 1 + top] += A @ A.swapaxes(1, 2)
    own = np.sum(solve_triangular(factor[0], F0.T, lower=True, check_finite=False) ** 2, axis=0)  # leverages of F0
    out = []
    for order in range(top + 1):
        kept = [*range(1, order + 1), *range(1 + top, 1 + top + order)]
        inverse, spikes = np.linalg.inv(M[:, kept][:, :, kept]), P[:, kept]
        fit = inverse @ M[:, kept, :1]
        rest = P[:, 0] - np.sum(fit * spikes, axis=1)
        leverage = own + np.sum(spikes * (inverse @ spikes), axis=1)
        train = (M[:, 0, 0] - np.sum(M[:, kept, :1] * fit, axis=(1, 2))) / n
        out.append([train, np.mean((rest / (1 - leverage)) ** 2, axis=1)])
    return np.array(out)


def _moments(p, z, y, cosines, top):
    """The variates of `plateaus` of each draw, (R, 3 top)."""
    basis = hermevander(z, 2 * top)[:, :, 1:] / np.sqrt(factorial(np.arange(1, 2 * top + 1)))
    expected = p.target.normalized(top)[1:] * cosines[:, None] ** np.arange(1, top + 1)
    return np.hstack([basis.mean(0), np.einsum("nr,nrk->rk", y, basis[:, :, :top]) / len(z) - expected])
