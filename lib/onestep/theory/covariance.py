"""Gaussian inputs of any covariance Σ: the untrained network and the first stair, in the limit.

x = Σ^{1/2} g, with eigenvalues s_j of mean 1. The features see an eigendirection as strongly as its s_j says and leave
the share T_j of a linear signal along it:

    T_j = 1/(1 + (N/d) c_1² q s_j),   1/q = ν + c_{>1}² + (c_1²/d) Σ_j s_j T_j,   λ = ν (1 - df),   df = (N/n)(1 - νq).

A teacher of uniform direction has t_1 of its linear part left, t_k = (1/d) Σ_j s_j^k T_j. The step learns β = Xᵀy/n,
which is c⋆1 Σβ⋆ and noise of covariance E y² Σ/n. So it leans towards the directions of large variance, which untrained
features learn best: the forms of z = X̃β with itself and with the label are φ E y² t_2 + c⋆1² t_3 and c⋆1² t_2.

Source: this project; for Σ = I these are the formulas of `random_features` and `staircase`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..problem import Problem
from .random_features import IMAGINARY, Losses, best_linear, split


class _At(NamedTuple):
    """ν (complex, for derivatives), (t_1, t_2, t_3) and df there; dν/dλ."""

    nu: complex
    left: np.ndarray
    df: complex
    dnu: float


def untrained(p: Problem, spectrum) -> Losses:
    """Limits of L_tr(F0) and L_te(F0) for inputs whose covariance has these eigenvalues.

    spectrum : (m,) numbers > 0 with mean 1, of which only the distribution counts: m need not be p.d.

    The teacher's direction is uniform, so that β⋆ᵀx has variance 1 in the limit. Raises ValueError for a bad spectrum.
    """
    at = _solved(p, _spectrum(spectrum))
    return _losses(p, at, (p.target.linear**2 * at.left[0] + best_linear(p)) / at.nu)


def first_gain(p: Problem, spectrum) -> Losses:
    """Plateaus Δ_1 and Λ_1, by which the losses have fallen once one spike stands out (0 < α < 1/4 as n → ∞).

    p : with a negligible initial output.   spectrum : as for `untrained`.   Raises ValueError for others.
    """
    if p.initial_output != "negligible":
        raise ValueError(f'initial_output = {p.initial_output!r}: must be "negligible" with inputs of any covariance')
    at, linear = _solved(p, _spectrum(spectrum)), p.target.linear**2
    _, two, three = at.left
    return _losses(p, at, (linear * two) ** 2 / (p.phi * p.label_power * two + linear * three) / at.nu)


def _losses(p, at, complex_J):
    J, dJ = split(complex_J)
    return Losses(float(p.ridge * J), float(-(at.nu.real**2) * dJ * at.dnu))


def _solved(p, s):
    """`_At` the root of λ = ν (1 - df), by Newton's iteration as in `traces`."""
    nu = p.ridge + p.phi / p.psi * (p.student.linear**2 + p.student.tail)
    for _ in range(500):
        left, df = _response(p, s, nu + 1j * IMAGINARY)
        share, slope = split(df)
        step = (nu - p.ridge - nu * share) / (1 - share - nu * slope)
        if not step > 1e-15 * nu:
            break
        nu -= step
    residual = abs(nu - p.ridge - nu * share) / nu
    if not (nu >= p.ridge and residual < 1e-12):
        raise ArithmeticError(f"the effective ridge did not converge: residual {residual:.1e} for {p}")
    return _At(nu + 1j * IMAGINARY, left, df, 1 / (1 - share - nu * slope))


def _response(p, s, nu):
    """(t_1, t_2, t_3) and df at ν; 1/q solves a concave equation, by Newton's iteration from above."""
    strength, base = p.student.linear**2, nu + p.student.tail
    inverse = base + strength
    for _ in range(100):
        T = inverse / (inverse + strength / p.psi * s)
        slope = strength * np.mean(s * T * (1 - T)) / inverse
        step = (inverse - base - strength * np.mean(s * T)) / (1 - slope)
        inverse = inverse - step
        if abs(step) < 1e-15 * abs(inverse):
            break
    T = inverse / (inverse + strength / p.psi * s)
    return np.array([np.mean(s**k * T) for k in (1, 2, 3)]), p.phi / p.psi * (1 - nu / inverse)


def _spectrum(values):
    try:
        s = np.asarray(values, float)
    except (TypeError, ValueError):
        s = np.zeros(0)
    if s.ndim != 1 or s.size == 0 or not np.all(np.isfinite(s)) or not np.all(s > 0) or abs(s.mean() - 1) > 1e-9:
        raise ValueError(f"spectrum = {values!r:.60}: must be a list of numbers > 0 with mean 1")
    return s
