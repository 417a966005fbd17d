"""The first layer after a second step: W_2 = W_0 + η_1G_1 + η_2G_2, G_2 taken at W_1 on the same batch or a fresh one.

Both steps see the residual y. With β = Xᵀy/n, z = Xβ and u_i = η_1c_1a_i, row i of G_2 is a_i Xᵀ(y ∘ f(u_i))/n and
noise, where f is the mean over W_0 of σ' at the pre-activations after the first step. To leading order f is a sum of
powers,

    row i of G_2  ≈  Σ_k (k + 1) c_{k+1} (η_1c_1a_i)^k a_i d_k,   d_k = Xᵀ(y ∘ z^k)/n,

and with η_1 = n^α1, η_2 = n^α2 term k has size n^{α2 - k(1/2 - α1)}. It grows for k < α2/(1/2 - α1) if c_{k+1} ≠ 0.

Reused batch. Sample j took part in the first step: z_j = z̃_j + φ y_j, z̃_j = x_jᵀ(β without sample j). So
y z = y z̃ + φ y², and the second gradient contains the squared labels, whose information exponent may be 1 where that of
y is not (Dandi et al. 2024). On a fresh batch z = z̃.

Without the expansion, for the shifted ReLU: sample j's own share of the pre-activation is (u_i/c_1) φ y_j σ'(g), with g
the pre-activation before the first step, and the rest of the step's noise is N(0, (u_i/c_1)² φ E y² Var σ'). The rows
M_i = η_1c_1a_i β + η_2 a_i Xᵀ(y ∘ f(u_i))/n then have a deterministic Gram matrix, with v = y f: for two rows of G_2

    E[x⋆v] E[x⋆v'] + E[g̃v] E[g̃v'] + φE[vv'] + φ(E[∂v] E[yv'] + E[∂v'] E[yv])      (the last term if reused),

x⋆ = β⋆ᵀx, z̃ = √D(ρx⋆ + √(1 - ρ²) g̃), ∂ the derivative in z̃. Outliers of W_2 follow from it and the bulk of the
rows W_0 + noise (Benaych-Georges & Nadakuditi 2012; `spectra`).

Source: Moniri & Hassani (arXiv 2605.17767, abstract) for the expansion and the count; the rest is this project's.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from scipy.optimize import brentq
from scipy.special import factorial2, ndtr

from ..checks import choice, number, whole
from ..hermite import ShiftedReLU
from ..problem import Problem, as_problem
from . import quadrature, spectra

BATCHES = ("reused", "fresh")
_NODES = {"neuron": 41, "teacher": 60, "rest": 24, "noise": 12}  # Gauss-Hermite nodes: converged to 1e-3


@dataclass(frozen=True)
class Outliers:
    """Outliers of W_2, largest first, NaN where no more leave the bulk.

    value : (count,) singular values.  ahead : (count,) squared cosines of their right vectors with β⋆.
    edge : where the bulk ends.
    """

    value: np.ndarray
    ahead: np.ndarray
    edge: float


@dataclass(frozen=True)
class Direction:
    """Limits for d_k = Xᵀ(y ∘ z^k)/n.  ahead : β⋆ᵀd_k.  square : ‖d_k‖².  cosine2 : squared cosine of d_k with β⋆."""

    ahead: float
    square: float

    @property
    def cosine2(self):
        return self.ahead**2 / self.square


def leading_sizes(p: Problem, eta1, eta2, *, count=2, batch="reused"):
    """The `count` largest singular values of the mean of W_2 - W_0 to leading order, (count,).

    Term k is η_2(k + 1)c_{k+1}(η_1c_1)^k a^{∘(k+1)} d_kᵀ, and term 0 also holds the first step, c_1η_1 a βᵀ. Each is
    much larger than the next, so that its singular value is the product of what its two vectors have beyond those of
    the terms before.

    eta1, eta2 : step sizes >= 0..  count : whole number from 1 to 10; rounding is larger than the terms beyond..  batch
    : "reused" or "fresh"..
    """
    eta1, eta2 = number("eta1", eta1, least=0), number("eta2", eta2, least=0)
    if whole("count", count, 1) > 10:
        raise ValueError(f"count = {count}: must be at most 10")
    c, k = p.student.coefficients(count), np.arange(count)
    gram, _ = _with_first(p, k, batch)
    mix = np.column_stack([eta1 * c[1] * (k == 0), np.diag(eta2 * (k + 1) * c[1:] * (eta1 * c[1] / sqrt(p.N)) ** k)])
    ranks = np.add.outer(k, k)
    moments = np.where(ranks % 2, 0.0, factorial2(ranks + 1, exact=True))  # E g^{j+k+2} for g ~ N(0, 1)
    return _beyond(mix @ gram @ mix.T) * _beyond(moments)


def _beyond(gram):
    """Lengths of vectors with this Gram matrix, each less its part in the span of those before."""
    values, vectors = np.linalg.eigh(gram)
    return np.abs(np.diag(np.linalg.qr((vectors * np.sqrt(np.maximum(values, 0))).T)[1]))


def direction(p: Problem, k, *, batch="reused") -> Direction:
    """The limit of d_k = Xᵀ(y ∘ z^k)/n, with z = Xβ of the first step's β, on the first step's batch or a fresh one.

    k : whole number >= 0..  batch : "reused" or "fresh"..
    """
    rows, _, toward = _monomials(p, np.array([whole("k", k, 0)]), batch)
    return Direction(float(toward[0]), float(rows[0, 0]))


def span(p: Problem, eta1, eta2, *, batch="reused"):
    """Squared norm of β⋆'s projection on what both steps learn, η_1β + η_2d_0 and d_1.

    Once both spikes are strong, ridge regression uses X̃ times these freely. For isotropic inputs the first stairs Δ_1
    and Λ_1 of `staircase` then hold with this in the place of ρ².

    eta1, eta2 : step sizes >= 0, of which the ratio counts..  batch : "reused" or "fresh"..
    """
    eta1, eta2 = number("eta1", eta1, least=0), number("eta2", eta2, least=0)
    gram, toward = _with_first(p, np.arange(2), batch)
    mix = np.array([[eta1, eta2, 0], [0, 0, 1]])
    ahead = mix @ np.append(p.target.linear, toward)
    return float(ahead @ np.linalg.solve(mix @ gram @ mix.T, ahead))


def _with_first(p, k, batch):
    """Gram matrix of β and the directions d_k, and the products of the d_k with β⋆."""
    rows, along, toward = _monomials(p, k, batch)
    return np.block([[np.array([[p.D]]), along[None]], [along[:, None], rows]]), toward


def _monomials(p, k, batch):
    """`_inner` of the directions d_k on a batch, "reused" or "fresh"."""
    s, k, own = _Samples(p), k[:, None], choice("batch", batch, BATCHES) == "reused"
    z = s.z + own * p.phi * s.y
    return _inner(p, s, s.y * z**k, s.mean(s.y * k * z ** np.maximum(k - 1, 0)), own)


def _inner(p, s, v, slope, own):
    """Of vectors Xᵀv/n, v (m, grid) a function of a sample with E ∂v = slope (m,): their inner products (m, m), and
    those with β and with β⋆, (m,)."""
    toward, aside, on_labels = s.mean(s.x * v), s.mean(s.g * v), s.mean(s.y * v)
    rows = np.outer(toward, toward) + np.outer(aside, aside) + p.phi * (v * s.weight) @ v.T
    along = sqrt(p.D) * (p.rho * toward + sqrt(1 - p.rho**2) * aside)
    if own:
        rows += p.phi * (np.outer(slope, on_labels) + np.outer(on_labels, slope))
        along += p.phi * on_labels
    return rows, along, toward


def outliers(p: Problem, eta1, eta2, *, batch="reused", count=2) -> Outliers:
    """Outliers of W_2 at this n, without the expansion in powers.

    eta1, eta2 : step sizes > 0..  batch : "reused" or "fresh"..  count : how many to look for..
    """
    if not isinstance(p.student, ShiftedReLU):
        raise ValueError(f"activation = {p.activation!r}: must be 'shifted_relu', for which the smoothing is known")
    own = choice("batch", batch, BATCHES) == "reused"
    eta1, eta2 = number("eta1", eta1, above=0), number("eta2", eta2, above=0)
    moved = eta1 + eta2 if own else sqrt(eta1**2 + eta2**2)  # equal batches give equal noise
    law = spectra.weights(p, moved)
    a, weight = quadrature.gauss_hermite(_NODES["neuron"])
    gram, ahead = _mean_part(p, eta1, eta2, own, a)
    lengths = np.minimum(1 + a**2 * moved**2 / p.N * p.row_growth, law.top)
    found = [_outlier(law, lengths, weight, gram, ahead, j) for j in range(whole("count", count, 1))]
    return Outliers(*np.array(found).T, law.edge)


def _outlier(law, lengths, weight, gram, ahead, j):
    """(singular value, squared cosine with β⋆) of outlier j: where the (j + 1)-th largest eigenvalue of the Gram matrix
    between resolvents of the bulk, D^{1/2} K D^{1/2} with D = 1/(w - r²), falls through 1."""

    def eigenpair(w):
        root = np.sqrt(weight / (w - lengths))
        values, vectors = np.linalg.eigh(gram * np.outer(root, root))
        return values[-1 - j] - 1, root, vectors[:, -1 - j]

    low = high = law.turn
    if eigenpair(low)[0] <= 0:
        return np.nan, np.nan
    while eigenpair(high)[0] > 0:
        high *= 2
    w = brentq(lambda w: eigenpair(w)[0], low, high, rtol=1e-12)
    _, root, vector = eigenpair(w)
    x, slope = law.at(w)
    return sqrt(x), (ahead @ (root * vector)) ** 2 * slope / (w * (vector @ (vector / (w - lengths))))


class _Samples:
    """One sample's law on a grid: x = β⋆ᵀx, g its coordinate along the rest of β, label y, z = x̃ᵀ(β without it)."""

    def __init__(self, p):
        as_problem(p, standard=True)
        if p.initial_output != "negligible":
            raise ValueError(f'initial_output = {p.initial_output!r}: must be "negligible" for a second step')
        counts = _NODES["teacher"], _NODES["rest"], _NODES["noise"] if p.noise else 1
        rules = [quadrature.gauss_hermite(count) for count in counts]
        self.x, self.g, e = (part.ravel() for part in np.meshgrid(*(rule[0] for rule in rules), indexing="ij"))
        self.weight = np.einsum("i,j,k->ijk", *(rule[1] for rule in rules)).ravel()
        self.y = p.target(self.x) + p.noise * e
        self.z = sqrt(p.D) * (p.rho * self.x + sqrt(1 - p.rho**2) * self.g)

    def mean(self, values):
        return values @ self.weight


def _mean_part(p, eta1, eta2, own, a):
    """N times the Gram matrix of the rows' mean part at nodes a of √N a_i, √N times its product with β⋆."""
    s, c1, h = _Samples(p), p.student.linear, 1e-4
    u = eta1 * c1 * a[:, None] / sqrt(p.N)
    v = s.y * _smoothed(p, s, u, s.z, own)
    slope = s.mean(s.y * (_smoothed(p, s, u, s.z + h, own) - _smoothed(p, s, u, s.z - h, own))) / (2 * h)
    rows, along, toward = _inner(p, s, v, slope, own)
    gram = (eta1 * c1) ** 2 * p.D + eta1 * c1 * eta2 * np.add.outer(along, along) + eta2**2 * rows
    return np.outer(a, a) * gram, a * (eta1 * c1 * p.target.linear + eta2 * toward)


def _smoothed(p, s, u, z, own):
    """f(u): the mean of σ'(g + uz + (u/c_1)(own φ y σ'(g) + e)) over g ~ N(0, 1) and the step's noise e, σ' = 1(· > 0).

    u : (m, 1).   z : like the samples.   For g > 0 the shift holds the sample's own share, for g < 0 it does not.
    """
    c1, total = p.student.linear, 0.0
    spread = np.abs(u) / c1 * sqrt(p.phi * p.label_power * (p.student.slope_second_moment - c1**2))
    for e, weight in zip(*quadrature.gauss_hermite(_NODES["noise"]), strict=True):
        shift = u * z + spread * e
        itself = u / c1 * p.phi * s.y if own else 0.0
        total = total + weight * (ndtr(np.minimum(0, shift + itself)) + np.maximum(0, ndtr(shift) - 0.5))
    return total
