"""Hidden units after the step: nodes for their readout weight, their actual spike and their length.

The gradient's row i is a_i Xᵀ(y∘σ'(Xw_i))/n. Of σ' the constant c_1 makes the spike along β, the part linear in w_i
and the rest make

    ω_i = (I + t_i M) w_i + √(v_i/d) C^{1/2} g_i,   t_i = 2 c_2 η a_i,   v_i = η² a_i² φ (E σ'² - c_1² - 4c_2²),

of covariance Σ_u/d, Σ_u = (I + tM)² + vC, and of mean square length r² = tr Σ_u/d. At finite d two numbers of a unit
differ from unit to unit with the same a_i, each by a relative 1/√d: the coefficient on β̂, u_i + β̂ᵀω_i, and the length
of the rest. They are correlated when c_3 ≠ 0: the step stretches w_i by 6 c_3 η a_i β·w_i, which β̂ᵀω_i tells in part
(`length_law`), and rows of W0 of length l get the spike (c_1 + 3c_3(l² - 1)) η a_i ‖β‖. A c_4 lets the length follow
(β̂ᵀw_i)². When c_2 c_3 ≠ 0 lengths share something with the rows' parts along the teacher's direction next to β̂ too.

Means over units move by a relative 1/d, with a_i and so with the spike. Given ‖x‖ the mean of σ' over units is
c_1 + 3c_3 (‖x‖²/d - 1), which turns and shortens the spike (`FirstBatch.mean`, `rest`); beside it stands
3c_3 η a_i w_iᵀTw_i (`FirstBatch.bend`). The few directions that y knows lengthen rows, by 2 t_i tr M/d above all
(`FirstBatch.excess`), and so does the stretch, by the mean of its square.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from ..problem import Problem
from . import quadrature

STEP_NOISE = ("correlated", "incoherent", "isotropic", "absent")
# Four nodes exact to third order for the spike's fluctuation e and the length's h: (±√3, 0) and (0, ±√1.5)
_SPIKE = sqrt(3) * np.array([-1, 0, 0, 1])
_LENGTH = sqrt(1.5) * np.array([0, -1, 1, 0])
_WEIGHT = np.array([1, 2, 2, 1]) / 6


@dataclass(frozen=True)
class Units:
    """Hidden units on U nodes.

    chance : (U,) weights, of sum 1.  spike : (U,) u + β̂ᵀω, the coefficient on β̂ᵀx.  length : (U,) of the rest of ω.
    overlap : (U,) √N a/(√N r), how much of W0ᵀa a unit holds.  mix : (4, U) of Σ_u/r² = mix·(I, M, M², C).
    plane : (2, 2, U) of Σ_u/r² in the plane of β̂ and ζ.  common : (U, U), (1/d) tr Σ_uΣ_v/(r_u r_v)² - 1.
    leaning : (A, U), covariance of ‖ω‖² with the parts of ω along the e_a, β̂ projected out, over √2 r³.
    """

    chance: np.ndarray
    spike: np.ndarray
    length: np.ndarray
    overlap: np.ndarray
    mix: np.ndarray
    plane: np.ndarray
    common: np.ndarray
    leaning: np.ndarray

    def alike(self, values):
        """Values (U, …) as (4, U/4, …): those of one readout weight in a column."""
        return values.reshape(_WEIGHT.size, -1, *values.shape[1:])


def units(p: Problem, eta, batch, values, step_noise, order, strip):
    """`Units` after a step eta on a `FirstBatch`; values : (·,) of √N a, or None for a Gaussian readout."""
    a, chance = quadrature.graded(order, strip)
    if values is not None:
        a, chance = values, np.full(values.size, 1 / values.size)
    a = a / sqrt(p.N)
    c1, c2, c3, c4 = p.student.coefficients(4)[1:]
    mean = eta * c1 * sqrt(batch.D) * a
    if p.initial_output == "full":
        mean = mean + batch.cosine[1] * a
    t = 2 * c2 * eta * a
    v = (eta * a) ** 2 * batch.phi * max(0.0, p.student.slope_second_moment - c1**2 - 4 * c2**2)
    if step_noise == "absent":
        t, v = 0 * t, 0 * v
    known = step_noise in ("correlated", "incoherent")
    powers = np.array([np.ones_like(t), 2 * t, t**2, v])
    square = batch.traces[0] @ powers
    start, slope, beside, spread, shared = square, 0.0, 0.0, 0.0, np.zeros((batch.hat.size, a.size))
    if known:
        stretch = float(step_noise == "correlated")
        start, slope, beside, spread, shared = length_law(p, batch, eta * a, stretch)
    if step_noise == "isotropic":
        along, more, powers = square, 0.0, np.eye(4)[:, :1] * square
    else:
        along = batch.plane[:, 0, 0] @ powers  # of Σ_u: d times the variance of β̂ᵀω
        more = batch.excess @ powers
    if known:  # longer inputs move rows by more, and lean on y
        own = start - 1 - batch.phi * batch.moment(2) * t**2
        more = more + own * (2 + batch.excess[3] / batch.moment(2)) + 24 * c4 * eta * a * batch.excess[1]
    if step_noise == "correlated":
        more = more + (6 * c3 * eta * a) ** 2 * np.sum((batch.along @ batch.y) ** 2)
    square = square * np.exp((more + square - along) / square / p.d)
    mix = powers / square
    plane = np.einsum("kab,ku->abu", batch.plane, mix)
    # correlations of β̂ᵀω with β̂ᵀw and ζᵀw
    toward = (batch.plane[0, 0] + t[:, None] * batch.plane[1, 0]) / np.sqrt(along)[:, None]
    back = toward[:, 0]
    bent = (p.first_layer == "sphere") - known * 24 * c4 * eta * a * batch.plane[1, 0, 0]  # slope of r² in -(β̂ᵀw)²
    bend, shift = batch.bend, 0.0
    if step_noise == "incoherent":
        shift = -2 * batch.length
        bend = bend + shift * np.diag([1, 0])
    start = start * (p.first_layer == "gaussian")
    told = slope * back + beside / np.sqrt(along)  # of the length, by the coefficient on β̂
    tilt = told / (2 * square * sqrt(p.d))

    e, h = _SPIKE[:, None], _LENGTH[:, None]
    spread = np.sqrt(start**2 + np.maximum(spread + (slope**2 - told**2) / 2, 0.0))
    # exponentials: lengths stay positive and depend smoothly on a_i
    log = np.sqrt(2 / p.d) * spread / square * h - (bent * back**2 / p.d / square) * (e**2 - 1)
    length = np.sqrt((1 - 1 / p.d) * square * np.exp(log) / (_WEIGHT @ np.exp(log)) / (1 + tilt**2))
    length = length * (1 + tilt * e)
    longer = known * start / np.where(spread > 0, spread, 1.0)  # share of the length's fluctuation that W0 had
    grown = mean * (1 + 3 * c3 / c1 * sqrt(2 / p.d) * longer * h)
    turn = 3 * c3 / c1 / sqrt(batch.D) / p.d * np.einsum("ua,ab,ub->u", toward, bend, toward)
    turn = turn / (1 + 2 * np.abs(turn))  # small, but for very few inputs: there it must not turn spikes around
    grown = grown + known * eta * a * (3 * c3 * shift / p.d + c1 * sqrt(batch.D) * turn * (e**2 - 1))
    four = np.tile(np.arange(a.size), e.size)
    common = mix.T @ batch.traces @ mix - 1
    leaning = shared[:-1] - np.outer(batch.cosine, shared[-1] / batch.hat[-1])
    return Units(
        np.outer(_WEIGHT, chance).ravel(),
        (grown + np.sqrt(along / p.d) * e).ravel(),
        length.ravel(),
        (a / np.sqrt(square))[four],
        mix[:, four],
        plane[:, :, four],
        common[np.ix_(four, four)],
        leaning[:, four] / (sqrt(2) * p.d * length.ravel() ** 3),
    )


def length_law(p: Problem, batch, move, stretch=1.0):
    """What ‖ω_i‖² depends on, for move = η a_i, (U,); stretch : 0.0 leaves 6c_3 η a_i β·w_i out.

    Returns its slopes in ‖w_i‖² and in β̂ᵀw_i, d times its covariance with β̂ᵀω_i that β̂ᵀw_i does not make, d/2
    times the variance that is left, and d times its covariance with ω_i in the basis of `FirstBatch.span`, (A + 1, U),
    to second order in c_2 and c_3 (the third has E y³x, for polynomial y a mean that few inputs make): all of

        ‖ω_i‖² = ‖w_i‖² + 2 move·(1/n)Σ y_μ h(x_μᵀw_i) + move²‖Xᵀ(y∘k(Xw_i))/n‖²

    with k = σ' - c_1, h(g) = g k(g). By Stein's lemma both sums lean on w_i: the first by E h' = 6c_3 times β, the
    second by E (k²)' times φγ, γ = (1/n)Σ y²x. The variance of a sample's own term has only what is not linear in w_i,
    as the squares of these vectors count the rest.
    """
    g, w = p.student.nodes()
    k = p.student.derivative(g) - p.student.linear
    w = w / w.sum()
    h, kk = g * k - w @ (g * k), k**2 - w @ k**2
    lean, lean2 = w @ (g * h), w @ (g * kk)
    phi, (m2, m3, m4) = batch.phi, (batch.moment(j) for j in (2, 3, 4))
    start = 1 + phi * m2 * (w @ (kk * (g**2 - 1))) / 2 * move**2
    slope = 2 * stretch * batch.length * lean * move + phi * batch.square_along * lean2 * move**2
    shared = np.outer(2 * stretch * lean * batch.length * batch.hat, move)
    shared = shared + np.outer(phi * lean2 * batch.image(2), move**2)
    shared = shared + (w @ (g * k)) * move * (batch.span[1] @ shared)
    h, kk, k1 = h - lean * g, kk - lean2 * g, k - (w @ (g * k)) * g
    spread = 4 * m2 * (w @ h**2) * move**2 + 4 * phi * m3 * (w @ (h * kk)) * move**3
    spread = phi * (spread + (phi**2 * m4 * (w @ kk**2) + 2 * phi * m2**2 * (w @ k**2) ** 2) * move**4)
    across = np.sum((batch.along @ batch.y**2) ** 2) + phi * m4 - batch.square_along**2  # of Σ y²x/n, next to β̂
    beside = 2 * phi * batch.square_along * (w @ (h * k1)) * move**2
    beside = beside + phi**2 * batch.cube_along * (w @ (kk * k1)) * move**3
    beside = beside + phi * lean2 * (w @ (g * k)) * batch.askew * move**3  # γ, met again by M
    shared = shared + np.outer(2 * phi * (w @ (h * k1)) * batch.image(2), move**2)
    return start, slope, beside, (spread + (phi * lean2 * move**2) ** 2 * across) / 2, shared
