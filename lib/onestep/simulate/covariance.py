"""Inputs of any covariance, simulated: the untrained network, and the first stair of a step along any direction.

The step's spike is of infinite strength, as in `staircase`: features F0 without their part along a, and X̃b free of the
penalty. W0 is rotation invariant, so that Σ may be taken as diagonal.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..checks import whole
from ..problem import Problem
from .control_variates import variates
from .network import Draw, draw, readout, sample
from .replicates import replicated
from .staircase import LimitFits


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
    fits = LimitFits(p, white)
    draws = [_redraw(p, white, root, rng) for _ in range(whole("redraws", redraws, 1))]
    colored = [
        replace(now, beta_star=now.beta_star / root, W0=start.W0, X=now.X * root, X2=now.X2 * root) for now in draws
    ]
    found = np.array([[step(now) for now in colored] for step in steps])  # (steps, redraws, d)
    teachers = np.array([now.beta_star for now in colored])
    cosines = np.sum(found * teachers, axis=-1) / np.linalg.norm(found, axis=-1) / np.linalg.norm(teachers, axis=-1)
    units = found * root / np.linalg.norm(found * root, axis=-1, keepdims=True)
    losses = [fits.losses(draws, units[0], [0]), *(fits.losses(draws, unit, [1]) for unit in units)]
    controls = np.mean([variates(p, now, now.y2[:, None]) for now in draws], axis=0)
    train, test = np.concatenate(losses, axis=1).mean(0).T
    return {"train": train, "test": test, "cosine": cosines.mean(1), "variates": controls}


def _redraw(p, white, root, rng):
    """All but W0 and X̃ anew, in white coordinates g = Σ^{-1/2}x, where the teacher is Σ^{1/2}β⋆ of norm 1."""
    teacher = root * rng.standard_normal(p.d)
    teacher /= np.linalg.norm(teacher)
    a = readout(p, rng)
    X, y = sample(p, teacher, rng, size=p.first_samples)
    y2 = p.target(white.X2 @ teacher) + p.noise * rng.standard_normal(p.n)
    return Draw(teacher, white.W0, a, X, y, white.X2, y2)
