"""Gaussian inputs of any covariance Σ: the untrained network, and the first stair of a step with any preconditioner.

x = Σ^{1/2} g, with eigenvalues s_j of mean 1. The features see an eigendirection as strongly as its s_j says and leave
the share T_j of a linear signal along it:

    T_j = 1/(1 + (N/d) c_1² q s_j),   1/q = ν + c_{>1}² + (c_1²/d) Σ_j s_j T_j,   λ = ν (1 - df),   df = (N/n)(1 - νq).

A step along b, whatever b is made of, adds the feature X̃b, and once its spike is strong the ridge fit uses it freely.
With θ = c⋆1 β⋆ the linear part of the teacher and A = ΣT/ν, in the eigenbasis of Σ, the first stair is

    Δ_1 = λJ,   J = ⟨θ, b⟩_A²/⟨b, b⟩_A = ‖θ‖_A² - min_t ‖θ - tb‖_A²,   Λ_1 = -ν² (∂J/∂ν) (dν/dλ):

it asks how well b estimates θ. `Direction` states what enters, b_j = k(s_j) θ_j + √(v(s_j)/d) g_j with g_j ~ N(0, 1),
so that J = (c⋆1² ⟨sTk⟩)²/⟨sT (c⋆1² k² + v)⟩/ν, ⟨·⟩ the mean over the eigenvalues. A step's n and φ are those of its
own sample, `Problem.step_phi`.

Best directions. A' = -∂A/∂ν >= 0 (forms of a resolvent decrease in λ), and -∂J/∂ν = ‖θ‖_A'² - ‖θ - tb‖_A'² with the t
that is best for A. So if t = 1 for every diagonal metric, and b is the nearest to θ in every one, b is best for Δ_1 and
Λ_1 at once, at every λ, N and activation. That is so for (Σ + δI)⁻¹Xᵀy/n, δ = φ E y²/c⋆1², among the P(Σ)Xᵀy/n
(k = s/(s + δ) minimises c⋆1² (1 - k)² + v for each s), and for the ridge estimate (Σ̂ + δI)⁻¹Xᵀy/n, Σ̂ = XᵀX/n,
δ = φ(E y² - c⋆1²)/c⋆1², among all estimates linear in y: it is the posterior mean of θ.

Source: this project. For Σ = I these are the formulas of `random_features` and `staircase`; the ridge estimate's
deterministic equivalents are those of Dobriban & Wager (2018). Zhang, Moniri et al. (ICML 2025) ask the question.
"""

from __future__ import annotations

from math import pi
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from ..checks import choice, floats, number
from ..problem import Problem
from .random_features import Losses, Response, best_linear, effective_ridge, split


class Direction(NamedTuple):
    """The law of a step's direction b given θ = c⋆1 β⋆, in the eigenbasis of Σ: b_j = k(s_j) θ_j + √(v(s_j)/d) g_j.

    signal : k at each eigenvalue, (m,).   noise : v at each eigenvalue, (m,), >= 0.
    """

    signal: np.ndarray
    noise: np.ndarray


class Damping(NamedTuple):
    """Best δ of (Σ + δI)⁻¹ and of (Σ̂ + δI)⁻¹, Σ̂ the step's own sample covariance."""

    population: float
    sample: float


def untrained(p: Problem, spectrum=(1.0,)) -> Losses:
    """Limits of L_tr(F0) and L_te(F0) for inputs whose covariance has these eigenvalues; `theory.untrained_limit`.

    By default inputs are isotropic: the random-features model of Mei and Montanari (2022).
    """
    s = _spectrum(spectrum)
    at, dnu = _solved(p, s)
    return _losses(p, at.nu, dnu, (p.target.linear**2 * np.mean(s * at.T) + best_linear(p)) / at.nu)


def first_gain(p: Problem, spectrum, direction: Direction | None = None) -> Losses:
    """Plateaus Δ_1 and Λ_1, by which the losses have fallen once one spike stands out (0 < α < 1/4 as n → ∞).

    direction : what the step learns, from a function below and the same spectrum; None is the plain gradient step..
    """
    s, (k, v) = _step(p, spectrum, direction)
    (at, dnu), linear = _solved(p, s), p.target.linear**2
    sT = s * at.T
    return _losses(p, at.nu, dnu, (linear * np.mean(sT * k)) ** 2 / np.mean(sT * (linear * k**2 + v)) / at.nu)


def cosine(p: Problem, spectrum, direction: Direction | None = None):
    """Limit of the cosine between the step's direction b and β⋆.

    p, spectrum, direction : As in `first_gain`, with its errors.
    """
    _, (k, v) = _step(p, spectrum, direction)
    c = p.target.linear
    return float(c * np.mean(k) / np.sqrt(np.mean(c**2 * k**2 + v)))


def population(p: Problem, spectrum, preconditioner=None) -> Direction:
    """The step along P(Σ)Xᵀy/n: k = sP, v = φ E y² sP².

    preconditioner : (m,) values P(s_j) >= 0, not all 0, at the eigenvalues; None for P = I, plain gradient descent..
    """
    s = _spectrum(spectrum)
    P = np.ones_like(s) if preconditioner is None else _preconditioner(preconditioner, s)
    return Direction(s * P, p.step_phi * p.label_power * s * P**2)


def sample_covariance(p: Problem, spectrum, damping) -> Direction:
    """The step along (Σ̂ + δI)⁻¹Xᵀy/n with Σ̂ = XᵀX/n of the step's own sample: ridge regression of y on X.

    With κ = δ + κφ⟨s/(s + κ)⟩ and R = (c⋆1² κ² ⟨s/(s + κ)²⟩ + E y² - c⋆1²)/(1 - φ⟨s²/(s + κ)²⟩), its test error:
    k = s/(s + κ), v = φR s/(s + κ)².

    damping : δ > 0; also 0 if d < n..
    """
    s, damping = _spectrum(spectrum), number("damping", damping, least=0)
    if damping == 0 and p.step_phi >= 1:
        raise ValueError(f"damping = 0: must be > 0 with d = {p.d} inputs and {p.first_samples} samples: Σ̂ is singular")
    phi, kappa = p.step_phi, 0.0
    if damping > 0:
        kappa = brentq(lambda x: x * (1 - phi * np.mean(s / (s + x))) - damping, damping, damping + phi, xtol=1e-14)
    linear, left = p.target.linear**2, s / (s + kappa) ** 2
    error = (linear * kappa**2 * np.mean(left) + p.label_power - linear) / (1 - phi * np.mean(s * left))
    return Direction(s / (s + kappa), phi * error * left)


def signs(p: Problem, spectrum, *, basis="eigenbasis") -> Direction:
    """The step along sign(G), the first step of Adam without its ε: entry by entry, so that it depends on the basis.

    √d G_ij/a_i is N(c_1 √d β_j, φ E y² s_j Var σ') given β = Xᵀy/n, hence the mean of sign(a_i G_ij) over neurons is
    h(√dβ_j), h(x) = 2Φ(κx) - 1 with κ = c_1/√(φ E y² s Var σ'); k and v follow from Gaussian averages of h.

    basis : "eigenbasis" if the entries are those in the eigenbasis of Σ, "random" if in one independent of it..
    """
    choice("basis", basis, ("eigenbasis", "random"))
    if p.student.tail == 0:
        raise ValueError(f"activation = {p.activation!r}: is linear, so that entries of the gradient have no noise")
    s, noise = _spectrum(spectrum), p.step_phi * p.label_power
    square = p.target.linear**2 * s**2 + noise * s  # d E β_j²
    variance, power = (s, square) if basis == "eigenbasis" else (1.0, np.mean(square))
    kappa2 = p.student.linear**2 / (noise * variance * (p.student.slope_second_moment - p.student.linear**2))
    slope = np.sqrt(2 / pi * kappa2 / (1 + kappa2 * power))  # E h'
    second = 2 / pi * np.arcsin(kappa2 * power / (1 + kappa2 * power))  # E h²
    return Direction(slope * s, slope**2 * noise * s + second - slope**2 * power)


def best_damping(p: Problem) -> Damping:
    """The dampings that are best for Δ_1, Λ_1 and the cosine, at every λ, N, activation and spectrum.

    φ E y²/c⋆1² and φ (E y² - c⋆1²)/c⋆1²; infinite for a teacher without a linear part.
    """
    linear, ratio = p.target.linear**2, np.inf
    if linear > 0:
        ratio = p.step_phi * p.label_power / linear
    return Damping(float(ratio), float(ratio - p.step_phi))


def _step(p, spectrum, direction):
    if p.initial_output != "negligible":
        raise ValueError(f'initial_output = {p.initial_output!r}: must be "negligible" with inputs of any covariance')
    s = _spectrum(spectrum)
    direction = population(p, s) if direction is None else direction
    if any(np.shape(part) != s.shape for part in direction):
        raise ValueError(f"direction of {len(direction[0])} eigenvalues: must be of as many as spectrum, {len(s)}")
    return s, direction


def _losses(p, nu, dnu, complex_J):
    J, dJ = split(complex_J)
    return Losses(float(p.ridge * J), float(-(nu.real**2) * dJ * dnu))


def _solved(p, s):
    """The `Response` at the root of λ = ν (1 - df), and dν/dλ."""
    start = p.ridge + p.phi / p.psi * (p.student.linear**2 + p.student.tail)
    return effective_ridge(lambda nu: _response(p, s, nu), p.ridge, start)[:2]


def _response(p, s, nu):
    """The `Response` at ν; 1/q solves a concave equation, by Newton's iteration from above."""
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
    df = p.phi / p.psi * (p.student.tail + strength * np.mean(s * T)) / inverse  # 1 - ν/inverse, not cancelled
    return Response(nu, T, df)


def _spectrum(values):
    s = floats(values)
    if s.ndim != 1 or s.size == 0 or not np.all(s > 0) or abs(s.mean() - 1) > 1e-9:
        raise ValueError(f"spectrum = {values!r:.60}: must be a list of numbers > 0 with mean 1")
    return s


def _preconditioner(values, s):
    P = floats(values)
    if P.shape != s.shape or not np.all(np.isfinite(P) & (P >= 0)) or not np.any(P > 0):
        raise ValueError(f"preconditioner = {values!r:.60}: must be {len(s)} eigenvalues >= 0, not all of them 0")
    return P
