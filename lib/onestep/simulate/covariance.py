"""Inputs of any covariance, simulated: the untrained network, and the first stair of a step along any direction.

The step's spike is of infinite strength, as in `staircase`: features F0 without their part along a, and X̃b free of the
penalty. Test errors are exact averages. W0 is rotation invariant, so that Σ may be taken as diagonal.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_solve

from ..checks import whole
from ..hermite import Polynomial
from ..problem import Problem
from . import averages
from .control_variates import variates
from .network import Draw, draw, gram_factor, readout, sample
from .replicates import replicated


@replicated()
def first_stair(p: Problem, spectrum, steps, *, redraws=1, rng):
    """Losses without a step and with a strong spike along the direction of each step, on the same draws.

    x has the covariance diag(spectrum), and y = σ⋆(β⋆ᵀx) + ε with β⋆ uniform but for its length, β⋆ᵀΣβ⋆ = 1.

    spectrum : (d,) eigenvalues > 0.   steps : functions of a `Draw`, each of which returns a direction b (d,).
    redraws : draws of all but W0 and X̃ over which each replicate is averaged.

    train, test : (trials, 1 + steps), the untrained network first; test errors are exact averages.
    cosine : (trials, steps), of b with β⋆.
    """
    s = np.asarray(spectrum, float)
    if s.shape != (p.d,) or not np.all(s > 0) or not np.all(np.isfinite(s)):
        raise ValueError(f"spectrum of shape {s.shape}: must be {p.d} numbers > 0, one for each input")
    if not len(steps):
        raise ValueError(f"steps = {steps!r}: must be one function of a draw or more")
    root, start = np.sqrt(s), draw(p, rng)
    white = replace(start, W0=start.W0 * root)  # W0x = (W0 Σ^{1/2}) g with g white
    F0 = p.student(white.X2 @ white.W0.T)
    fit = _Fit(p, F0, gram_factor(F0, p.ridge * p.n), averages.gram(p.student, white.W0 @ white.W0.T))
    draws = [_redraw(p, white, root, rng) for _ in range(whole("redraws", redraws, 1))]
    colored = [
        replace(now, beta_star=now.beta_star / root, W0=start.W0, X=now.X * root, X2=now.X2 * root) for now in draws
    ]
    found = np.array([[step(now) for now in colored] for step in steps])  # (steps, redraws, d)
    teachers = np.array([now.beta_star for now in colored])
    cosines = np.sum(found * teachers, axis=-1) / np.linalg.norm(found, axis=-1) / np.linalg.norm(teachers, axis=-1)
    units = found * root / np.linalg.norm(found * root, axis=-1, keepdims=True)
    each = zip(draws, units.swapaxes(0, 1), strict=True)
    losses = [[fit(now), *(fit(now, unit) for unit in directions)] for now, directions in each]
    controls = np.mean([variates(p, now, now.y2[:, None]) for now in draws], axis=0)
    train, test = np.mean(losses, axis=0).T
    return {"train": train, "test": test, "cosine": cosines.mean(1), "variates": controls}


def _redraw(p, white, root, rng):
    """All but W0 and X̃ anew, in white coordinates g = Σ^{-1/2}x, where the teacher is Σ^{1/2}β⋆ of norm 1."""
    teacher = root * rng.standard_normal(p.d)
    teacher /= np.linalg.norm(teacher)
    a = readout(p, rng)
    X, y = sample(p, teacher, rng, size=p.first_samples)
    y2 = p.target(white.X2 @ teacher) + p.noise * rng.standard_normal(p.n)
    return Draw(teacher, white.W0, a, X, y, white.X2, y2)


class _Fit(NamedTuple):
    """(training loss, test error) of one draw, without a spike or with one along a unit vector; see the module."""

    p: Problem
    F0: np.ndarray
    factor: tuple
    K: np.ndarray  # E σ(W0x)σ(W0x)ᵀ

    def __call__(self, now, unit=None):
        p, norms = self.p, np.linalg.norm(now.W0, axis=1)
        with_label = averages.cross(p.student, p.target, norms, now.W0 @ now.beta_star / norms)
        b, c, cross = self._solve(self.F0.T @ now.y2), 0.0, self.F0.T @ now.y2
        rest = now.y2 @ now.y2
        if unit is not None:  # min over b ⟂ a and c of ‖y - F0 b - cz‖² + λn‖b‖²; c and the multiplier by Schur
            z = now.X2 @ unit
            side = np.column_stack([self.F0.T @ z, now.a])
            behind = self._solve(side)
            schur = np.diag([z @ z, 0.0]) - side.T @ behind
            multipliers = np.linalg.solve(schur, np.array([z @ now.y2, 0.0]) - side.T @ b)
            b, c = b - behind @ multipliers, multipliers[0]
            rest -= c * (z @ now.y2)
        train = (rest - cross @ b) / p.n
        test = b @ self.K @ b - 2 * with_label @ b + p.label_power
        if unit is not None:
            mixed = averages.cross(p.student, Polynomial([0.0, 1.0]), norms, now.W0 @ unit / norms)
            test += c * (2 * mixed @ b + c - 2 * p.target.linear * (now.beta_star @ unit))
        return train, test

    def _solve(self, right):
        return cho_solve(self.factor, right, check_finite=False)
