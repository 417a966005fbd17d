"""What one gradient step has to beat: kernel ridge regression with all 2n labels.

The network splits its 2n samples between the two layers; a kernel uses all of them. Errors are returned for every
penalty asked for, so that a notebook can grant a kernel the penalty that is best for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import sqrt

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial.distance import cdist

from ..checks import number, whole
from ..hermite import Polynomial
from ..problem import Problem
from . import averages
from .network import draw, sample
from .replicates import Result, collect

_BINOMIAL = {2: (2.0, 2.0, 1.0), 3: (4.0, 6.0, 3.0, 1.0)}  # Hermite coefficients of (1 + z)^degree


@dataclass(frozen=True)
class RBF:
    """exp(-‖x - x'‖²/(2 width² d)); width > 0 in units of a typical ‖x‖."""

    width: float = 1.0

    def __post_init__(self):
        number("width", self.width, above=0)

    def matrix(self, X, Z):
        return np.exp(-self._rate(X) * cdist(X, Z, "sqeuclidean"))

    def averages(self, X, target, beta_star):
        """Gaussian integrals: of two kernels about the midpoint of x_i, x_j, of one kernel about x_i."""
        g, d = self._rate(X), X.shape[1]
        squares = np.einsum("id,id->i", X, X)
        products = X @ X.T
        distances = squares[:, None] + squares - 2 * products
        middle = (squares[:, None] + squares + 2 * products) / 4
        twice = (1 + 4 * g) ** (-d / 2) * np.exp(-2 * g / (1 + 4 * g) * middle - g / 2 * distances)
        shrunk = 1 / (1 + 2 * g)
        labels = target.moments(2 * g * shrunk * (X @ beta_star), sqrt(shrunk))[0]
        return twice, shrunk ** (d / 2) * np.exp(-g * shrunk * squares) * labels

    def _rate(self, X):
        return 1 / (2 * self.width**2 * X.shape[1])


@dataclass(frozen=True)
class Power:
    """(1 + xᵀx'/d)^degree; degree 2 or 3."""

    degree: int = 2

    def __post_init__(self):
        if self.degree not in _BINOMIAL:
            raise ValueError(f"degree = {self.degree!r}: must be 2 or 3")

    def matrix(self, X, Z):
        return (1 + X @ Z.T / X.shape[1]) ** self.degree

    def averages(self, X, target, beta_star):
        """The kernel is a neuron z ↦ (1 + z)^degree of weights x_i/d."""
        neuron, rows = Polynomial(_BINOMIAL[self.degree]), X / X.shape[1]
        norms = np.linalg.norm(rows, axis=1)
        return averages.gram(neuron, rows @ rows.T), averages.cross(neuron, target, norms, rows @ beta_star / norms)


@dataclass(frozen=True)
class ArcCosine:
    """The ReLU's kernels: of infinitely many random features, or with `tangent` of training both layers (NTK).

    ‖x‖‖x'‖(√(1-c²) + (π - arccos c)c)/πd, plus xᵀx'(π - arccos c)/πd for the tangent kernel (Cho & Saul 2009;
    Jacot et al. 2018). Its population averages have no closed form: errors are means over a fresh sample.
    """

    tangent: bool = False

    def matrix(self, X, Z):
        products = X @ Z.T
        scale = np.outer(np.linalg.norm(X, axis=1), np.linalg.norm(Z, axis=1))
        c = np.clip(products / scale, -1.0, 1.0)
        away = np.pi - np.arccos(c)
        kernel = scale * (np.sqrt(1 - c**2) + c * away)
        return (kernel + products * away if self.tangent else kernel) / (np.pi * X.shape[1])

    averages = None


KERNELS = {
    "RBF, width 1/2": RBF(0.5),
    "RBF, width 1": RBF(1.0),
    "RBF, width 2": RBF(2.0),
    "(1 + xᵀx'/d)²": Power(2),
    "(1 + xᵀx'/d)³": Power(3),
    "arc-cosine": ArcCosine(),
    "tangent": ArcCosine(tangent=True),
}


@dataclass(frozen=True)
class Errors(Result):
    """Test errors, label noise included.

    Attributes
    ----------
    test : array, (trials, penalties)
    """

    test: np.ndarray


def kernel_ridge(p: Problem, kernel, penalties, *, test_size=4000, **run) -> Errors:
    """Test errors of kernel ridge regression on both samples.

    Parameters
    ----------
    p : Problem
    kernel : RBF, Power or ArcCosine
        One of `KERNELS`' values or another.
    penalties : float or array, (penalties,)
        In (K + 2n·penalty)⁻¹y, > 0.
    test_size : int
        Fresh sample for a kernel whose population averages have no closed form; unused by the others.
    **run
        trials, seed, jobs and executor, as in `repeat`.

    Returns
    -------
    Errors

    Raises
    ------
    ValueError
        For a bad argument, or when the memory needed is not there.
    """
    if not hasattr(kernel, "matrix"):
        raise ValueError(f"kernel = {kernel!r}: must be an RBF, Power or ArcCosine")
    penalties = np.array([number("penalties", float(value), above=0) for value in np.atleast_1d(penalties)])
    if not penalties.size:
        raise ValueError("penalties = []: must be one number > 0 or more")
    replicate = partial(_kernel_ridge, p, kernel, penalties, whole("test_size", test_size, 1))
    return collect(Errors, replicate, 8 * 4 * (2 * p.n) ** 2 / 2**30, **run)


def _kernel_ridge(p, kernel, penalties, test_size, rng):
    now = draw(p, rng)
    X, y = np.concatenate([now.X, now.X2]), np.concatenate([now.y, now.y2])
    K = kernel.matrix(X, X)
    weights = np.column_stack([_solve(K, len(X) * penalty, y) for penalty in penalties])
    if kernel.averages is None:
        Z, labels = sample(p.replace(noise=0.0), now.beta_star, rng, size=test_size)
        beyond = (labels - p.target.linear * Z @ now.beta_star) ** 2  # its mean is known: a control variate
        squares = (labels[:, None] - kernel.matrix(Z, X) @ weights) ** 2
        return {"test": (squares - beyond[:, None]).mean(0) + p.label_power - p.target.linear**2}
    twice, once = kernel.averages(X, p.target, now.beta_star)
    return {"test": np.einsum("ip,ip->p", weights, twice @ weights) - 2 * once @ weights + p.label_power}


def _solve(K, penalty, y):
    """(K + penalty·1)⁻¹y."""
    shifted = K.copy()
    shifted.flat[:: len(K) + 1] += penalty
    factor = cho_factor(shifted.T, lower=True, overwrite_a=True, check_finite=False)
    return cho_solve(factor, y, check_finite=False)
