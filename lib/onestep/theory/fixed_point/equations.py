"""The equivalent features after a step of any size, at the n and d at hand, and the ridge problem on them.

`update` is the fixed-point map, eq. (19) to (21) and (26); `training_loss` the loss, eq. (36). Complex states give
derivatives. In degree 1 the covariance of rows and the directions that the first batch knows are
kept (`degree_one`); degrees 2 and 3 are isotropic.

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
    at = pencil(f, now, omega)  # eq. (25) and (26)
    trace = linear_traces(f, at)
    linear = at.gamma_inv - at.gamma_inv @ trace[0] @ at.gamma_inv  # (1 - T_1)/g in the modes
    kept, used = degree_blocks(f, now, at.g)
    # eq. (21): 1/q less the ridge
    left = f.noise @ at.g + np.sum(f.units.mix * (trace.reshape(4, -1) @ f.modes[1].units.T), axis=0)
    left = left + np.sum(f.isotropic.units @ kept.reshape(len(kept), -1, 1), axis=0)[:, 0]
    # eq. (20): n κ
    load = p.N * (f.units.chance * now.q) @ f.noise + f.dimensions[1] * (f.modes[1].nodes @ linear.ravel())
    load = load + f.dimensions[ISOTROPIC] @ (f.isotropic.nodes @ used.reshape(len(used), -1, 1))[..., 0]
    return f.scale * np.concatenate([np.log(load / p.n), -np.log(p.ridge + left), at.means[0].ravel()])


def degree_blocks(f: Features, now: Solution, g):
    """In the modes of `isotropic`: √g T_k √g and (1 - T_k)/g of eq. (19), both (3, R, R)."""
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
    """The loss of the label's degrees 2 and 3, Σ_k ℓ_kᵀ√g T_k √g ℓ_k, in eq. (36)."""
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
    # eq. (35)
    A, b_0 = one - zE @ Xi * z.T, f.label[0] * root - zE @ forms.V[0] @ linear
    B, C, b_1 = m[0].T * strength, np.eye(share.size), np.zeros(share.size)
    if len(forms.R) == 2:  # eq. (34): along W0ᵀa; q knows of `generic` already
        P = m[1].T * (strength * f.units.overlap)
        B = B - zE @ forms.V[1] @ P
        C = C + P.T @ (forms.R[1][1] - forms.generic) @ P
        b_1 = -P.T @ forms.R[1][0] @ linear
    return Blocks(A, B, C, b_0, b_1)
