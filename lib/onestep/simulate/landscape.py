"""The local landscape of three-stage training, measured: plain gradient descent followed step by step.

Several networks descend at once: second layers a (B, m) and first layers W (B, m, d).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..checks import number, whole
from .threestage import balance, descend


@dataclass(frozen=True, eq=False)
class Trail:
    """What gradient descent on L_λ = L + (λ/2)(‖a‖² + ‖W‖²) passed, at k of its steps.

    steps : (k,).   objective, slope, loss : (k, B), L_λ, ‖∇L_λ‖² and L.   a, W : the end.
    """

    steps: np.ndarray
    objective: np.ndarray
    slope: np.ndarray
    loss: np.ndarray
    a: np.ndarray
    W: np.ndarray


def survey(system, a, W, ridge):
    """(L_λ, ‖∇L_λ‖², L) of networks at λ = ridge, each (B,)."""
    loss, by_second, by_first = system.gradient(a, W)
    decay = ridge / 2 * (np.sum(a**2, axis=-1) + np.sum(W**2, axis=(-2, -1)))
    slope = np.sum((by_second + ridge * a) ** 2, axis=-1) + np.sum((by_first + ridge * W) ** 2, axis=(-2, -1))
    return loss + decay, slope, loss


def follow(system, a, W, ridge, marks, step=1.0):
    """The `Trail` of plain gradient descent at λ = ridge, at the steps `marks`, whole numbers >= 0, increasing."""
    marks = np.array([whole("marks", int(mark), 0) for mark in marks])
    if len(marks) < 1 or np.any(np.diff(marks) <= 0):
        raise ValueError(f"marks = {marks}: must be increasing whole numbers, at least one")
    passed, gaps = [], np.diff(marks, prepend=0)
    for gap in gaps:
        if gap:
            end = descend(system, a, W, ridge, "gradient", int(gap), tolerance=0.0, step=step)
            a, W = end.a, end.W
        passed.append(survey(system, a, W, ridge))
    return Trail(marks, *(np.array(part) for part in zip(*passed, strict=True)), a, W)


def fade(system, a, W, ridges, levels, limit, step=1.0):
    """Plain gradient descent with λ lowered network by network: (steps, losses) at which each λ was left, (B, k).

    ridges : the k values of λ in turn.   levels : (k,), the objective at which each is left for the next.
    limit : most steps; what has not been reached by then is nan.
    """
    ridges, levels = np.asarray(ridges, float), np.asarray(levels, float)
    if ridges.shape != levels.shape or ridges.ndim != 1:
        raise ValueError(f"ridges {ridges.shape} and levels {levels.shape}: must be of one length")
    number("step", step, above=0)
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
        a = a - step * (by_second + ridge[..., None] * a)
        W = W - step * (by_first + ridge[..., None, None] * W)
    return steps, losses


def scatter(a, W, copies, spread, rng):
    """Each neuron as several of equal weight, moved by Gaussian vectors of length `spread` relative to it; balanced.

    a (m,), W (m, d) become (copies·m,) and (copies·m, d).   copies >= 1, spread >= 0.
    """
    whole("copies", copies, 1)
    number("spread", spread, least=0)
    a, W = np.repeat(a / copies, copies), np.repeat(W, copies, axis=0)
    lengths = np.linalg.norm(W, axis=1, keepdims=True)
    return balance(a, W + spread / np.sqrt(W.shape[1]) * lengths * rng.standard_normal(W.shape))


def sprinkle(a, W, mass, rng):
    """One more neuron of weight ±mass on a random line, as balanced as the others: (m + 1,) and (m + 1, d)."""
    size = np.sqrt(number("mass", mass, above=0))
    line = rng.standard_normal(W.shape[1])
    return np.append(a, rng.choice([-size, size])), np.vstack([W, size * line / np.linalg.norm(line)])


def stack(networks):
    """Networks (a, W) of one size as one array each: (len(networks), m) and (len(networks), m, d)."""
    return tuple(np.array(part) for part in zip(*networks, strict=True))
