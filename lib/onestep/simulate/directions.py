"""Multi-index targets under giant gradient steps (Damian et al. 2022; Dandi et al. 2023, arXiv 2305.18270), simulated.

y = g(v_1ᵀx, ..., v_rᵀx) with orthonormal v_j and x ~ N(0, I_d). A neuron w_i on the unit sphere, with second-layer
weight a_i = ±1 in a network whose initial output is negligible, moves along

    g_i = a_i (1/n) Σ_ν y_ν x_ν σ'(w_iᵀx_ν).

What a step has learned is the energy of the neurons along the directions: the mean over i of (g_iᵀv_j)²/‖g_i‖².
"""

from __future__ import annotations

import numpy as np

from .. import hermite
from ..checks import number, whole

_CHUNK = 1 << 17  # numbers per block of samples: a few blocks fit in cache


def one_step(target, d, n, N, rng, *, activation="shifted_relu", preprocess=False):
    """Cosines of the N moved neurons with the directions of a `Target` after one giant step on n samples, (N, r).

    preprocess : subtract from the labels their mean and linear part, estimated on n samples of their own.

    Exact in law at a cost that does not grow with d: outside the span of the directions and the initial neurons, the
    samples enter only through Gaussian sums whose covariance over the neurons is known.
    """
    d, n, N = whole("d", d, target.r), whole("n", n, 2), whole("N", N, 1)
    slope, r = hermite.function(activation).derivative, target.r
    W = _sphere(N, d, rng)
    outer = W[:, r:]
    inner = outer if N >= d - r else np.linalg.cholesky(outer @ outer.T)
    W = np.hstack([W[:, :r], inner])
    mean, linear = _affine_part(target, d, W.shape[1], n, rng) if preprocess else (0.0, np.zeros(W.shape[1]))
    W = np.pad(W, ((0, 0), (0, len(linear) - W.shape[1])))
    moved, covariance = np.zeros_like(W), np.zeros((N, N))
    for size in _blocks(n, W.shape[1]):
        X = rng.standard_normal((size, W.shape[1]))
        y = target(X[:, :r]) - mean - X @ linear
        weighted = y[:, None] * slope(X @ W.T)
        moved += weighted.T @ X
        covariance += weighted.T @ weighted
    outside = _gaussian_rows(covariance, d - W.shape[1], rng)
    length = np.sqrt(np.sum(moved**2, axis=1) + np.sum(outside**2, axis=1))
    return rng.choice([-1.0, 1.0], (N, 1)) * moved[:, :r] / length[:, None]


def fresh_steps(target, d, n, N, steps, rng, activation, *, eta=2.0):
    """Cosines of the neurons with the target's directions after 0, 1, ..., `steps` large steps, (steps + 1, N, r).

    Every step draws n fresh samples, moves w_i to w_i + η g_i and puts it back on the unit sphere.
    """
    d, n, N, steps = whole("d", d, target.r), whole("n", n, 1), whole("N", N, 1), whole("steps", steps, 1)
    number("eta", eta, above=0)
    slope = hermite.function(activation).derivative
    W, a = _sphere(N, d, rng), rng.choice([-1.0, 1.0], (N, 1))
    path = [W[:, : target.r]]
    for _ in range(steps):
        G = np.zeros_like(W)
        for size in _blocks(n, d):
            X = rng.standard_normal((size, d))
            G += (target(X[:, : target.r])[:, None] * slope(X @ W.T)).T @ X
        W = W + eta / n * a * G
        W /= np.linalg.norm(W, axis=1, keepdims=True)
        path.append(W[:, : target.r])
    return np.array(path)


def _sphere(N, d, rng):
    W = rng.standard_normal((N, d))
    return W / np.linalg.norm(W, axis=1, keepdims=True)


def _affine_part(target, d, tracked, n, rng):
    """Mean and linear part of the labels, estimated on n samples, in the tracked coordinates.

    What lies outside them becomes one more tracked coordinate, if there is an outside.
    """
    total, square, linear = 0.0, 0.0, np.zeros(target.r)
    for size in _blocks(n, target.r):
        z = rng.standard_normal((size, target.r))
        y = target(z)
        total, square, linear = total + y.sum(), square + y @ y, linear + y @ z
    noise = np.sqrt(square) * rng.standard_normal(d - target.r)
    inside, outside = np.split(noise, [tracked - target.r])
    rest = [np.linalg.norm(outside)] if outside.size else []
    return total / n, np.concatenate([linear, inside, rest]) / n


def _gaussian_rows(covariance, count, rng):
    """(N, count): independent columns with the given covariance over the rows."""
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0)) @ vectors.T  # the symmetric one: no sign is left to chance
    return root @ rng.standard_normal((len(values), count))


def _blocks(n, width):
    size = max(1, _CHUNK // width)
    return [min(size, n - start) for start in range(0, n, size)]
