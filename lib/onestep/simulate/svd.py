"""Operator norms and leading singular triplets of large matrices without a dense SVD, and alignments of vectors.

Golub-Kahan bidiagonalisation with full reorthogonalisation (Golub & Kahan 1965): k steps cost 4knN flops for an n × N
matrix, against about 4nN² for its singular values. Every triplet carries a residual that certifies it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse.linalg import aslinearoperator

from ..checks import number, whole

_START = 0  # seed of the start vector: random, hence almost surely not orthogonal to any singular vector
_CHECK = 5  # steps between looks at the bidiagonal matrix
_NEGLIGIBLE = 1e-14  # a new direction this small beside the largest so far is rounding


@dataclass(frozen=True)
class Triplets:
    """Leading singular triplets, largest first.

    left : (n, count), right : (N, count), orthonormal columns.  values : (count,).
    residual : (count,), ‖Aᵀleft_j - values_j right_j‖, with A right = left·values exactly (the other way round for
        n < N); a singular value of A lies within residual_j of values_j.
    steps : bidiagonalisation steps taken.
    """

    left: np.ndarray
    values: np.ndarray
    right: np.ndarray
    residual: np.ndarray
    steps: int


def low_rank(left, right):
    """The operator left rightᵀ, never formed.  left : (n, k), right : (N, k)."""
    left, right = np.asarray(left, float), np.asarray(right, float)
    if left.ndim != 2 or right.ndim != 2 or left.shape[1] != right.shape[1]:
        raise ValueError(f"left {left.shape} and right {right.shape}: must be matrices with equally many columns")
    return aslinearoperator(left) @ aslinearoperator(right).T


def operator_norm(A, tolerance=1e-6, max_steps=1000):
    """‖A‖_op, the largest singular value, as a float.

    A : (n, N) array, or a LinearOperator such as `aslinearoperator(F - F0) - low_rank(left, right)`.
    tolerance : relative residual at which to stop, > 0. The value is never above the norm beyond rounding; away from
        multiplicities its relative error is about the square of the tolerance over the relative gap.

    Raises ValueError for a bad argument, ArithmeticError if max_steps do not reach the tolerance.
    """
    return float(singular_triplets(A, 1, tolerance, max_steps).values[0])


def singular_triplets(A, count, tolerance=1e-6, max_steps=1000) -> Triplets:
    """The `count` largest singular triplets of A.

    Arguments and errors as in `operator_norm`; 1 <= count <= min(n, N). A value that is repeated exactly may be found
    once only. The start vector is fixed, so that equal arguments give equal results.
    """
    A = aslinearoperator(A)
    n, N = A.shape
    number("tolerance", tolerance, above=0)
    if whole("count", count, 1) > min(n, N):
        raise ValueError(f"count = {count}: a matrix of shape {n} x {N} has only {min(n, N)} singular values")
    max_steps = min(whole("max_steps", max_steps, count), n, N)
    if n < N:  # the start vector belongs on the short side, which min(n, N) steps exhaust
        flipped = singular_triplets(A.T, count, tolerance, max_steps)
        return replace(flipped, left=flipped.right, right=flipped.left)

    rng = np.random.default_rng(_START)
    U, V = np.zeros((max_steps, n)), np.zeros((max_steps + 1, N))
    B = np.zeros((max_steps, max_steps))
    V[0] = _orthonormal(rng.standard_normal(N), V[:0])[0]
    largest = below = 0.0
    for k in range(max_steps):
        # AV = UB and AᵀU = VBᵀ + below·V[k + 1] e_kᵀ, B upper bidiagonal: its singular triplets approximate those of A.
        U[k], B[k, k] = _next(A.matvec(V[k]) - below * U[k - 1], U[:k], largest, rng)
        largest = max(largest, B[k, k])
        V[k + 1], below = _next(A.rmatvec(U[k]) - B[k, k] * V[k], V[: k + 1], largest, rng)
        largest = max(largest, below)
        steps = k + 1
        if steps >= count and (steps % _CHECK == 0 or steps == max_steps or below == 0):
            x, values, y = np.linalg.svd(B[:steps, :steps])
            residual = below * np.abs(x[-1, :count])
            if np.all(residual <= tolerance * values[:count]) or steps == N:
                return Triplets(U[:steps].T @ x[:, :count], values[:count], V[:steps].T @ y[:count].T, residual, steps)
        if steps < max_steps:
            B[k, k + 1] = below
    raise ArithmeticError(
        f"singular_triplets: {max_steps} steps leave a relative residual of {(residual / values[:count]).max():.1e}, "
        f"above tolerance = {tolerance:g}"
    )


def alignment(vectors, basis):
    """Squared length of each unit vector's projection on the span of `basis`, in [0, 1].

    vectors : (n,) or (n, k), normalised here.  basis : (n,) or (n, m), linearly independent columns.
    Returns a float for one vector, else (k,). For a single basis vector this is the squared cosine.
    """
    vectors, basis = np.asarray(vectors, float), np.asarray(basis, float)
    if len(vectors) != len(basis):
        raise ValueError(f"vectors {vectors.shape} and basis {basis.shape}: must have equally many rows")
    Q = np.linalg.qr(basis.reshape(len(basis), -1))[0]
    share = np.sum((Q.T @ vectors) ** 2, axis=0) / np.sum(vectors**2, axis=0)
    return float(share) if vectors.ndim == 1 else share


def _next(vector, basis, largest, rng):
    """The next basis vector and its coefficient; where nothing new is left, a random direction with coefficient 0."""
    unit, length = _orthonormal(vector, basis)
    if length > _NEGLIGIBLE * largest and length > 0:
        return unit, length
    if len(basis) == len(vector):
        return np.zeros_like(vector), 0.0
    return _orthonormal(rng.standard_normal(len(vector)), basis)[0], 0.0


def _orthonormal(vector, basis):
    for _ in range(2):  # once loses orthogonality to rounding, twice is enough
        vector = vector - basis.T @ (basis @ vector)
    length = np.linalg.norm(vector)
    return (vector / length if length > 0 else vector), length
