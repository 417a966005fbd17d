"""Three-stage training, predicted: the minimum of the regularised loss as λ → 0, and the loss without one direction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from ..relu import kernel, kernel_parts


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
    """The `Minimum` at λ = ridge, a number or an array.

    Moving each w⋆_k by δ_k/a⋆_k changes f by Σ_k δ_kᵀ∇σ(w⋆_kᵀx) and the penalty by qᵀδ, q_k = sign(a⋆_k) w⋆_k.
    With G_kl = E ∇σ(w⋆_kᵀx)∇σ(w⋆_lᵀx)ᵀ, δᵀGδ + λ qᵀδ is least at δ = -(λ/2) G⁻¹q.
    """
    ridge, r = np.asarray(ridge, float), teacher.r
    V = teacher.directions @ teacher.basis.T
    _, _, _, slope, rest = kernel_parts(V, V)
    cosine = V @ V.T
    # ∂²‖w‖‖v‖h(c)/∂w∂vᵀ = (h - c h') ŵv̂ᵀ + h' I + h'' (v̂ - cŵ)(ŵ - cv̂)ᵀ; the last term vanishes for w = v
    curve = 1 / (2 * np.pi * np.sqrt(1 - (cosine - np.eye(r)) ** 2))
    ahead = V[None, :, :] - cosine[:, :, None] * V[:, None, :]
    back = V[:, None, :] - cosine[:, :, None] * V[None, :, :]
    G = np.einsum("kl,ki,lj->kilj", rest, V, V) + np.einsum("kl,ij->kilj", slope, np.eye(r))
    G += np.einsum("kl,kli,klj->kilj", curve, ahead, back)
    q = (np.sign(teacher.weights)[:, None] * V).ravel()
    move = linalg.solve(G.reshape(r * r, r * r), q, assume_a="pos") / 2
    size = np.abs(teacher.weights).sum()
    steps = move.reshape(r, r)
    sideways = steps - np.sum(steps * V, axis=1, keepdims=True) * V
    angle = np.degrees(np.linalg.norm(sideways, axis=1).sum() / size)
    return Minimum(ridge**2 / 2 * (q @ move), size - ridge * (q @ move), ridge * angle)


def missing_loss(teacher):
    """The least loss of a student that holds all teacher directions but one, over the choice of that one.

    Schur complements of the teacher's kernel matrix H: a⋆_k²/(H⁻¹)_kk. For orthogonal directions a⋆_k²(1/4 - 1/2π).
    """
    H = kernel(teacher.directions, teacher.directions)
    return float(np.min(teacher.weights**2 / np.diag(linalg.inv(H))))
