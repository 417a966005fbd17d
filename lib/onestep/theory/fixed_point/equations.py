"""The equivalent features after a step of any size, at the n and d at hand, and the ridge problem on them.

`update` is the fixed-point map, eq. (19) to (21) and (26); `training_loss` the loss, eq. (36). Complex states give
derivatives. In degree 1 the covariance of rows and the directions that the first batch depends on
are kept (`degree_one`); degrees 2 and 3 are isotropic.

Shapes: Z nodes μ, U nodes of units, R modes of m_1, m = 2R, Y nodes of the first batch's residuals, A directions known.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np

from . import plane_loss
from .degree_one import Directions, Pencil, directions, linear_traces, pencil, saturation
from .nodes import ISOTROPIC, Features, Solution


def update(f: Features, state, omega):
    """The fixed-point map: the packed (κ, q, S) that the equations give, (20), (21) and (26), at the packed `state`.

    omega : (Z,) or 1.0, the weight that samples at μ carry.
    """
    p, now = f.p, f.solution(state)
    at = pencil(f, now, omega)
    traces = linear_traces(f, at)
    linear = at.gamma_inv - at.gamma_inv @ traces[0] @ at.gamma_inv  # (1 - T_1)/g in the modes
    forms, middle = degree_blocks(f, now, at.g)
    # eq. (21), the terms of 1/q - λ
    terms = f.noise @ at.g + np.sum(f.units.mix * (traces.reshape(4, -1) @ f.modes[1].units.T), axis=0)
    terms = terms + np.sum(f.isotropic.units @ forms.reshape(len(forms), -1, 1), axis=0)[:, 0]
    # eq. (20), the terms of nκ
    n_kappa = p.N * (f.units.chance * now.q) @ f.noise + f.dimensions[1] * (f.modes[1].nodes @ linear.ravel())
    n_kappa = n_kappa + f.dimensions[ISOTROPIC] @ (f.isotropic.nodes @ middle.reshape(len(middle), -1, 1))[..., 0]
    return f.scale * np.concatenate([np.log(n_kappa / p.n), -np.log(p.ridge + terms), at.means[0].ravel()])


def degree_blocks(f: Features, now: Solution, g, factors=1.0):
    """For T_k of eq. (19) in the modes h of `isotropic`: hᵀ√g T_k √g h, and K in (1 - T_k)/g = h K hᵀ; each (3, R, R).

    With A = N/D_k ⟨q c cᵀ⟩ and Γ = hᵀgh they are (1 + ΓA)⁻¹Γ and A(1 + ΓA)⁻¹.   factors : (U,) or 1.0, on q.
    """
    one = np.eye(f.isotropic.c.shape[-1])
    scale = (f.p.N / f.dimensions[ISOTROPIC])[:, None, None]
    A = scale * ((f.units.chance * now.q * factors) @ f.isotropic.units).reshape(-1, *one.shape)
    gamma = (g @ f.isotropic.nodes).reshape(-1, *one.shape)
    inverse = np.linalg.inv(one + gamma @ A)
    return inverse @ gamma, A @ inverse


def training_loss(f: Features, state, omega):
    """L_tr, eq. (36), when the samples at μ carry weight omega (Z,) or 1.0."""
    now = f.solution(state)
    at = pencil(f, now, omega)
    if f.units.harmonics is not None:
        return plane_loss.training_loss(f, now, at)
    forms = directions(f, at)
    A, B, C, b_0, b_1 = blocks(f, now, at, forms)
    linear = f.label[1] * np.sqrt(at.g) / f.batch.away  # the label along e_0
    loss = at.g @ f.unseen + linear @ forms.R[0][0] @ linear
    for k in (2, 3):
        label = f.label[k] * np.sqrt(at.g)
        loss = loss + label @ bias_factor(f, now, at.g, k) @ label
    b = np.concatenate([b_0, b_1])
    return loss + b @ np.linalg.solve(np.block([[A, B], [B.T, -C]]), b)


def bias_factor(f: Features, now: Solution, g, k):
    """T_k of eq. (19) on the nodes, (Z, Z), k = 2 or 3; in degree 2 that along (ζᵀx)² - 1, eq. (44)."""
    j = ISOTROPIC.index(k)
    rows = f.isotropic.rows[j] * np.sqrt(g)[:, None]
    _, middle = degree_blocks(f, now, g, f.units.plane[1, 1] ** 2 if k == 2 else 1.0)
    return np.eye(g.size) - rows @ middle[j] @ rows.T


class Blocks(NamedTuple):
    """The linear problem of degree 0 and of degree 1 along β̂, eq. (35).

    A : (Z, Z), β̂'s direction beside the constant.  B : (Z, U), the units' even parts there.  C : (U, U), what units
    share outside of it.  b_0, b_1 : (Z,) and (U,), the label in both.
    """

    A: np.ndarray
    B: np.ndarray
    C: np.ndarray
    b_0: np.ndarray
    b_1: np.ndarray


def blocks(f: Features, now: Solution, at: Pencil, forms: Directions):
    """`Blocks` at κ, q and the pencil's solution."""
    root, one, share, plane = np.sqrt(at.g), np.eye(f.z.size), f.units.chance * now.q, f.units.plane
    m, strength = f.m * root, np.sqrt(f.p.N * share)
    z, linear = (f.z / f.chi)[:, None], f.label[1] * root / f.batch.away
    random = one + f.p.N / f.dimensions[1] * (m[1].T * (share * plane[0, 0])) @ m[1]
    Xi = random - forms.inverse  # eq. (32): of β̂ᵀω, which the nodes of s have already, in other directions
    zE = z * saturation(f, at, share, Xi)
    # eq. (44): units' mean parts along (ζᵀx)² - 1, and along e_0 those of z ζᵀx; eq. (34): along e_1 those of W0ᵀa
    T_2, m_2 = bias_factor(f, now, at.g, 2), m[2].T * strength
    Q = m_2 * ((plane[1, 1] - 1) / f.p.d)
    P = [m_2 * z * (sqrt(2) / f.p.d / f.batch.away * plane[0, 1])]
    if len(forms.R) == 2:
        P.append(m[1].T * (strength * f.units.overlap))
    # eq. (35)
    A, b_0 = one - zE @ Xi * z.T, f.label[0] * root - zE @ forms.V[0] @ linear
    B = m[0].T * strength - zE @ sum(V @ P_a for V, P_a in zip(forms.V, P, strict=True))
    C = np.eye(share.size) + Q.T @ T_2 @ Q
    b_1 = -Q.T @ T_2 @ (f.label[2] * root)
    for a, P_a in enumerate(P):
        b_1 = b_1 - P_a.T @ forms.R[a][0] @ linear
        for b, P_b in enumerate(P):
            C = C + P_a.T @ (forms.R[a][b] - forms.generic * (a == b == 1)) @ P_b  # `generic` is part of q
    return Blocks(A, B, C, b_0, b_1)
