"""Three-stage training, predicted: the first step, the loss after stage 2, and the minimum as λ → 0."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import linalg, optimize, special

from ...checks import number, whole
from ..relu import BOTH, Population, kernel, kernel_parts

_DEGREES = 400  # spherical harmonics of even degree below this one
_NODES = 1000  # of the quadrature over the sphere


class FirstStep(NamedTuple):
    """Shares of the energy ‖W‖² after stage 1: inside the target subspace, and along Σ_k a⋆_k w⋆_k."""

    subspace: float
    linear: float


def first_step(teacher, removed=BOTH):
    """The `FirstStep` of a wide student from small weights, in expectation, as d = teacher.d grows.

    A neuron moves along g = Σ_k a⋆_k ((h - c h')ŵ + h' w⋆_k) at c = ŵᵀw⋆_k, of order 1/√d. The mean, where it is not
    `removed`, adds Σa⋆/2π along ŵ, the linear part Σa⋆w⋆/4 for all neurons alike. Without either, what lies outside is
    right up to a share of order 1/d² of itself, what lies along Σ_k a⋆_k w⋆_k up to one of order 1/d; otherwise the
    shares are right up to terms of order 1/d².

    removed : As for `Population`.
    """
    a, d, k, V = teacher.weights, teacher.d, len(teacher.basis), teacher.directions
    mean = (0 not in removed) * a.sum() / (2 * np.pi)
    linear = (1 not in removed) / 4 * a @ V
    trace, square = _moments(teacher)
    wick = (trace**2 + 2 * square) / (d * (d + 2))  # E (ŵᵀHŵ)²
    quartic = (3 * trace**2 + 12 * square) / (8 * d * (d + 2) * (d + 4))
    outside = mean**2 * (1 - k / d) - mean * trace / d + wick / 4 * (d - k) / (d + 4) + quartic
    total = mean**2 + mean * trace / d + linear @ linear + square / d - 3 / 4 * wick + square / (d * (d + 2))
    along = a @ V / max(np.linalg.norm(a @ V), 1e-300)
    aligned = linear @ linear + np.sum((mean * along + (a * (V @ along)) @ V / (2 * np.pi)) ** 2) / d
    return FirstStep(float(1 - outside / total), float(aligned / total))


def _moments(teacher):
    """tr H and tr H² of H = (1/2π) Σ a⋆ w⋆w⋆ᵀ."""
    a, V = teacher.weights, teacher.directions
    return a.sum() / (2 * np.pi), a @ (V @ V.T) ** 2 @ a / (2 * np.pi) ** 2


def sampled_step(teacher, n, *, noise=0.0):
    """Share of the energy ‖W‖² inside the target subspace after stage 1 on n samples, to leading order in 1/d.

    The signal of a neuron is Hŵ, H = (1/2π) Σ a⋆ w⋆w⋆ᵀ, of mean square tr H²/d; each coordinate has noise of variance
    (E f⋆² + noise²)/4n, f⋆ preprocessed. So the subspace is seen from n ∝ d² on, and never if H = 0.

    n : array, 1-D, Sample sizes, > 0.  noise : Standard deviation of the label noise, >= 0.  Returns array, (len(n),).
    """
    n, noise = _sizes(n), number("noise", noise, least=0)
    signal = _moments(teacher)[1] / teacher.d
    variance = (Population(teacher).start + noise**2) / (4 * n)
    return (signal + len(teacher.basis) * variance) / (signal + teacher.d * variance)


def quartic_step(teacher):
    """Share of the energy ‖W‖² inside the target subspace after stage 1 where H = (1/2π) Σ a⋆ w⋆w⋆ᵀ = 0.

    The preprocessed teacher then begins at degree 4: with c_k = ŵᵀw⋆_k a neuron moves along Σ_k a⋆_k c_k³ w⋆_k/12π in
    the subspace, and along -Σ_k a⋆_k c_k⁴ ŵ/16π. With the next order of both, what lies outside is right up to a share
    of order 1/d² of itself.
    """
    d, b, k = teacher.d, teacher.weights, len(teacher.basis)
    V = teacher.directions
    c = V @ V.T  # moments E c_k^p c_l^q, but for factors 1/(d (d + 2) …), by pairing
    sixth, eighth = b @ (9 * c**2 + 6 * c**4) @ b, b @ (9 + 72 * c**2 + 24 * c**4) @ b
    mixed, tenth = b @ (45 * c**2 + 60 * c**4) @ b, b @ (45 + 540 * c**2 + 360 * c**4) @ b
    if _moments(teacher)[1] > 1e-12 * b @ b or not eighth > 1e-9 * b @ b:
        raise ValueError("teacher: must have Σ a⋆ w⋆w⋆ᵀ = 0 and a part of degree 4")
    inside = sixth / 144 + (mixed / 160 - eighth / 96) / (d + 6)
    outside = (eighth * (1 - (k + 8) / (d + 8)) / 256 + tenth / 256 / (d + 8)) / (d + 6)
    return float(inside / (inside + outside))


def _sizes(n):
    n = np.asarray(n, float)
    if not np.all(n > 0):
        raise ValueError(f"n = {n.min():g}: must be > 0")
    return n


def second_stage_loss(teacher, m, ridge):
    """E(f - f⋆)² after stages 1 and 2 as d → ∞, for features on uniformly random lines of the subspace.

    Stage 2 is ridge regression on m random features, of mean squared norm 1. Their covariance operator is diagonal in
    spherical harmonics of even degree l, with eigenvalue μ_l (mean of h(c)P_l(c) over the sphere) and multiplicity N_l;
    f⋆ has the energy f_l = μ_l N_l Σ a⋆_j a⋆_k P_l(w⋆_jᵀw⋆_k). The deterministic equivalent of the resolvent is

        m = Σ_l N_l μ_l/(μ_l + ν) + λ/2ν,                                                                           (1)
        loss = Σ_l ν f_l/(μ_l + ν) - (λ/2) Σ_l μ_l f_l/(μ_l + ν)² / (m - Σ_l N_l μ_l²/(μ_l + ν)²).                   (2)

    As λ → 0 and m → ∞ the loss is of order m^{-3/(k - 1)} in a subspace of dimension k. The equivalent is that of
    Gaussian features: for these the loss exceeds (2) by a factor, 1.2 for k = 4, that does not depend on m.

    teacher : Its lines span k >= 2 dimensions. Stage 1 makes uniform lines where Σ_k a⋆_k w⋆_k w⋆_kᵀ squares to a
    multiple of the identity on the subspace, as for orthonormal directions and weights ±1.  m : Number of student
    neurons, >= 1.  ridge : λ of stage 2, > 0.
    """
    m, half, k = whole("m", m, 1), number("ridge", ridge, above=0) / 2, len(teacher.basis)
    if k < 2:
        raise ValueError("teacher: its lines must span at least two dimensions")
    c, weight = special.roots_jacobi(_NODES, (k - 3) / 2, (k - 3) / 2)
    h = kernel_parts(c[:, None], np.ones((1, 1)))[0][:, 0]
    mu = _harmonics(c, k) @ (h * weight) / weight.sum()
    degree = np.arange(0, _DEGREES, 2)
    N = special.comb(degree + k - 1, k - 1) - special.comb(degree + k - 3, k - 1)
    b, cosines = teacher.weights, np.clip(teacher.directions @ teacher.directions.T, -1, 1)
    f = mu * N * (_harmonics(cosines.ravel(), k) @ np.outer(b, b).ravel())
    log_nu = optimize.brentq(lambda x: np.sum(N * mu / (mu + np.exp(x))) + half / np.exp(x) - m, -50, 20)  # eq. (1)
    nu = np.exp(log_nu)
    lost = half * np.sum(mu * f / (mu + nu) ** 2) / (m - np.sum(N * (mu / (mu + nu)) ** 2))
    return float(np.sum(nu * f / (mu + nu)) - lost)  # eq. (2)


def _harmonics(c, k):
    """P_l(c), l = 0, 2, 4, ..., of the sphere in k dimensions, P_l(1) = 1: (degrees, len(c))."""
    P = [np.ones_like(c), c]
    for degree in range(1, _DEGREES - 1):
        P.append(((2 * degree + k - 2) * c * P[-1] - degree * P[-2]) / (degree + k - 2))
    return np.array(P[::2])


@dataclass(frozen=True, eq=False)
class Minimum:
    """The minimum of the regularised loss as λ → 0, to leading order: a student of r neurons near the teacher's.

    loss : E(f - f⋆)².   penalty : Σ|a_i|‖w_i‖.   angle : weighted mean angle to the teacher, degrees; 0 if orthogonal.
    Each has the shape of λ.
    """

    loss: np.ndarray
    penalty: np.ndarray
    angle: np.ndarray


def minimum(teacher, ridge):
    """The minimum of L + (λ/2)(‖a‖² + ‖W‖²) near the teacher as λ → 0, to leading order.

    Moving each a⋆_k w⋆_k by δ_k changes f by Σ_k δ_kᵀ∇σ(w⋆_kᵀx) and the penalty by λqᵀδ, q_k = sign(a⋆_k) w⋆_k. With
    G_kl = E ∇σ(w⋆_kᵀx)∇σ(w⋆_lᵀx)ᵀ, δᵀGδ + λ qᵀδ is least at δ = -(λ/2) G⁻¹q.
    """
    ridge, V = np.asarray(ridge, float), teacher.directions
    if not np.all(ridge >= 0):
        raise ValueError(f"ridge = {ridge}: must be >= 0")
    move = certificate_coefficients(teacher) / 2
    along = np.sum(move * V, axis=1, keepdims=True)
    cost = np.sign(teacher.weights) @ along[:, 0]  # qᵀδ, per λ
    size = np.abs(teacher.weights).sum()
    angle = np.degrees(np.linalg.norm(move - along * V, axis=1).sum() / size)
    return Minimum(ridge**2 / 2 * cost, size - ridge * cost, ridge * angle)


def certificate_coefficients(teacher):
    """G⁻¹q of `minimum`, (r, d): minus twice the moves δ_k per λ, and the coefficients of the certificate."""
    V = teacher.directions @ teacher.basis.T
    r, k = V.shape
    _, slope, rest = kernel_parts(V, V)
    cosine = V @ V.T
    # ∂²‖w‖‖v‖h(c)/∂w∂vᵀ = (h - c h') ŵv̂ᵀ + h' I + h'' (v̂ - cŵ)(ŵ - cv̂)ᵀ; the last term vanishes for w = v
    curve = 1 / (2 * np.pi * np.sqrt(1 - (cosine - np.eye(r)) ** 2))
    ahead = V[None, :, :] - cosine[:, :, None] * V[:, None, :]
    back = V[:, None, :] - cosine[:, :, None] * V[None, :, :]
    G = np.einsum("kl,ki,lj->kilj", rest, V, V) + np.einsum("kl,ij->kilj", slope, np.eye(k))
    G += np.einsum("kl,kli,klj->kilj", curve, ahead, back)
    q = (np.sign(teacher.weights)[:, None] * V).ravel()
    return linalg.solve(G.reshape(r * k, r * k), q, assume_a="pos").reshape(r, k) @ teacher.basis


def missing_loss(teacher):
    """The least loss of a student that holds all teacher directions but one, over the choice of that one.

    Schur complements of the teacher's kernel matrix H: a⋆_k²/(H⁻¹)_kk. For orthogonal directions a⋆_k²(1/4 - 1/2π).
    """
    H = kernel(teacher.directions, teacher.directions)
    return float(np.min(teacher.weights**2 / np.diag(linalg.inv(H))))
