"""The operator norm of a large matrix without a dense SVD."""

from __future__ import annotations

import numpy as np
from scipy.sparse.linalg import svds


def operator_norm(A, tolerance=1e-6):
    """‖A‖_op, the largest singular value of an array (n, N).

    The start vector is fixed, so that equal arguments give equal results.
    """
    if np.ndim(A) != 2 or not np.isfinite(A).all():
        raise ValueError(f"A {np.shape(A)}: must be (n, N), of finite numbers")
    if min(A.shape) < 12 or not A.any():  # ARPACK takes neither
        return float(np.linalg.norm(A, 2))
    start = np.random.default_rng(0).standard_normal(min(A.shape))  # ARPACK needs few vectors where a spike leads
    return float(svds(A, 1, tol=tolerance, v0=start, ncv=10, return_singular_vectors=False)[0])
