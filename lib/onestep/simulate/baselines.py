"""What one gradient step has to beat: kernel ridge regression with all 2n labels.

The network splits its 2n samples between the two layers; a kernel uses all of them. Errors are returned for every
penalty asked for, so that a notebook can grant a kernel the penalty that is best for it.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial.distance import cdist

from ..checks import number
from ..problem import Problem
from .network import draw, sample
from .replicates import replicated


def rbf(X, Z, width=1.0):
    """exp(-‖x - x'‖²/(2 width² d)); width in units of a typical ‖x‖."""
    return np.exp(-cdist(X, Z, "sqeuclidean") / (2 * width**2 * X.shape[1]))


def power(X, Z, degree=2):
    """(1 + xᵀx'/d)^degree."""
    return (1 + X @ Z.T / X.shape[1]) ** degree


def arc_cosine(X, Z, tangent=False):
    """The ReLU's kernels: of infinitely many random features, or with `tangent` of training both layers (NTK).

    ‖x‖‖x'‖(√(1-c²) + (π - arccos c)c)/πd, plus xᵀx'(π - arccos c)/πd for the tangent kernel (Cho & Saul 2009;
    Jacot et al. 2018).
    """
    products = X @ Z.T
    scale = np.outer(np.linalg.norm(X, axis=1), np.linalg.norm(Z, axis=1))
    c = np.clip(products / scale, -1.0, 1.0)
    away = np.pi - np.arccos(c)
    kernel = scale * (np.sqrt(1 - c**2) + c * away)
    return (kernel + products * away if tangent else kernel) / (np.pi * X.shape[1])


KERNELS = {
    "RBF, width 1/2": partial(rbf, width=0.5),
    "RBF, width 1": rbf,
    "RBF, width 2": partial(rbf, width=2.0),
    "(1 + xᵀx'/d)²": power,
    "(1 + xᵀx'/d)³": partial(power, degree=3),
    "arc-cosine": arc_cosine,
    "tangent": partial(arc_cosine, tangent=True),
}


@replicated(lambda p, *_, **__: 8 * 16 * p.n**2 / 2**30)
def kernel_ridge(p: Problem, kernel, penalties, *, test_size=4000, rng):
    """Kernel ridge regression on both samples: test (trials, penalties), the test errors, label noise included.

    kernel : function of X (m, d) and Z (k, d) that returns the kernel matrix (m, k), such as `KERNELS`' values.
    penalties : in (K + 2n·penalty)⁻¹y, > 0.
    test_size : rows of the fresh sample to test on; that of the best linear predictor serves as a control variate.
    """
    penalties = [number("penalties", float(value), above=0) for value in np.atleast_1d(penalties)]
    now = draw(p, rng)
    X, y = np.concatenate([now.X, now.X2]), np.concatenate([now.y, now.y2])
    K, one = kernel(X, X), np.eye(len(X))
    weights = [cho_solve(cho_factor(K + len(X) * penalty * one), y) for penalty in penalties]
    Z, labels = sample(p.replace(noise=0.0), now.beta_star, rng, size=test_size)
    beyond = (labels - p.target.linear * Z @ now.beta_star) ** 2  # its mean is known
    squares = (labels - np.array(weights) @ kernel(X, Z)) ** 2
    return {"test": (squares - beyond).mean(1) + p.label_power - p.target.linear**2}
