"""Gaussian inputs of any covariance Σ: the first stair of a step along any direction (theory alone).

A step along b, whatever b is made of, adds the feature X̃b, and once its spike is strong the ridge fit uses it freely.
With θ = c⋆1 β⋆ the linear part of the teacher and A = ΣT/ν, in the eigenbasis of Σ (see `random_features`), the losses
fall by

    Δ_1 = λJ,   J = ⟨θ, b⟩_A²/⟨b, b⟩_A,   Λ_1 = -ν² (∂J/∂ν) (dν/dλ):

they ask how well b estimates θ. Of b enters the law b_j = k(s_j) θ_j + √(v(s_j)/d) g_j, g_j ~ N(0, 1), alone, so that
J = (c⋆1² ⟨sTk⟩)²/⟨sT (c⋆1² k² + v)⟩/ν, ⟨·⟩ the mean over the eigenvalues. Notebook 26 has k and v of several steps.

Source: this project. For Σ = I these are the formulas of `staircase`.
"""

from __future__ import annotations

import numpy as np

from ..checks import floats
from ..problem import Problem
from .random_features import Losses, solved, split


def first_gain(p: Problem, spectrum, law=None) -> Losses:
    """Plateaus Δ_1 and Λ_1, by which the losses have fallen once one spike stands out (0 < α < 1/4 as n → ∞).

    spectrum : (m,), eigenvalues of Σ, > 0 with mean 1.   law : signal k (m,) and noise v (m,) of the step's direction;
    None for plain gradient descent, k = s and v = φ E y² s with the φ of the step's own sample.
    """
    if p.initial_output != "negligible":
        raise ValueError(f'initial_output = {p.initial_output!r}: must be "negligible" with inputs of any covariance')
    s = floats(spectrum)
    if s.ndim != 1 or s.size == 0 or not np.all(s > 0) or abs(s.mean() - 1) > 1e-9:
        raise ValueError(f"spectrum = {spectrum!r:.60}: must be a list of numbers > 0 with mean 1")
    k, v = (s, p.step_phi * p.label_power * s) if law is None else law
    if np.shape(k) != s.shape or np.shape(v) != s.shape:
        raise ValueError(f"law of shapes {np.shape(k)} and {np.shape(v)}: must be of {len(s)} eigenvalues each")
    at, dnu, _ = solved(p.phi, p.psi, p.ridge, p.student.linear, p.student.tail, s)
    linear, sT = p.target.linear**2, s * at.T
    J, dJ = split((linear * np.mean(sT * k)) ** 2 / np.mean(sT * (linear * k**2 + v)) / at.nu)
    return Losses(float(p.ridge * J), float(-(at.nu.real**2) * dJ * dnu))
