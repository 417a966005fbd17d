"""The untrained network: ridge regression on random features, its whole penalty path, its error taken apart by degree.

With x ~ N(0, I_d) and z = β⋆ᵀx, the fitted f̂ has coefficient b_k = E f̂(x) H_k(z)/k! on the teacher's degree k, and

    E (y - f̂)² = Σ_k k! (c⋆k - b_k)²  +  σ_ε²  +  E (f̂ - Σ_k b_k H_k(z))²:

what of each degree was not learned, the label noise, and what f̂ adds that no function of z explains.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import factorial

from ..checks import number, whole
from ..hermite import Polynomial
from ..problem import Problem
from . import averages
from .network import draw
from .replicates import repeat


@dataclass(frozen=True)
class Path:
    """Errors and Hermite coefficients of the fitted networks.

    test : (trials, ridges), test error with label noise.  learned : (trials, ridges, degree + 1), b_0..b_degree.
    """

    test: np.ndarray
    learned: np.ndarray

    def spurious(self, p: Problem):
        """E (f̂ - Σ_k b_k H_k)², the part of the error that is neither unlearned teacher nor label noise; like `test`.

        Degrees of the teacher beyond those in `learned` count as not learned.
        """
        degree = self.learned.shape[-1] - 1
        missed = (p.target.coefficients(degree) - self.learned) ** 2 @ factorial(np.arange(degree + 1))
        beyond = p.target.second_moment - p.target.coefficients(degree) ** 2 @ factorial(np.arange(degree + 1))
        return self.test - missed - beyond - p.noise**2


def path(p: Problem, ridges, degree=2, trials=20, seed=0, jobs=2) -> Path:
    """Fit the second layer on random features at every penalty, one eigendecomposition per replicate.

    Parameters
    ----------
    p : its own ridge is not used.
    ridges : penalties λ >= 0, scalar or 1-D; 0 is the limit λ → 0, the least-norm interpolator where N >= n.
    degree : highest Hermite degree of f̂ reported.
    trials, seed, jobs : as in `repeat`; all penalties share the draws.

    Test errors are exact averages over x (`population`). Raises ValueError for a bad argument.
    """
    ridges = np.array([number("ridges", float(value), least=0) for value in np.atleast_1d(ridges)])
    replicate = partial(_path, p, ridges, whole("degree", degree, 0))
    test, learned = zip(*repeat(replicate, trials, seed, jobs), strict=True)
    return Path(np.array(test), np.array(learned))


def _path(p, ridges, degree, rng):
    now = draw(p, rng)
    a = _fits(p.student(now.X2 @ now.W0.T), now.y2, ridges)
    products = now.W0 @ now.W0.T
    norms = np.sqrt(np.diagonal(products).copy())
    cosines = now.W0 @ now.beta_star / norms
    overlap = averages.cross(p.student, p.target, norms, cosines)
    degrees = [averages.cross(p.student, Polynomial(row), norms, cosines) for row in np.eye(degree + 1)]
    K = averages.gram(p.student, products)
    test = np.einsum("ir,ir->r", a, K @ a) - 2 * overlap @ a + p.label_power
    return test, (np.array(degrees) @ a).T / factorial(np.arange(degree + 1))


def _fits(F, y, ridges):
    """argmin_a ‖y - Fa‖²/n + λ‖a‖² for every λ, (N, ridges), from the smaller of the two Gram matrices."""
    n, N = F.shape
    values, vectors = np.linalg.eigh(F.T @ F if N <= n else F @ F.T)
    right = vectors.T @ (F.T @ y if N <= n else y)
    a = vectors @ (right[:, None] / (values[:, None] + n * ridges))
    return a if N <= n else F.T @ a
