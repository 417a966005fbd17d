"""Hidden units after the step: nodes for their readout weight, their actual spike and their length.

The gradient's row i is a_i Xᵀ(y∘σ'(Xw_i))/n, eq. (10). Of σ' the constant c_1 makes the spike along β, the part linear
in w_i and the rest make

    ω_i = (I + t_i M) w_i + √(v_i/d) C^{1/2} g_i,   t_i = 2 c_2 η a_i,   v_i = η² a_i² φ (E σ'² - c_1² - 4c_2²),

of covariance Σ_u/d, Σ_u = (I + tM)² + vC, and of mean square length tr Σ_u/d. At finite d two numbers of a unit differ
from unit to unit with the same a_i, each by a relative 1/√d: the coefficient on β̂, s = u_i + β̂ᵀω_i, and the length r
of the rest. They are correlated: linearly when c_3 ≠ 0, as the step stretches w_i by 6 c_3 η a_i β·w_i; through
(β̂ᵀw_i)² on the sphere and when c_4 ≠ 0. Rows of W0 of length l get the spike (c_1 + 3c_3(l² - 1)) η a_i ‖β‖.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple

import numpy as np

from ...problem import Problem
from .. import quadrature
from . import plane
from .plane import remainder

STEP_NOISE = ("correlated", "incoherent", "isotropic", "absent")
ANISOTROPIC = STEP_NOISE[:2]  # with the covariance (12) of a row
_SPIKES = 4  # nodes of a row's coordinate along β̂; three are blind to harmonics of degree 3
_NONE = 1e-9  # in the place of a variance that is 0


@dataclass(frozen=True)
class Units:
    """Hidden units on U nodes.

    chance : (U,) weights, of sum 1.  spike : (U,) u + β̂ᵀω, the coefficient on β̂ᵀx.  length : (U,) of the rest of ω.
    overlap : (U,) √N a/(√N r), how much of W0ᵀa a unit holds.  mix : (4, U) of Σ_u/r² = mix·(I, M, M², C).
    plane : (2, 2, U) of Σ_u/r² in the plane of β̂ and ζ; (4, 4, U) with `harmonics`.
    readouts : A, readout weights, which vary fastest along U.
    harmonics : (K, K, U) of `plane.harmonics`, where the plane is followed beyond degree 1.
    """

    chance: np.ndarray
    spike: np.ndarray
    length: np.ndarray
    overlap: np.ndarray
    mix: np.ndarray
    plane: np.ndarray
    readouts: int
    harmonics: np.ndarray | None = None

    def by_readout(self, values):
        """Values (U, …) as (U/A, A, …): those of one readout weight in a column."""
        return values.reshape(-1, self.readouts, *values.shape[1:])


@dataclass(frozen=True)
class Rows:
    """Rows after the step given the readout weight: A weights, and for each the numbers that fix the law of (s, r).

    a, chance : readout weights and their probabilities.  spike : u.  square : E ‖ω - uβ̂‖².  along : β̂ᵀΣ_uβ̂.
    mix : (4, A) of Σ_u/square = mix·(I, M, M², C).
    covariance : d times that of ‖ω‖² with e = √d β̂ᵀω/√along.  variance : d/2 times that of ‖ω‖² given e; both eq. (16).
    square_slope : d times the slope of r² in -e².  spike_slope : of the relative spike in the relative ‖ω‖².
    """

    a: np.ndarray
    chance: np.ndarray
    spike: np.ndarray
    square: np.ndarray
    along: np.ndarray
    mix: np.ndarray
    covariance: np.ndarray
    variance: np.ndarray
    square_slope: np.ndarray
    spike_slope: np.ndarray


def units(p: Problem, eta, batch, values, step_noise, order, strip):
    """`Units` after a step eta on a `FirstBatch`; values : (·,) of √N a, or None for a Gaussian readout."""
    a, chance = quadrature.graded(order, strip)
    if values is not None:
        a, chance = values, np.full(values.size, 1 / values.size)
    law = rows(p, eta, batch, a / sqrt(p.N), chance, step_noise)
    if plane.needed(p) and step_noise in ANISOTROPIC:
        return Units(**plane.split(p, eta, law, batch))
    return on_nodes(law, batch, p.d)


def rows(p: Problem, eta, batch, a, chance, step_noise):
    """`Rows` after a step eta for the readout weights a (A,) of probabilities chance (A,), eq. (11) to (17)."""
    c1, c2, c3, c4 = p.student.coefficients(4)[1:]
    spike = eta * c1 * sqrt(batch.D) * a + (batch.cosine[1] * a if p.initial_output == "full" else 0.0)
    anisotropic = step_noise in ANISOTROPIC
    t = 2 * c2 * eta * a * (step_noise != "absent")  # eq. (11)
    v = (eta * a) ** 2 * batch.phi * max(0.0, p.student.slope_second_moment - c1**2 - 4 * c2**2)
    powers = np.array([np.ones_like(t), 2 * t, t**2, v * (step_noise != "absent")])
    square = batch.traces[0] @ powers  # eq. (12)
    law = LengthLaw(np.ones_like(t), 0.0, 0.0, 0.0)
    if anisotropic:
        law = length_law(p, batch, eta * a, float(step_noise == "correlated"))
    if step_noise == "isotropic":
        along, powers, t = square, np.eye(4)[:, :1] * square, 0 * t
        law = law._replace(variance=square**2 - 1)
    else:
        along = batch.onto_hat @ powers
        square = square * np.exp(mean_excess(p, eta * a, batch, t, powers, law, step_noise) / square / p.d)
    start = law.start * (p.first_layer == "gaussian")
    correlation = (1 + t * batch.onto_hat[1]) / np.sqrt(along)  # of β̂ᵀω with β̂ᵀw
    covariance = law.slope * correlation + law.shared / np.sqrt(along)  # eq. (16)
    variance = start**2 + np.maximum(law.variance + (law.slope**2 - covariance**2) / 2, 0.0)  # eq. (16)
    square_slope = (p.first_layer == "sphere") - anisotropic * 24 * c4 * eta * a * batch.onto_hat[1]  # eq. (18)
    square_slope = square_slope * correlation**2
    spike_slope = anisotropic * 3 * c3 / c1 * start * square / np.maximum(variance, _NONE)
    return Rows(a, chance, spike, square, along, powers / square, covariance, variance, square_slope, spike_slope)


def mean_excess(p: Problem, move, batch, t, powers, law, step_noise):
    """d times what order 1/d adds to the mean of ‖ω‖² after a move η a_i, eq. (17)."""
    c3, c4 = p.student.coefficients(4)[3:]
    more = batch.excess @ powers  # the few directions that y depends on
    if step_noise in ANISOTROPIC:  # longer inputs move rows by more
        own = law.start - 1 - batch.phi * batch.moment(2) * t**2
        more = more + own * (2 + batch.excess[3] / batch.moment(2)) + 24 * c4 * move * batch.excess[1]
    if step_noise == "correlated":  # the square of the stretch
        more = more + (6 * c3 * move) ** 2 * np.sum((batch.along @ batch.y) ** 2)
    return more


def on_nodes(law: Rows, batch, d):
    """`Units`: for each readout weight the law of (s, r) on 4 nodes of e and 2 or 3 of the length L, eq. (18).

    A row without its spike is LΘ, Θ a direction of coordinate e/√d along β̂ on the sphere and L² gamma distributed:

        s = u(1 + spike_slope (L² - 1)) + L √(along/d) e,  r² = L² r_⊥² (1 - c (e² - 1)) exp(covariance e/(square √d)),

    with r_⊥² = square - along/d and c so that r² and s² have the covariance -2 square_slope·along/d². Without a step c
    is 1/(d - 1) on the sphere, r² = 1 - e²/d, and L does not depend on Θ for Gaussian rows: both are exact.
    """
    e, chance_e = quadrature.coordinate(d, _SPIKES)
    e = e[:, None, None]
    degrees = d * law.square**2 / np.maximum(law.variance, _NONE)
    L, chance_L = quadrature.length(degrees, quadrature.lengths(d))  # (·, A)
    across = law.square * remainder(law.along / law.square / d)
    c = law.variance / law.square**2 / (d - 1) + law.square_slope / across / d
    shape = remainder(c * (e**2 - 1)) * np.exp(law.covariance / law.square * e / sqrt(d))
    length = L * np.sqrt(across * shape / np.einsum("e,eha->ha", chance_e, shape))
    spike = law.spike * (1 + law.spike_slope * (L**2 - 1)) + L * np.sqrt(law.along / d) * e
    every = np.tile(np.arange(law.a.size), len(L) * e.size)
    return Units(
        chance=(chance_e[:, None, None] * chance_L * law.chance).ravel(),
        spike=spike.ravel(),
        length=length.ravel(),
        overlap=(law.a / np.sqrt(law.square))[every],
        mix=law.mix[:, every],
        plane=np.einsum("kab,ku->abu", batch.plane, law.mix)[:, :, every],
        readouts=law.a.size,
    )


class LengthLaw(NamedTuple):
    """What ‖ω‖² depends on; each (A,) or a number.

    start : slope in ‖w‖², υ of eq. (16).  slope : in β̂ᵀw, eq. (15).  shared : d times its covariance with β̂ᵀω that
    β̂ᵀw does not make.  variance : d/2 times the variance that is left.
    """

    start: np.ndarray
    slope: np.ndarray
    shared: np.ndarray
    variance: np.ndarray


def length_law(p: Problem, batch, move, stretch=1.0):
    """`LengthLaw` for move = η a_i, (A,); stretch : 0.0 leaves 6c_3 η a_i β·w_i out. All of eq. (14),

        ‖ω_i‖² = ‖w_i‖² + 2 move·(1/n)Σ y_μ h(x_μᵀw_i) + move²‖Xᵀ(y∘dot(Xw_i))/n‖²

    with dot = σ' - c_1, h(g) = g dot(g). By Stein's lemma both sums are correlated with w_i: the first by E h' = 6c_3
    times β, the second by E (dot²)' times φ(1/n)Σ y²x. The variance of a sample's own term has only what is not linear
    in w_i, as the squares of these vectors count the rest.
    """
    g, w = p.student.nodes()
    dot = p.student.derivative(g) - p.student.linear
    w = w / w.sum()
    h, square = g * dot - w @ (g * dot), dot**2 - w @ dot**2
    slope_h, slope_square = w @ (g * h), w @ (g * square)
    phi, (m2, m3, m4) = batch.phi, (batch.moment(j) for j in (2, 3, 4))
    square_along = batch.moment_along(2)
    start = 1 + phi * m2 * (w @ (square * (g**2 - 1))) / 2 * move**2
    slope = 2 * stretch * sqrt(batch.D) * slope_h * move + phi * square_along * slope_square * move**2
    dot_1, dot_2, dot_3 = h - slope_h * g, square - slope_square * g, dot - (w @ (g * dot)) * g  # eq. (16)
    variance = 4 * m2 * (w @ dot_1**2) * move**2 + 4 * phi * m3 * (w @ (dot_1 * dot_2)) * move**3
    variance = phi * (variance + (phi**2 * m4 * (w @ dot_2**2) + 2 * phi * m2**2 * (w @ dot**2) ** 2) * move**4)
    E_3 = np.sum((batch.along @ batch.y**2) ** 2) + phi * m4 - square_along**2
    shared = 2 * phi * square_along * (w @ (dot_1 * dot_3)) * move**2
    shared = shared + phi**2 * batch.moment_along(3) * (w @ (dot_2 * dot_3)) * move**3
    return LengthLaw(start, slope, shared, (variance + (phi * slope_square * move**2) ** 2 * E_3) / 2)
