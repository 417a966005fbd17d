"""Two-layer ReLU teachers, and the exact loss of a student by closed-form kernels (the ground of three-stage training).

Without its 0th and 1st Hermite parts the ReLU has E σ(wᵀx) σ(pᵀx) = ‖w‖‖p‖ h(cos), h(c) = (√(1 - c²) + c asin c - 1)/2π
(arc-cosine kernels, Cho & Saul 2009). h is even: a direction is recovered up to its sign.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..checks import number, whole

BOTH = (0, 1)  # the Hermite parts that preprocessing removes
_TINY = 1e-300
_PARALLEL = 1e-10  # 1 - |cosine| from which on two lines count as one


@dataclass(frozen=True, eq=False)
class Teacher:
    """A two-layer ReLU network to be recovered: f⋆(x) = Σ_k a⋆_k ReLU(w⋆_kᵀx).

    directions : (r, d), Unit rows w⋆_k, no two of them on one line; r may exceed d.  weights : (r,), a⋆_k of either
    sign, not 0. A neuron's norm belongs to its weight: see `network`.
    """

    directions: np.ndarray
    weights: np.ndarray

    def __post_init__(self):
        V, b = np.asarray(self.directions, float), np.asarray(self.weights, float)
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
        """Orthonormal rows that span the target subspace, (dimension of the subspace, d).

        By Gram-Schmidt in the order of the directions. Singular vectors of orthogonal directions are not unique, and
        rounding, which differs between processors, would choose them.
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

    @property
    def separation(self):
        """Smallest angle between two of the lines, degrees; 90 for a single one."""
        cosines = np.abs(np.triu(self.directions @ self.directions.T, 1))
        return float(np.degrees(np.arccos(cosines.max())))


def network(W, a):
    """The Teacher Σ_k a_k ReLU(w_kᵀx) of neurons of any norm.

    W : (r, d), Rows w_k ≠ 0; the teacher's directions are w_k/‖w_k‖.  a : (r,), The teacher's weights are a_k‖w_k‖.
    """
    W = np.asarray(W, float)
    norms = np.linalg.norm(W, axis=-1)
    if not np.all(norms > 0):
        raise ValueError("W: every row must differ from 0")
    return Teacher(W / norms[..., None], np.asarray(a, float) * norms)


def mixed_signs(r):
    """1, -1, 1, 1, 1, -1, 1, 1, ...: (r,).

    r : Directions, >= 1.
    """
    return np.where(np.arange(r) % 4 == 1, -1.0, 1.0)


def random_teacher(d, r, rng, *, weights=None, correlation=0.0):
    """A teacher with r directions in a uniformly random subspace, every two of them at one cosine.

    d, r : Inputs and neurons, 1 <= r <= d.  weights : (r,), Default `mixed_signs(r)`.  correlation : The cosine, in
    (-1/(r - 1), 1).
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


def padded_teacher(d, lines, *, weights=None):
    """A teacher of d inputs whose lines lie in the span of the first k coordinates.

    d : Inputs, >= k.  lines : (r, k), Vectors of any length along the lines; r may exceed k.  weights : (r,), Default
    `mixed_signs(r)`.
    """
    lines = np.asarray(lines, float)
    whole("d", d, lines.shape[1])
    V = np.pad(polar(lines)[1], ((0, 0), (0, d - lines.shape[1])))
    return Teacher(V, mixed_signs(len(V)) if weights is None else weights)


def fan_teacher(d, degrees, *, weights=None):
    """`padded_teacher` of lines of the plane at these angles, (r,), no two of them equal modulo 180.

    d : Inputs, >= 2.  degrees : Angles of the lines, in degrees.  weights : Second layer of the teacher; `mixed_signs`
    without it.
    """
    angles = np.radians(np.asarray(degrees, float))
    return padded_teacher(d, np.column_stack([np.cos(angles), np.sin(angles)]), weights=weights)


class Population:
    """Loss, gradient and second-layer system of a teacher, exact averages over x ~ N(0, I_d).

    Second layers a (..., m) and first layers W (..., m, d) may hold several networks along leading axes.

    removed : The Hermite parts that preprocessing takes out of the target and, with an affine term that is fitted at
    every moment, out of the student: (0, 1), or (0,), (1,) and () for the ablations.
    """

    smooth = True

    def __init__(self, teacher, removed=BOTH):
        if not isinstance(removed, tuple) or not set(removed) <= set(BOTH):
            raise ValueError(f"removed = {removed!r}: must be (0, 1), (0,), (1,) or ()")
        self.teacher, self.d, self.removed = teacher, teacher.d, removed
        self._directions, self._weights = teacher.directions, teacher.weights
        self.start = float(teacher.weights @ kernel(*2 * [teacher.directions], removed=removed) @ teacher.weights)

    def part(self, chosen):
        """The system of some of several networks, chosen (B,): the same for all."""
        return self

    def loss(self, a, W):
        """E(f - f⋆)² at second layer a (..., m) and first layer W (..., m, d)."""
        return self.gradient(a, W)[0]

    def gradient(self, a, W):
        """Loss (...), with its gradients in a, (..., m), and in W, (..., m, d)."""
        m = a.shape[-1]
        norms, units = polar(W)
        others = _beside(units, self._directions, -2)
        masses = _beside(a * norms, -self._weights, -1)
        slope, rest = _slopes(_cosines(units, others), self.removed)
        drift = masses[..., None] * others
        radial, turn = _times(rest, masses), slope @ drift  # ∂(‖w‖‖p‖h(c))/∂w = (h - c h')‖p‖ w/‖w‖ + h' p
        target = _times(rest[..., m:], masses[..., m:]) + np.vecdot(units, slope[..., m:] @ drift[..., m:, :])
        field = radial + np.vecdot(units, turn)  # h = (h - c h') + c h'
        loss = np.vecdot(a * norms, field + target) + self.start
        return loss[()], 2 * norms * field, 2 * a[..., None] * (units * radial[..., None] + turn)

    def normal_equations(self, W):
        """Gram matrices (..., m, m) and right-hand sides (..., m) of the least squares for the second layer."""
        m = W.shape[-2]
        K = kernel(W, _beside(W, self._directions, -2), removed=self.removed)
        return K[..., :m], _times(K[..., m:], self._weights)


class Populations(Population):
    """The same with a teacher of its own for each of B networks: second layers (B, m) and first layers (B, m, d).

    teachers : sequence of Teacher, (B,), All of equally many neurons and inputs; one may stand several times.
    """

    teacher, removed = None, BOTH

    def __init__(self, teachers):
        self._teachers, self.d = list(teachers), teachers[0].d
        self._directions = np.array([teacher.directions for teacher in teachers])
        self._weights = np.array([teacher.weights for teacher in teachers])
        self.start = np.array([Population(teacher).start for teacher in teachers])

    def part(self, chosen):
        """The systems of the networks chosen, (B,) of bool."""
        return Populations([teacher for teacher, keep in zip(self._teachers, chosen, strict=True) if keep])


def kernel(W, P, *, removed=BOTH):
    """E σ(w_iᵀx) σ(p_jᵀx) for rows w_i of W (..., m, d) and p_j of P (..., q, d): (..., m, q).

    σ is the ReLU without its Hermite parts `removed`.

    W, P : (..., m, d) and (..., q, d).  removed : tuple of int, Hermite degrees that the ReLU lacks.
    """
    (norms, units), (others, directions) = polar(W), polar(P)
    h, _, _ = kernel_parts(units, directions, removed=removed)
    return norms[..., :, None] * h * others[..., None, :]


def polar(W):
    """Norms (...,) and unit vectors (..., d) of the rows of W."""
    norms = np.maximum(np.sqrt(np.vecdot(W, W)), _TINY)
    return norms, W / norms[..., None]


def kernel_parts(units, others, *, removed=BOTH):
    """h, h' and h - c h' at all cosines c of unit vectors (..., m, d) and (..., q, d), each (..., m, q)."""
    cosine = _cosines(units, others)
    slope, rest = _slopes(cosine, removed)
    return rest + cosine * slope, slope, rest


def _cosines(units, others):
    cosine = units @ others.mT
    return np.minimum(np.maximum(cosine, -1.0, out=cosine), 1.0, out=cosine)


def _slopes(cosine, removed):
    """h' and h - c h' at cosines c of any shape."""
    # Rounding c near ±1 costs √(1 - c²) half its digits, but h and (h - c h')ŵ + h'p̂ only their last ones.
    rest = np.sqrt((1 - cosine) * (1 + cosine))
    slope = np.arcsin(cosine)
    if 0 in removed:
        rest -= 1
    if 1 not in removed:
        slope += np.pi / 2
    rest /= 2 * np.pi
    slope /= 2 * np.pi
    return slope, rest


def _beside(values, constants, axis):
    """Values of each network with the same constants behind them along an axis."""
    lead = values.shape[: values.ndim - constants.ndim]
    return np.concatenate([values, np.broadcast_to(constants, (*lead, *constants.shape)) if lead else constants], axis)


def _times(matrices, vectors):
    return (matrices @ vectors[..., None])[..., 0]
