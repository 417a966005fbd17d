"""Bulks and outliers of the singular values of W and of F after one gradient step.

W without its spike and F without its spikes have independent rows, so that one theorem serves both bulks (Marchenko &
Pastur 1967, Silverstein & Choi 1995). With t the eigenvalues of the rows' covariances, H their law, a squared singular
value x outside the bulk is a function of w > max t,

    x(w) = w (1 + δ(w)),   δ(w) = γ ∫ t/(w - t) dH(t),

which is convex, and the bulk ends at its minimum. A finite-rank spike sees the bulk through w alone (Benaych-Georges &
Nadakuditi 2012): it is outside where strength(w) = 1, decreasing in w, has its root beyond that minimum.

    W:  t = r_i², the growth of row i by the part of the gradient that is not rank one;       γ = N/d.
    F:  t = eigenvalues of Σ = c_1² W0W0ᵀ + c_{>1}² I,  x = s²/n;  w = -ν, the effective ridge of `theory`;  γ = N/n.

With the full initial output β holds -c_1 W0ᵀa. Given e = W0ᵀa, the first layer is a eᵀ beside rows independent of e
that have nothing along a, so that the step's spike θ a β̂ᵀ, θ = ηc_1√D, joins a eᵀ to one of strength
√(θ² - 2θρ_0 + 1), ρ_0 = |c_1|/√D the cosine of β with -e.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import exp, log, sqrt

import numpy as np
import scipy

from ..checks import choice, number, steps, whole
from ..problem import Problem
from .quadrature import graded
from .staircase import monomials, require_spikes

SPIKE_NOISE = ("isotropic", "absent")  # the gradient's part that is not rank one: rows grow by it, or it is left out
_MOST = 8  # spikes looked for
_WIDEST = 1e30  # units: rounding of the kernel weighs √N, and from 1e33 on it would look like a spike
_NODES = 48  # of z and of u in the kernel E σ(g + s z u): spikes to 2e-4 at every s up to 20
_BY_LENGTH = 4  # functions kept of what lengths add to it


@dataclass(frozen=True)
class Law:
    """Where a bulk of singular values ends, and what a spike outside sees of it.

    delta : w -> (δ(w), δ'(w)).   top : max t.
    """

    delta: Callable
    top: float

    def at(self, w):
        """(x, x'(w)) at w > top."""
        delta, slope = self.delta(w)
        return w * (1 + delta), 1 + delta + w * slope

    @cached_property
    def turn(self):
        """The w at which the bulk ends."""
        low, high = self.top * (1 + 1e-12), 2 * self.top
        while self.at(high)[1] <= 0:
            high *= 2
        return scipy.optimize.brentq(lambda w: self.at(w)[1], low, high, xtol=1e-14 * self.top, rtol=1e-14)

    @property
    def edge(self):
        """Largest singular value of the bulk as its size grows."""
        return sqrt(self.at(self.turn)[0])

    def beyond(self, factor):
        """The w of a singular value that is factor >= 1 times the bulk's edge."""
        x = self.at(self.turn)[0] * factor**2
        return scipy.optimize.brentq(lambda w: self.at(w)[0] - x, self.turn, x, xtol=1e-14 * self.top, rtol=1e-14)


@dataclass(frozen=True)
class FeatureSpikes:
    """Spikes of F at M step sizes, largest first, NaN where spike j is not out of the bulk.

    value : (M, count), singular values divided by √n.
    overlap : (M, count, count + 1), squared cosine of left singular vector j with the k-th of the monomials
        (X̃β)^{∘k}, k = 1, …, count, and last the constant, made orthonormal in this order under N(0, 1).
    """

    value: np.ndarray
    overlap: np.ndarray


def _rho_0(p):
    """ρ_0, the cosine of β with -W0ᵀa sign(c_1)."""
    return abs(p.student.linear) / sqrt(p.D) if p.initial_output == "full" else 0.0


def features(p: Problem, eta=0.0) -> Law:
    """`Law` of the singular values of F/√n (n, N) without its spikes.

    F0 ≃ c_1X̃W0ᵀ + c_{>1}Z. After a step, given z = X̃β/√D and u = √N a, unit and sample share the coefficient
    μ1(z, u) = E gσ(r g + s z u) instead of c_1, and c_{>1}² becomes Var σ(r g + s z u) - μ1²; both enter by their mean
    squares over z and u, which is exact as η/√n → 0.
    """
    return _Kernel(p, number("eta", eta, least=0)).law


def _law_of_features(p, s, tail):
    gamma = p.phi / p.psi

    def delta(w):
        share, slope = _explained(p.psi, s, tail, w)
        gap = w - share
        return gamma * share / gap, gamma * (slope * w - share) / gap**2

    return Law(delta, tail + s * (1 + p.psi**-0.5) ** 2)


def _explained(psi, s, tail, w):
    """tail + sT and its derivative at w, beyond the bulk; T as in `theory.traces` at ν = -w."""
    B = tail - w
    root = -sqrt((B + s * (1 + psi**-0.5) ** 2) * (B + s * (1 - psi**-0.5) ** 2))
    T = 2 * B / (B + s / psi - s + root)
    return tail + s * T, s * (T - 1) / root


def feature_spikes(p: Problem, eta, count=4, *, step_noise="isotropic") -> FeatureSpikes:
    """Spikes of F/√n at a finite step: singular values and overlaps of the left vectors with the monomials.

    With z = X̃β/√D, u = √N a and s = η c_1 √(D/N), F - F0 ≃ μ0(z, u) = E σ(r g + s z u); at r = 1 it is Σ c_k (s z u)^k,
    all monomials at once and at their strength at this n. The growth r² - 1 = η²a_i² `p.row_growth` is of the order of
    the second monomial at every n: it adds a constant to (X̃β)^{∘2}. Spike j sits at the w where
    N σ_j²/w = 1, σ_j the j-th singular value of the operator T^{1/2} μ0 V^{1/2} between L²(u) and L²(z), T acting on
    the linear function of z alone and V = 1 + δ/γ. Lengths of inputs, ‖x̃‖² = d(1 + e√(2/d)), add e κ(z, u)/√(2d) with
    κ = r ∂μ0/∂r = E (g² - 1) σ(r g + s z u), without a step the rank-one part c_2(‖x̃‖²/d - 1)1ᵀ; those of Gaussian
    rows of W0 add their like.

    With the full initial output z is the input along a β̂ᵀθ + a eᵀ (see above), s its strength over √N, and the features
    have no linear part along a: there V = w/(w - c_{>1}²). Overlaps are with the monomials of X̃β all the same.

    count : spikes looked for, from 1 to 8.   step_noise : "absent" takes r = 1, as the theorem's F_ℓ does.
    """
    eta, count = np.atleast_1d(steps(eta)), whole("count", count, 1, _MOST)
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


def visible(p: Problem, eta, count=_MOST):
    """How many spikes of F stand visibly out of its bulk, at this n: values of `feature_spikes` above a margin.

    The margin is (1 + 2 n^{-2/3}) times the bulk's edge: n^{-2/3} is the scale on which its largest value fluctuates.
    At most min(n, N), and mostly fewer than the thresholds (k - 1)/2k say for n → ∞: at n in the thousands every spike
    emerges later than its own. The bulk's law keeps mean squares over units and samples, exact for |c_2/c_1| η much
    below √n; bulks of ReLUs and of quadratic activations are wider beyond.

    count : spikes looked for, from 1 to 8.
    """
    eta, count = steps(eta), whole("count", count, 1, _MOST)
    kernels, margin = [_Kernel(p, step) for step in np.atleast_1d(eta)], 1 + 2 * float(p.n) ** (-2 / 3)
    strengths = np.array([kernel.strengths(kernel.law.beyond(margin))[:count] for kernel in kernels])
    return np.minimum((strengths > 1).sum(1), min(p.n, p.N, _MOST)).reshape(eta.shape)[()]  # as strengths decrease in w


class _Kernel:
    """The operator μ0(s z u) between L²(N(0,1)) and itself on nodes, between the resolvents of F0.

    table : (z, u), μ0 with the roots of the nodes' weights, bordered by what lengths of inputs (below) and of Gaussian
    rows (on the right) add.  linear, along : the functions z and a among its left and right sides.  tilt : cosine of
    the spike's right vector with β.  s, tail : mean squares of μ1 and of what is beyond μ0 and μ1, in the place of
    c_1² and c_{>1}².  law : of the bulk.  z, root : nodes and roots of their weights.
    """

    def __init__(self, p, eta, step_noise="isotropic"):
        require_spikes(p, 1)
        grows = choice("step_noise", step_noise, SPIKE_NOISE) == "isotropic"
        if p.N > _WIDEST:
            raise ValueError(f"N = {p.N:.3g}: must be at most {_WIDEST:g} here")
        theta, rho0 = eta * abs(p.student.linear) * sqrt(p.D), _rho_0(p)
        strength = sqrt(theta**2 + (1 - 2 * theta * rho0 if rho0 else 0.0))
        z, mass = graded(_NODES, 1 / sqrt(1 + strength**2 / p.N / 4))
        self.p, self.tilt = p, (theta - rho0) / strength if rho0 else 1.0
        r = np.sqrt(1 + z**2 * (eta**2 / p.N * p.row_growth) * grows)  # u = √N a has the nodes z, too
        half = p.student.moments(strength / sqrt(p.N) * np.outer(z[_NODES // 2 :], z), r)
        mean, linear, square, longer = (np.concatenate([x[::-1, ::-1], x]) for x in half)  # even in (z, u)
        self.s = mass @ linear**2 @ mass
        self.tail = max(0.0, mass @ (square - mean**2 - linear**2) @ mass)
        self.law = _law_of_features(p, self.s, self.tail)
        self.z, self.root = z, np.sqrt(mass)
        inputs = longer * np.outer(self.root, self.root) / sqrt(2 * p.psi * p.N)
        rows = inputs / r**2 * (p.first_layer == "gaussian")
        self.table = np.pad(mean * np.outer(self.root, self.root), (0, _BY_LENGTH))
        _, size, right = np.linalg.svd(inputs)
        self.table[_NODES:, :_NODES] = (size[:, None] * right)[:_BY_LENGTH]
        left, size, _ = np.linalg.svd(rows)
        self.table[:_NODES, _NODES:] = (left * size)[:, :_BY_LENGTH]
        self.linear = self.along = np.append(self.root * z, np.zeros(_BY_LENGTH))

    def _metrics(self, w):
        """(T, V, V along a) and their logarithmic derivatives in w."""
        share, slope = _explained(self.p.psi, self.s, self.tail, w)
        T = (share - self.tail) / self.s
        delta, fall = self.law.delta(w)
        ratio = self.p.psi / self.p.phi
        V, away = 1 + delta * ratio, w / (w - self.tail)
        rates = np.array([slope / (self.s * T), fall * ratio / V, 1 / w - 1 / (w - self.tail)])
        if not _rho_0(self.p):
            away, rates[2] = V, rates[1]
        return np.array([T, V, away]), rates

    def _through(self, w):
        """N^{1/2} T^{1/2}·table·V^{1/2}/w^{1/2}: a spike stands where one of its singular values is 1."""
        T, V, away = self._metrics(w)[0]
        out = self.table + (sqrt(T) - 1) * np.outer(self.linear, self.linear @ self.table)
        out = sqrt(V) * out + (sqrt(away) - sqrt(V)) * np.outer(out @ self.along, self.along)
        return out * sqrt(self.p.N / w)

    def strengths(self, w):
        """Squared singular values of `_through`, largest first; the spike is where one equals 1."""
        return np.linalg.svd(self._through(w), compute_uv=False) ** 2

    def overlaps(self, w, j, count):
        """Squared cosines of left singular vector j at w with orthonormalised monomials 1..count and the constant."""
        P, _, Q = np.linalg.svd(self._through(w), full_matrices=False)  # left vectors in columns, right ones in rows
        (T, *_), rates = self._metrics(w)
        x, slope = self.law.at(w)
        # with A = T s/w and B = V/s the resolvents on either side, s = √x, the left vector is A^{1/2}P c where
        # c² (P·(-dlog A/ds)P + Q·(-dlog B/ds)Q) = 2; both change with w, s dw/ds = 2x/x'(w).
        on_linear, on_a = (self.linear @ P[:, j]) ** 2, (self.along @ Q[j]) ** 2
        rate = (1 / w - rates[0] * on_linear - rates[1] * (1 - on_a) - rates[2] * on_a) * 2 * x / slope
        vector = P[:, j] + (sqrt(T) - 1) * self.linear * (self.linear @ P[:, j])
        return (self._orthonormal(count) @ vector[:_NODES]) ** 2 * 2 * x / (w * rate)

    def _orthonormal(self, count):
        """Monomials 1..count and the constant of X̃β, made orthonormal in this order, in the nodes' functions of z."""
        hermite = np.polynomial.hermite_e.hermevander(self.z, count) * self.root[:, None]
        hermite /= np.linalg.norm(hermite, axis=0)
        size = np.sqrt(np.cumprod([1.0, *range(1, count + 1)]))
        basis = np.linalg.qr((monomials(count)[[*range(1, count + 1), 0]] * size).T)[0]
        return basis.T @ (hermite * self.tilt ** np.arange(count + 1)).T


def _leaves(strength, law):
    """The w > law.turn with strength(w) = 1, or None when the spike stays in the bulk; w·strength(w) decreases."""
    start, low = strength(law.turn), log(law.turn)
    if not start > 1 + 1e-12:  # at a threshold, where rounding decides, it stays
        return None
    high = low + log(start) + 1e-3
    return exp(scipy.optimize.brentq(lambda log_w: log(strength(exp(log_w))), low, high, xtol=1e-14))
