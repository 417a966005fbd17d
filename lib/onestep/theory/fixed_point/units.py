"""Hidden units after the step: nodes for their readout weight, their actual spike and their length.

The gradient's row i is a_i Xᵀ(y∘σ'(Xw_i))/n, eq. (10). Of σ' the constant c_1 makes the spike along β, the part linear
in w_i and the rest make

    ω_i = (1 - o_i + t_i M) w_i + √(v_i/d) C^{1/2} g_i,   t_i = 2 c_2 η a_i,   v_i = η² a_i² φ (E σ'² - c_1² - 4c_2²),

of covariance Σ_u/d, Σ_u = (1 - o + tM)² + vC; ω is here the row without its spike u_i β̂. With the full initial output
a unit's own part of the residual shortens it by o_i = η a_i² (E gσσ' - c_1²), and the part of w_i that all units share
along W0ᵀa has gone into β (`FirstBatch.shifted`).

At finite d two numbers differ from unit to unit with the same a_i, each by a relative 1/√d: the coefficient on β̂,
s = u_i + β̂ᵀω_i, and the length r of the rest. They are correlated: linearly when c_3 ≠ 0, as the step stretches w_i by
6c_3 η a_i β·w_i; through (β̂ᵀw_i)² on the sphere and when c_4 ≠ 0. Rows of W0 of length l get the spike
(c_1 + 3c_3(l² - 1)) η a_i ‖β‖.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import sqrt
from typing import NamedTuple

import numpy as np

from ...problem import Problem
from .. import quadrature

STEP_NOISE = ("correlated", "incoherent", "isotropic", "absent")
ANISOTROPIC = STEP_NOISE[:2]  # with the covariance (12) of a row
_SPIKES = 4  # nodes of a row's coordinate along β̂; three are blind to harmonics of degree 3
_NONE = 1e-9  # in the place of a variance that is 0


@dataclass(frozen=True)
class Units:
    """Hidden units on U nodes.

    chance : (U,) weights, of sum 1.  spike : (U,) u + β̂ᵀω, the coefficient on β̂ᵀx.  length : (U,) of the rest of ω.
    overlap : (U,) a/r, to which rows are orthogonal with the full initial output.  mix : (4, U) of Σ_u/r² =
    mix·(I, M, M², C).  plane : (2, 2, U) of Σ_u/r² in the plane of β̂ and ζ.  length_slope : (2, U) how r follows ω
    along Mβ̂, ϱt/(√2 r³), and along e_1, eq. (30).
    readouts : A, readout weights, which vary fastest along U.
    """

    chance: np.ndarray
    spike: np.ndarray
    length: np.ndarray
    overlap: np.ndarray
    mix: np.ndarray
    plane: np.ndarray
    length_slope: np.ndarray
    readouts: int


@dataclass(frozen=True)
class Rows:
    """The law of (s, r) for each of A readout weights a; all (A,), but mix and length_slope.

    spike : u.  square : E ‖ω - uβ̂‖².  along : β̂ᵀΣ_uβ̂.  mix : (4, A) of Σ_u/square.
    covariance : √d times that of ‖ω‖² with e = √d β̂ᵀω/√along, eq. (16).  variance : d/2 times that of ‖ω‖² given e.
    square_slope : d times the slope of r² in -e².  spike_slope : of the relative spike in the relative ‖ω‖².
    length_slope : (2, A), as in `Units`.
    """

    spike: np.ndarray
    square: np.ndarray
    along: np.ndarray
    mix: np.ndarray
    covariance: np.ndarray
    variance: np.ndarray
    square_slope: np.ndarray
    spike_slope: np.ndarray
    length_slope: np.ndarray


def rows(p: Problem, eta, batch, a, step_noise) -> Rows:
    """`Rows` after a step eta for the readout weights a, eq. (11) to (18)."""
    means, full, anisotropic = _normal_means(p.student), p.initial_output == "full", step_noise in ANISOTROPIC
    c1, c2, c3, c4 = means.c
    move, moved = eta * a, eta * a * (step_noise != "absent")
    spike = eta * c1 * sqrt(batch.D) * a
    t, v = 2 * c2 * moved, moved**2 * batch.phi * max(0.0, p.student.slope_second_moment - c1**2 - 4 * c2**2)
    kept = 1 - full * means.own * moved * a
    powers = np.array([kept**2, 2 * kept * t, t**2, v])
    square, along = batch.traces @ powers, batch.plane[:, 0, 0] @ powers  # eq. (12)
    start, slope, shared, variance = lengths(p, batch, move * anisotropic, float(step_noise == "correlated"))
    gaussian, follows, aside, toward = p.first_layer == "gaussian", 0 * a, 0 * a, 0.0
    if batch.shift:  # slopes of ‖ω‖² in e_1ᵀw, eq. (15), and of the spike across β̂ in ‖w‖², eq. (30)
        stretch, toward = 6 * c3 / c1, batch.cosine[1]
        follows = -2 * a * ((1 - start if gaussian else kept**2) + stretch * (step_noise == "correlated"))
        aside = -a * stretch * start * gaussian * anisotropic
        square = square * _remainder(a**2 / square)  # less what e_1 holds of a row
    if step_noise == "isotropic":
        powers, along, variance = np.eye(4)[:, :1] * square, square, square**2 - 1
        t = 0 * t
    else:  # eq. (17): what order 1/d adds to the mean of ‖ω‖², as longer inputs move rows by more
        more = batch.excess @ powers
        if anisotropic:
            own = start - 1 - batch.phi * batch.moments[2] * t**2
            more = more + own * (2 + batch.excess[3] / batch.moments[2]) + 24 * c4 * move * batch.excess[1]
        if step_noise == "correlated":  # the square of the stretch
            more = more + (6 * c3 * move) ** 2 * np.sum((batch.along @ batch.y) ** 2)
        square = square * np.exp(more / square / p.d)
    start = start * gaussian
    correlation = (kept + t * batch.plane[1, 0, 0]) / np.sqrt(along)  # of β̂ᵀω with β̂ᵀw
    covariance = slope * correlation + (shared + toward * follows * kept) / np.sqrt(along)
    spread = (slope + toward * follows) ** 2 + (1 - toward**2) * follows**2 - covariance**2
    variance = start**2 + np.maximum(variance + spread / 2, 0.0)
    square_slope = (not gaussian) - anisotropic * 24 * c4 * move * batch.plane[1, 0, 0]  # eq. (18)
    spike_slope = anisotropic * 3 * c3 / c1 * batch.share * start * square / np.maximum(variance, _NONE)
    square_slope *= correlation**2
    length_slope = np.array([slope * t, follows * kept + aside]) / sqrt(2) / square**1.5
    mix = powers / square
    return Rows(spike, square, along, mix, covariance, variance, square_slope, spike_slope, length_slope)


class NormalMeans(NamedTuple):
    """Means over one normal g: c = c_1..c_4; own = E gσσ' - c_1², of eq. (11); with dot = σ' - c_1 and h = g dot those
    of eq. (14) to (16)."""

    c: np.ndarray
    own: float
    slope_h: float
    square: float
    slope_square: float
    bend_square: float
    products: np.ndarray  # of what is not linear in g of h, dot² and dot, (3, 3)


@lru_cache(maxsize=64)
def _normal_means(student) -> NormalMeans:
    g, w = student.nodes()
    w = w / w.sum()
    dot = student.derivative(g) - student.linear
    parts = np.array([g * dot, dot**2, dot])
    parts[:2] -= (parts[:2] @ w)[:, None]
    slopes = parts @ (w * g)
    off = parts - slopes[:, None] * g
    bend = parts[1] @ (w * (g**2 - 1))
    own = w @ (g * student(g) * (dot + student.linear)) - student.linear**2
    return NormalMeans(student.coefficients(4)[1:], own, slopes[0], w @ dot**2, slopes[1], bend, (off * w) @ off.T)


def lengths(p: Problem, batch, move, stretch=1.0):
    """What ‖ω‖² depends on after a move η a_i (A,), eq. (14) to (16); stretch = 0 leaves 6c_3 η a_i β·w_i out. (4, A):

    its slope in ‖w‖²; in β̂ᵀw; d times its covariance with β̂ᵀω that β̂ᵀw does not make; d/2 times the variance left.

        ‖ω_i‖² = ‖w_i‖² + 2 move·(1/n)Σ y_μ h(x_μᵀw_i) + move²‖Xᵀ(y∘dot(Xw_i))/n‖²,   dot = σ' - c_1,  h(g) = g dot(g)

    By Stein's lemma both sums are correlated with w_i: the first by E h' = 6c_3 times β, the second by E (dot²)' times
    φ(1/n)Σ y²x. Of a sample's own term only what is not linear in w_i counts, as the squares of these hold the rest.
    """
    phi, (_, _, m2, m3, m4), y2_along = batch.phi, batch.moments, batch.moment_along(2)
    c, _, slope_h, square, slope_square, bend_square, products = _normal_means(p.student)
    (s11, s12, s13), (_, s22, s23), _ = products
    start = 1 + phi * m2 * bend_square / 2 * move**2
    slope = 2 * stretch * sqrt(batch.D) * slope_h * move + phi * y2_along * slope_square * move**2
    shared = 2 * phi * y2_along * s13 * move**2 + phi**2 * batch.moment_along(3) * s23 * move**3
    shared += 2 * c[1] * phi * slope_square * batch.turned * move**3  # a row has w along Mβ̂ too
    E_3 = np.sum((batch.along @ batch.y**2) ** 2) + phi * m4 - y2_along**2
    fourth = phi**2 * m4 * s22 + 2 * phi * m2**2 * square**2 + phi * slope_square**2 * E_3
    variance = phi / 2 * (4 * m2 * s11 * move**2 + 4 * phi * m3 * s12 * move**3 + fourth * move**4)
    return np.array([start, slope, shared, variance])


def units(p: Problem, eta, batch, step_noise, order, strip) -> Units:
    """`Units` after a step eta on a `FirstBatch`.

    For each readout weight the law of (s, r) on 4 nodes of e and 2 or 3 of the length L, eq. (18). A row without its
    spike is LΘ, Θ a direction of coordinate e/√d along β̂ on the sphere and L² gamma distributed:

        s = u(1 + spike_slope (L² - 1)) + L √(along/d) e,  r² = L² r_⊥² (1 - c (e² - 1)) exp(covariance e/(square √d)),

    with r_⊥² = square - along/d and c so that r² and s² have the covariance -2 square_slope·along/d². Without a step c
    is 1/(d - 1) on the sphere, r² = 1 - e²/d, and L does not depend on Θ for Gaussian rows: both are exact.
    """
    a, chance = quadrature.graded(order, strip)
    if (values := p.readout_values) is not None:
        a, chance = values, np.full(values.size, 1 / values.size)
    a, d = a / sqrt(p.N), p.d
    law = rows(p, eta, batch, a, step_noise)
    e, chance_e = (part[:, None, None] for part in quadrature.coordinate(d, _SPIKES))
    L, chance_L = quadrature.length(d * law.square**2 / np.maximum(law.variance, _NONE), 3 if d < 100 else 2)  # (·, A)
    across = law.square * _remainder(law.along / law.square / d)
    c = law.variance / law.square**2 / (d - 1) + law.square_slope / across / d
    shape = _remainder(c * (e**2 - 1)) * np.exp(law.covariance / law.square * e / sqrt(d))
    length = L * np.sqrt(across * shape / np.sum(chance_e * shape, axis=0))
    spike = law.spike * (1 + law.spike_slope * (L**2 - 1)) + L * np.sqrt(law.along / d) * e
    chance = (chance_e * chance_L * chance).ravel()
    mix, overlap, length_slope = (
        np.tile(x, len(L) * e.size) for x in (law.mix, a / np.sqrt(law.square), law.length_slope)
    )
    plane = np.einsum("kab,ku->abu", batch.plane, mix)
    return Units(chance, spike.ravel(), length.ravel(), overlap, mix, plane, length_slope, a.size)


def _remainder(x):
    """1 - x, continued smoothly from x = 1/2 on so that it stays positive, as few inputs after a large step need."""
    return np.where(x < 0.5, 1 - x, 0.25 / np.maximum(x, 0.5))
