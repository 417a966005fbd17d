"""Bulks and outliers of the singular values of W and of F after one gradient step.

W without its spike and F without its spikes have independent rows, so that one theorem serves both bulks (`bulks`):
with t the eigenvalues of the rows' covariances, the squared singular values x outside are reached through w > max t by

    x(w) = w (1 + δ(w)),   δ(w) = γ ∫ t/(w - t) dH(t).

The bulk enters a finite-rank spike through w alone (Benaych-Georges & Nadakuditi 2012): it leaves where its equation
strength(w) = 1, decreasing in w, has its root beyond the bulk's end.

    W:  t = r_i², the growth of row i by the part of the gradient that is not rank one;       γ = N/d.
    F:  t = eigenvalues of Σ = c_1² W0W0ᵀ + c_{>1}² I,  x = s²/n;  w = -ν, the effective ridge of `theory`;  γ = N/n.

With the full initial output β holds -c_1 W0ᵀa. Given e = W0ᵀa, the first layer is a eᵀ beside rows independent of e
that have nothing along a, so that the step's spike θ a β̂ᵀ, θ = ηc_1√D, joins a eᵀ to one of strength
√(θ² - 2θρ_0 + 1), ρ_0 = |c_1|/√D the cosine of β with -e.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log, sqrt

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtri

from ..checks import choice, number, steps, whole
from ..hermite import monomials
from ..problem import Problem, as_problem
from .bulks import Law, SampledRows
from .quadrature import gauss_hermite
from .staircase import require_spikes

SPIKE_NOISE = ("isotropic", "absent")  # what the spikes are known for
_NODES = 48  # Gauss-Hermite nodes for the kernel E σ(g + s z u), entire in s z u: rounding for s <= 1 …
_FURTHEST = 1.5  # … and a relative 1e-5 up to this s


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


def weights(p: Problem, eta=0.0, *, step_noise="isotropic") -> Law | SampledRows:
    """Law of the singular values of W = W0 + ηG (N, d) without its spike. Both first layers have the same limit.

    The part of row i of the gradient that is not rank one, a_i Xᵀ((y - f_0) ∘ (σ'(Xw_i) - c_1))/n, is taken as

    "isotropic" : independent isotropic noise, so that ‖w_i‖² grows to r_i² = 1 + η²a_i² `p.row_growth`;
    "correlated" : 2c_2 a_i M w_i, what is linear in w_i, and noise of the covariance that one sample gives it (see
        `units`): a wider bulk of the same mean square. This law has an end and a largest value, but no density
        here; the singular value that M may have along β⋆ (when c⋆2 != 0) is not part of the bulk;
    "absent" : nothing: the Marchenko-Pastur law.

    √N a_i and y stand at the quantiles of their distributions.

    step_noise : "isotropic", "correlated" or "absent".
    """
    if min(as_problem(p).N, p.d) < 2:
        raise ValueError(f"N = {p.N}, d = {p.d}: both must be at least 2 for a law of singular values")
    eta = float(steps(eta))
    if choice("step_noise", step_noise, (*SPIKE_NOISE, "correlated")) == "correlated":
        return _sampled(p, eta, 1.0)
    return _atoms(p, _rows(p, eta, step_noise)[1])


def gradient_gap(p: Problem, step_noise="isotropic"):
    """‖G - c_1 a βᵀ‖/‖G‖, which falls like √(log N/n): mean of the largest value of the rest's bulk over |c_1|√D.

    The rest has rows of length |a_i| √(φ E(y - f_0)² Var σ').

    step_noise : "isotropic" or "correlated", as in `weights`.
    """
    require_spikes(p, 1)
    if choice("step_noise", step_noise, ("isotropic", "correlated")) == "correlated":
        rest = _sampled(p, 1.0, 0.0)
    else:
        rest = _atoms(p, _rows(p, 1.0, step_noise)[1] - 1)
    return rest.largest / (abs(p.student.linear) * sqrt(p.D))


def _atoms(p, t):
    def delta(w):
        gap = np.asarray(w)[..., None] - t
        return (t / gap).mean(-1) / p.psi, -(t / gap**2).mean(-1) / p.psi

    return Law(delta, t.max(), p.d, min(1.0, 1 / p.psi))


def _sampled(p, eta, start):
    """The law of start·W0 + ηG without its spike, the step's noise correlated."""
    c1, c2 = p.student.coefficients(2)[1:]
    move = eta * _quantiles(p.N) / sqrt(p.N)
    other = p.phi * max(0.0, p.student.slope_second_moment - c1**2 - 4 * c2**2)
    mix = np.array([np.full(p.N, start), start * 4 * c2 * move, (2 * c2 * move) ** 2, other * move**2])
    return SampledRows(mix, _residuals(p), p.phi, p.d)


def _residuals(p):
    """y - f_0 at n equally likely quantiles, of the exact mean square."""
    as_problem(p, standard=True)
    spread = sqrt(p.noise**2 + (p.student.second_moment if p.initial_output == "full" else 0.0))
    noise = spread * ndtri((np.arange(256) + 0.5) / 256) if spread else np.zeros(1)
    z = ndtri((np.arange(65536 // noise.size) + 0.5) / (65536 // noise.size))
    y = np.quantile(p.target(z)[:, None] + noise, (np.arange(p.n) + 0.5) / p.n)
    return y * sqrt((p.target.second_moment + spread**2) / np.mean(y**2))


def weight_spike(p: Problem, eta, *, step_noise="isotropic") -> WeightSpike:
    """Location and overlaps of the spike η c_1 a βᵀ in W.

    Negligible initial output: strength θ = η|c_1|√D. With the full one the strength is θ² - 2θρ_0 in place of θ²: no
    spike at all below η = 2/D. Without the growth of the rows the spike leaves at θ⁴ = N/d = 1/ψ, to
    s² = (1 + θ²)(1/ψ + θ²)/θ².

    step_noise : "isotropic" or "absent", as in `weights`.
    """
    choice("step_noise", step_noise, SPIKE_NOISE)
    eta = steps(eta)
    out = np.array([_weight_spike(p, step, step_noise) for step in np.atleast_1d(eta)])
    return WeightSpike(*(column.reshape(eta.shape)[()] for column in out.T))


def _weight_spike(p, eta, step_noise):
    law, (u, t) = weights(p, eta, step_noise=step_noise), _rows(p, eta, step_noise)
    theta, rho0 = eta * abs(p.student.linear) * sqrt(p.D), _rho_0(p)
    strength = theta**2 - 2 * theta * rho0

    def resolvent(w):
        return (u**2 / (w - t)).mean()

    w = _leaves(lambda w: strength * resolvent(w), law)
    if w is None:
        return np.full(3, np.nan)
    x, slope = law.at(w)
    alpha, fall = resolvent(w), (u**2 / (w - t) ** 2).mean()
    return np.array([sqrt(x), w * alpha**2 * slope / (x * fall), alpha * (1 + rho0**2 * alpha) * slope / (w * fall)])


def weight_threshold(p: Problem):
    """Step size at which the spike leaves the bulk of W, at leading order: θ² - 2θρ_0 = ψ^{-1/2}."""
    require_spikes(p, 1)
    rho0 = _rho_0(p)
    return (rho0 + sqrt(rho0**2 + p.psi**-0.5)) / (abs(p.student.linear) * sqrt(p.D))


def _rho_0(p):
    """ρ_0, the cosine of β with -W0ᵀa sign(c_1)."""
    return abs(p.student.linear) / sqrt(p.D) if p.initial_output == "full" else 0.0


def _rows(p, eta, step_noise):
    """√N a_i at the quantiles of N(0, 1), and r_i²; both (N,)."""
    u = _quantiles(p.N)
    return u, 1 + u**2 * _growth(p, eta, step_noise)


def _quantiles(N):
    """N equally likely quantiles of N(0, 1), scaled to mean square 1."""
    u = ndtri((np.arange(N) + 0.5) / N)
    return u / sqrt(np.mean(u**2))


def _growth(p, eta, step_noise):
    """By how much the squared length of a row with √N a_i = 1 grows beyond the spike."""
    as_problem(p, standard=True)
    return eta**2 / p.N * p.row_growth if choice("step_noise", step_noise, SPIKE_NOISE) == "isotropic" else 0.0


def features(p: Problem, eta=0.0) -> Law:
    """Law of the singular values of F/√n (n, N) without its spikes.

    F0 ≃ c_1X̃W0ᵀ + c_{>1}Z. After a step, given z = X̃β/√D and u = √N a, unit and sample share the coefficient
    μ1(z, u) = E gσ(r g + s z u) instead of c_1, and c_{>1}² becomes Var σ(r g + s z u) - μ1²; both enter by their mean
    squares over z and u, which is exact as η/√n → 0.
    """
    return _Kernel(p, float(steps(eta))).law


def _feature_law(p, s, tail):
    gamma = p.phi / p.psi

    def delta(w):
        share, slope = _explained(p.psi, s, tail, w)
        gap = w - share
        return gamma * share / gap, gamma * (slope * w - share) / gap**2

    return Law(delta, tail + s * (1 + p.psi**-0.5) ** 2, p.n, min(1.0, gamma))


def _explained(psi, s, tail, w):
    """tail + sT and its w-derivative; T as in `theory.traces` at ν = -w, real beyond the bulk or complex."""
    B = tail - np.asarray(w, complex)
    root = np.sqrt(B + s * (1 + psi**-0.5) ** 2) * np.sqrt(B + s * (1 - psi**-0.5) ** 2)
    T = 2 * B / (B + s / psi - s + root)
    share, slope = tail + s * T, s * (T - 1) / root
    return (share, slope) if np.iscomplexobj(w) else (share.real, slope.real)


def feature_spikes(p: Problem, eta, count=4, *, step_noise="isotropic") -> FeatureSpikes:
    """Spikes of F/√n at a finite step: singular values and overlaps of the left vectors with the monomials.

    With z = X̃β/√D, u = √N a and s = η c_1 √(D/N), F - F0 ≃ μ0(z, u) = E σ(r g + s z u) with r² = 1 + u²·growth as in
    `weights`; at r = 1 it is Σ c_k (s z u)^k, all monomials at once and at their strength at this n. The growth is of
    the order of the second monomial at every n: it adds a constant to (X̃β)^{∘2}. Spike j sits at the w where
    N σ_j²/w = 1, σ_j the j-th singular value of the operator T^{1/2} μ0 V^{1/2} between L²(u) and L²(z), T acting on
    the linear function of z alone and V = 1 + δ/γ. A Gaussian first layer adds the rank-one mean 1δᵀ of the even
    features.

    With the full initial output z is the input along a β̂ᵀθ + a eᵀ (see above), s its strength over √N, and the features
    have no linear part along a: there V = w/(w - c_{>1}²). Overlaps are with the monomials of X̃β all the same.

    count : Spikes looked for, 1 <= count <= 8.  step_noise : "absent" leaves the growth of the rows out (r = 1), as the
    theorem does.
    """
    eta, count = np.atleast_1d(steps(eta)), _count(count)
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


def visible_from(p: Problem, eta):
    """The singular value of F/√n above which one counts as visible: (1 + 2 n^{-2/3}) times the bulk's edge.

    n^{-2/3} is the scale on which the bulk's own largest value fluctuates, so that none of it is mistaken for a spike.
    """
    eta = steps(eta)
    edges = [features(p, step).edge for step in np.atleast_1d(eta)]
    return (np.array(edges) * (1 + 2 * float(p.n) ** (-2 / 3))).reshape(eta.shape)[()]


def visible(p: Problem, eta, count=8):
    """How many spikes of F stand visibly out of its bulk, at this n: values of `feature_spikes` above `visible_from`.

    At most min(n, N), and mostly fewer than the `thresholds` say for n → ∞: at n in the thousands every spike emerges
    later than its own. The bulk's law keeps mean squares over units and samples, exact for η much below √n; a ReLU's
    bulk is wider beyond.

    count : Spikes looked for, 1 <= count <= 8.
    """
    eta = steps(eta)
    values = np.nan_to_num(feature_spikes(p, eta, count=count).value)
    found = (values > np.atleast_1d(visible_from(p, eta))[:, None]).sum(1).reshape(eta.shape)
    return np.minimum(found, min(p.n, p.N, count))[()]  # n and N may be beyond 64 bits


def birth(p: Problem, order: int, *, height=1.0):
    """Step size at which spike `order` of F leaves the bulk, at this n: η/√n → 0 like n^{-1/(2·order)}.

    order : Spike, from 1 to 8.  height : >= 1, the step at which the spike stands at height times the bulk's edge.
    """
    order, height = _count(order, "order"), number("height", height, least=1)
    require_spikes(p, 1)
    if p.student.coefficients(order)[order] == 0:
        raise ValueError(f"order = {order}: c_{order} = 0, so that no step bears spike {order}")
    unit = sqrt(p.N) / (abs(p.student.linear) * sqrt(p.D))

    def excess(log_s):
        kernel = _Kernel(p, exp(log_s) * unit)
        w = kernel.law.beyond(height)
        return log(max(kernel.strengths(w)[order - 1], 1e-300))

    low, high = -0.5 * log(p.N), log(_FURTHEST)
    if not excess(low) < 0 < excess(high):
        raise ValueError(
            f"order = {order}: spike {order} does not come to {height:g} times the edge "
            f"between η = 1/(c_1√D) and {_FURTHEST:g}√N/(c_1√D)"
        )
    return exp(brentq(excess, low, high, xtol=1e-9)) * unit


class _Kernel:
    """The operator μ0(s z u) between L²(N(0,1)) and itself in Gauss-Hermite nodes, between the resolvents of F0.

    table : (z, u), μ0 with the roots of the nodes' weights.  linear, along : the functions z and a among its left and
    right sides.  tilt : cosine of the spike's right vector with β.  s, tail : mean squares of μ1 and of what is beyond
    μ0 and μ1, in the place of c_1² and c_{>1}².  law : of the bulk.  z, root : nodes and roots of their weights.
    """

    def __init__(self, p, eta, step_noise="isotropic"):
        require_spikes(p, 1)
        z, mass = gauss_hermite(_NODES)
        theta, rho0 = eta * abs(p.student.linear) * sqrt(p.D), _rho_0(p)
        strength = sqrt(theta**2 + (1 - 2 * theta * rho0 if rho0 else 0.0))
        self.p, self.tilt = p, (theta - rho0) / strength if rho0 else 1.0
        r = np.sqrt(1 + z**2 * _growth(p, eta, step_noise))
        half = p.student.moments(strength / sqrt(p.N) * np.outer(z[_NODES // 2 :], z), r)
        mean, linear, square = (np.concatenate([x[::-1, ::-1], x]) for x in half)  # even in (z, u)
        self.s = mass @ linear**2 @ mass
        self.tail = max(0.0, mass @ (square - mean**2 - linear**2) @ mass)
        self.law = _feature_law(p, self.s, self.tail)
        self.z, self.root = z, np.sqrt(mass)
        self.table = mean * np.outer(self.root, self.root)
        if p.first_layer == "gaussian":
            even = sqrt(2 / p.psi / p.N) * abs(p.student.coefficients(2)[2])
            self.table = np.column_stack([self.table, even * self.root])
        self.linear = self.root * z
        self.along = np.append(self.linear, np.zeros(self.table.shape[1] - _NODES))

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
        return (self._orthonormal(count) @ vector) ** 2 * 2 * x / (w * rate)

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
    if not start > 1:
        return None
    high = low + log(start) + 1e-3
    return exp(brentq(lambda log_w: log(strength(exp(log_w))), low, high, xtol=1e-14))


def _count(count, argument="count"):
    if whole(argument, count, 1) > 8:
        raise ValueError(f"{argument} = {count}: must be a whole number from 1 to 8")
    return int(count)
