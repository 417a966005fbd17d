"""Operator norms and leading singular triplets of large matrices without a dense SVD, and alignments of vectors."""

from __future__ import annotations

import numpy as np
from scipy.sparse.linalg import aslinearoperator, svds

NORM = 1e-3  # ARPACK's tolerance for what `expansion` measures: the error found is far smaller


def deflated(A, left, right):
    """The operator A - left rightᵀ (n, N), never formed; left (n, k), right (N, k)."""
    return aslinearoperator(A) - aslinearoperator(left) @ aslinearoperator(right.T)


def operator_norm(A, tolerance=1e-6):
    """‖A‖_op, the largest singular value, of an array or an operator such as `deflated(F - F0, left, right)`."""
    something = A @ np.random.default_rng(0).standard_normal(A.shape[1])
    return float(singular_triplets(A, 1, tolerance)[1][0]) if something.any() else 0.0  # ARPACK does not take 0


def singular_triplets(A, count, tolerance=1e-6):
    """left (n, count), values (count,) and right (N, count), the `count` largest singular triplets, largest first.

    The start vector is fixed, so that equal arguments give equal results. count < min(n, N).
    """
    start = np.random.default_rng(0).standard_normal(min(A.shape))  # ARPACK needs few vectors where a spike leads
    basis = min(max(2 * count + 1, 10), min(A.shape))
    left, values, right = svds(A, count, tol=tolerance, v0=start, ncv=basis)
    return left[:, ::-1], values[::-1], right[::-1].T


def alignment(vectors, basis):
    """Squared cosines in [0, 1] of vectors, (n,) or (n, k), with the span of basis, (n,) or (n, m)."""
    Q = np.linalg.qr(basis.reshape(len(basis), -1))[0]
    return np.sum((Q.T @ vectors) ** 2, axis=0) / np.sum(vectors**2, axis=0)
