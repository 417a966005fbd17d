"""Bulk laws and outliers of the singular values of W and of F after one gradient step.

W without its spike and F without its spikes have independent rows, and one theorem serves both (Marchenko & Pastur
1967, Silverstein & Choi 1995): if the rows' covariances have eigenvalues t with law H, the squared singular values x
outside the bulk are reached through w > max t by

    x(w) = w (1 + δ(w)),   δ(w) = γ ∫ t/(w - t) dH(t),

convex in w: the bulk ends at the minimum of x, and inside the bulk w is complex, Im(-1/w)/π being the density.
A finite-rank spike sees the bulk through w alone (Benaych-Georges & Nadakuditi 2012): it leaves where its equation
strength(w) = 1, decreasing in w, has its root beyond the minimum.

    W:  t = r_i², the growth of row i by the part of the gradient that is not rank one;       γ = N/d.
    F:  t = eigenvalues of Σ = c_1² W0W0ᵀ + c_{>1}² I,  x = s²/n;  w = -ν, the effective ridge of `theory`;  γ = N/n.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, log, sqrt

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtri

from ..checks import choice, steps, whole
from ..problem import Problem
from .staircase import growth_ratio

STEP_NOISE = ("isotropic", "absent")
_NODES = 48  # Gauss-Hermite nodes for the kernel E σ(g + s z u): entire in s z u, exact to rounding for s <= 1
_RANK = 16  # singular values of that kernel kept: they fall like s^k


@dataclass(frozen=True)
class Law:
    """Law of squared singular values, by δ and δ' as functions of w.

    degrees : w (real beyond `top`, or complex) -> (δ(w), δ'(w)).  top : largest t.
    share : share of the eigenvalues on the side of length n (of F) or d (of W) that are not zero.
    """

    degrees: Callable
    top: float
    share: float

    def at(self, w):
        """(x, x'(w))."""
        delta, slope = self.degrees(w)
        return w * (1 + delta), 1 + delta + w * slope

    @property
    def turn(self):
        """The w at which the bulk ends."""
        low, high = self.top * (1 + 1e-12), 2 * self.top
        while self.at(high)[1] <= 0:
            high *= 2
        return brentq(lambda w: self.at(w)[1], low, high, xtol=1e-14 * self.top, rtol=1e-14)

    @property
    def edge(self):
        """Largest singular value of the bulk."""
        return sqrt(self.at(self.turn)[0])

    def density(self, s):
        """Density of the bulk's non-zero singular values at s > 0; the same shape as s.

        Newton's iteration for x(w) = s² + iε, continued from a large ε, where w is known, to a negligible one.
        Raises ArithmeticError if it does not converge.
        """
        s = np.asarray(s, float)
        x, scale = s**2, self.edge**2
        w = x + 1j * 30 * scale
        for epsilon in scale * np.geomspace(30, 1e-7, 120):
            for _ in range(4):
                value, slope = self.at(w)
                w = w - (value - x - 1j * epsilon) / slope
        if np.abs(self.at(w)[0] - x - 1j * epsilon).max() > 1e-8 * scale or w.imag.min() < 0:
            raise ArithmeticError("density: Newton's iteration did not converge")
        return 2 * s * (-1 / w).imag / np.pi / self.share


@dataclass(frozen=True)
class WeightSpike:
    """The spike of W at each step size; every field has the shape of eta, NaN where no spike is out of the bulk.

    value : singular value.  left, right : squared cosines of its singular vectors with a and with β.
    """

    value: np.ndarray | float
    left: np.ndarray | float
    right: np.ndarray | float


@dataclass(frozen=True)
class FeatureSpikes:
    """Spikes of F at M step sizes, largest first, NaN where spike j is not out of the bulk.

    value : (M, count) singular values divided by √n.
    overlap : (M, count, count + 1) squared cosine of left singular vector j with the k-th of the monomials (X̃β)^{∘k},
        k = 1, …, count, and last the constant, made orthonormal in this order under N(0, 1).
    """

    value: np.ndarray
    overlap: np.ndarray


def weights(p: Problem, eta=0.0, step_noise="isotropic") -> Law:
    """Law of the singular values of W = W0 + ηG (N, d) without its spike.

    Row i of the part of the gradient that is not rank one, a_i Xᵀ(r ∘ (σ'(Xw_i) - c_1))/n, is taken as independent
    isotropic noise, so that ‖w_i‖² grows to r_i² = 1 + N a_i² · η²φ E r² Var σ'/N, with √N a_i at the quantiles of
    N(0, 1); `step_noise="absent"` leaves it out: the Marchenko-Pastur law. Both first layers have the same limit.

    eta : step size >= 0.
    """
    return _atoms(p, _rows(p, float(steps(eta)), step_noise)[1])


def gradient_gap(p: Problem):
    """‖G - c_1 a βᵀ‖/‖G‖ with the rest of the gradient taken as isotropic noise: falls like √(log N/n).

    The rest has rows of size |a_i| √(φ E r² Var σ'), the rank-one part the size |c_1|√D.
    """
    rest = _atoms(p, _rows(p, 1.0, "isotropic")[1] - 1).edge
    return rest / (abs(p.student.linear) * sqrt(p.D))


def _atoms(p, t):
    def degrees(w):
        gap = np.asarray(w)[..., None] - t
        return (t / gap).mean(-1) / p.psi, -(t / gap**2).mean(-1) / p.psi

    return Law(degrees, t.max(), min(1.0, 1 / p.psi))


def weight_spike(p: Problem, eta, step_noise="isotropic") -> WeightSpike:
    """Location and overlaps of the spike η c_1 a βᵀ in W.

    Negligible initial output: strength θ = η|c_1|√D. With the full one β holds -c_1 W0ᵀa, which shrinks W0 along a,
    and the strength is θ² - 2θκ, κ = |c_1|/√D: no spike at all below η = 2/D. Without the growth of the rows
    the spike leaves at θ⁴ = N/d = 1/ψ, to s² = (1 + θ²)(1/ψ + θ²)/θ².

    eta : step size(s) >= 0, scalar or 1-D.  step_noise : as in `weights`.
    """
    eta = steps(eta)
    out = np.array([_weight_spike(p, step, step_noise) for step in np.atleast_1d(eta)])
    return WeightSpike(*(column.reshape(eta.shape)[()] for column in out.T))


def _weight_spike(p, eta, step_noise):
    law, (u, t) = weights(p, eta, step_noise), _rows(p, eta, step_noise)
    theta = eta * abs(p.student.linear) * sqrt(p.D)
    kappa = abs(p.student.linear) / sqrt(p.D) if p.initial_output == "full" else 0.0
    strength = theta**2 - 2 * theta * kappa

    def seen(w):
        return (u**2 / (w - t)).mean()

    w = _leaves(lambda w: strength * seen(w), law)
    if w is None:
        return np.full(3, np.nan)
    x, slope = law.at(w)
    alpha, fall = seen(w), (u**2 / (w - t) ** 2).mean()
    return np.array([sqrt(x), w * alpha**2 * slope / (x * fall), alpha * (1 + kappa**2 * alpha) * slope / (w * fall)])


def weight_threshold(p: Problem):
    """Step size at which the spike leaves the bulk of W, at leading order: θ² - 2θκ = ψ^{-1/2}."""
    c1 = abs(p.student.linear)
    kappa = c1 / sqrt(p.D) if p.initial_output == "full" else 0.0
    return (kappa + sqrt(kappa**2 + p.psi**-0.5)) / (c1 * sqrt(p.D))


def _rows(p, eta, step_noise):
    """√N a_i at the quantiles of N(0, 1), scaled to mean square 1, and r_i²; both (N,)."""
    u = ndtri((np.arange(p.N) + 0.5) / p.N)
    u /= sqrt(np.mean(u**2))
    return u, 1 + u**2 * _growth(p, eta, step_noise)


def _growth(p, eta, step_noise):
    """By how much the squared length of a row with √N a_i = 1 grows beyond the spike."""
    return eta**2 / p.N * p.row_growth if choice("step_noise", step_noise, STEP_NOISE) == "isotropic" else 0.0


def features(p: Problem, eta=0.0) -> Law:
    """Law of the singular values of F/√n (n, N) without its spikes.

    F0 ≃ c_1X̃W0ᵀ + c_{>1}Z. After a step, given z = X̃β/√D and u = √N a, unit and sample share the coefficient
    μ1(z, u) = E gσ(r g + s z u) instead of c_1, and c_{>1}² becomes Var σ(r g + s z u) - μ1²; both enter by their mean
    squares over z and u, which is exact as η/√n → 0.

    eta : step size >= 0.
    """
    return _Kernel(p, float(steps(eta))).law


def _feature_law(p, s, tail):
    gamma = p.phi / p.psi

    def degrees(w):
        share, slope = _explained(p.psi, s, tail, w)
        gap = w - share
        return gamma * share / gap, gamma * (slope * w - share) / gap**2

    return Law(degrees, tail + s * (1 + p.psi**-0.5) ** 2, min(1.0, gamma))


def _explained(psi, s, tail, w):
    """tail + sT and its w-derivative; T as in `theory.traces` at ν = -w, real beyond the bulk or complex."""
    B = tail - np.asarray(w, complex)
    root = np.sqrt(B + s * (1 + psi**-0.5) ** 2) * np.sqrt(B + s * (1 - psi**-0.5) ** 2)
    T = 2 * B / (B + s / psi - s + root)
    share, slope = tail + s * T, s * (T - 1) / root
    return (share, slope) if np.iscomplexobj(w) else (share.real, slope.real)


def feature_spikes(p: Problem, eta, count=4, step_noise="isotropic") -> FeatureSpikes:
    """Spikes of F/√n at a finite step: singular values and overlaps of the left vectors with the monomials.

    With z = X̃β/√D, u = √N a and s = η c_1 √(D/N), F - F0 ≃ μ0(z, u) = E σ(r g + s z u) with r² = 1 + u²·growth as in
    `weights`; at r = 1 it is Σ c_k (s z u)^k, all monomials at once and at their strength at this n. The growth is of
    the order of the second monomial at every n: it adds a constant to (X̃β)^{∘2}. Spike j sits at the w where
    N (1 + δ/γ)/w · σ_j² = 1, σ_j the j-th singular value of the operator T^{1/2} μ0 on L²(z) x L²(u) and
    T acting on the linear function alone. A Gaussian first layer adds the rank-one mean 1δᵀ of the even features.

    eta : step size(s) >= 0, scalar or 1-D.  count : spikes looked for, 1 <= count <= 8.
    step_noise : "absent" leaves the growth of the rows out (r = 1), as the theorem does.

    Raises
    ------
    ValueError for the full initial output, where β overlaps with W0ᵀa and F0 is not independent of the spikes.
    """
    eta, count = np.atleast_1d(steps(eta)), _count(count)
    _needs_negligible(p)
    value, overlap = np.full((len(eta), count), np.nan), np.full((len(eta), count, count + 1), np.nan)
    for m, step in enumerate(eta):
        kernel = _Kernel(p, step, step_noise)
        for j in range(count):
            w = _leaves(lambda w, j=j, kernel=kernel: kernel.strengths(w)[j], kernel.law)
            if w is None:
                break
            value[m, j] = sqrt(kernel.law.at(w)[0])
            overlap[m, j] = kernel.overlaps(w, j, count)
    return FeatureSpikes(value, overlap)


def birth(p: Problem, order: int):
    """Step size at which spike `order` of F leaves the bulk, at this n: η/√n → 0 like n^{-1/(2·order)}.

    Raises ValueError for the full initial output, order > 8, or a spike that never leaves (c_order = 0 …).
    """
    order = _count(order, "order")
    _needs_negligible(p)

    def excess(log_s):
        kernel = _Kernel(p, exp(log_s) * sqrt(p.N) / (abs(p.student.linear) * sqrt(p.D)))
        return log(max(kernel.strengths(kernel.law.turn)[order - 1], 1e-300))

    low, high = -0.5 * log(p.N), 0.0
    if not excess(low) < 0 < excess(high):
        raise ValueError(f"order = {order}: spike {order} is not born between η = 1/(c_1√D) and √N/(c_1√D)")
    return exp(brentq(excess, low, high, xtol=1e-10)) * sqrt(p.N) / (abs(p.student.linear) * sqrt(p.D))


def second_spike(p: Problem):
    """(cos², share) of spike 2's left singular vector as n → ∞ with 1/4 < α < 1/2: its squared cosine with the span of
    the first two monomials, and its part along H_2.

    The vector is (X̃β)^{∘2}/D + q with q as in `growth_ratio`: rows with a large a_i grow, and the even part c_2H_2 of
    the activation turns that into a constant. With q = 0 they would be 1 and 2/3.
    """
    q = growth_ratio(p)
    return (3 + q) ** 2 / (3 * (2 + (1 + q) ** 2)), 2 / (2 + (1 + q) ** 2)


class _Kernel:
    """The operator μ0(s z u) between L²(N(0,1)) and itself in Gauss-Hermite nodes, seen through F0."""

    def __init__(self, p, eta, step_noise="isotropic"):
        z, mass = np.polynomial.hermite_e.hermegauss(_NODES)
        mass = mass / mass.sum()
        self.p, self.z, self.root = p, z, np.sqrt(mass)
        s = eta * p.student.linear * sqrt(p.D / p.N)
        r = np.sqrt(1 + z**2 * _growth(p, eta, step_noise))
        mean, linear, square = p.student.moments(s * np.outer(z, z), r)
        self.s = mass @ linear**2 @ mass
        self.tail = max(0.0, mass @ (square - mean**2 - linear**2) @ mass)
        self.law = _feature_law(p, self.s, self.tail)
        table = mean * np.outer(self.root, self.root)
        if p.first_layer == "gaussian":
            even = sqrt(2 / p.psi / p.N) * abs(p.student.coefficients(2)[2])
            table = np.column_stack([table, even * self.root])
        left, size, _ = np.linalg.svd(table)
        self.table = left[:, :_RANK] * size[:_RANK]
        self.linear = self.root * z

    def _through(self, w):
        """T^{1/2}·table, T, dT/dw, 1 + δ/γ, and the derivative of the latter two's law."""
        p = self.p
        share, slope = _explained(p.psi, self.s, self.tail, w)
        T, dT = (share - self.tail) / self.s, slope / self.s
        seen = self.table + (sqrt(T) - 1) * np.outer(self.linear, self.linear @ self.table)
        delta, fall = self.law.degrees(w)
        return seen, T, dT, 1 + delta * p.psi / p.phi, fall * p.psi / p.phi

    def strengths(self, w):
        """N (1 + δ/γ) σ_j²/w, largest first; the spike is where it equals 1."""
        seen, _, _, free, _ = self._through(w)
        return self.p.N * free / w * np.linalg.svd(seen, compute_uv=False) ** 2

    def overlaps(self, w, j, count):
        """Squared cosines of left singular vector j at w with orthonormalised monomials 1..count and the constant."""
        seen, T, dT, free, dfree = self._through(w)
        P, size, Q = np.linalg.svd(seen, full_matrices=False)
        x, slope = self.law.at(w)
        # one resolvent for each side, a = s T/w and b = (1 + δ/γ)/s with s = √x; the vector has unit norm when
        # x_vᵀΘᵀ(-da/ds)Θx_v + x_uᵀΘ(-db/ds)Θᵀx_u = 1, Θ the spikes, x_v = cQ_j, x_u = aΘx_v.
        power = self.p.N * size[j] ** 2
        rate = 2 * x / slope  # s dw/ds
        left = -(power * (1 / w - rate / w**2) + self.p.N * (self.linear @ self.table @ Q[j]) ** 2 * dT * rate / w)
        right = (free - dfree * rate) / free**2
        vector = P[:, j] + (sqrt(T) - 1) * self.linear * (self.linear @ P[:, j])
        vector *= sqrt(2 * x * power / (left + right)) / w
        basis = np.linalg.qr(self.root[:, None] * self.z[:, None] ** [*range(1, count + 1), 0])[0]
        return (basis.T @ vector) ** 2


def _leaves(strength, law):
    """The w > law.turn with strength(w) = 1, or None when the spike stays in the bulk; w·strength(w) decreases."""
    start, low = strength(law.turn), log(law.turn)
    if not start > 1:
        return None
    high = low + log(start) + 1e-3
    return exp(brentq(lambda log_w: log(strength(exp(log_w))), low, high, xtol=1e-14))


def _count(count, argument="count"):
    if whole(argument, count, 1) > 8:
        raise ValueError(f"{argument} = {count}: must be a whole number from 1 to 8")
    return int(count)


def _needs_negligible(p):
    if p.initial_output == "full":
        raise ValueError("initial_output = 'full': the spikes of F are predicted for a negligible initial output only")
