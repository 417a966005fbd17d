"""The ridge problem on the equivalent features: the fixed-point map, eq. (19) to (21) and (26), and the loss, eq. (37).

In degree 1 the covariance of rows and the directions that the first batch depends on are kept, M and C eliminated by a
linear pencil, eq. (22) to (33); degrees 2 and 3 are isotropic. Complex states give derivatives.
Shapes: Z nodes μ, U nodes of units, R modes of m_1, m = 2R, Y nodes of the first batch's residuals, A directions known.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np

from .nodes import ISOTROPIC, Features, Solution


class Pencil(NamedTuple):
    """The ridge problem in the span of m_1's modes h: T_J = [Γ⁻¹ + Θ_0 + M Θ_1 + M² Θ_2 + C Θ_3]⁻¹, eq. (24).

    T_J is the upper block of the inverse of a pencil that is linear in the samples, eq. (25), whose equivalent is
    G = (Q_0 + S)⁻¹, eq. (26).  g : (Z,) weights of the samples.  gamma_inv : (R, R) Γ⁻¹, Γ = hᵀgh.  Q0_inverse, G :
    (m, m).  lower : (m, m), from whose lower right block M²T is read.  Y_tilde : (Y, m, m) at the nodes of y.
    means : (3, m, m) E y^k Ỹ; S first.
    """

    g: np.ndarray
    gamma_inv: np.ndarray
    Q0_inverse: np.ndarray
    G: np.ndarray
    lower: np.ndarray
    Y_tilde: np.ndarray
    means: np.ndarray


def times(a, b):
    """a @ b, one of them real or both: a complex one in two parts, where numpy would copy the real one to complex."""
    if np.iscomplexobj(a):
        return a.real @ b + 1j * (a.imag @ b)
    return a @ b.real + 1j * (a @ b.imag) if np.iscomplexobj(b) else a @ b


def pencil(f: Features, now: Solution, omega) -> Pencil:
    """`Pencil` at κ, q, S when the samples at node μ carry weight omega (Z,) or 1.0."""
    R, batch = f.basis.shape[1], f.batch
    g, one = f.pz * omega / (1 + omega * now.kappa), np.eye(2 * R)
    gamma_inv = np.linalg.inv(times(g, f.linear.nodes).reshape(R, R))  # eq. (23)
    weights = f.units.mix * (f.p.N / f.dimensions[1] * f.units.chance * now.q)
    theta = times(weights, f.linear.units).reshape(4, R, R)
    Q0_inverse = np.zeros((2 * R, 2 * R), gamma_inv.dtype)  # eq. (25)
    Q0_inverse[:R, :R], Q0_inverse[R:, R:] = np.linalg.inv(gamma_inv + theta[0]), -theta[2]
    shift = np.linalg.inv(one + now.S @ Q0_inverse)  # eq. (26)
    G = Q0_inverse @ shift
    # Y/y is the inverse of P - y diag(0, Θ_3), P = [[0, 1], [1, -Θ_1]], so that Ỹ/y is that of P + yQ
    y, Q = batch.y[:, None, None], batch.phi * G
    Q[R:, R:] -= theta[3]
    inverse = y * Q
    inverse[:, :R, R:] += one[:R, :R]
    inverse[:, R:, :R] += one[:R, :R]
    inverse[:, R:, R:] -= theta[1]
    Y_tilde = y * np.linalg.inv(inverse)
    means = (batch.powers @ Y_tilde.reshape(y.size, -1)).reshape(3, *G.shape)
    return Pencil(g, gamma_inv, Q0_inverse, G, shift @ now.S, Y_tilde, means)


def linear_traces(f: Features, at: Pencil):
    """Normalised traces over inputs of T_J, MT_J, M²T_J and CT_J, eq. (27); (4, R, R)."""
    R, G, batch = len(at.gamma_inv), at.G, f.batch
    first, second = (batch.moments[k] * G - batch.phi * G @ at.means[k] @ G for k in (1, 2))
    return np.array([G[:R, :R], first[:R, :R], -at.lower[R:, R:], second[:R, :R]])


def degree_blocks(f: Features, now: Solution, g, factors=1.0):
    """For T_k of eq. (19) in the modes h of `isotropic`: hᵀ√g T_k √g h, and K in (1 - T_k)/g = h K hᵀ; each (3, R, R).

    With A = N/D_k ⟨q c cᵀ⟩ and Γ = hᵀgh they are (1 + ΓA)⁻¹Γ and A(1 + ΓA)⁻¹.   factors : (U,) or 1.0, on q.
    """
    one = np.eye(f.isotropic.c.shape[-1])
    scale = (f.p.N / f.dimensions[ISOTROPIC])[:, None, None]
    A = scale * times(f.units.chance * now.q * factors, f.isotropic.units).reshape(-1, *one.shape)
    gamma = times(g, f.isotropic.nodes).reshape(-1, *one.shape)
    inverse = np.linalg.inv(one + gamma @ A)
    return inverse @ gamma, A @ inverse


def update(f: Features, state, omega):
    """The fixed-point map: the packed (κ, q, S) that eq. (20), (21), (26) give at the packed state."""
    p, now = f.p, f.solution(state)
    at = pencil(f, now, omega)
    traces = linear_traces(f, at)
    linear = at.gamma_inv - at.gamma_inv @ traces[0] @ at.gamma_inv  # (1 - T_1)/g in the modes
    forms, middle = degree_blocks(f, now, at.g)
    # 1/q - λ, eq. (21), and nκ, eq. (20)
    terms = times(f.noise, at.g) + np.sum(f.units.mix * times(traces.reshape(4, -1), f.linear.units.T), axis=0)
    terms = terms + np.sum(times(f.isotropic.units, forms.reshape(len(forms), -1, 1)), axis=0)[:, 0]
    n_kappa = p.N * times(f.units.chance * now.q, f.noise) + f.dimensions[1] * times(f.linear.nodes, linear.ravel())
    n_kappa = n_kappa + f.dimensions[ISOTROPIC] @ times(f.isotropic.nodes, middle.reshape(len(middle), -1, 1))[..., 0]
    return f.scale * np.concatenate([np.log(n_kappa / p.n), -np.log(p.ridge + terms), at.means[0].ravel()])


class Directions(NamedTuple):
    """How the linear problem treats the directions e_a (the teacher's; W0ᵀa) next to β̂, eq. (32); matrices (Z, Z).

    inverse : T_β̂β̂⁻¹.  R : [a][b], the resolvent between e_a and e_b with β̂ removed.  V : [a], the coupling of e_a to β̂.
    W : [a], that of e_a to the part of Mβ̂ orthogonal to β̂.  X : that of this part to β̂.
    generic : T_1, the factor of a direction that is independent of the first batch.
    """

    inverse: np.ndarray
    R: list
    V: list
    W: list
    X: np.ndarray
    generic: np.ndarray


def directions(f: Features, at: Pencil) -> Directions:
    """`Directions` of the linear problem `at`."""
    batch, R, Z = f.batch, len(at.gamma_inv), f.z.size
    A, m = range(batch.mean.size), 2 * R
    h_star = (f.linear.h * np.sqrt(at.g)[:, None]) @ at.gamma_inv
    gamma = np.linalg.inv(at.gamma_inv)

    def T(form, row, column, cosine):  # eᵀTe' of eq. (24) from a block of eᵀT_Je' and e·e'
        form = form[row : row + R, column : column + R]
        return cosine * np.eye(Z) - h_star @ (cosine * gamma - form) @ h_star.T

    L_ab, L_ahat, L_hathat = _pencil_forms(batch, at)
    inverse = np.linalg.inv(T(L_hathat, 0, 0, 1.0))
    T_ahat = [T(L_ahat, a * m, 0, batch.cosine[a]) for a in A]
    R_ab = [[T(L_ab, a * m, b * m, float(a == b)) - T_ahat[a] @ inverse @ T_ahat[b].T for b in A] for a in A]
    V = [batch.cosine[a] * np.eye(Z) - inverse @ T_ahat[a].T for a in A]
    M_hathat = batch.plane[1, 0, 0]
    onto_hat = T(L_hathat, 0, R, M_hathat).T @ inverse  # β̂ᵀMTβ̂ T_β̂β̂⁻¹
    W = [T(L_ahat, a * m, R, batch.image[a]).T - onto_hat @ T_ahat[a].T for a in A]
    return Directions(inverse, R_ab, V, W, M_hathat * np.eye(Z) - onto_hat, T(at.G, 0, 0, 1.0))


def _pencil_forms(batch, at: Pencil):
    """Forms of the pencil's inverse: e_aᵀL⁻¹e_b (Am, Am), e_aᵀL⁻¹β̂ (Am, m), eq. (28), and β̂ᵀL⁻¹β̂ (m, m), eq. (29).

    Of the last two the right half is that with Mβ̂ in the place of β̂: as L⁻¹ has T_J M Θ_2 there, less the last factor.
    """
    A, m, G, root_D = batch.mean.size, len(at.G), at.G, sqrt(batch.D)
    Q0_inverse = np.kron(np.eye(A), at.Q0_inverse)
    pair = np.tensordot(batch.pair, at.Y_tilde, 1).transpose(0, 2, 1, 3).reshape(A * m, A * m)  # E x_a x_b Ỹ
    Pi = Q0_inverse @ np.linalg.inv(np.eye(A * m) + pair @ Q0_inverse)
    along = np.tensordot(batch.along * batch.y, at.Y_tilde, 1)  # E y x_a Ỹ
    mean, along = np.kron(batch.mean[:, None], np.eye(m)), along.reshape(A * m, m)
    Psi, end = mean - batch.phi * along @ G, at.Q0_inverse.copy()
    end[m // 2 :, m // 2 :] = -np.eye(m // 2)  # in the place of -Θ_2
    # G and Π less their last factor Q_0⁻¹
    G_, Pi_ = np.eye(m) - G @ at.means[0], np.eye(A * m) - Pi @ pair
    own = G_ - batch.phi / batch.moments[2] * G @ at.means[2] @ G_
    onto_hat = (Pi_ @ mean - batch.phi * Pi @ along @ G_) / root_D
    return Pi, onto_hat @ end, (Psi.T @ onto_hat / root_D + batch.rest / batch.D * own) @ end


def saturation(f: Features, at: Pencil, share, Xi):
    """E of eq. (33), (Z, Z): what is left of Ξ, as m_1 varies with β̂ᵀω over units of one readout.  share : π_i q_i."""
    c, h = f.linear.c, f.linear.h * np.sqrt(at.g)[:, None]
    weight = f.p.N / f.dimensions[1] * share * f.units.plane[0, 0]
    total = weight.reshape(-1, f.units.readouts).sum(0)
    c_mean = (weight[:, None] * c).reshape(-1, total.size, c.shape[1]).sum(0) / total[:, None]
    W_inverse, one = np.linalg.inv((c.T * weight) @ c), np.eye(c.shape[1])
    V, h_star = W_inverse @ (one - (c_mean.T * total) @ c_mean @ W_inverse), h @ at.gamma_inv
    return h @ np.linalg.solve(one + h_star.T @ Xi @ h_star @ V, h_star.T)


def bias_factors(f: Features, now: Solution, g, factors=1.0):
    """T_2 and T_3 of eq. (19) on the nodes, (2, Z, Z).   factors : (U,) or 1.0, on q."""
    rows = f.isotropic.h[1:] * np.sqrt(g)[:, None]
    _, middle = degree_blocks(f, now, g, factors)
    return np.eye(g.size) - rows @ middle[1:] @ np.swapaxes(rows, 1, 2)


def training_loss(f: Features, state, omega):
    """L_tr, eq. (37), when the samples at μ carry weight omega (Z,) or 1.0."""
    now = f.solution(state)
    at = pencil(f, now, omega)
    forms, label, (T_2, T_3) = directions(f, at), f.label * np.sqrt(at.g), bias_factors(f, now, at.g)
    T_zeta, _ = bias_factors(f, now, at.g, f.units.plane[1, 1] ** 2)  # along (ζᵀx)² - 1, eq. (35)
    linear = label[1] / f.batch.away  # the label along e_0
    loss = at.g @ f.unseen + linear @ forms.R[0][0] @ linear
    loss = loss + label[2] @ T_zeta @ label[2] + label[3] @ T_3 @ label[3]
    A, B, stretch, C, b_0, b_1 = blocks(f, now, at, forms, T_2, T_zeta)
    # the units eliminated, then the constant, for first batches of two mean labels, eq. (38)
    even, one = np.vstack([B, stretch]), np.eye(len(A))
    from_units = np.linalg.solve(C, np.column_stack([even.T, b_1]))
    left, loss = even @ from_units, loss - b_1 @ from_units[:, -1]
    for level in (f.batch.level - f.batch.level_std, f.batch.level + f.batch.level_std):
        at_level = np.hstack([one, level * one])
        b = b_0 + at_level @ left[:, -1]
        loss = loss + b @ np.linalg.solve(A + at_level @ left[:, :-1] @ at_level.T, b) / 2
    return loss


class Blocks(NamedTuple):
    """The linear problem of degree 0 and of degree 1 along β̂, eq. (36).

    A : (Z, Z), β̂'s direction beside the constant.  B : (Z, U), the units' even parts there; stretch : its derivative
    in the first batch's mean label.  C : (U, U), what units share elsewhere.  b_0, b_1 : (Z,), (U,), the label in both.
    """

    A: np.ndarray
    B: np.ndarray
    stretch: np.ndarray
    C: np.ndarray
    b_0: np.ndarray
    b_1: np.ndarray


def blocks(f: Features, now: Solution, at: Pencil, forms: Directions, T_2, T_zeta) -> Blocks:
    """`Blocks` at κ, q and the pencil's solution."""
    root, one, share, units = np.sqrt(at.g), np.eye(f.z.size), f.units.chance * now.q, f.units
    m, strength, z, d = f.m * root, np.sqrt(f.p.N * share), (f.z / f.chi)[:, None], f.p.d
    label, linear = f.label * root, f.label[1] * root / f.batch.away
    random = one + f.p.N / f.dimensions[1] * (m[1].T * (share * units.plane[0, 0])) @ m[1]
    Xi = random - forms.inverse  # eq. (32): of β̂ᵀω, which the nodes of s have already, in other directions
    zE = z * saturation(f, at, share, Xi)
    # eq. (30): how the length follows ω along Mβ̂, and along e_1
    Y, Y_1 = f.p.N / f.dimensions[1] * (m[2].T * (share * units.length_slope)[:, None]) @ m[1]
    YXz, across = Y @ forms.X * z.T, f.batch.plane[2, 0, 0] - f.batch.plane[1, 0, 0] ** 2
    A = one - zE @ Xi * z.T - YXz - YXz.T - across * Y @ forms.generic @ Y.T
    coupling = [zE @ V + Y @ W for V, W in zip(forms.V, forms.W, strict=True)]  # of degree 0 to e_a
    # eq. (35): units' mean parts along (ζᵀx)² - 1, and along e_0 those of z ζᵀx
    m_2 = m[2].T * strength
    Q, P = m_2 * ((units.plane[1, 1] - 1) / d), m_2 * z * (sqrt(2) / d / f.batch.away * units.plane[0, 1])
    C = np.eye(share.size) + Q.T @ T_zeta @ Q + P.T @ forms.R[0][0] @ P
    if f.batch.shift:
        turn = coupling[1] @ Y_1.T
        A = A - turn - turn.T - Y_1 @ forms.R[1][1] @ Y_1.T
        coupling[0] = coupling[0] + Y_1 @ forms.R[1][0]
        lacking = m[1].T * (strength * units.overlap)  # by rows with Σ a_i w_i = 0, eq. (34)
        C = C - lacking.T @ forms.generic @ lacking
    B = m[0].T * strength - coupling[0] @ P
    # eq. (38): what units share as their rows follow M and C
    C = C + (m_2.T @ T_2 @ m_2) * (units.mix.T @ f.batch.products @ units.mix) * ((d - 1) / (d + 1) / d)
    outside = m_2 * z * (sqrt(2) / d * f.batch.outside * units.mix[1])
    C = C + outside.T @ forms.generic @ outside
    b_0, b_1 = label[0] - coupling[0] @ linear, -Q.T @ T_zeta @ label[2] - P.T @ forms.R[0][0] @ linear
    return Blocks(A, B, m_2 * units.mix[1] / sqrt(2), C, b_0, b_1)
