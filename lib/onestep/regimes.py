"""Reference levels for the step-size regimes of Ba et al. (NeurIPS 2022, arXiv 2205.01445)."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from scipy.optimize import minimize_scalar

from .checks import number
from .problem import Problem

_STEEPEST = 50.0  # |κ| searched; a neuron this steep is a step function to 1/50 of the input's scale


@dataclass(frozen=True)
class Neuron:
    """A slope κ and the error τ = E (σ⋆(ξ1) - E σ(κξ1 + ξ2))² it leaves, ξ1, ξ2 independent N(0, 1)."""

    kappa: float
    tau: float


def linear_ridge(p: Problem, samples):
    """Limit of the test error of ridge regression on x with its best penalty, from `samples` labels (2n for both layers).

    With isotropic inputs the best penalty makes it the posterior mean under β ~ N(0, c⋆1² I/d); the excess e over
    `theory.best_linear` solves 1/e = 1/c⋆1² + samples/(d (e + best_linear)) (Dobriban & Wager 2018).

    Raises ValueError for samples <= 0.
    """
    ratio = p.d / number("samples", samples, above=0)
    signal = p.target.linear**2
    rest = p.target.variance - signal + p.noise**2
    half = (signal * (1 - ratio) + ratio * rest) / 2
    root = sqrt(half**2 + ratio**2 * rest * signal)
    excess = ratio * rest * signal / (half + root) if half > 0 else (root - half) / ratio
    return excess + rest


def nearest_neuron(p: Problem) -> Neuron:
    """The neuron E_ξ2 σ(κz + ξ2) nearest to the teacher: τ⋆ = inf_κ τ(κ) of Ba et al., Theorem 7, at |κ| <= 50.

    After a step η = Θ(√N) neurons are σ(κz + independent), κ of their own: with many samples the risk is at most 10τ⋆.
    """
    z, weights = p.target.nodes()
    teacher = p.target(z)

    def tau(slope):
        return float(weights @ (teacher - p.student.moments(np.sinh(slope) * z, 1.0)[0]) ** 2)

    grid = np.linspace(-np.arcsinh(_STEEPEST), np.arcsinh(_STEEPEST), 201)
    start = int(np.argmin([tau(slope) for slope in grid]))
    ends = grid[max(start - 1, 0)], grid[min(start + 1, len(grid) - 1)]
    best = minimize_scalar(tau, bounds=ends, method="bounded", options={"xatol": 1e-10})
    return Neuron(float(np.sinh(best.x)), best.fun)
