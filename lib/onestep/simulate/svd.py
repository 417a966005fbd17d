"""Operator norms and leading singular triplets of large matrices without a dense SVD, and alignments of vectors.

Golub-Kahan bidiagonalisation with full reorthogonalisation (Golub & Kahan 1965): k steps cost 4knN flops for an n × N
matrix, against about 4nN² for its singular values. What takes time is to fetch the matrix from memory, so that a step
multiplies by A and by Aᵀ while a block of rows is in the cache. Every triplet carries a residual that certifies it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse.linalg import LinearOperator

from ..checks import number, whole

NORM = 1e-3  # relative residual of the norms that `expansion` and `spectra` measure: their error is of its square
_MOST = 1000  # steps
_START = 0  # seed of the start vector: random, hence almost surely not orthogonal to any singular vector
_OFTEN = 8  # looks at the bidiagonal matrix each time that the steps double, and more at the first
_NEGLIGIBLE = 1e-14  # a new direction this small beside the largest so far is rounding
_CACHED = 1 << 19  # numbers in a block of rows: enough for BLAS to use all the threads it has
_LOSS = 1e3  # rounding errors, in units of the last digit, that a product with Aᵀ may have from the recurrence


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


class _Deflated(LinearOperator):
    def __init__(self, A, left, right):
        super().__init__(np.dtype(float), A.shape)
        self.array, self.left, self.right = A, left, right

    def _matvec(self, x):
        return self.array @ x - self.left @ (self.right.T @ x)

    def _rmatvec(self, x):
        return self.array.T @ x - self.right @ (self.left.T @ x)

    def _transpose(self):
        return _Deflated(self.array.T, self.right, self.left)

    def normal_product(self, x):
        """A x and AᵀA x."""
        n, N = self.shape
        along, step = self.right.T @ x, max(16, _CACHED // N)
        Ax, AtAx = np.empty(n), np.zeros(N)
        for i in range(0, n, step):
            rows = self.array[i : i + step]
            Ax[i : i + step] = rows @ x - self.left[i : i + step] @ along
            AtAx += Ax[i : i + step] @ rows
        return Ax, AtAx - self.right @ (self.left.T @ Ax)


def deflated(A, left, right):
    """The operator A - left rightᵀ (n, N), never formed; left (n, k), right (N, k)."""
    A, left, right = (np.asarray(x, float) for x in (A, left, right))
    if any(x.ndim != 2 for x in (A, left, right)) or (*A.shape, left.shape[1]) != (len(left), *right.shape):
        raise ValueError(f"A {A.shape}, left {left.shape}, right {right.shape}: must be (n, N), (n, k) and (N, k)")
    return _Deflated(A, left, right)


def operator_norm(A, tolerance=1e-6):
    """‖A‖_op, the largest singular value, as a float.

    Parameters
    ----------
    A : array, (n, N)
        Array, or a LinearOperator such as `deflated(F - F0, left, right)`.
    tolerance
        Relative residual at which to stop, > 0. The value is never above the norm beyond rounding; away from
        multiplicities its relative error is about the square of the tolerance over the relative gap.

    Raises
    ------
    ValueError
        For a bad argument.
    ArithmeticError
        If a thousand steps do not reach the tolerance.
    """
    return float(singular_triplets(A, 1, tolerance=tolerance).values[0])


def singular_triplets(A, count, *, tolerance=1e-6) -> Triplets:
    """The `count` largest singular triplets of A.

    Arguments and errors as in `operator_norm`; 1 <= count <= min(n, N). A value that is repeated exactly may be found
    once only. The start vector is fixed, so that equal arguments give equal results.
    """
    if not isinstance(A, LinearOperator):
        A = np.atleast_2d(A)
        A = deflated(A, np.empty((len(A), 0)), np.empty((A.shape[1], 0)))
    n, N = A.shape
    number("tolerance", tolerance, above=0)
    if whole("count", count, 1) > min(n, N):
        raise ValueError(f"count = {count}: a matrix of shape {n} x {N} has only {min(n, N)} singular values")
    max_steps = min(max(_MOST, count), n, N)
    if n < N:  # the start vector belongs on the short side, which min(n, N) steps exhaust
        flipped = _bidiagonalise(A.T, count, tolerance, max_steps)
        return replace(flipped, left=flipped.right, right=flipped.left)
    return _bidiagonalise(A, count, tolerance, max_steps)


def _bidiagonalise(A, count, tolerance, max_steps):
    """The triplets of an operator of shape (n, N), n >= N, by Golub-Kahan steps until each residual is small."""
    n, N = A.shape
    rng = np.random.default_rng(_START)
    U, V = np.zeros((max_steps, n)), np.zeros((max_steps + 1, N))
    B = np.zeros((max_steps, max_steps))
    V[0] = _orthonormal(rng.standard_normal(N), V[:0])[0]
    largest = below = loss = 0.0
    AtU = np.zeros(N)
    for k in range(max_steps):
        # AV = UB and AᵀU = VBᵀ + below·V[k + 1] e_kᵀ, B upper bidiagonal: its singular triplets approximate those of A.
        AV, AtAV = A.normal_product(V[k]) if isinstance(A, _Deflated) else (A.matvec(V[k]), None)
        U[k], B[k, k] = _next(AV - below * U[k - 1], U[:k], largest, rng)
        largest = max(largest, B[k, k])
        loss = (largest + below * loss) / B[k, k] if B[k, k] > 0 and AtAV is not None else np.inf
        if loss < _LOSS:  # from U[k] = (A V[k] - below·U[k - 1])/B[k, k], at no product; else anew
            AtU = (AtAV - below * AtU) / B[k, k]
        else:
            AtU, loss = A.rmatvec(U[k]), 1.0
        V[k + 1], below = _next(AtU - B[k, k] * V[k], V[: k + 1], largest, rng)
        largest = max(largest, below)
        steps = k + 1
        if steps >= count and (steps % max(1, steps // _OFTEN) == 0 or steps == max_steps or below == 0):
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

    Returns a float for one vector, else (k,). For a single basis vector this is the squared cosine.

    Parameters
    ----------
    vectors : array, (n,)
        Or (n, k), normalised here.
    basis : array, (n,)
        Or (n, m), linearly independent columns.
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
