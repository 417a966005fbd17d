"""Two-layer ReLU teachers, and the exact loss of a student by closed-form kernels: what both sides share.

σ is the ReLU without its 0th and 1st Hermite parts. For neurons w and p at the cosine c, E σ(wᵀx) σ(pᵀx) = ‖w‖‖p‖ h(c)
with h(c) = (√(1 - c²) + c asin c - 1)/2π (arc-cosine kernels, Cho & Saul 2009). h is even: a direction is recovered up
to its sign, as a line.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..checks import floats, number, whole

_TINY = 1e-300
_PARALLEL = 1e-10  # 1 - |cosine| from which on two lines count as one


@dataclass(frozen=True, eq=False)
class Teacher:
    """A two-layer ReLU network to be recovered: f⋆(x) = Σ_k a⋆_k ReLU(w⋆_kᵀx).

    directions : (r, d), unit rows w⋆_k, no two of them on one line; r may exceed d.  weights : (r,), a⋆_k of either
    sign, not 0.
    """

    directions: np.ndarray
    weights: np.ndarray

    def __post_init__(self):
        V, b = floats(self.directions), floats(self.weights)
        if V.ndim != 2 or not V.size or b.shape != V.shape[:1]:
            raise ValueError(f"directions {V.shape} and weights {b.shape}: must be (r, d) and (r,)")
        if not np.allclose(np.linalg.norm(V, axis=1), 1.0):
            raise ValueError("directions: every row must be a unit vector")
        cosines = np.abs(np.triu(V @ V.T, 1))
        if cosines.max() >= 1 - _PARALLEL:
            i, j = np.unravel_index(cosines.argmax(), cosines.shape)
            raise ValueError(f"directions: rows {i} and {j} lie on one line; merge them into one neuron")
        if not np.all(np.isfinite(b)) or np.any(b == 0):
            raise ValueError(f"weights = {b}: must be finite and not 0")
        object.__setattr__(self, "directions", V)
        object.__setattr__(self, "weights", b)

    @property
    def r(self):
        """Number of neurons."""
        return self.directions.shape[0]

    @property
    def d(self):
        """Number of inputs."""
        return self.directions.shape[1]

    @property
    def basis(self):
        """Orthonormal rows that span the target subspace, (its dimension, d), by Gram-Schmidt in the order of the rows.

        Singular vectors of orthogonal directions would be chosen by rounding, which differs between processors.
        """
        rows = np.empty((0, self.d))
        for direction in self.directions:
            rest = direction
            for _ in range(2):  # once more against rounding
                rest = rest - (rows @ rest) @ rows
            length = np.linalg.norm(rest)
            if length > 1e-10:
                rows = np.vstack([rows, rest / length])
        return rows


def network(W, a):
    """The Teacher Σ_k a_k ReLU(w_kᵀx) of neurons of any norm, W (r, d) with rows w_k ≠ 0 and a (r,)."""
    W, a = floats(W), floats(a)
    if W.ndim != 2 or a.shape != W.shape[:1]:
        raise ValueError(f"W {W.shape} and a {a.shape}: must be (r, d) and (r,)")
    norms = np.linalg.norm(W, axis=-1)
    if not np.all(norms > 0):
        raise ValueError("W: every row must differ from 0")
    return Teacher(W / norms[:, None], a * norms)


def mixed_signs(r):
    """1, -1, 1, 1, 1, -1, 1, 1, ...: every fourth of r signs is negative, (r,)."""
    return np.where(np.arange(whole("r", r, 1)) % 4 == 1, -1.0, 1.0)


def random_teacher(d, r, rng, *, weights=None, correlation=0.0):
    """A teacher with r <= d directions in a uniformly random subspace of d dimensions, every two of them at one cosine.

    weights : (r,), by default `mixed_signs(r)`.  correlation : the cosine, in (-1/(r - 1), 1).
    """
    d, r = whole("d", d, 1), whole("r", r, 1)
    correlation = number("correlation", correlation)
    if r > d:
        raise ValueError(f"r = {r}: must be at most d = {d}")
    if not correlation < 1 or (r > 1 and correlation <= -1 / (r - 1)):
        raise ValueError(f"correlation = {correlation}: must lie above -1/(r - 1) and below 1")
    V = np.linalg.qr(rng.standard_normal((d, r)))[0].T
    mix = np.linalg.cholesky((1 - correlation) * np.eye(r) + correlation * np.ones((r, r)))
    return Teacher(mix @ V, mixed_signs(r) if weights is None else weights)


def fan_teacher(d, degrees, *, weights=None):
    """A teacher of d >= 2 inputs whose lines lie in the plane of the first two, at angles `degrees` (r,).

    weights : (r,), by default `mixed_signs(r)`.
    """
    angles = np.radians(floats(degrees))
    V = np.pad(np.column_stack([np.cos(angles), np.sin(angles)]), ((0, 0), (0, whole("d", d, 2) - 2)))
    return Teacher(V, mixed_signs(len(V)) if weights is None else weights)


class Population:
    """Loss, gradient and second-layer system of a teacher: exact averages over x ~ N(0, I_d), without samples.

    start is E f⋆², the loss of the zero network.
    """

    smooth = True

    def __init__(self, teacher):
        self.teacher, self.d = teacher, teacher.d
        self.start = float(teacher.weights @ kernel(teacher.directions, teacher.directions) @ teacher.weights)

    def loss(self, a, W):
        """E(f - f⋆)², (...)."""
        return self.gradient(a, W)[0]

    def gradient(self, a, W):
        """Loss (...), with its gradients in a, (..., m), and in W, (..., m, d)."""
        m, (norms, units) = a.shape[-1], polar(W)
        others, masses = _beside(units, self.teacher.directions, -2), _beside(a * norms, -self.teacher.weights, -1)
        slope, rest = slopes(units, others)
        drift = masses[..., None] * others
        radial, turn = _times(rest, masses), slope @ drift  # ∂(‖w‖‖p‖h(c))/∂w = (h - c h')‖p‖ w/‖w‖ + h' p
        target = _times(rest[..., m:], masses[..., m:]) + np.vecdot(units, slope[..., m:] @ drift[..., m:, :])
        field = radial + np.vecdot(units, turn)  # h = (h - c h') + c h'
        loss = np.vecdot(a * norms, field + target) + self.start
        return loss[()], 2 * norms * field, 2 * a[..., None] * (units * radial[..., None] + turn)

    def normal_equations(self, W):
        """Gram matrices (..., m, m) and right-hand sides (..., m) of the least squares for the second layer."""
        m = W.shape[-2]
        K = kernel(W, _beside(W, self.teacher.directions, -2))
        return K[..., :m], _times(K[..., m:], self.teacher.weights)


def kernel(W, P):
    """E σ(w_iᵀx) σ(p_jᵀx) for rows w_i of W (..., m, d) and p_j of P (..., q, d): (..., m, q)."""
    (norms, units), (others, directions) = polar(W), polar(P)
    slope, rest = slopes(units, directions)
    return norms[..., :, None] * (rest + (units @ directions.mT) * slope) * others[..., None, :]


def polar(W):
    """Norms (...,) and unit vectors (..., d) of the rows of W."""
    norms = np.maximum(np.sqrt(np.vecdot(W, W)), _TINY)
    return norms, W / norms[..., None]


def slopes(units, others):
    """h' and h - c h' at the cosines c of unit vectors, units (..., m, d) and others (..., q, d): each (..., m, q)."""
    cosine = units @ others.mT
    # Rounding c near ±1 costs √(1 - c²) half its digits, but h and (h - c h')ŵ + h'p̂ only their last ones.
    cosine = np.minimum(np.maximum(cosine, -1.0, out=cosine), 1.0, out=cosine)
    rest = np.sqrt((1 - cosine) * (1 + cosine))
    rest -= 1
    rest /= 2 * np.pi
    return np.arcsin(cosine) / (2 * np.pi), rest


def _beside(values, constants, axis):
    """Values of each network with the same constants behind them along an axis."""
    lead = values.shape[: values.ndim - constants.ndim]
    return np.concatenate([values, np.broadcast_to(constants, (*lead, *constants.shape)) if lead else constants], axis)


def _times(matrices, vectors):
    return (matrices @ vectors[..., None])[..., 0]
