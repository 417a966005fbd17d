"""Simulated equivalences: F against its expansion F_ℓ, and F0 against Gaussian features with the same moments.

    F_ℓ = F0 + Σ_{k≤ℓ} c_1^k c_k η^k (X̃β)^{∘k} (a^{∘k})ᵀ            (sizes, norms, losses)
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
from scipy.special import factorial, factorial2

from ..checks import choice, number, steps, whole
from ..hermite import Polynomial, gaussian_moments, monomials
from ..problem import Problem
from . import averages, network, svd
from .control_variates import variates
from .every_step import Losses, redrawn_labels
from .replicates import Result, collect

BASES = (*network.ROWS, "initial", "bulk", "gaussian")
_DEGREE, _PRECISION = 60, 1e-7  # of the polynomial that sums the series; far below what is left of F - F_∞
_BEYOND = 1  # powers a^{k+2}, … that `sizes` fits beside a^k: what is left is of order n^{(2α-1)(_BEYOND + 1)}


@dataclass(frozen=True)
class Norms(Result):
    """Operator norms over replicates.

    Attributes
    ----------
    values : array, (trials, directions, steps, orders)
        ‖F - F_ℓ‖/√n, so that a spike of the bulk's own size is O(1).
    readout : array, (trials,)
        √(N Σ a⁴/3), the length of a∘a over its limit.
    growth : array, (trials,)
        ‖E‖_F²/‖a‖² over its limit, the rest E = G - c_1 a βᵀ of the gradient. This and the readout make most of the
        spread of what growing rows do.
    """

    values: np.ndarray
    readout: np.ndarray
    growth: np.ndarray


@dataclass(frozen=True)
class Sizes(Result):
    """How large each term of F_ℓ is in F itself.

    Attributes
    ----------
    values : array, (trials, steps, order + 1)
        Coefficients, claimed c_1^k c_k.
    """

    values: np.ndarray


@dataclass(frozen=True)
class Forms(Result):
    """Quadratic forms v1ᵀR0v2 and traces of R0 = (F0F0ᵀ + λnI)⁻¹.

    Attributes
    ----------
    labels : tuple of str
        Names of the m vectors v.
    values : array, (trials, ridges, m, m)
    m1, m2 : array, (trials, ridges)
        (φ/ψ) tr R0 and (φ/ψ) tr(X̃ᵀR0X̃)/d.
    """

    labels: tuple[str, ...]
    values: np.ndarray
    m1: np.ndarray
    m2: np.ndarray


@dataclass(frozen=True)
class Version:
    """Features to fit the second layer on: a base, and the terms of F_ℓ added to it.

    Parameters
    ----------
    base : str
        "real", "rank one" or "restored", the network with its rows as in `network.stepped`; "initial", F0; "bulk", F0
        with the rows of W0 + ηE, which are longer (E as in `network.stepped`); "gaussian", Gaussian features in the
        place of F0.
    order : int
        ℓ >= 0 terms added.
    growth : bool
        Whether they count the growth of W's rows in this draw, see `terms`.
    tail : float
        Factor on c_{>1} of Gaussian features; 0 leaves their linear part.
    intercept : bool
        Whether the fit has a constant free of charge.

    Raises
    ------
    ValueError
        For a bad argument.
    """

    base: str = "real"
    order: int = 0
    growth: bool = False
    tail: float = 1.0
    intercept: bool = False

    def __post_init__(self):
        choice("base", self.base, BASES)
        whole("order", self.order, 0)
        number("tail", self.tail, least=0)


def terms(p: Problem, projection, a, eta, order, *, growth=0.0):
    """left (n, K), right (N, K) with F_ℓ - F0 = left rightᵀ.

    Parameters
    ----------
    p : Problem
    projection : array, (n,)
        X̃β.
    a : array, (N,)
    eta : float
        Step size.
    order : int or math.inf
        ℓ >= 0, then K = ℓ, column k holding term k; or inf for the sum of the series, E σ(g + t) with t = c_1 η X̃β aᵀ
        and g ~ N(0, 1), by the polynomial in t that interpolates it (Σ c_k t^k converges slowly, if at all).
    growth : float
        0 gives the terms as printed. With `p.row_growth`, or ‖E‖_F²/‖a‖² of a draw, the powers x^k of x = X̃β
        become E (x + √γ h)^k over h ~ N(0, 1), γ = growth/c_1²: the k-th term of E σ(r_i g + t), where
        r_i² = 1 + η² a_i² growth is the squared length that row i of W has apart from β. Not for the sum of the series.

    Returns
    -------
    left, right : array

    Raises
    ------
    ArithmeticError
        If the series has no polynomial of degree 60 whose last coefficients are negligible.
    """
    if order == inf:
        return _series(p, projection, a, eta)
    powers = projection[:, None] ** np.arange(whole("order", order, 0) + 1)
    return powers @ _polynomials(p, eta, order, growth), a[:, None] ** np.arange(1, order + 1)


def _polynomials(p, eta, order, growth):
    """Coefficients in 1, x, …, x^order of the terms' left factors, one column for each; see `terms`."""
    k = np.arange(1, order + 1)
    spread = growth / p.student.linear**2
    out = np.zeros((order + 1, order))
    for j in k:  # E (x + √γ h)^j = Σ_i binom(j, 2i) (2i-1)!! γ^i x^{j-2i}
        for i in range(j // 2 + 1):
            out[j - 2 * i, j - 1] = comb(j, 2 * i) * (factorial2(2 * i - 1) if i else 1) * spread**i
    return out * (p.student.coefficients(order)[1:] * (p.student.linear * eta) ** k)


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


def gaussian_features(p: Problem, X, W0, Z):
    """c_1 XW0ᵀ + c_{>1} Z: linear in X, with the covariance of σ(XW0ᵀ); X (m, d), W0 (N, d), Z and result (m, N)."""
    return p.student.linear * (X @ W0.T) + sqrt(p.student.tail) * Z


def sizes(p: Problem, eta, order, *, rows="real", **run) -> Sizes:
    """How large each term of F_ℓ is in F itself.

    With z = xᵀβ/‖β‖, unit i has along H_k(z) the coefficient E_x[σ(w_iᵀx)H_k(z)]/k!, an exact average over x. What the
    step adds to it is fitted with powers of a_i; entry k is the coefficient of (η‖β‖a_i)^k. Entry 0 is that of
    (η‖β‖a_i)² along the constant H_0: claimed c_1²c_2 as well, since z² = H_2 + 1. Each replicate steps up and down
    the gradient and keeps the part of a_i's parity.

    Parameters
    ----------
    p : Problem
    eta : float or array, (steps,)
        Step sizes > 0.
    order : int
        Largest k >= 1.
    rows : str
        As in `network.stepped`.
    **run
        trials, seed, jobs and executor, as in `repeat`.

    Returns
    -------
    Sizes

    Raises
    ------
    ValueError
        For a bad argument, or when the memory needed is not there.
    """
    eta, order = np.atleast_1d(steps(eta)), whole("order", order, 1)
    if np.any(eta == 0):
        raise ValueError(f"eta = {eta!r}: must be > 0, to be divided by")
    choice("rows", rows, network.ROWS)
    entries = 2 * p.n * (p.N + p.d) + 6 * p.N * p.d
    replicate = partial(_sizes, p, eta, order, rows)
    return collect(Sizes, replicate, 8 * entries / 2**30, **run)


def _sizes(p, eta, order, rows, rng):
    now = network.draw(p, rng)
    G, beta = network.gradient(p, now), network.direction(p, now)
    unit = beta / np.linalg.norm(beta)
    start, before = now.W0 @ unit, _along(p, now.W0, unit, order)
    out = np.empty((len(eta), order + 1))
    for m, step in enumerate(eta):
        up, down = (_along(p, network.stepped(p, now, G, s, rows=rows), unit, order) - before for s in (step, -step))
        u = step * np.linalg.norm(beta) * now.a
        for k in range(order + 1):
            out[m, k] = _leading((up[k] + (-1) ** k * down[k]) / 2, u, start, k or 2)
    return {"values": out}


def _along(p, W, unit, order):
    """E σ(w_iᵀx) H_k(z)/k!, k = 0..order, of the rows w_i of W; (order + 1, N)."""
    norms = np.linalg.norm(W, axis=1)
    toward = W @ unit / norms
    degrees = [Polynomial(row) for row in np.eye(order + 1)]
    return averages.crosses(p.student, degrees, norms, toward) / factorial(np.arange(order + 1))[:, None]


def _leading(values, u, start, k):
    """Coefficient of u^k in a fit of values (N,) with powers of u of k's parity and u^{k-2} start²."""
    others = [u**j for j in range(2 - k % 2, k + 2 * _BEYOND + 1, 2) if j != k]
    mixed = [u ** (k - 2) * start**2] if k > 2 else []
    design = np.array([u**k, *others, *mixed])
    scale = np.linalg.norm(design, axis=1)
    return np.linalg.lstsq((design / scale[:, None]).T, values, rcond=None)[0][0] / scale[0]


def norms(p: Problem, eta, orders, *, directions=("residual",), growth=False, rows="real", **run) -> Norms:
    """‖F - F_ℓ‖_op/√n on fresh draws, for every direction, step size and order, all on the same draws.

    Parameters
    ----------
    p : Problem
    eta : float or array, (steps,)
        Step sizes >= 0.
    orders : list
        Whole numbers ℓ >= 0, or `math.inf` for the sum of the series; one list for all steps, or one per step.
    directions : sequence of str
        Any of "residual" and "labels": which β the terms are made of, see `network.direction`.
    growth : bool or list of bool
        Whether F_ℓ counts the growth of W's rows, that of the draw, see `terms`; one choice for all orders, or one per
        order, which must be finite where it is True.
    rows : str or list of str
        Of W, as in `network.stepped`; one choice for all orders, or one per order.
    **run
        trials, seed, jobs and executor, as in `repeat`.

    Returns
    -------
    Norms

    Raises
    ------
    ValueError
        For a bad argument, or when the memory needed is not there.
    """
    eta = np.atleast_1d(steps(eta))
    orders = _orders(orders, len(eta))
    for of in directions:
        choice("directions", of, network.DIRECTIONS)
    growth, rows = _each("growth", growth, len(orders[0])), _each("rows", rows, len(orders[0]))
    for kind in rows:
        choice("rows", kind, network.ROWS)
    for grows in growth:
        if not isinstance(grows, bool | np.bool_):
            raise ValueError(f"growth = {grows!r}: must be True or False")
    if any(order == inf and grows for row in orders for order, grows in zip(row, growth, strict=True)):
        raise ValueError(f"orders = {orders!r}: must be finite with growth=True")
    entries = 5 * p.n * p.N + 3 * p.n * p.d + 3 * p.N * p.d
    replicate = partial(_norms, p, eta, orders, directions, growth, rows)
    return collect(Norms, replicate, 8 * entries / 2**30, **run)


def _orders(orders, count):
    rows = list(orders) if len(orders) and np.ndim(orders[0]) else [orders] * count
    if len(rows) != count or len({len(row) for row in rows}) != 1 or not rows[0]:
        raise ValueError(f"orders = {orders!r}: must be one list for all {count} steps, or one each of equal length")
    return [[order if order == inf else whole("orders", order, 0) for order in row] for row in rows]


def _each(argument, value, count):
    """One value for each of `count` orders."""
    values = [value] * count if isinstance(value, str | bool) else list(value)
    if len(values) != count:
        raise ValueError(f"{argument} = {value!r}: must be one choice, or one for each of {count} orders")
    return values


def _norms(p, eta, orders, directions, growth, rows, rng):
    now = network.draw(p, rng)
    projections = [now.X2 @ network.direction(p, now, of=of) for of in directions]
    G, F0 = network.gradient(p, now), p.student(now.X2 @ now.W0.T)
    grown = _row_growth(p, now, G)
    values = np.empty((len(directions), len(eta), len(orders[0])))
    for m, step in enumerate(eta):
        for kind in dict.fromkeys(rows):
            change = p.student(now.X2 @ network.stepped(p, now, G, step, rows=kind).T)
            change -= F0
            for j in np.flatnonzero(np.array(rows) == kind):
                for i, projection in enumerate(projections):
                    kept = terms(p, projection, now.a, step, orders[m][j], growth=growth[j] * grown)
                    values[i, m, j] = svd.operator_norm(svd.deflated(change, *kept), svd.NORM)
    readout = sqrt(p.N * np.sum(now.a**4) / 3)
    found = {"values": values / sqrt(p.n), "readout": readout, "growth": grown / p.row_growth}
    return found | {"variates": variates(p, now, now.y2[:, None])}


def _row_growth(p, now, G):
    """‖E‖_F²/‖a‖², whose limit is p.row_growth."""
    E = G - np.outer(p.student.linear * now.a, network.direction(p, now))
    return np.sum(E**2) / np.sum(now.a**2)


def losses(p: Problem, eta, versions, *, redraws=1, **run) -> Losses:
    """Losses of ridge regression on each `Version` of the features, all on the same draws, with exact test errors.

    Parameters
    ----------
    p : Problem
    eta : float
        Step size >= 0.
    versions : sequence of Version
        The columns of the result; differences to the first are its `drops`, with the sign changed.
    redraws : int
        Draws of Z, and of the second stage's label noise, over which each replicate is averaged.
    **run
        trials, seed, jobs and executor, as in `repeat`.

    Returns
    -------
    Losses

    Raises
    ------
    ValueError
        For a bad argument, or when the memory needed is not there.
    """
    eta, redraws = number("eta", eta, least=0), whole("redraws", redraws, 1)
    versions = list(versions)
    if not versions or not all(isinstance(version, Version) for version in versions):
        raise ValueError(f"versions = {versions!r}: must be a list of Versions")
    entries = (4 + 2 * redraws) * p.n * p.N + 2 * p.n * p.d + 4 * p.N * p.d + 3 * p.N**2
    replicate = partial(_losses, p, eta, versions, redraws)
    return collect(Losses, replicate, 8 * entries / 2**30, **run)


def _losses(p, eta, versions, redraws, rng):
    now = network.draw(p, rng)
    G, beta = network.gradient(p, now), network.direction(p, now)
    grown = _row_growth(p, now, G)
    labels = redrawn_labels(p, now, redraws, rng)
    gaussian = any(version.base == "gaussian" for version in versions)
    noises = [rng.standard_normal((p.n, p.N)) for _ in range(redraws * gaussian)]
    top = max(version.order for version in versions)
    out = np.empty((2, len(versions)))
    for base in dict.fromkeys((version.base, version.tail) for version in versions):  # one at a time in memory
        starts, (H, h) = _features(p, now, G, eta, *base, noises), _moments(p, now, G, beta, eta, *base, top)
        for j, version in enumerate(versions):
            if (version.base, version.tail) != base:
                continue
            order, growth = version.order, grown * version.growth
            left, right = terms(p, now.X2 @ beta, now.a, eta, order, growth=growth)
            polynomials = np.zeros((top + 1, order))
            polynomials[: order + 1] = _polynomials(p, eta, order, growth)
            found = []
            for start in starts:
                F = start + left @ right.T
                if version.intercept:
                    a, b, loss = network.ridge_with_intercept(F, labels, p.ridge)
                else:
                    (a, loss), b = network.ridge(F, labels, p.ridge), 0.0
                readout = np.concatenate([a, polynomials @ (right.T @ a)])  # of the units and of 1, x, …, x^top
                readout[p.N] += b
                error = np.sum(readout * (H @ readout), axis=0) - 2 * (h @ readout) + p.label_power
                found.append([np.mean(loss), np.mean(error)])
            out[:, j] = np.mean(found, axis=0)
    return {"train": out[0], "test": out[1], "variates": variates(p, now, labels)}


def _features(p, now, G, eta, base, tail, noises):
    """The features (n, N) that a base stands for, on the second sample: a list, of one for each Z if Gaussian."""
    if base == "gaussian":
        return [gaussian_features(p, now.X2, now.W0, tail * Z) for Z in (noises if tail else noises[:1])]
    return [p.student(now.X2 @ _first_layer(p, now, G, eta, base).T)]


def _first_layer(p, now, G, eta, base):
    if base == "initial":
        return now.W0
    if base == "bulk":
        return network.stepped(p, now, G, eta) - np.outer(p.student.linear * eta * now.a, network.direction(p, now))
    return network.stepped(p, now, G, eta, rows=base)


def _moments(p, now, G, beta, eta, base, tail, top):
    """Second moments (M, M), M = N + top + 1, of a base's units and of 1, x, …, x^top, x = βᵀx̃, and their products
    with y (M,); exact over x̃ ~ N(0, I)."""
    length, N = np.linalg.norm(beta), p.N
    unit, ranks = beta / length, np.arange(top + 1)
    H, h = np.empty((N + top + 1, N + top + 1)), np.empty(N + top + 1)
    powers = [Polynomial(row) for row in monomials(top)]
    if base == "gaussian":
        c1, start = p.student.linear, now.W0 @ unit
        H[:N, :N] = c1**2 * now.W0 @ now.W0.T + tail**2 * p.student.tail * np.eye(N)
        H[:N, N:] = c1 * start[:, None] * gaussian_moments(ranks + 1)
        h[:N] = c1 * p.target.linear * now.W0 @ now.beta_star
    else:
        W = _first_layer(p, now, G, eta, base)
        norms = np.linalg.norm(W, axis=1)
        H[:N, :N] = averages.gram(p.student, W @ W.T)
        H[:N, N:] = averages.crosses(p.student, powers, norms, W @ unit / norms).T
        h[:N] = averages.cross(p.student, p.target, norms, W @ now.beta_star / norms)
    one, overlap = np.ones(1), np.array([now.beta_star @ unit])
    H[N:, N:] = gaussian_moments(np.add.outer(ranks, ranks))
    h[N:] = np.ravel([averages.cross(power, p.target, one, overlap) for power in powers])
    H[N:, :N] = H[:N, N:].T
    scale = np.concatenate([np.ones(N), length**ranks])
    return scale[:, None] * H * scale, scale * h


def forms(p: Problem, ridges, *, order=3, gaussian=False, **run) -> Forms:
    """The forms v1ᵀR0v2 for v in {H_q(z), H_q(z⋆), F0 a, √N F0 a^{∘2}, F0 1/√N, 1}, q = 1..order, at every ridge.

    z = X̃β/‖β‖ and z⋆ = X̃β⋆ have unit variance. H_q(z), H_q(z⋆), a and √N a^{∘2} are scaled to their limiting norms
    √(n q!), 1 and √3, which takes out most of their noise.

    Parameters
    ----------
    p : Problem
        Its own ridge is not used.
    ridges : list of float
        Penalties λ > 0.
    order : int
        Largest degree q >= 1.
    gaussian : bool
        Replace F0 by `gaussian_features`, in R0 and in the vectors.
    **run
        trials, seed, jobs and executor, as in `repeat`.

    Returns
    -------
    Forms

    Raises
    ------
    ValueError
        For a bad argument, or when the memory needed is not there.
    """
    ridges, order = [number("ridges", ridge, above=0) for ridge in ridges], whole("order", order, 1)
    entries = 2 * p.n * p.N + 3 * p.n * p.d + 2 * p.N * p.d + 3 * min(p.n, p.N) ** 2
    replicate = partial(_forms, p, ridges, order, gaussian)
    labels = [f"H{q}({z})" for z in ("z", "z⋆") for q in range(1, order + 1)]
    named = partial(Forms, (*labels, "F0 a", "√N F0 a²", "F0 1/√N", "1"))
    return collect(named, replicate, 8 * entries / 2**30, **run)


def _forms(p, ridges, order, gaussian, rng):
    now = network.draw(p, rng)
    beta = network.direction(p, now)
    if gaussian:
        F0 = gaussian_features(p, now.X2, now.W0, rng.standard_normal((p.n, p.N)))
    else:
        F0 = p.student(now.X2 @ now.W0.T)
    projections = now.X2 @ np.column_stack([beta / np.linalg.norm(beta), now.beta_star])
    polynomials = np.column_stack([hermevander(z, order)[:, 1:] for z in projections.T])
    polynomials *= np.tile(np.sqrt(p.n * factorial(np.arange(1, order + 1))), 2) / np.linalg.norm(polynomials, axis=0)
    hidden = np.column_stack([now.a, now.a**2, np.ones(p.N)])
    hidden *= np.sqrt([1.0, 3.0, 1.0]) / np.linalg.norm(hidden, axis=0)
    vectors = np.column_stack([polynomials, F0 @ hidden, np.ones(p.n)])
    gram, left = (F0.T @ F0, F0.T) if p.N < p.n else (F0 @ F0.T, np.eye(p.n))
    eigenvalues, Q = np.linalg.eigh(gram)
    rotated, inputs = Q.T @ (left @ vectors), np.sum((Q.T @ (left @ now.X2)) ** 2, axis=1)
    values, m1, m2 = [], [], []
    for ridge in ridges:
        inverse = 1 / (np.maximum(eigenvalues, 0) + ridge * p.n)
        form, trace, linear = rotated.T @ (inverse[:, None] * rotated), inverse.sum(), inverse @ inputs
        if p.N < p.n:  # (F0F0ᵀ + μ)⁻¹ = (1 - F0(F0ᵀF0 + μ)⁻¹F0ᵀ)/μ
            form = (vectors.T @ vectors - form) / (ridge * p.n)
            trace += (p.n - p.N) / (ridge * p.n)
            linear = (np.sum(now.X2**2) - linear) / (ridge * p.n)
        values.append(form)
        m1.append(p.phi / p.psi * trace)
        m2.append(p.phi / p.psi * linear / p.d)
    return {"values": values, "m1": m1, "m2": m2, "variates": variates(p, now, now.y2[:, None])}
