"""Two-layer ReLU teachers, and the kernel of ReLU neurons in closed form (the ground of three-stage training).

Without its 0th and 1st Hermite parts the ReLU has E σ(wᵀx) σ(pᵀx) = ‖w‖‖p‖ h(cos), h(c) = (√(1 - c²) + c asin c - 1)/2π
(arc-cosine kernels, Cho & Saul 2009). h is even: a direction is recovered up to its sign.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .checks import number, whole

_TINY = 1e-300


@dataclass(frozen=True, eq=False)
class Teacher:
    """A two-layer ReLU network to be recovered.

    directions : (r, d), unit rows w⋆_k.   weights : (r,), non-zero a⋆_k of either sign.
    Raises ValueError for other shapes, rows that are not unit vectors, linearly dependent rows or a weight 0.
    """

    directions: np.ndarray
    weights: np.ndarray

    def __post_init__(self):
        V, b = np.asarray(self.directions, float), np.asarray(self.weights, float)
        if V.ndim != 2 or b.shape != V.shape[:1]:
            raise ValueError(f"directions {V.shape} and weights {b.shape}: must be (r, d) and (r,)")
        if not np.allclose(np.linalg.norm(V, axis=1), 1.0):
            raise ValueError("directions: every row must be a unit vector")
        if np.linalg.matrix_rank(V) < len(V):
            raise ValueError("directions: rows must be linearly independent")
        if not np.all(np.isfinite(b)) or np.any(b == 0):
            raise ValueError(f"weights = {b}: must be finite and not 0")
        object.__setattr__(self, "directions", V)
        object.__setattr__(self, "weights", b)

    @property
    def r(self):
        return self.directions.shape[0]

    @property
    def d(self):
        return self.directions.shape[1]

    @property
    def basis(self):
        """Orthonormal rows that span the target subspace, (r, d)."""
        return np.linalg.qr(self.directions.T)[0].T


def random_teacher(d, r, rng, weights=None, correlation=0.0):
    """A teacher with r directions in a uniformly random subspace, every two of them at cosine `correlation`.

    weights : (r,), default 1, -1, 1, 1, 1, -1, 1, 1, ... (mixed signs)
    Raises ValueError for r > d or a correlation outside (-1/(r - 1), 1).
    """
    d, r = whole("d", d, 1), whole("r", r, 1)
    correlation = number("correlation", correlation)
    if r > d:
        raise ValueError(f"r = {r}: must be at most d = {d}")
    if not correlation < 1 or (r > 1 and correlation <= -1 / (r - 1)):
        raise ValueError(f"correlation = {correlation}: must lie above -1/(r - 1) and below 1")
    V = np.linalg.qr(rng.standard_normal((d, r)))[0].T
    mix = np.linalg.cholesky((1 - correlation) * np.eye(r) + correlation * np.ones((r, r)))
    signs = np.where(np.arange(r) % 4 == 1, -1.0, 1.0)
    return Teacher(mix @ V, signs if weights is None else weights)


def kernel(W, P, preprocess=True):
    """E σ(w_iᵀx) σ(p_jᵀx) for rows w_i of W and p_j of P, (len(W), len(P)).

    σ is the ReLU without its 0th and 1st Hermite parts, or the plain ReLU with preprocess=False.
    """
    (norms, _), (others, _), h, _, _ = kernel_parts(W, P, preprocess)
    return norms[:, None] * h * others


def polar(W):
    norms = np.maximum(np.linalg.norm(W, axis=1), _TINY)
    return norms, W / norms[:, None]


def kernel_parts(W, P, preprocess=True):
    """(norms, units) of W and of P; then h, h' and h - c h' at all cosines c."""
    first, second = polar(W), polar(P)
    cosine = np.clip(first[1] @ second[1].T, -1.0, 1.0)
    # Rounding c near ±1 costs √(1 - c²) half its digits, but h and (h - c h')ŵ + h'p̂ only their last ones.
    sine = np.sqrt((1 - cosine) * (1 + cosine))
    slope = np.arcsin(cosine)
    if preprocess:
        rest = sine - 1
    else:
        slope += np.pi / 2
        rest = sine
    rest /= 2 * np.pi
    slope /= 2 * np.pi
    return first, second, rest + cosine * slope, slope, rest
