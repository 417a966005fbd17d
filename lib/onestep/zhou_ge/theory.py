"""Three-stage training, predicted: the minimum of L_λ as λ → 0 and exactly, with the dual certificate that proves it.

On balanced layers, |a_i| = ‖w_i‖, the objective is E(f_μ - f⋆)² + λ|μ| over signed measures μ on the sphere (neurons of
weight a_i‖w_i‖ at ŵ_i), a convex problem. A network f_λ is its minimum if C_λ(w) = -(2/λ) E (f_λ - f⋆) σ(wᵀx) is the
sign of each of its neurons and |C_λ| <= 1 everywhere. As λ → 0 the residual f_λ - f⋆ is -(λ/2) p, where p is the
shortest combination of functions δ_kᵀ∇σ(w⋆_kᵀx) for which C(w) = E p σ(wᵀx) is sign a⋆_k, with slope 0, at every w⋆_k
(the certificate with vanishing derivatives of Duval & Peyré 2015).
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy import linalg, optimize

from ..checks import floats, frozen, number
from .relu import Population, kernel, polar, slopes

_LINES = 4000  # random lines on which |C_λ| <= 1 is checked
_EXCESS = 1e-5  # of |C_λ| over 1 that is let pass
_ROUNDS = 12  # neurons added at most
_SPARE = 0.05  # length at which they start, for λ = 1


class Minimum(NamedTuple):
    """The minimum as λ → 0, to leading order, for a student of r neurons near the teacher's: arrays like λ.

    loss : E(f - f⋆)².   angle : weighted mean angle to the teacher, degrees; 0 if its lines are orthogonal.
    """

    loss: np.ndarray
    angle: np.ndarray


def minimum(teacher, ridge):
    """The `Minimum` of L_λ near the teacher.

    Moving each a⋆_k w⋆_k by δ_k changes f by Σ_k δ_kᵀ∇σ(w⋆_kᵀx) and the penalty by λqᵀδ, q_k = sign(a⋆_k) w⋆_k. With
    G_kl = E ∇σ(w⋆_kᵀx)∇σ(w⋆_lᵀx)ᵀ, δᵀGδ + λ qᵀδ is least at δ = -(λ/2) G⁻¹q.
    """
    ridge, V = floats(ridge), teacher.directions
    if not np.all((ridge >= 0) & (ridge < np.inf)):
        raise ValueError(f"ridge = {ridge}: must be finite and >= 0")
    move = certificate_coefficients(teacher) / 2
    along = np.sum(move * V, axis=1, keepdims=True)
    angle = np.degrees(np.linalg.norm(move - along * V, axis=1).sum() / np.abs(teacher.weights).sum())
    return Minimum(ridge**2 / 2 * (np.sign(teacher.weights) @ along[:, 0]), ridge * angle)


def certificate_coefficients(teacher):
    """G⁻¹q of `minimum`, (r, d): minus twice the moves δ_k per λ, and the δ_k of p."""
    V = teacher.directions @ teacher.basis.T
    r, k = V.shape
    slope, rest = slopes(V, V)
    cosine = V @ V.T
    # ∂²‖w‖‖v‖h(c)/∂w∂vᵀ = (h - c h') ŵv̂ᵀ + h' I + h'' (v̂ - cŵ)(ŵ - cv̂)ᵀ; the last term vanishes for w = v
    curve = 1 / (2 * np.pi * np.sqrt(1 - (cosine - np.eye(r)) ** 2))
    ahead = V[None, :, :] - cosine[:, :, None] * V[:, None, :]
    back = V[:, None, :] - cosine[:, :, None] * V[None, :, :]
    G = np.einsum("kl,ki,lj->kilj", rest, V, V) + np.einsum("kl,ij->kilj", slope, np.eye(k))
    G += np.einsum("kl,kli,klj->kilj", curve, ahead, back)
    q = (np.sign(teacher.weights)[:, None] * V).ravel()
    return linalg.solve(G.reshape(r * k, r * k), q, assume_a="pos").reshape(r, k) @ teacher.basis


class Minimiser(NamedTuple):
    """A network of balanced neurons at a minimum of L_λ: its objective, its loss, a (m,) and W (m, d)."""

    objective: float
    loss: float
    a: np.ndarray
    W: np.ndarray


@lru_cache(64)
def global_minimum(teacher, ridge):
    """The `Minimiser` of L_λ, λ = ridge > 0, by descent from the teacher; global if |C_λ| <= 1 (see `certificate`).

    Where |C_λ| > 1 on one of many random lines a neuron is added there, and the descent goes on. Narrow peaks can be
    missed: for a quarter to two thirds of the random teachers of 3 to 10 lines tried, more often with more lines
    than inputs, |C_λ| reached 1.0001 to 1.07, and the objective lay up to 1e-4 of itself too high.
    """
    ridge, rng = number("ridge", ridge, above=0), np.random.default_rng(0)
    signs, W = np.sign(teacher.weights), np.sqrt(np.abs(teacher.weights))[:, None] * teacher.directions
    outside = np.eye(teacher.d)[-1:] if len(teacher.basis) < teacher.d else np.empty((0, teacher.d))
    span = np.vstack([teacher.basis, outside])
    lines = polar(rng.standard_normal((_LINES, len(span))) @ span)[1]
    for _ in range(_ROUNDS):
        low = local_minimum(teacher, signs, W, ridge)
        values = certificate(teacher, low, ridge, lines)
        peak = np.abs(values).argmax()
        if np.abs(values[peak]) <= 1 + _EXCESS:
            break
        signs = np.append(signs, np.sign(values[peak]))
        W = np.vstack([low.W, _SPARE * np.sqrt(ridge) * lines[peak]])
    return low


def certificate(teacher, minimiser, ridge, W):
    """C_λ of the network `minimiser` at the lines through the rows of W (..., n, d), λ = ridge: (..., n)."""
    lines = np.concatenate([minimiser.W, teacher.directions])
    return -2 / number("ridge", ridge, above=0) * kernel(polar(W)[1], lines) @ np.append(minimiser.a, -teacher.weights)


def local_minimum(teacher, signs, W, ridge):
    """The local `Minimiser` of L_λ, λ = ridge >= 0, that descent over balanced neurons reaches from W (m, d).

    signs : (m,), of the second layer, a_i = signs_i ‖w_i‖, which never change.
    """
    signs, W, decay = floats(signs), floats(W), 2 * number("ridge", ridge, least=0)
    population, shape = Population(teacher), W.shape
    if W.ndim != 2 or shape[1] != population.d or signs.shape != shape[:1] or np.any(np.abs(signs) != 1):
        raise ValueError(f"signs = {signs}, W {shape}: must be (m,) of 1 and -1, and (m, {population.d})")

    def value_and_gradient(x):
        W = x.reshape(shape)
        norms, units = polar(W)
        loss, by_second, by_first = population.gradient(signs * norms, W)
        return loss + decay * (x @ x) / 2, (by_first + (signs * by_second)[:, None] * units + decay * W).ravel()

    x, options = W.ravel(), {"maxiter": 2000, "maxfun": 10_000, "gtol": 1e-15, "ftol": 1e-15, "maxcor": 30}
    for _ in range(3):  # a fresh start of the quasi-Newton matrix gains the last digits
        end = optimize.minimize(value_and_gradient, x, jac=True, method="L-BFGS-B", options=options)
        x = end.x
    W = x.reshape(shape)
    a = signs * polar(W)[0]
    return Minimiser(float(end.fun), float(population.loss(a, W)), *frozen(a, W))
