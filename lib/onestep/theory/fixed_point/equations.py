"""The equivalent features after a step of any size, at the n and d at hand, and the ridge problem on them.

Hidden unit i sees ω_iᵀx with ω_i its row after the step. Two numbers of the input, z = β̂ᵀx and χ = ‖x - zβ̂‖/√d', two
of the unit, its coefficient s on β̂ and the length r of the rest (`units`), fix all but the angle between the rests
of ω_i and of x. That angle's cosine is g/√d', g a coordinate of a uniform direction in d' = d - 1 dimensions, so the
unit acts as

    σ(s z + r χ g) = Σ_k m_k(s, r; z, χ) P_k(g) + noise,      k = 0, 1, 2, 3,

P_k the zonal harmonics (`quadrature.zonal`). Distinct degrees do not mix; P_k of random directions is the kernel of D_k
independent features. Ridge regression on them is a deterministic problem in which a sample at a node μ = (z, χ) counts
g_μ = p_μ/(1 + κ_μ) and a unit has susceptibility q:

    T_k = [1 + (N/D_k) √g⟨q m_k m_kᵀ⟩√g]⁻¹                    share of a signal of degree k that is left,
    κ_μ = (1/n) Σ_k D_k (1 - T_k)_μμ/g_μ + (N/n) ⟨q noise⟩_μ,   1/q = λ + noise·g + Σ_k m_kᵀ√g T_k √g m_k.

`update` is this fixed-point map; `training_loss` the value Σ_k t_kᵀ√g T_k √g t_k + Σ g unseen, t_k the teacher's
coefficients. In degree 1 the weights' covariance Σ_u = (I + tM)² + vC, which depends on the readout weight, takes the
place of the identity (`Pencil`), and the directions that the first batch knows are kept apart (`Directions`): β̂, the
teacher's and W0ᵀa. Of the differences between units' s only what other directions do not show can be
used (`saturation`).

As d → ∞ degrees 2 and 3 join the noise, and the nodes of χ, s and r become the terms √(2/d)·‖x‖² and 1/√d of a formula
with E σ(uz + rg)H_k(g)/√k! in the place of m_k. Both take complex states: that is how derivatives are taken.

Shapes: Z nodes μ, U nodes of units, R modes of m_1, m = 2R, Y nodes of the first batch's residuals, A directions known.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .degree_one import directions, linear_traces, pencil, saturation
from .nodes import ISOTROPIC, Features, Solution


def update(f: Features, state, omega):
    """One pass of the fixed-point map, packed (κ, q, S) from old; samples at μ carry weight omega (Z,) or 1.0."""
    p, now = f.p, f.solution(state)
    at = pencil(f, now, omega)
    trace = linear_traces(f, at)
    linear = at.gamma_inv - at.gamma_inv @ trace[0] @ at.gamma_inv  # (1 - T_1)/g in the modes
    kept, used = degree_blocks(f, now, at.g)
    left = f.noise @ at.g + np.sum(f.units.mix * (trace.reshape(4, -1) @ f.modes[1].units.T), axis=0)
    left = left + np.sum(f.isotropic.units @ kept.reshape(len(kept), -1, 1), axis=0)[:, 0]
    load = p.N * (f.units.chance * now.q) @ f.noise + f.dimensions[1] * (f.modes[1].nodes @ linear.ravel())
    load = load + f.dimensions[ISOTROPIC] @ (f.isotropic.nodes @ used.reshape(len(used), -1, 1))[..., 0]
    return f.scale * np.concatenate([np.log(load / p.n), -np.log(p.ridge + left), at.means[0].ravel()])


def degree_blocks(f: Features, now: Solution, g):
    """In the modes of `isotropic`: √g T_k √g, and (1 - T_k)/g, both (3, R, R)."""
    one = np.eye(f.isotropic.c.shape[-1])
    scale = (f.p.N / f.dimensions[ISOTROPIC])[:, None, None]
    A = scale * ((f.units.chance * now.q) @ f.isotropic.units).reshape(-1, *one.shape)
    gamma = (g @ f.isotropic.nodes).reshape(-1, *one.shape)
    back = np.linalg.inv(one + gamma @ A)
    return back @ gamma, A @ back


def training_loss(f: Features, state, omega):
    """L_tr, eq. (36), when the samples at μ carry weight omega (Z,) or 1.0."""
    now = f.solution(state)
    at = pencil(f, now, omega)
    forms = directions(f, at)
    A, B, C, b_0, b_1 = blocks(f, now, at, forms)
    linear = f.label[1] * np.sqrt(at.g) / f.batch.away  # the label along e_0
    loss = at.g @ f.unseen + linear @ forms.R[0][0] @ linear + higher_degrees(f, now, at.g)
    b = np.concatenate([b_0, b_1])
    return loss + b @ np.linalg.solve(np.block([[A, B], [B.T, -C]]), b)


def higher_degrees(f: Features, now: Solution, g):
    """What the labels of degree 2 and 3 in ζ cost, Σ_k ℓ_kᵀ√g T_k √g ℓ_k."""
    cost = 0.0
    for k, rows, used in zip(ISOTROPIC, f.isotropic.rows, degree_blocks(f, now, g)[1], strict=True):
        if k:
            label = rows.T @ (g * f.label[k])
            cost = cost + g @ f.label[k] ** 2 - label @ used @ label
    return cost


class Blocks(NamedTuple):
    """The linear problem of degree 0 and of degree 1 along β̂, eq. (35).

    A : (Z, Z), β̂'s direction beside the constant.  B : (Z, U), the units' even parts there.  C : (U, U), what units
    share outside of it.  b_0, b_1 : (Z,) and (U,), the label in both. C is 1 and b_1 is 0 for a negligible output.
    """

    A: np.ndarray
    B: np.ndarray
    C: np.ndarray
    b_0: np.ndarray
    b_1: np.ndarray


def blocks(f: Features, now: Solution, at, forms):
    """`Blocks` at κ, q and the pencil's solution."""
    root, one, share = np.sqrt(at.g), np.eye(f.z.size), f.units.chance * now.q
    m, strength = f.m * root, np.sqrt(f.p.N * share)
    z, linear = (f.z / f.chi)[:, None], f.label[1] * root / f.batch.away
    random = one + f.p.N / f.dimensions[1] * (m[1].T * (share * f.units.along)) @ m[1]
    Xi = random - forms.inverse  # eq. (32): of β̂ᵀω, which the nodes of s have already, in other directions
    zE = z * saturation(f, at, share, Xi)
    A, b_0 = one - zE @ Xi * z.T, f.label[0] * root - zE @ forms.V[0] @ linear
    B, C, b_1 = m[0].T * strength, np.eye(share.size), np.zeros(share.size)
    if len(forms.R) == 2:  # eq. (34): along W0ᵀa; q knows of `generic` already
        P = m[1].T * (strength * f.units.overlap)
        B = B - zE @ forms.V[1] @ P
        C = C + P.T @ (forms.R[1][1] - forms.generic) @ P
        b_1 = -P.T @ forms.R[1][0] @ linear
    return Blocks(A, B, C, b_0, b_1)
