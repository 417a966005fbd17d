"""Reference levels for the step-size regimes of Ba et al. (NeurIPS 2022, arXiv 2205.01445)."""

from __future__ import annotations

from math import sqrt

import numpy as np

from ..checks import number
from ..problem import Problem


def linear_ridge(p: Problem, samples, *, least=0.0):
    """Limit of the test error of min_b ‖y - Xb‖²/samples + penalty·‖b‖² with its best penalty >= least.

    With γ = d/samples and the effective penalty ν, penalty = ν(1 - γ/(1+ν)), the error is
    [c⋆1² (ν/(1+ν))² + c⋆2² + … + σ_ε²] / (1 - γ/(1+ν)²), lowest at penalty γ (c⋆2² + … + σ_ε²)/c⋆1²
    (Dobriban & Wager 2018). `samples` is 2n for a method that uses the labels of both layers.

    samples : Number of them, > 0.  least : Smallest penalty, >= 0.
    """
    gamma, least = p.d / number("samples", samples, above=0), number("least", least, least=0)
    signal = p.target.linear**2
    rest = p.target.variance - signal + p.noise**2
    if signal == 0:
        return rest  # any penalty leaves noise to fit: the best one is infinite
    penalty = max(least, gamma * rest / signal)
    half = (penalty + gamma - 1) / 2
    root = sqrt(half**2 + penalty)
    nu = half + root if half > 0 else penalty / (root - half)
    return (signal * (nu / (1 + nu)) ** 2 + rest) / (1 - gamma / (1 + nu) ** 2)


def implicit_ridge(kernel):
    """(f(1) - f(0) - f'(0))/f'(0) of a kernel that is f(cos) on the sphere ‖x‖² = d, d -> ∞ (El Karoui 2010).

    With n ~ d, kernel ridge regression is ridge regression on x: the curved part of f only adds this number to the
    penalty, in units in which ridge regression reads (XXᵀ/d + penalty)⁻¹y.

    kernel : Callable (X, Z) -> matrix, such as `simulate.baselines.RBF(1.0).matrix`.
    """
    step = 1e-3
    cosines = np.array([1.0, 0.0, step, -step])
    points = sqrt(2) * np.stack([cosines, np.sqrt(1 - cosines**2)], axis=1)
    one, zero, after, before = kernel(points[:1], points)[0]
    slope = (after - before) / (2 * step)
    return float((one - zero - slope) / slope)
