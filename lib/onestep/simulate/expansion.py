"""Simulated equivalences: F against its expansion F_ℓ, and F0 against Gaussian features with the same moments.

    F_ℓ = F0 + Σ_{k≤ℓ} c_1^k c_k η^k (X̃β)^{∘k} (a^{∘k})ᵀ            (sizes, norms, losses)
    F0  → c_1 X̃W0ᵀ + c_{>1} Z,  Z_ij ~ N(0, 1) independent           (losses, forms)

Source: Moniri, Lee, Hassani, Dobriban (ICML 2024), theorem on ‖F - F_ℓ‖ and section "Universality".
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb, inf, sqrt

import numpy as np
from numpy.polynomial import chebyshev
from numpy.polynomial.hermite_e import hermevander
from scipy.special import factorial

from ..checks import choice, number, steps, whole
from ..hermite import Polynomial, gaussian_moments, monomials
from ..problem import Problem
from . import averages, network, svd
from .control_variates import variates
from .every_step import redrawn_labels
from .replicates import memory, replicated

BASES = (*network.ROWS, "initial", "bulk", "gaussian")
_DEGREE, _PRECISION = 60, 1e-7  # of the polynomial that sums the series; far below what is left of F - F_∞
_BEYOND = 1  # powers a^{k+2}, … that `sizes` fits beside a^k: what is left is of order n^{(2α-1)(_BEYOND + 1)}


@dataclass(frozen=True)
class Version:
    """Features to fit the second layer on: a base, and the terms of F_ℓ added to it.

    base : "real", "rank one" or "restored", the network with its rows as in `network.stepped`; "initial", F0; "bulk",
        F0 with the rows of W0 + ηE, which are longer (E as in `network.stepped`); "gaussian", Gaussian features in the
        place of F0.
    order : ℓ >= 0 terms added.   growth : whether they count the growth of W's rows in this draw, see `terms`.
    tail : factor on c_{>1} of Gaussian features; 0 leaves their linear part.
    intercept : whether the fit has a constant free of charge.
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
    """left (n, K), right (N, K) with F_ℓ - F0 = left rightᵀ, for projection = X̃β (n,) and the readout a (N,).

    order : ℓ >= 0, then K = ℓ, column k holding term k; or math.inf for the sum of the series, E σ(g + t) with
        t = c_1 η X̃β aᵀ and g ~ N(0, 1), by the polynomial in t that interpolates it (Σ c_k t^k converges slowly, if at
        all). ArithmeticError if no polynomial of degree 60 does.
    growth : 0 gives the terms as printed. With `p.row_growth`, or ‖E‖_F²/‖a‖² of a draw, the powers x^k of x = X̃β
        become E (x + √γ h)^k over h ~ N(0, 1), γ = growth/c_1²: the k-th term of E σ(r_i g + t), where
        r_i² = 1 + η² a_i² growth is the squared length that row i of W has apart from β. Not for the sum of the series.
    """
    if order == inf:
        return _series(p, projection, a, eta)
    powers = projection[:, None] ** np.arange(whole("order", order, 0) + 1)
    return powers @ _polynomials(p, eta, order, growth), a[:, None] ** np.arange(1, order + 1)


def _polynomials(p, eta, order, growth):
    """Coefficients in 1, x, …, x^order of the terms' left factors, one column for each; see `terms`."""
    k, out = np.arange(1, order + 1), np.zeros((order + 1, order))
    for j in k:  # E (x + √γ h)^j = Σ_i binom(j, i) E h^i γ^{i/2} x^{j-i}
        for i in range(0, j + 1, 2):
            out[j - i, j - 1] = comb(j, i) * gaussian_moments(i) * (growth / p.student.linear**2) ** (i / 2)
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


@replicated()
def sizes(p: Problem, eta, order, *, rows="real", rng):
    """How large each term of F_ℓ is in F itself: values (trials, steps, order + 1), claimed c_1^k c_k.

    With z = xᵀβ/‖β‖, unit i has along H_k(z) the coefficient E_x[σ(w_iᵀx)H_k(z)]/k!, an exact average over x. What the
    step η > 0 adds to it is fitted with powers of a_i; entry k is the coefficient of (η‖β‖a_i)^k. Entry 0 is that of
    (η‖β‖a_i)² along the constant H_0: claimed c_1²c_2 as well, since z² = H_2 + 1. Each replicate steps up and down
    the gradient and keeps the part of a_i's parity. rows are those of W, as in `network.stepped`.
    """
    eta, order = np.atleast_1d(steps(eta)), whole("order", order, 1)
    if np.any(eta == 0):
        raise ValueError(f"eta = {eta!r}: must be > 0, to be divided by")
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


@replicated()
def norms(p: Problem, eta, orders, *, directions=("residual",), growth=False, rows="real", rng):
    """‖F - F_ℓ‖_op/√n for every direction, step size and order, all on the same draws.

    orders : whole numbers ℓ >= 0, or `math.inf` for the sum of the series.
    directions : "residual", "labels" or both: which β the terms are made of, see `network.direction`.
    growth : whether F_ℓ counts the growth of W's rows, that of the draw, see `terms`; one choice, or one per order.
    rows : of W, as in `network.stepped`; one choice, or one per order.

    values : (trials, directions, steps, orders); over √n a spike of the bulk's own size is O(1).
    readout : (trials,), √(N Σ a⁴/3), the length of a∘a over its limit.
    growth : (trials,), ‖E‖_F²/‖a‖² over its limit, the rest E = G - c_1 a βᵀ of the gradient. This and the readout make
        most of the spread of what growing rows do.
    """
    eta, count = np.atleast_1d(steps(eta)), len(orders)
    growth, rows = np.broadcast_to(growth, count), np.broadcast_to(rows, count)
    if growth.dtype != bool or any(order == inf and grows for order, grows in zip(orders, growth, strict=True)):
        raise ValueError(f"growth = {growth}: must be True or False, and False for the sum of the series")
    now = network.draw(p, rng)
    projections = [now.X2 @ network.direction(p, now, of=of) for of in directions]
    G, F0 = network.gradient(p, now), p.student(now.X2 @ now.W0.T)
    grown = _row_growth(p, now, G)
    values = np.empty((len(directions), len(eta), count))
    for m, step in enumerate(eta):
        for kind in dict.fromkeys(rows.tolist()):
            change = p.student(now.X2 @ network.stepped(p, now, G, step, rows=kind).T)
            change -= F0
            for j in np.flatnonzero(rows == kind):
                for i, projection in enumerate(projections):
                    kept = terms(p, projection, now.a, step, orders[j], growth=growth[j] * grown)
                    values[i, m, j] = svd.operator_norm(svd.deflated(change, *kept), svd.NORM)
    readout = sqrt(p.N * np.sum(now.a**4) / 3)
    found = {"values": values / sqrt(p.n), "readout": readout, "growth": grown / p.row_growth}
    return found | {"variates": variates(p, now, now.y2[:, None])}


def _row_growth(p, now, G):
    """‖E‖_F²/‖a‖², whose limit is p.row_growth."""
    E = G - np.outer(p.student.linear * now.a, network.direction(p, now))
    return np.sum(E**2) / np.sum(now.a**2)


@replicated(lambda p, *_, redraws=1, **__: (1 + redraws) * memory(p))
def losses(p: Problem, eta, versions, *, redraws=1, rng):
    """Ridge regression on each `Version` of the features, all on the same draws: train, test (trials, versions).

    Test errors are exact averages over x; differences to the first version are `drops`, with the sign changed. Each
    replicate is averaged over `redraws` draws of Z, and of the second stage's label noise.
    """
    eta, redraws, versions = number("eta", eta, least=0), whole("redraws", redraws, 1), list(versions)
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


@replicated()
def forms(p: Problem, ridges, *, order=3, gaussian=False, rng):
    """The forms v1ᵀR0v2 for v in {H_q(z), H_q(z⋆), F0 a, √N F0 a^{∘2}, F0 1/√N, 1}, q = 1..order, at every ridge.

    R0 = (F0F0ᵀ + λnI)⁻¹. z = X̃β/‖β‖ and z⋆ = X̃β⋆ have unit variance. H_q(z), H_q(z⋆), a and √N a^{∘2} are scaled to
    their limiting norms √(n q!), 1 and √3, which takes out most of their noise. With `gaussian`, `gaussian_features`
    stand for F0 in R0 and in the vectors; p's own ridge is not used.

    values : (trials, ridges, m, m), the vectors in the order of `form_labels`.
    m1, m2 : (trials, ridges), (φ/ψ) tr R0 and (φ/ψ) tr(X̃ᵀR0X̃)/d.
    """
    ridges, order = [number("ridges", ridge, above=0) for ridge in ridges], whole("order", order, 1)
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


def form_labels(order=3):
    """Names of the vectors of `forms`."""
    labels = [f"H{q}({z})" for z in ("z", "z⋆") for q in range(1, order + 1)]
    return [*labels, "F0 a", "√N F0 a²", "F0 1/√N", "1"]
