"""The local landscape of three-stage training, predicted: certificate, rates, threshold and the count of signs.

On balanced layers the objective is E(f_μ - f⋆)² + λ|μ| over signed measures μ on the sphere (neurons of weight
a_i‖w_i‖ at ŵ_i), a convex problem. As λ → 0 its residual is -(λ/2) p, where p is the shortest combination of functions
δ_kᵀ∇σ(w⋆_kᵀx) for which η(w) = E p σ(wᵀx) is sign a⋆_k, with slope 0, at every w⋆_k (the certificate with vanishing
derivatives of Duval & Peyré 2015). Where |η| < 1 off the teacher's lines, its neurons and no others are the minimum.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations
from math import comb

import numpy as np
from scipy import optimize

from ...checks import frozen, number, whole
from ..relu import Population, kernel, kernel_parts, network, polar
from .threestage import certificate_coefficients

_STARTS = 300  # random lines from which η is climbed
_CLIMB = 400  # steps of that climb
_NEAR = np.cos(np.radians(0.5))  # lines closer than this are one
_SPARE = 0.05  # length at which spare neurons start
_COPIES = 3  # neurons to a line that may part


class Certificate:
    """η of a teacher, in closed form."""

    def __init__(self, teacher):
        self._V, self._signs, self._basis = teacher.directions, np.sign(teacher.weights), teacher.basis
        self._c = certificate_coefficients(teacher)

    def __call__(self, W):
        """η at the lines through the rows of W (n, d): (n,)."""
        return self._value_and_slope(polar(W)[1])[0]

    def slope(self, W):
        """Gradient of η on the sphere at the lines through the rows of W (n, d): (n, d)."""
        return self._value_and_slope(polar(W)[1])[1]

    @cached_property
    def curvatures(self):
        """Bend b of each of the teacher's lines: |η| ≈ 1 - bθ²/2 at an angle θ from it. (r, k), or (r, k - 1) if k = d.

        First the k - 1 principal ones inside the k-dimensional subspace, increasing, then that of all directions
        outside. Where the minimum moves sideways with λ, |η| has two second derivatives; b is on the side it moves to.
        """
        return frozen(np.array([self._curvature(k) for k in range(len(self._V))]))[0]

    @property
    def slowest(self):
        """Smallest b: neurons spread about a line gather at the rate λb, and ‖∇L_λ‖² → 2λb (L_λ - min).

        Where it is negative, several neurons to a line, parted by an angle of order λ, are better than one.
        """
        return float(self.curvatures.min())

    @cached_property
    def peaks(self):
        """Largest |η| off the teacher's lines, and where: values (p,), decreasing, and lines (p, d); p may be 0.

        Local maxima found by climbing from random lines. Where |η| > 1 the minimum has neurons besides the teacher's.
        """
        W = self._lines(_STARTS)
        for _ in range(_CLIMB):
            value, slope = self._value_and_slope(W)
            W = polar(W + 0.3 * np.sign(value)[:, None] * slope / (1 + np.linalg.norm(slope, axis=1, keepdims=True)))[1]
        value = np.abs(self(W))
        found = []
        for i in np.argsort(-value):
            lines = np.vstack([self._V, *found])
            if np.abs(lines @ W[i]).max() < _NEAR:
                found.append(W[i : i + 1])
        lines = np.vstack([np.empty((0, W.shape[1])), *found])
        return frozen(np.abs(self(lines)), lines)

    @cached_property
    def floor(self):
        """Least ‖∇L_λ‖²/λ(L_λ - min) as the gap goes to 0: over spreading the minimum's neurons and adding tiny ones.

        A neuron of mass ε at w adds λε(1 - |η|) to the objective and λ²ε(2(1 - |η|)² + |∇η|²) to the squared gradient.
        0 where the minimum is another: `slowest` < 0, or |η| > 1 somewhere.
        """
        if self.slowest <= 0 or np.any(self.peaks[0] > 1):
            return 0.0
        W = self._lines(20_000)
        W = W[np.abs(W @ self._V.T).max(axis=1) < _NEAR]
        return min([2 * self.slowest, *(self._refined(w) for w in W[np.argsort(self.steepness(W))[:8]])])

    def steepness(self, W):
        """‖∇L_λ‖²/λ(L_λ - min) that a tiny neuron at the lines through the rows of W (n, d) contributes: (n,)."""
        value, slope = self._value_and_slope(polar(W)[1])
        slack = np.maximum(1 - np.abs(value), 1e-300)
        return 2 * slack + np.sum(slope**2, axis=1) / slack

    def _refined(self, w):
        end = optimize.minimize(
            lambda x: self.steepness((x @ self._span)[None])[0], self._span @ w, method="Nelder-Mead"
        )
        return float(end.fun)

    @cached_property
    def _span(self):
        """The subspace and, if there is one, a direction outside it: η is the same in all others."""
        rest = np.eye(self._basis.shape[1]) - self._basis.T @ self._basis
        outside = rest[[np.argmax(np.diag(rest))]]
        return np.vstack([self._basis, polar(outside)[1]]) if np.trace(rest) > 0.5 else self._basis

    def _lines(self, count):
        rng = np.random.default_rng(0)
        return polar(rng.standard_normal((count, len(self._span))) @ self._span)[1]

    def _value_and_slope(self, units):
        along = np.sum(self._c * self._V, axis=1)
        _, h_slope, rest = kernel_parts(units, self._V)
        cosine, across = units @ self._V.T, units @ self._c.T
        value = rest @ along + np.sum(h_slope * across, axis=1)
        sine = np.sqrt(np.maximum((1 - cosine) * (1 + cosine), 1e-24))
        slope = (across - cosine * along) / (2 * np.pi * sine) @ self._V + h_slope @ self._c
        return value, slope - np.sum(slope * units, axis=1, keepdims=True) * units

    def _curvature(self, k):
        """Curvatures b at w = w⋆_k: eigenvalues of P - s_k D on the plane orthogonal to w, P the projection onto it.

        D is the second derivative of E p σ(wᵀx), p = Σ_j c_jᵀx 1(w⋆_jᵀx > 0). With v_j the unit vector along Pw⋆_j,
        q_j = Pc_j and the mean over x on the plane wᵀx = 0,

            2πD = Σ_j (v_jᵀq_j - c_jᵀw⋆_j) P - v_jv_jᵀ(v_jᵀq_j) + v_jq_jᵀ + q_jv_jᵀ.
        """
        basis = self._basis
        V, c = self._V @ basis.T, self._c @ basis.T
        w = V[k]
        plane = np.eye(len(w)) - np.outer(w, w)
        v, q = V @ plane, c @ plane
        v[k] = self._signs[k] * q[k]  # where w⋆_k lies, seen from the displaced minimum
        v = polar(v)[1] * (np.linalg.norm(v, axis=1, keepdims=True) > 1e-9)
        vq = np.sum(v * q, axis=1)
        trace = np.sum(vq - np.sum(c * V, axis=1))
        hessian = trace * plane - (v.T * vq) @ v + v.T @ q + q.T @ v
        values, vectors = np.linalg.eigh(plane - self._signs[k] * hessian / (2 * np.pi))
        inside = np.delete(values, np.argmax(np.abs(vectors.T @ w)))
        outside = 1 - self._signs[k] * trace / (2 * np.pi)
        return np.append(inside, outside) if len(w) < self._V.shape[1] else inside


@dataclass(frozen=True, eq=False)
class Minimiser:
    """A network of balanced neurons at a minimum of L + (λ/2)(‖a‖² + ‖W‖²): its objective, loss and weights."""

    objective: float
    loss: float
    a: np.ndarray
    W: np.ndarray


@lru_cache(64)
def global_minimum(teacher, ridge):
    """The `Minimiser` of L_λ near the teacher, exactly, at λ = ridge > 0, by descent from its law as λ → 0.

    One neuron to a line where the certificate is good (`slowest` > 0), else several, which part by an angle of order λ;
    and further ones, of weight of order λ, where |η| > 1.
    """
    ridge = number("ridge", ridge, above=0)
    certificate = Certificate(teacher)
    values, lines = certificate.peaks
    extra = lines[values > 1]
    copies = 1 if certificate.slowest > 0 else _COPIES
    start = np.repeat(np.sqrt(np.abs(teacher.weights) / copies)[:, None] * teacher.directions, copies, axis=0)
    start += (copies > 1) * ridge * np.random.default_rng(0).standard_normal(start.shape)
    signs = np.append(np.repeat(np.sign(teacher.weights), copies), np.sign(certificate(extra)))
    return _minimise(teacher, signs, np.vstack([start, _SPARE * np.sqrt(ridge) * extra]), ridge)


def gap_parts(teacher, minimiser, ridge, a, W):
    """The three parts of the optimality gap ζ = L_λ - min L_λ of a network, which sum to it exactly.

    With f_λ the minimiser, η_λ(w) = -(2/λ) E (f_λ - f⋆) σ(wᵀx) and s_i = sign a_i,

      ζ = E(f - f_λ)² + λ Σ_i |a_i|‖w_i‖ (1 - s_i η_λ(ŵ_i)) + (λ/2) Σ_i (|a_i| - ‖w_i‖)².                           (3)

    The cross term 2 E (f - f_λ)(f_λ - f⋆) is -λ Σ_i a_i‖w_i‖ η_λ(ŵ_i) + λ|μ_λ|, as η_λ is the sign of each neuron of
    the minimiser, whose penalty is λ|μ_λ|.

    minimiser : Minimiser, From `global_minimum(teacher, ridge)`.  a, W : (..., m) and (..., m, d), One network, or
    several along leading axes; balanced or not.  Returns tuple of three arrays, (...), Distance to the minimiser,
    weight off its lines, imbalance.
    """
    ridge = number("ridge", ridge, above=0)
    norms, units = polar(W)
    fit = Population(network(minimiser.W, minimiser.a)).loss(a, W)
    eta = certificate_at(teacher, minimiser, ridge, units)
    off = ridge * np.sum(np.abs(a) * norms * (1 - np.sign(a) * eta), axis=-1)
    return fit, off, ridge / 2 * np.sum((np.abs(a) - norms) ** 2, axis=-1)


def certificate_at(teacher, minimiser, ridge, W):
    """η_λ of `gap_parts` at the lines through the rows of W (..., n, d): (..., n). It tends to η as λ → 0.

    minimiser : Minimiser.  W : (..., m, d), First layer.
    """
    lines = np.concatenate([minimiser.W, teacher.directions])
    return -2 / ridge * kernel(polar(W)[1], lines) @ np.append(minimiser.a, -teacher.weights)


def local_minimum_missing_neuron(teacher, ridge=0.0):
    """The lowest minimum of L_λ for a student that is short of one neuron of one sign.

    It has one neuron fewer of that sign than the teacher, one serving two lines if that is cheaper than one missing,
    and more than it needs of the other. Descents from all such starts: a conjecture, for they may miss the lowest.
    """
    ridge = number("ridge", ridge, least=0)
    return min((_short(teacher, *start, ridge) for start in _without_one(teacher)), key=lambda end: end.objective)


def _without_one(teacher):
    """(sign, weights, directions) of the teacher with one neuron of that sign dropped, or two of it merged into one."""
    V, b = teacher.directions, teacher.weights
    for k in range(teacher.r):
        yield np.sign(b[k]), np.delete(b, k), np.delete(V, k, axis=0)
    for i, j in combinations(range(teacher.r), 2):
        rest = np.delete(np.arange(teacher.r), (i, j))
        for side in (1, -1) if b[i] * b[j] > 0 else ():
            merged = polar(np.abs(b[i]) * V[i] + side * np.abs(b[j]) * V[j])[1]
            yield np.sign(b[i]), np.append(b[rest], b[i] + b[j]), np.vstack([V[rest], merged])


def _short(teacher, sign, weights, directions, ridge):
    start = np.sqrt(np.abs(weights))[:, None] * directions
    end = Minimiser(np.inf, np.inf, weights, start)
    if len(weights):
        end = _minimise(teacher, np.sign(weights), start, ridge)
    rng = np.random.default_rng(0)
    lines = polar(rng.standard_normal((_STARTS, len(teacher.basis))) @ teacher.basis)[1]
    gain = sign * Population(teacher).gradient(np.append(end.a, np.zeros(_STARTS)), np.vstack([end.W, lines]))[1]
    spare = lines[np.argmax(gain[len(end.a) :])]
    counts = np.where(np.sign(end.a) == sign, 1, 2)  # the other sign's neurons may part
    W = np.repeat(end.W / np.sqrt(counts)[:, None], counts, axis=0)
    W += _SPARE / 2 * np.repeat(counts - 1, counts)[:, None] * rng.standard_normal(W.shape)
    signs = np.append(np.repeat(np.sign(weights), counts), -sign)
    wide = _minimise(teacher, signs, np.vstack([W, _SPARE * spare]), ridge)
    return min(end, wide, key=lambda end: end.objective)


def _minimise(teacher, signs, W, ridge):
    """Descend over neurons w_i with a_i = signs_i ‖w_i‖, which never change sign."""
    population, shape = Population(teacher), W.shape

    def objective(x):
        W = x.reshape(shape)
        norms, units = polar(W)
        loss, by_second, by_first = population.gradient(signs * norms, W)
        return loss + ridge * (x @ x), (by_first + (signs * by_second)[:, None] * units + 2 * ridge * W).ravel()

    x = W.ravel()
    for _ in range(3):  # a fresh start of the quasi-Newton matrix gains the last digits
        options = {"maxiter": 2000, "maxfun": 10_000, "gtol": 1e-15, "ftol": 0.0, "maxcor": 30}
        end = optimize.minimize(objective, x, jac=True, method="L-BFGS-B", options=options)
        x = end.x
    W = x.reshape(shape)
    a = signs * polar(W)[0]
    return Minimiser(float(end.fun), float(population.loss(a, W)), *frozen(a, W))


def enough_signs(teacher, m):
    """The chance that m neurons of random signs hold the teacher's number of each sign.

    Under gradient flow a_i² - ‖w_i‖² decays to 0, so that no balanced neuron changes its sign.

    m : Student neurons, >= 1.
    """
    positive = int(np.sum(teacher.weights > 0))
    negative = teacher.r - positive
    ways = sum(comb(m, count) for count in range(positive, whole("m", m, 1) - negative + 1))
    return ways / 2**m
