"""Multi-index targets under giant gradient steps (Damian et al. 2022; Dandi et al. 2023, arXiv 2305.18270), simulated.

y = g(v_1ᵀx, ..., v_rᵀx) with orthonormal v_j and x ~ N(0, I_d). A neuron w_i on the unit sphere, with second-layer
weight a_i = ±1 in a network whose initial output is negligible, moves along

    g_i = a_i (1/n) Σ_ν y_ν x_ν σ'(w_iᵀx_ν).

What a step has learned is the energy of the neurons along the directions: the mean over i of (g_iᵀv_j)²/‖g_i‖².
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import factorial, isfinite, prod

import numpy as np
from numpy.polynomial import hermite_e

from . import hermite
from .checks import number, whole

_CHUNK = 1 << 18  # numbers per block of samples: a few blocks fit in cache


@dataclass(frozen=True, eq=False)
class Target:
    """g(z) = Σ_α C_α Π_j H_{α_j}(z_j) from {(α_1, ..., α_r): C_α}, all keys of one length r.

    Raises ValueError for keys that are not tuples of whole numbers >= 0 of one length, or coefficients not finite.
    """

    terms: Mapping

    def __post_init__(self):
        terms = dict(self.terms)
        keys = [key for key in terms if isinstance(key, tuple)]
        if not terms or len(keys) < len(terms) or len({len(key) for key in keys}) != 1 or not keys[0]:
            raise ValueError(f"terms = {terms!r}: keys must be tuples of one length r >= 1, at least one")
        if not all(isinstance(order, int) and order >= 0 for key in keys for order in key):
            raise ValueError(f"terms = {terms!r}: Hermite orders must be whole numbers >= 0")
        if not all(isfinite(value) and value for value in terms.values()):
            raise ValueError(f"terms = {terms!r}: coefficients must be finite and not 0")
        object.__setattr__(self, "terms", terms)

    def __call__(self, z):
        """g at z, (..., r)."""
        values = np.zeros(z.shape[:-1])
        for alpha, coefficient in self.terms.items():
            factors = (hermite_e.hermeval(z[..., j], np.eye(k + 1)[k]) for j, k in enumerate(alpha) if k)
            values += prod(factors, start=coefficient)
        return values

    @property
    def r(self):
        """Number of directions."""
        return len(next(iter(self.terms)))

    @property
    def power(self):
        """E g²."""
        return float(sum(c**2 * prod(map(factorial, alpha)) for alpha, c in self.terms.items()))

    @property
    def information_exponent(self):
        """Lowest order >= 1 of a term (Ben Arous et al. 2021); ValueError for a constant."""
        return min(sum(alpha) for alpha in self.terms if any(alpha))

    @property
    def preprocessed(self):
        """The target without its 0th and 1st Hermite parts; ValueError if nothing is left."""
        return Target({alpha: c for alpha, c in self.terms.items() if sum(alpha) > 1})

    def tensor(self, k):
        """E[g(z) H_k(z)], the symmetric tensor of order k, shape (r,) * k."""
        out = np.zeros((self.r,) * whole("k", k, 0))
        for index in np.ndindex(out.shape):
            alpha = tuple(index.count(j) for j in range(self.r))
            out[index] = self.terms.get(alpha, 0.0) * prod(map(factorial, alpha))
        return out

    def arrival(self):
        """The giant step, 1, 2, ..., at which n = Θ(d) fresh samples a step reach each direction; 0 for never. (r,)

        A term is seen once it is linear in the directions not yet known (Abbe et al. 2022; Dandi et al. 2023).
        """
        arrived = np.zeros(self.r, int)
        for step in range(1, self.r + 1):
            unknown = arrived == 0
            for alpha in self.terms:
                new = np.array(alpha) * unknown
                if new.sum() == 1:
                    arrived[new == 1] = step
        return arrived


def one_step(target, d, n, N, rng, activation="shifted_relu", preprocess=False):
    """Cosines of the N moved neurons with the target's directions after one giant step on n samples, (N, r).

    Parameters
    ----------
    target : Target of r <= d directions
    d, n, N : inputs, samples, neurons
    activation : anything `hermite.function` takes
    preprocess : subtract from the labels their mean and linear part, estimated on n samples of their own

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


def fresh_steps(target, d, n, N, steps, rng, activation, eta=2.0):
    """Cosines of the neurons with the target's directions after 0, 1, ..., `steps` giant steps, (steps + 1, N, r).

    Every step draws n fresh samples, moves w_i to w_i + η g_i and puts it back on the unit sphere. eta : η > 0.
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
