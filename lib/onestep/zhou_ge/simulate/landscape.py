"""The local landscape of three-stage training, measured: plain gradient descent followed step by step.

Several networks descend at once: second layers a (B, m) and first layers W (B, m, d).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from ...checks import number, whole
from ...simulate.replicates import key, repeat
from ..relu import Population
from .threestage import balance, descend, train

_SMALL = 1e-9  # second-layer weight of a neuron that a perturbation may revive


@dataclass(frozen=True, eq=False)
class Trajectory:
    """What gradient descent on L_λ = L + (λ/2)(‖a‖² + ‖W‖²) passed, at k of its steps.

    Parameters
    ----------
    steps : array, (k,)
    objective, slope, loss : arrays, (k, B)
        L_λ, ‖∇L_λ‖² and L.
    a, W : arrays, (k, B, m) and (k, B, m, d)
    """

    steps: np.ndarray
    objective: np.ndarray
    slope: np.ndarray
    loss: np.ndarray
    a: np.ndarray
    W: np.ndarray

    def exponent(self, first, last):
        """p of ‖∇L_λ‖² ~ L^p between two of its steps, one for each network, (B,)."""
        chosen = (self.steps >= first) & (self.steps <= last)
        x, y = np.log(self.loss[chosen]), np.log(self.slope[chosen])
        x, y = x - x.mean(axis=0), y - y.mean(axis=0)
        return np.sum(x * y, axis=0) / np.sum(x**2, axis=0)


def evaluate(system, a, W, ridge):
    """(L_λ, ‖∇L_λ‖², L) of networks at λ = ridge, each (B,)."""
    loss, by_second, by_first = system.gradient(a, W)
    decay = ridge / 2 * (np.sum(a**2, axis=-1) + np.sum(W**2, axis=(-2, -1)))
    slope = np.sum((by_second + ridge * a) ** 2, axis=-1) + np.sum((by_first + ridge * W) ** 2, axis=(-2, -1))
    return loss + decay, slope, loss


def follow(system, a, W, ridge, marks):
    """Plain gradient descent of step 1, kept at some of its steps.

    Parameters
    ----------
    system : Population or Empirical
    a, W : arrays, (B, m) and (B, m, d)
        Starts.
    ridge : float
        λ >= 0.
    marks : array
        The steps to keep: whole numbers >= 0, increasing.

    Returns
    -------
    Trajectory

    Raises
    ------
    ValueError
        For marks that are empty or do not increase.
    """
    marks = np.array([whole("marks", int(mark), 0) for mark in marks])
    if len(marks) < 1 or np.any(np.diff(marks) <= 0):
        raise ValueError(f"marks = {marks}: must be increasing whole numbers, at least one")
    passed = []
    for gap in np.diff(marks, prepend=0):
        if gap:
            end = descend(system, a, W, ridge, method="gradient", limit=int(gap), tolerance=0.0)
            a, W = end.a, end.W
        passed.append((*evaluate(system, a, W, ridge), a, W))
    return Trajectory(marks, *(np.array(part) for part in zip(*passed, strict=True)))


def rate(system, a, W, ridge, marks):
    """Rate at which gradient descent of step 1 approaches the minimum: ‖∇L_λ‖ ~ e^{-rate·steps}.

    Parameters
    ----------
    system, a, W, ridge
        As for `follow`.
    marks : pair of int
        The steps between which it is measured.

    Returns
    -------
    array, (B,)
    """
    path = follow(system, a, W, ridge, marks)
    return np.log(path.slope[0] / path.slope[-1]) / 2 / (path.steps[-1] - path.steps[0])


def annealed_descent(system, a, W, ridges, levels, limit):
    """Plain gradient descent of step 1 with λ lowered network by network.

    Parameters
    ----------
    system : Population or Empirical
    a, W : arrays, (B, m) and (B, m, d)
        Starts.
    ridges : array, (k,)
        The values of λ in turn.
    levels : array, (k,)
        The objective at which each is left for the next.
    limit : int
        Most steps, >= 1.

    Returns
    -------
    steps, losses : arrays, (B, k)
        Step and loss at which each λ was left; nan where that was not reached.

    Raises
    ------
    ValueError
        For ridges and levels of different lengths, or limit < 1.
    """
    ridges, levels = np.asarray(ridges, float), np.asarray(levels, float)
    if ridges.shape != levels.shape or ridges.ndim != 1:
        raise ValueError(f"ridges {ridges.shape} and levels {levels.shape}: must be of one length")
    steps, losses = np.full((2, *a.shape[:-1], len(ridges)), np.nan)
    at = np.zeros(a.shape[:-1], int)
    for count in range(whole("limit", limit, 1) + 1):
        ridge = ridges[np.minimum(at, len(ridges) - 1)]
        loss, by_second, by_first = system.gradient(a, W)
        decay = ridge / 2 * (np.sum(a**2, axis=-1) + np.sum(W**2, axis=(-2, -1)))
        left = (at < len(ridges)) & (loss + decay <= levels[np.minimum(at, len(ridges) - 1)])
        steps[left, at[left]], losses[left, at[left]] = count, loss[left]
        at += left
        if np.all(at == len(ridges)):
            break
        a = a - (by_second + ridge[..., None] * a)
        W = W - (by_first + ridge[..., None, None] * W)
    return steps, losses


def scatter(a, W, copies, spread, rng):
    """Each neuron as several of equal weight, moved by Gaussian vectors; balanced.

    Parameters
    ----------
    a, W : arrays, (m,) and (m, d)
    copies : int
        Neurons in place of each, >= 1.
    spread : float
        Length of the move relative to the neuron, root mean square, >= 0.
    rng : numpy Generator

    Returns
    -------
    a, W : arrays, (copies·m,) and (copies·m, d)
    """
    whole("copies", copies, 1)
    number("spread", spread, least=0)
    a, W = np.repeat(a / copies, copies), np.repeat(W, copies, axis=0)
    lengths = np.linalg.norm(W, axis=1, keepdims=True)
    return balance(a, W + spread / np.sqrt(W.shape[1]) * lengths * rng.standard_normal(W.shape))


def perturb(a, W, size, rng):
    """Every neuron moved by a Gaussian vector of length `size` >= 0 relative to the mean neuron's, then balanced."""
    number("size", size, least=0)
    length = np.mean(np.linalg.norm(W, axis=1))
    W = W + size * length / np.sqrt(W.shape[1]) * rng.standard_normal(W.shape)
    return balance(np.where(a < 0, -1.0, 1.0) * np.maximum(np.abs(a), _SMALL), W)


def near(teacher, copies, spread, count, seed):
    """`count` starts near the teacher: each of its neurons `scatter`ed. (count, r·copies) and (count, r·copies, d)."""
    neurons = balance(teacher.weights, teacher.directions)
    return stack([scatter(*neurons, copies, spread, key(seed, s)) for s in range(whole("count", count, 1))])


def fitted(teacher, m, count, seed, *, fit_ridge=1e-3, jobs=1, executor=None):
    """Starts from stages 1 and 2 on the population.

    Parameters
    ----------
    teacher : Teacher
    m : int
        Student neurons.
    count : int
        Starts.
    seed, jobs, executor
        As in `onestep.simulate.repeat`.
    fit_ridge : float
        λ of stage 2, > 0.

    Returns
    -------
    a, W : arrays, (count, m) and (count, m, d)
    """
    branch = (*seed, m) if isinstance(seed, tuple) else (seed, m)
    return stack(repeat(partial(_fitted, teacher, m, fit_ridge), count, branch, jobs=jobs, executor=executor))


def _fitted(teacher, m, fit_ridge, rng):
    return train(Population(teacher), m, rng, (), fit_ridge=fit_ridge).fitted


def stack(networks):
    """Networks (a, W) of one size as one array each: (len(networks), m) and (len(networks), m, d)."""
    return tuple(np.array(part) for part in zip(*networks, strict=True))
