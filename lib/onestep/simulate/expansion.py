"""Simulated equivalences: F against its expansion F_ℓ, and F0 against Gaussian features with the same moments.

    F_ℓ = F0 + Σ_{k≤ℓ} c_1^k c_k η^k (X̃β)^{∘k} (a^{∘k})ᵀ            (norms, losses)
    F0  → c_1 X̃W0ᵀ + c_{>1} Z,  Z_ij ~ N(0, 1) independent           (losses, forms)

Source: Moniri, Lee, Hassani, Dobriban (ICML 2024), theorem on ‖F - F_ℓ‖ and section "Universality".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import comb, inf, sqrt

import numpy as np
from numpy.polynomial import chebyshev
from numpy.polynomial.hermite_e import hermevander
from scipy.sparse.linalg import aslinearoperator
from scipy.special import factorial, factorial2

from ..checks import choice, number, steps, whole
from ..problem import Problem
from . import network, svd
from .replicates import repeat

_DEGREE, _PRECISION = 60, 1e-7  # of the polynomial that sums the series; far below what is left of F - F_∞


@dataclass(frozen=True)
class Norms:
    """Operator norms divided by √n, so that a spike of the bulk's own size is O(1).

    mean : (trials, directions, steps, orders), ‖1ᵀ(F - F_ℓ)‖/n, the mean row's length, never above difference.
    difference : (trials, directions, steps, orders), ‖F - F_ℓ‖.
    term : (trials, directions, steps, K), norm of the k-th term as printed, k = 1..K, K the largest finite order (at
        least 1).
    """

    difference: np.ndarray
    term: np.ndarray
    mean: np.ndarray


@dataclass(frozen=True)
class Losses:
    """Training losses (penalty included) and errors on one fresh sample, each (trials, 3): with F, with F_ℓ, and with
    F_ℓ whose F0 is replaced by Gaussian features."""

    train: np.ndarray
    test: np.ndarray


@dataclass(frozen=True)
class Forms:
    """Quadratic forms v1ᵀR0v2 and traces of R0 = (F0F0ᵀ + λnI)⁻¹, one for every replicate and ridge.

    labels : names of the m vectors v.  values : (trials, ridges, m, m).
    m1, m2 : (trials, ridges), (φ/ψ) tr R0 and (φ/ψ) tr(X̃ᵀR0X̃)/d.
    """

    labels: tuple[str, ...]
    values: np.ndarray
    m1: np.ndarray
    m2: np.ndarray


def terms(p: Problem, projection, a, eta, order, growth=0.0):
    """left (n, K), right (N, K) with F_ℓ - F0 = left rightᵀ.

    projection : X̃β, (n,).  a : (N,).  eta : step size.
    order : ℓ >= 0, then K = ℓ, column k holding term k; or `math.inf` for the sum of the series, E σ(g + t) with
        t = c_1 η X̃β aᵀ and g ~ N(0, 1), by the polynomial in t that interpolates it (Σ c_k t^k converges slowly, if
        at all).
    growth : 0 gives the terms as printed. With `p.row_growth` the powers x^k of x = X̃β become E (x + √γ h)^k over
        h ~ N(0, 1), γ = growth/c_1²: the k-th term of E σ(r_i g + t), where r_i² = 1 + η² a_i² growth is the squared
        length that row i of W has apart from β. Not for the sum of the series.

    Raises ArithmeticError if no polynomial of degree 60 comes within 1e-6 of the series.
    """
    if order == inf:
        return _series(p, projection, a, eta)
    k = np.arange(1, whole("order", order, 0) + 1)
    c = p.student.coefficients(order)[1:]
    powers = projection[:, None] ** np.arange(order + 1)
    spread = sqrt(growth) / abs(p.student.linear)
    for j in range(order, 1, -1):  # E (x + s h)^j = Σ_i binom(j, 2i) (2i-1)!! s^{2i} x^{j-2i}
        for i in range(1, j // 2 + 1):
            powers[:, j] += comb(j, 2 * i) * factorial2(2 * i - 1) * spread ** (2 * i) * powers[:, j - 2 * i]
    return c * (p.student.linear * eta) ** k * powers[:, 1:], a[:, None] ** k


def _series(p, projection, a, eta):
    far, wide = np.abs(projection).max(), np.abs(a).max()
    reach = p.student.linear * eta * far * wide
    if reach == 0:
        return np.zeros((len(projection), 1)), np.zeros((len(a), 1))
    coefficients = chebyshev.chebinterpolate(lambda x: p.student.moments(reach * x, 1.0)[0] - p.student.mean, _DEGREE)
    needed = np.flatnonzero(np.abs(coefficients) > _PRECISION * np.abs(coefficients).max())[-1]
    if needed > _DEGREE - 2:
        raise ArithmeticError(f"terms: the series is not resolved by degree {_DEGREE} at |t| <= {abs(reach):.3g}")
    c = chebyshev.cheb2poly(coefficients[: needed + 1])
    k = np.arange(len(c))
    return c * (projection[:, None] / far) ** k, (a[:, None] / wide) ** k


def gaussian_features(p: Problem, X, W0, rng):
    """c_1 XW0ᵀ + c_{>1} Z: linear in X, with the covariance of σ(XW0ᵀ); X (m, d), W0 (N, d), result (m, N)."""
    return p.student.linear * (X @ W0.T) + sqrt(p.student.tail) * rng.standard_normal((len(X), len(W0)))


def norms(
    p: Problem, eta, orders, trials=8, seed=0, jobs=2, directions=("residual",), tolerance=1e-3, growth=False
) -> Norms:
    """‖F - F_ℓ‖_op/√n on fresh draws, for every direction, step size and order, all on the same draws.

    Parameters
    ----------
    eta : step size(s) >= 0, scalar or 1-D.
    orders : whole numbers ℓ >= 0, or `math.inf` for the sum of the series; one list for all steps, or one per step.
    trials, seed, jobs : as in `repeat`.
    directions : any of "residual" and "labels": which β the terms are made of, see `network.direction`.
    tolerance : relative residual of every norm, see `svd.operator_norm`.
    growth : count the growth of W's rows in F_ℓ, see `terms`; one choice for all orders, or one per order, which must
        be finite where it is True.

    Raises
    ------
    ValueError for a bad argument or when the memory needed is not there.
    """
    eta = np.atleast_1d(steps(eta))
    orders = _orders(orders, len(eta))
    for of in directions:
        choice("directions", of, network.DIRECTIONS)
    number("tolerance", tolerance, above=0)
    if np.ndim(growth) and len(growth) != len(orders[0]):
        raise ValueError(f"growth = {growth!r}: must be one choice, or one for each of {len(orders[0])} orders")
    grown = p.row_growth * np.broadcast_to(np.asarray(growth, bool), len(orders[0]))
    if any(order == inf and grows for row in orders for order, grows in zip(row, grown > 0, strict=True)):
        raise ValueError(f"orders = {orders!r}: must be finite with growth=True")
    entries = 5 * p.n * p.N + 3 * p.n * p.d + 2 * p.N * p.d
    replicate = partial(_norms, p, eta, orders, directions, tolerance, grown)
    results = repeat(replicate, trials, seed, jobs, 8 * entries / 2**30)
    return Norms(*(np.array(column) for column in zip(*results, strict=True)))


def _orders(orders, count):
    rows = list(orders) if len(orders) and np.ndim(orders[0]) else [orders] * count
    if len(rows) != count or len({len(row) for row in rows}) != 1 or not rows[0]:
        raise ValueError(f"orders = {orders!r}: must be one list for all {count} steps, or one each of equal length")
    return [[order if order == inf else whole("orders", order, 0) for order in row] for row in rows]


def _norms(p, eta, orders, directions, tolerance, growth, rng):
    now = network.draw(p, rng)
    projections = [now.X2 @ network.direction(p, now, of) for of in directions]
    base, move = now.X2 @ now.W0.T, now.X2 @ network.gradient(p, now).T
    F0 = p.student(base)
    K = max([1, *(order for row in orders for order in row if order != inf)])
    difference = np.empty((len(directions), len(eta), len(orders[0])))
    term, mean = np.empty((len(directions), len(eta), K)), np.empty_like(difference)
    for m, step in enumerate(eta):
        change = network.features(p, base, move, step)
        change -= F0
        for i, projection in enumerate(projections):
            left, right = terms(p, projection, now.a, step, K)
            term[i, m] = np.linalg.norm(left, axis=0) * np.linalg.norm(right, axis=0)
            for j, (order, grown) in enumerate(zip(orders[m], growth, strict=True)):
                kept = svd.low_rank(*terms(p, projection, now.a, step, order, grown))
                rest = aslinearoperator(change) - kept
                difference[i, m, j] = svd.operator_norm(rest, tolerance)
                mean[i, m, j] = np.linalg.norm(rest.rmatvec(np.ones(p.n)))
    return difference / sqrt(p.n), term / sqrt(p.n), mean / p.n


def losses(p: Problem, eta, order, trials=20, seed=0, jobs=2, test_size=None) -> Losses:
    """Losses with F, with F_ℓ and with Gaussian-equivalent features, on the same draws and the same fresh sample.

    Parameters
    ----------
    eta : step size >= 0, a number.
    order : ℓ >= 0, terms kept.
    trials, seed, jobs : as in `repeat`.
    test_size : size of the fresh sample on which all three are tested; None means n.

    Raises
    ------
    ValueError for a bad argument or when the memory needed is not there.
    """
    eta, order = number("eta", eta, least=0), whole("order", order, 0)
    size = p.n if test_size is None else whole("test_size", test_size, 1)
    entries = (p.n + size) * (4 * p.N + p.d) + p.n * p.d + 2 * p.N * p.d + min(p.n, p.N) ** 2
    replicate = partial(_losses, p, eta, order, size)
    results = np.array(repeat(replicate, trials, seed, jobs, 8 * entries / 2**30))
    return Losses(results[:, 0], results[:, 1])


def _losses(p, eta, order, size, rng):
    now = network.draw(p, rng)
    beta, W = network.direction(p, now), now.W0 + eta * network.gradient(p, now)
    X3, y3 = network.sample(p, now.beta_star, rng, size)
    fitted, tested = (_versions(p, now, X, beta, W, eta, order, rng) for X in (now.X2, X3))
    out = np.empty((2, 3))
    for j, (F, test) in enumerate(zip(fitted, tested, strict=True)):
        a, out[0, j] = network.ridge(F, now.y2, p.ridge)
        out[1, j] = np.mean((y3 - test @ a) ** 2)
    return out


def _versions(p, now, X, beta, W, eta, order, rng):
    left, right = terms(p, X @ beta, now.a, eta, order)
    spikes = left @ right.T
    return p.student(X @ W.T), p.student(X @ now.W0.T) + spikes, gaussian_features(p, X, now.W0, rng) + spikes


def forms(p: Problem, ridges, order=3, gaussian=False, trials=8, seed=0, jobs=2) -> Forms:
    """The forms v1ᵀR0v2 for v in {H_q(z), H_q(z⋆), F0 a, √N F0 a^{∘2}, F0 1/√N, 1}, q = 1..order, at every ridge.

    z = X̃β/‖β‖ and z⋆ = X̃β⋆ have unit variance; H_q(z) and H_q(z⋆) are scaled to their limiting norm √(n q!), which
    takes out most of their noise. a^{∘2} carries the √N that makes its norm O(1). p.ridge is not used.

    Parameters
    ----------
    ridges : penalties λ > 0, a list of numbers.
    order : largest degree q >= 1.
    gaussian : replace F0 by `gaussian_features`, in R0 and in the vectors.
    trials, seed, jobs : as in `repeat`.

    Raises
    ------
    ValueError for a bad argument or when the memory needed is not there.
    """
    ridges, order = [number("ridges", ridge, above=0) for ridge in ridges], whole("order", order, 1)
    entries = 2 * p.n * p.N + 3 * p.n * p.d + 2 * p.N * p.d + 4 * p.n**2
    replicate = partial(_forms, p, ridges, order, gaussian)
    results = repeat(replicate, trials, seed, jobs, 8 * entries / 2**30)
    values, m1, m2 = (np.array(part) for part in zip(*results, strict=True))
    labels = [f"H{q}({z})" for z in ("z", "z⋆") for q in range(1, order + 1)]
    return Forms((*labels, "F0 a", "√N F0 a²", "F0 1/√N", "1"), values, m1, m2)


def _forms(p, ridges, order, gaussian, rng):
    now = network.draw(p, rng)
    beta = network.direction(p, now)
    F0 = gaussian_features(p, now.X2, now.W0, rng) if gaussian else p.student(now.X2 @ now.W0.T)
    projections = now.X2 @ np.column_stack([beta / np.linalg.norm(beta), now.beta_star])
    polynomials = np.column_stack([hermevander(z, order)[:, 1:] for z in projections.T])
    polynomials *= np.tile(np.sqrt(p.n * factorial(np.arange(1, order + 1))), 2) / np.linalg.norm(polynomials, axis=0)
    hidden = np.column_stack([now.a, sqrt(p.N) * now.a**2, np.full(p.N, 1 / sqrt(p.N))])
    vectors = np.column_stack([polynomials, F0 @ hidden, np.ones(p.n)])
    eigenvalues, Q = np.linalg.eigh(F0 @ F0.T)
    rotated, inputs = Q.T @ vectors, np.sum((Q.T @ now.X2) ** 2, axis=1) / p.d
    resolvents = [1 / (np.maximum(eigenvalues, 0) + ridge * p.n) for ridge in ridges]
    values = [rotated.T @ (r[:, None] * rotated) for r in resolvents]
    scale = p.phi / p.psi
    return values, [scale * r.sum() for r in resolvents], [scale * r @ inputs for r in resolvents]
