"""Degree 1: the ridge problem in the span of m_1, with the first batch eliminated by a linear pencil, eq. (22) to (33).

Shapes: Z nodes μ, U nodes of units, R modes of m_1, m = 2R, Y nodes of the first batch's residuals, A directions known.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from .first_batch import FirstBatch
from .nodes import Features, Solution


@dataclass(frozen=True)
class Pencil:
    """The linear part of the ridge problem in the span of m_1's modes, with M and C eliminated.

    Its resolvent is T_J = [Γ⁻¹ + Θ_0 + M Θ_1 + M² Θ_2 + C Θ_3]⁻¹, eq. (24), the upper block of the inverse of a pencil
    that is linear in the samples, eq. (25), whose deterministic equivalent is G = (Q_0 + S)⁻¹, eq. (26).

    Parameters
    ----------
    g : (Z,), weights of the samples.
    gamma_inv : (R, R), Γ⁻¹ with Γ = rowsᵀ g rows.
    Q0_inverse, G : (m, m), Q_0⁻¹ and G.
    lower : (m, m), from whose lower right block M²T is read.
    Y_tilde : (Y, m, m), Ỹ = (1 + φYG)⁻¹Y at the nodes of y.
    means : (3, m, m), E y^k Ỹ for k = 0, 1, 2; the first is S.
    """

    g: np.ndarray
    gamma_inv: np.ndarray
    Q0_inverse: np.ndarray
    G: np.ndarray
    lower: np.ndarray
    Y_tilde: np.ndarray
    means: np.ndarray


def pencil(f: Features, now: Solution, omega):
    """`Pencil` at κ, q, S when the samples at node z carry weight omega (Z,) or 1.0.

    Parameters
    ----------
    f : Features
        The equivalent features.
    now : Solution
        Where the equations hold.
    omega : array, (Z,), or float
        Weight of the samples at each node.
    """
    R = f.modes[1].c.shape[1]
    g = f.pz * omega / (1 + omega * now.kappa)
    gamma_inv = np.linalg.inv((g @ f.modes[1].nodes).reshape(R, R))  # eq. (23)
    theta = strengths(f, now)
    Q0_inverse = np.zeros((2 * R, 2 * R), gamma_inv.dtype)  # eq. (25)
    Q0_inverse[:R, :R], Q0_inverse[R:, R:] = np.linalg.inv(gamma_inv + theta[0]), -theta[2]
    y, one = f.batch.y[:, None, None], np.eye(2 * R)
    Y = np.zeros((y.size, 2 * R, 2 * R), theta.dtype)
    Y[:, :R, :R], Y[:, :R, R:], Y[:, R:, :R] = y * theta[1] + y**2 * theta[3], y * one[:R, :R], y * one[:R, :R]
    shift = np.linalg.inv(one + now.S @ Q0_inverse)  # eq. (26)
    G = Q0_inverse @ shift
    Y_tilde = np.linalg.solve(one + f.batch.phi * Y @ G, Y)
    means = (f.batch.powers @ Y_tilde.reshape(y.size, -1)).reshape(3, *G.shape)
    return Pencil(g, gamma_inv, Q0_inverse, G, shift @ now.S, Y_tilde, means)


def strengths(f: Features, now: Solution):
    """Θ_0 … Θ_3, eq. (23); (4, R, R)."""
    R = f.modes[1].c.shape[1]
    return (f.p.N / f.dimensions[1]) * ((f.units.mix * (f.units.chance * now.q)) @ f.modes[1].units).reshape(4, R, R)


def linear_traces(f: Features, at: Pencil):
    """Normalised traces over inputs of T_J, MT_J, M²T_J and CT_J, eq. (27); (4, R, R)."""
    batch, R, G = f.batch, f.modes[1].c.shape[1], at.G
    first, second = (batch.moment(k) * G - batch.phi * G @ at.means[k] @ G for k in (1, 2))
    return np.array([G[:R, :R], first[:R, :R], -at.lower[R:, R:], second[:R, :R]])


@dataclass(frozen=True)
class Directions:
    """How the linear problem treats the directions e_a (the teacher's; W0ᵀa) next to β̂; all matrices (Z, Z).

    Parameters
    ----------
    inverse : T_β̂β̂⁻¹.
    R : R[a][b] = R_ab, the resolvent between e_a and e_b with β̂ removed, eq. (32).
    V : V[a] = V_a, the coupling of e_a to β̂, eq. (32).
    generic : T_1, the factor of a direction that is independent of the first batch.
    """

    inverse: np.ndarray
    R: list
    V: list
    generic: np.ndarray


def directions(f: Features, at: Pencil):
    """`Directions` of the linear problem `at`.

    Parameters
    ----------
    f : Features
        The equivalent features.
    at : Pencil
    """
    batch, R, Z = f.batch, f.modes[1].c.shape[1], f.z.size
    A, m = batch.mean.size, 2 * R
    L_ab, L_ahat, L_hathat = _pencil_forms(batch, at)
    h_star = (f.modes[1].rows * np.sqrt(at.g)[:, None]) @ at.gamma_inv
    gamma = np.linalg.inv(at.gamma_inv)

    def T(form, cosine):  # eᵀTe' of eq. (24) from eᵀT_Je' and e·e'
        return cosine * np.eye(Z) - h_star @ (cosine * gamma - form) @ h_star.T

    def block(matrix, a, b=0):
        return matrix[a * m : a * m + R, b * m : b * m + R]

    # eq. (32)
    inverse = np.linalg.inv(T(L_hathat[:R, :R], 1.0))
    T_ahat = [T(block(L_ahat, a), batch.cosine[a]) for a in range(A)]
    T_ab = [[T(block(L_ab, a, b), float(a == b)) for b in range(A)] for a in range(A)]
    R_ab = [[T_ab[a][b] - T_ahat[a] @ inverse @ T_ahat[b].T for b in range(A)] for a in range(A)]
    V = [batch.cosine[a] * np.eye(Z) - inverse @ T_ahat[a].T for a in range(A)]
    return Directions(inverse, R_ab, V, T(at.G[:R, :R], 1.0))


def _pencil_forms(batch: FirstBatch, at: Pencil):
    """Forms of the pencil's inverse: e_aᵀL⁻¹e_b (Am, Am), e_aᵀL⁻¹β̂ (Am, m), eq. (28), and β̂ᵀL⁻¹β̂ (m, m), eq. (29)."""
    A, m, G, root_D = batch.mean.size, len(at.G), at.G, sqrt(batch.D)
    Q0_inverse = np.kron(np.eye(A), at.Q0_inverse)
    pair = np.tensordot(batch.pair, at.Y_tilde, 1).transpose(0, 2, 1, 3).reshape(A * m, A * m)  # E x_a x_b Ỹ
    Pi = Q0_inverse @ np.linalg.inv(np.eye(A * m) + pair @ Q0_inverse)
    along = np.tensordot(batch.along * batch.y, at.Y_tilde, 1)  # E y x_a Ỹ
    Psi = np.concatenate([mean * np.eye(m) - batch.phi * w @ G for mean, w in zip(batch.mean, along, strict=True)])
    own = G - batch.phi / batch.moment(2) * G @ np.tensordot(batch.weight * batch.y**2, at.Y_tilde, 1) @ G
    onto_hat = Pi @ Psi / root_D
    return Pi, onto_hat, Psi.T @ onto_hat / root_D + batch.rest / batch.D * own


def saturation(f: Features, at: Pencil, share, Xi):
    """The matrix E of eq. (33), (Z, Z): what is left of `Xi`, as m_1 varies with β̂ᵀω over units of one readout.

    Parameters
    ----------
    f, at : `Features` and `Pencil`.
    share : (U,), weight π_i q_i of a unit.
    Xi : (Z, Z), Ξ of eq. (32).
    """
    c, h = f.modes[1].c, f.modes[1].rows * np.sqrt(at.g)[:, None]
    weight = f.p.N / f.dimensions[1] * share * f.units.plane[0, 0]
    by_readout = f.units.by_readout(weight)
    c_mean = np.einsum("ea,ear->ar", by_readout, f.units.by_readout(c)) / by_readout.sum(0)[:, None]
    W_inverse = np.linalg.inv((c.T * weight) @ c)
    h_star, one = h @ at.gamma_inv, np.eye(len(W_inverse))
    V = W_inverse @ (one - (c_mean.T * by_readout.sum(0)) @ c_mean @ W_inverse)
    return h @ np.linalg.solve(one + h_star.T @ Xi @ h_star @ V, h_star.T)
