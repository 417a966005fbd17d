"""Hidden units after the step: nodes for their readout weight, their actual spike and their length.

The gradient's row i is a_i Xᵀ(y∘σ'(Xw_i))/n. Of σ' the constant c_1 makes the spike along β, the part linear in w_i
and the rest make

    ω_i = (I + t_i M) w_i + √(v_i/d) C^{1/2} g_i,   t_i = 2 c_2 η a_i,   v_i = η² a_i² φ (E σ'² - c_1² - 4c_2²),

of covariance Σ_u/d, Σ_u = (I + tM)² + vC, and of mean square length r² = tr Σ_u/d. At finite d two numbers of a unit
differ from unit to unit with the same a_i, each by a relative 1/√d: the coefficient on β̂, u_i + β̂ᵀω_i, and the length
of the rest. They are correlated when c_3 ≠ 0: the step stretches w_i by 6 c_3 η a_i β·w_i, which β̂ᵀω_i tells in part
(`length_law`), and rows of W0 of length l get the spike (c_1 + 3c_3(l² - 1)) η a_i ‖β‖. A c_4 lets the length follow
(β̂ᵀw_i)². The few directions that y knows lengthen rows, by 2 t_i tr M/d above all (`FirstBatch.excess`), and so does
the stretch, by the mean of its square.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from ..problem import Problem
from . import quadrature

STEP_NOISE = ("correlated", "incoherent", "isotropic", "absent")
_SPIKES = 4


@dataclass(frozen=True)
class Units:
    """Hidden units on U nodes.

    chance : (U,) weights, of sum 1.  spike : (U,) u + β̂ᵀω, the coefficient on β̂ᵀx.  length : (U,) of the rest of ω.
    overlap : (U,) √N a/(√N r), how much of W0ᵀa a unit holds.  mix : (4, U) of Σ_u/r² = mix·(I, M, M², C).
    along : (U,) β̂ᵀΣ_uβ̂/r².
    """

    chance: np.ndarray
    spike: np.ndarray
    length: np.ndarray
    overlap: np.ndarray
    mix: np.ndarray
    along: np.ndarray
    readouts: int

    def alike(self, values):
        """Values (U, …) as (·, A, …): those of one readout weight in a column."""
        return values.reshape(-1, self.readouts, *values.shape[1:])


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
    start, slope, beside, spread = square, 0.0, 0.0, 0.0
    if known:
        start, slope, beside, spread = length_law(p, batch, eta * a, float(step_noise == "correlated"))
    if step_noise == "isotropic":
        along, more, powers = square, 0.0, np.eye(4)[:, :1] * square
        start, spread, t = np.ones_like(t), square**2 - 1, 0 * t
    else:
        along = batch.onto_hat @ powers  # of Σ_u: d times the variance of β̂ᵀω
        more = batch.excess @ powers
    if known:  # longer inputs move rows by more, and lean on y
        own = start - 1 - batch.phi * batch.moment(2) * t**2
        more = more + own * (2 + batch.excess[3] / batch.moment(2)) + 24 * c4 * eta * a * batch.excess[1]
    if step_noise == "correlated":
        more = more + (6 * c3 * eta * a) ** 2 * np.sum((batch.along @ batch.y) ** 2)
    square = square * np.exp(more / square / p.d)
    mix = powers / square
    back = (1 + t * batch.onto_hat[1]) / np.sqrt(along)  # correlation of β̂ᵀω with β̂ᵀw
    start = start * (p.first_layer == "gaussian")
    told = slope * back + beside / np.sqrt(along)  # of the length, by the coefficient on β̂
    spread = start**2 + np.maximum(spread + (slope**2 - told**2) / 2, 0.0)  # d/2 times the variance of ‖ω‖² left

    e, chance_e = quadrature.coordinate(p.d, _SPIKES)
    e = e[:, None, None]
    L, chance_L = quadrature.length(p.d * square**2 / np.maximum(spread, 1e-9))  # (2, A)
    bent = (p.first_layer == "sphere") - known * 24 * c4 * eta * a * batch.onto_hat[1]  # slope of ‖ω‖² in -(β̂ᵀw)²
    across = square - along / p.d
    fall = (spread / square**2 / (p.d - 1) + bent * back**2 / across / p.d) * (e**2 - 1)  # of r² with e²
    shape = np.where(fall < 0.5, 1 - fall, 0.25 / np.maximum(fall, 0.5)) * np.exp(told / square * e / sqrt(p.d))
    shape = shape / np.einsum("e,eha->ha", chance_e, shape)
    length = L * np.sqrt(across * shape)
    grown = mean * (1 + known * 3 * c3 / c1 * (L**2 - 1) * start * square / np.maximum(spread, 1e-9))
    every = np.tile(np.arange(a.size), 2 * e.size)
    return Units(
        (chance_e[:, None, None] * chance_L * chance).ravel(),
        (grown + L * np.sqrt(along / p.d) * e).ravel(),
        length.ravel(),
        (a / np.sqrt(square))[every],
        mix[:, every],
        (batch.onto_hat @ mix)[every],
        a.size,
    )


def length_law(p: Problem, batch, move, stretch=1.0):
    """What ‖ω_i‖² depends on, for move = η a_i, (U,); stretch : 0.0 leaves 6c_3 η a_i β·w_i out.

    Returns its slopes in ‖w_i‖² and in β̂ᵀw_i, d times its covariance with β̂ᵀω_i that β̂ᵀw_i does not make, and d/2
    times the variance that is left: all of

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
    slope = 2 * stretch * sqrt(batch.D) * lean * move + phi * batch.square_along * lean2 * move**2
    h, kk, k1 = h - lean * g, kk - lean2 * g, k - (w @ (g * k)) * g
    spread = 4 * m2 * (w @ h**2) * move**2 + 4 * phi * m3 * (w @ (h * kk)) * move**3
    spread = phi * (spread + (phi**2 * m4 * (w @ kk**2) + 2 * phi * m2**2 * (w @ k**2) ** 2) * move**4)
    across = np.sum((batch.along @ batch.y**2) ** 2) + phi * m4 - batch.square_along**2  # of Σ y²x/n, next to β̂
    beside = 2 * phi * batch.square_along * (w @ (h * k1)) * move**2
    beside = beside + phi**2 * batch.cube_along * (w @ (kk * k1)) * move**3
    return start, slope, beside, (spread + (phi * lean2 * move**2) ** 2 * across) / 2
