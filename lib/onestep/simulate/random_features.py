"""The untrained network: ridge regression on random features, its whole penalty path, its error taken apart by degree.

With x ~ N(0, I_d) and z = β⋆ᵀx, the fitted f̂ has coefficient b_k = E f̂(x) H_k(z)/k! on the teacher's degree k, and

    E (y - f̂)² = Σ_k k! (c⋆k - b_k)²  +  σ_ε²  +  E (f̂ - Σ_k b_k H_k(z))²:

what of each degree was not learned, the label noise, and what f̂ adds that no function of z explains.
"""

from __future__ import annotations

import numpy as np
from scipy.special import factorial

from ..checks import number, whole
from ..hermite import Polynomial
from ..problem import Problem
from . import averages
from .network import draw
from .replicates import replicated


@replicated()
def path(p: Problem, ridges, *, degree=2, redraws=1, rng):
    """Fit the second layer on random features at every penalty, one eigendecomposition per replicate.

    ridges : penalties λ >= 0 in place of p's own; 0 is the limit λ → 0, the least-norm interpolator where N >= n.
    redraws : teachers β⋆, each with its own label noise, over which each replicate is averaged: untrained features
        depend on neither. Further ones are drawn last: equal seeds give equal features whatever teacher and noise.

    test : (trials, ridges), exact averages over x, label noise included.
    learned : (trials, ridges, degree + 1), coefficients b_0, …, b_degree.
    spurious : (trials, ridges), E (f̂ - Σ_k b_k H_k)², the part of the error that is neither unlearned teacher nor label
        noise; degrees of the teacher beyond those in `learned` count as not learned.
    """
    ridges = np.array([number("ridges", float(value), least=0) for value in np.atleast_1d(ridges)])
    degree, redraws = whole("degree", degree, 0), whole("redraws", redraws, 1)
    now = draw(p, rng)
    directions = rng.standard_normal((p.d, redraws - 1))
    directions = np.column_stack([now.beta_star, directions / np.linalg.norm(directions, axis=0)])
    ahead = now.X2 @ directions
    labels = np.column_stack([now.y2, p.target(ahead[:, 1:]) + p.noise * rng.standard_normal((p.n, redraws - 1))])
    a = fits(p.student(now.X2 @ now.W0.T), labels, ridges)  # (ridges, N, redraws)
    products = now.W0 @ now.W0.T
    norms = np.sqrt(np.diagonal(products).copy())
    cosines = (now.W0 @ directions / norms[:, None]).T.ravel()
    lengths = np.tile(norms, redraws)
    hermite = [Polynomial(row) for row in np.eye(degree + 1)]
    moments = averages.crosses(p.student, [p.target, *hermite], lengths, cosines).reshape(degree + 2, redraws, -1)
    overlap, *degrees = np.einsum("tjn,rnj->trj", moments, a)  # E y f̂ and E f̂ H_k, (ridges, redraws) each
    size = factorial(np.arange(degree + 1))[:, None, None]
    learned = np.array(degrees) / size
    K = averages.gram(p.student, products)
    test = np.einsum("rnj,rnj->rj", a, K @ a) - 2 * overlap + p.label_power
    teacher = p.target.coefficients(degree)[:, None, None]
    unlearned = np.sum(size * ((teacher - learned) ** 2 - teacher**2), axis=0) + p.target.second_moment
    c = p.target.coefficients(2)
    controls = [labels**2 - p.label_power, labels * ahead - c[1], labels * (ahead**2 - 1) - 2 * c[2]]
    spurious = test - unlearned - p.noise**2
    found = {"test": test.mean(1), "learned": learned.mean(2).T, "spurious": spurious.mean(1)}
    return found | {"variates": np.mean(controls, axis=(1, 2))}


def fits(F, y, ridges):
    """argmin_a ‖y - Fa‖²/n + λ‖a‖² for every λ and every column of y, (ridges, N, columns), from the smaller Gram."""
    n, N = F.shape
    values, vectors = np.linalg.eigh(F.T @ F if N <= n else F @ F.T)
    right = vectors.T @ (F.T @ y if N <= n else y)
    a = vectors @ (right / (values[:, None] + n * ridges[:, None, None]))
    return a if N <= n else F.T @ a
