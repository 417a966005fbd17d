"""The local landscape of three-stage training, measured: plain gradient descent followed step by step.

Several networks descend at once: second layers a (B, m) and first layers W (B, m, d).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...checks import whole
from .threestage import descend, slopes


@dataclass(frozen=True, eq=False)
class Trajectory:
    """What gradient descent on L_λ = L + (λ/2)(‖a‖² + ‖W‖²) passed, at k of its steps.

    steps : (k,).  objective, slope, loss : (k, B), L_λ, ‖∇L_λ‖² and L.
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
    loss, by_second, by_first = slopes(system, a, W, np.array([ridge, ridge]))
    slope = np.sum(by_second**2, axis=-1) + np.sum(by_first**2, axis=(-2, -1))
    return _objective(loss, a, W, ridge), slope, loss


def _objective(loss, a, W, ridge):
    return loss + ridge / 2 * (np.sum(a**2, axis=-1) + np.sum(W**2, axis=(-2, -1)))


def follow(system, a, W, ridge, marks):
    """Plain gradient descent of step 1, kept at some of its steps.

    marks : The steps to keep: whole numbers >= 0, increasing.
    """
    marks = np.array([whole("marks", mark, 0) for mark in marks])
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

    marks : pair of int, The steps between which it is measured.  Returns array, (B,).
    """
    path = follow(system, a, W, ridge, marks)
    return np.log(path.slope[0] / path.slope[-1]) / 2 / (path.steps[-1] - path.steps[0])


def annealed_descent(system, a, W, ridges, levels, *, limit):
    """Plain gradient descent of step 1 with λ lowered network by network.

    ridges, levels : (k,), The values of λ in turn, and the objective at which each is left for the next.  limit : Most
    steps, >= 1.  Returns arrays, (B, k), Step and loss at which each λ was left; nan where that was not reached.
    """
    ridges, levels = np.asarray(ridges, float), np.asarray(levels, float)
    if ridges.shape != levels.shape or ridges.ndim != 1:
        raise ValueError(f"ridges {ridges.shape} and levels {levels.shape}: must be of one length")
    steps, losses = np.full((2, len(a), len(ridges)), np.nan)
    at = np.zeros(len(a), int)
    for count in range(whole("limit", limit, 1) + 1):
        now = np.minimum(at, len(ridges) - 1)
        loss, by_second, by_first = slopes(system, a, W, ridges[now, None].repeat(2, axis=1))
        left = (at < len(ridges)) & (_objective(loss, a, W, ridges[now]) <= levels[now])
        steps[left, at[left]], losses[left, at[left]] = count, loss[left]
        at += left
        if np.all(at == len(ridges)):
            break
        a, W = a - by_second, W - by_first
    return steps, losses
