"""The operator norm of a large matrix without a dense SVD."""

from __future__ import annotations

import numpy as np
from scipy.sparse.linalg import svds


def operator_norm(A, tolerance=1e-6):
    """‖A‖_op, the largest singular value of an array (n, N), or of a scipy `LinearOperator`.

    The start vector is fixed, so that equal arguments give equal results.
    """
    something = A @ np.random.default_rng(0).standard_normal(A.shape[1]) if len(A.shape) == 2 else np.nan
    if not np.isfinite(something).all():
        raise ValueError(f"A {A.shape}: must be (n, N), of finite numbers")
    if min(A.shape) < 12:  # ARPACK needs more
        small = A @ np.eye(A.shape[1]) if A.shape[1] <= A.shape[0] else A.T @ np.eye(A.shape[0])
        return float(np.linalg.norm(small, 2))
    if not something.any():
        return 0.0  # ARPACK does not take 0
    start = np.random.default_rng(0).standard_normal(min(A.shape))  # ARPACK needs few vectors where a spike leads
    return float(svds(A, 1, tol=tolerance, v0=start, ncv=10, return_singular_vectors=False)[0])
