"""Losses of untrained features plus spikes: infinitely strong, or as strong as at numbers of samples out of reach."""

from __future__ import annotations

import numpy as np
from numpy.polynomial.hermite_e import hermevander
from scipy.linalg import cho_solve, solve_triangular
from scipy.special import factorial

from ..checks import flag, steps, whole
from ..problem import Problem
from .network import Draw, draw, gram_factor, readout
from .replicates import memory, replicated

_MOST = 10  # orders: higher powers of z are too close to dependent
_MOST_FINITE = 6  # the same where powers of a are not made orthonormal


def _memory(p, *_, redraws=1, **rest):
    return memory(p, **rest) + 300 * whole("redraws", redraws, 1) * (float(p.n) + p.N) / 2**30


@replicated(_memory)
def plateaus(p: Problem, orders, *, redraws=1, growing_rows=False, test=True, rng):
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
    test : False leaves the test errors out, two fifths of the work.
    trials, seed, jobs, executor : as in `repeat`.

    Returns
    -------
    `Result` with train, test : (trials, len(orders)); test errors by leaving one sample out, exact at n - 1 samples.
    Its variates (trials, 3 ℓ) are the second sample's means of h_k(z), k <= 2ℓ, and of y h_k(z), k <= ℓ, less their
    expectations, h_k = H_k/√k!, for the largest ℓ: they explain most of the spread of the stairs.
    """
    orders = _orders(p, orders)
    draws, beta, left = _spikes(p, max(orders), redraws, growing_rows, rng)
    right = np.linalg.qr(_right_vectors(p, draws, max(orders)))[0]
    found = _fits(p, draws, left, right, [np.full((1, order), np.inf) for order in orders], flag("test", test))
    return found | {"variates": _moments(p, draws, beta, max(orders))}


@replicated(_memory)
def spiked(p: Problem, eta, order, *, at=None, redraws=1, growing_rows=False, test=True, rng):
    """Losses of ridge regression on F0 and its first spikes, each as strong as after a step eta at `at` samples.

    Spike k is c_k η^k times its left vector, for F_ℓ (c_1 X̃β)^{∘k}, times (a^{∘k})ᵀ. When n, d and N grow in proportion
    it grows like η^k n^{(1-k)/2} relative to F0; here the factor is that of `at` samples. As p.n → ∞ the losses tend to
    those that theory.staircase.spiked predicts for p.scaled(at), in which F0 is that of infinite size.

    order : number of spikes, 1 to 6.  at : whole number of samples >= 1, by default p.n.  The rest is as in `plateaus`;
    left vectors of growing rows are divided by the mean of |a_i|^k.
    Returns a `Result` with train, test : (trials, *eta.shape) and variates.
    """
    eta, order = steps(eta), whole("order", order, 1, min(_MOST_FINITE, p.n - 1, p.N - 1))
    growth = whole("at", p.n if at is None else at, 1) / p.n
    draws, beta, left = _spikes(p, order, redraws, growing_rows, rng)
    k, length = np.arange(1, order + 1), np.linalg.norm(beta, axis=0)[:, None]
    strength = p.student.coefficients(order)[1:] * (p.student.linear * length / np.sqrt(p.N)) ** k
    strength = strength * growth ** ((1 - k) / 2)
    right = _right_vectors(p, draws, order)
    found = _fits(p, draws, left, right, [strength * step**k for step in eta.ravel()], flag("test", test))
    found = {name: losses.reshape(eta.shape) for name, losses in found.items()}
    return found | {"variates": _moments(p, draws, beta, order)}


def _orders(p, orders):
    if not np.iterable(orders) or isinstance(orders, str) or len(orders) == 0:
        raise ValueError(f"orders = {orders!r}: must be a list of whole numbers >= 0")
    orders = [whole("orders", order, 0, min(_MOST, p.n - 1, p.N - 1)) for order in orders]
    missing = np.flatnonzero(p.student.coefficients(max(orders))[1:] == 0)
    if missing.size:
        raise ValueError(
            f"orders = {orders}: c_{missing[0] + 1} = 0, so that no step bears spike {missing[0] + 1}; stop below it"
        )
    return orders


def _spikes(p, top, redraws, growing_rows, rng):
    """R draws on one W0, X and X̃, β of each (d, R), and the left vectors of their spikes k = 1..top, (R, top, n).

    Of the draws, β⋆, a, y and ỹ have R columns; y is less the initial output. Left vectors are in units of (c_1 ‖β‖)^k.
    """
    grows, first = flag("growing_rows", growing_rows), draw(p, rng)
    draws = _redrawn(p, first, redraws, rng)
    beta, k = draws.X.T @ draws.y / len(draws.X), np.arange(1, top + 1)
    lengths = np.linalg.norm(beta, axis=0)
    if not grows:
        return draws, beta, _powers((draws.X2 @ (beta / lengths)).T, top)
    slope, left = p.student.derivative(draws.X @ draws.W0.T), []
    for a, y, length in zip(np.abs(draws.a.T), draws.y.T, p.student.linear * len(slope) * lengths, strict=True):
        move = draws.X2 @ ((slope * y[:, None]).T @ draws.X * (a[:, None] / length)).T
        power = np.ones_like(move)
        for each in k:
            power *= move
            left.append(power.mean(axis=1) / np.mean(a**each))
    return draws, beta, np.reshape(left, (redraws, top, len(draws.X2)))


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


def _right_vectors(p, draws, top):
    """(√N a)^{∘k}, k = 1..top, of each draw: (R, N, top)."""
    return _powers(np.sqrt(p.N) * draws.a.T, top).swapaxes(1, 2)


def _powers(x, top):
    """x^{∘k}, k = 1..top, of each row of x: (len(x), top, x.shape[1])."""
    return np.multiply.accumulate(np.repeat(x[:, None], top, axis=1), axis=1)


def _fits(p, draws, left, right, strengths, test):
    """train and, if asked for, test: training losses and leave-one-out errors on F0 + Z E Aᵀ, for each diagonal E.

    left (R, top, n) and right (R, N, top) hold Z and A of R draws, over which losses are averaged. The diagonals in
    strengths are (R or 1, ℓ), for the first ℓ spikes.

    With F0, y and n the Lagrangian of min ‖y - F0 b - Zc‖² + λn ‖b‖² under Aᵀb = E⁻¹c leaves, with S = F0ᵀF0 + λn and
    the columns U = [y, Z, 0] beside C = [F0ᵀy, F0ᵀZ, A], the Schur complement M = UᵀU - CᵀS⁻¹C, to which E⁻¹ adds a
    coupling of Z and A, and the residuals P = U - F0 S⁻¹C. In the code all are transposed, one matrix for each draw.
    The multiplier of a spike is in units of min(1, |E|), so that none needs to be inverted.
    """
    F0 = p.student(draws.X2 @ draws.W0.T)
    (n, N), (count, top, _) = F0.shape, left.shape
    U = np.concatenate([draws.y2.T[:, None], left], axis=1)
    C = np.concatenate([(U.reshape(-1, n) @ F0).reshape(count, -1, N), right.swapaxes(1, 2)], axis=1)
    factor = gram_factor(F0, p.ridge * n)
    solved = cho_solve(factor, C.reshape(-1, N).T, check_finite=False).T
    M = -C @ solved.reshape(C.shape).swapaxes(1, 2)
    M[:, : 1 + top, : 1 + top] += U @ U.swapaxes(1, 2)
    if test:
        P = -(solved @ F0.T).reshape(count, -1, n)
        P[:, : 1 + top] += U
        own = np.sum(solve_triangular(factor[0], F0.T, lower=True, check_finite=False) ** 2, axis=0)  # leverages of F0
    found = {"train": [], "test": []} if test else {"train": []}
    for strength in strengths:
        order = strength.shape[1]
        kept, free = [*range(1, order + 1), *range(1 + top, 1 + top + order)], np.arange(order)
        unit = np.concatenate([np.ones_like(strength), np.minimum(np.abs(strength), 1.0)], axis=1)[:, :, None]
        system = unit * M[:, kept][:, :, kept] * unit.swapaxes(1, 2)
        coupling = np.copysign(1 / np.maximum(np.abs(strength), 1.0), strength)
        system[:, free, order + free] -= coupling
        system[:, order + free, free] -= coupling
        inverse, seen = np.linalg.inv(system), unit * M[:, kept, :1]
        fit = inverse @ seen
        found["train"].append(np.mean(M[:, 0, 0] - np.sum(seen * fit, axis=(1, 2))) / n)
        if test:
            spikes = unit * P[:, kept]
            rest = P[:, 0] - np.sum(fit * spikes, axis=1)
            leverage = own + np.sum(spikes * (inverse @ spikes), axis=1)
            found["test"].append(np.mean((rest / (1 - leverage)) ** 2))
    return {name: np.array(losses) for name, losses in found.items()}


def _moments(p, draws, beta, top):
    """The variates of `plateaus`, averaged over the draws, (3 top,)."""
    units = beta / np.linalg.norm(beta, axis=0)
    z, cosines = draws.X2 @ units, np.sum(draws.beta_star * units, axis=0)
    basis = hermevander(z, 2 * top)[:, :, 1:] / np.sqrt(factorial(np.arange(1, 2 * top + 1)))
    expected = p.target.normalized(top)[1:] * cosines[:, None] ** np.arange(1, top + 1)
    products = np.einsum("nr,nrk->rk", draws.y2, basis[:, :, :top]) / len(z) - expected
    return np.hstack([basis.mean(0), products]).mean(axis=0)
