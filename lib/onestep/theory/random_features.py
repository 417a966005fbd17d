"""The untrained network in the limit: effective ridge, the traces m1 and m2, and the losses of random features.

Everything runs on the effective ridge ν of the random features: with C = c_1² W0ΣW0ᵀ + c_{>1}² I the covariance of a
row of F0 given W0, Σ that of the inputs with eigenvalues s_j of mean 1, and df(ν) = tr C(C + ν)⁻¹ / n,

    λ = ν (1 - df(ν)),   (F0F0ᵀ + λnI)⁻¹ ≃ I/(nν) on directions independent of X̃.

The features leave the share T_j of a linear signal along eigendirection j,

    T_j = 1/(1 + (N/d) c_1² q s_j),   1/q = ν + c_{>1}² + (c_1²/d) Σ_j s_j T_j,   df = (N/n)(1 - νq),

and for Σ = I  m1 = (φ/ψ)/ν,  m2 = (φ/ψ) T/ν.

Losses are written as λ J with J = ỹᵀ(FFᵀ + λnI)⁻¹ỹ a function of ν; test errors follow by generalised
cross-validation, L_te = -ν² (∂J/∂ν) (dν/dλ), exact in the limit because rows of F are i.i.d. given W.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..problem import Problem, as_problem

IMAGINARY = 1e-30  # complex step: derivatives exact to rounding, since nothing is subtracted


@dataclass(frozen=True)
class Traces:
    """m1, m2 of the slides, with what they are made of.

    nu : effective ridge ν.  T : share of a linear signal that the features leave unexplained, in (0, 1].
    dnu, dT : dν/dλ and dT/dν.  df : tr C(C + ν)⁻¹/n.
    """

    m1: float
    m2: float
    nu: float
    T: float
    dnu: float
    dT: float
    df: float

    @property
    def dm1(self):
        """∂m1/∂λ < 0."""
        return -self.m1 / self.nu * self.dnu

    @property
    def dm2(self):
        """∂m2/∂λ < 0."""
        return self.m1 * (self.dT - self.T / self.nu) * self.dnu


@dataclass(frozen=True)
class Losses:
    """Training loss (penalty included) and test error (label noise included)."""

    train: np.ndarray | float
    test: np.ndarray | float


def traces(p: Problem) -> Traces:
    """Limits m1 = (φ/ψ) tr(F0F0ᵀ + λnI)⁻¹ and m2 = (φ/ψ) tr(X̃ᵀ(F0F0ᵀ + λnI)⁻¹X̃)/d.

    They solve the slides' fixed-point system (Pennington & Worah 2017; Adlam & Pennington 2020), which is reduced to
    ν - λ - ν df(ν) = 0 (see `solved`). ArithmeticError where rounding spoils it (N/d above 1e8).

    Parameters
    ----------
    p : the `Problem`.
    """
    as_problem(p)
    at, dnu, _ = solved(p.phi, p.psi, p.ridge, p.student.linear, p.student.tail)
    (df, _), (T, dT) = split(at.df), split(at.T)
    nu = at.nu.real
    m1 = (p.phi / p.psi) / nu
    return Traces(m1, m1 * T, nu, T, dnu, dT, df)


def untrained_limit(p: Problem) -> Losses:
    """Limits of L_tr(F0) and L_te(F0): the random-features model of Mei and Montanari (2022)."""
    t = traces(p)
    linear, rest = p.target.linear**2, best_linear(p)
    level = linear * t.T + rest
    return Losses(p.ridge * level / t.nu, float((level - t.nu * linear * t.dT) * t.dnu))


class Response(NamedTuple):
    """ν, T(ν) and df(ν), complex where a derivative is taken; T has the shape of the eigenvalues s."""

    nu: complex
    T: complex | np.ndarray
    df: complex


def response(nu, phi, psi, c1, tail, s=1.0):
    """The `Response` at nu = ν; 1/q solves a concave equation, by Newton's iteration from above.

    phi, psi, c1, tail : d/n, d/N, c_1 and c_{>1}² of a Problem.
    s : 1 for isotropic inputs, or the eigenvalues (m,) of their covariance, with mean 1.
    """
    strength, base = c1**2, nu + tail
    inverse = base + strength
    for _ in range(100):
        T = inverse / (inverse + strength / psi * s)
        slope = strength * np.mean(s * T * (1 - T)) / inverse
        step = (inverse - base - strength * np.mean(s * T)) / (1 - slope)
        inverse = inverse - step
        if abs(step) < 1e-15 * abs(inverse):
            break
    T = inverse / (inverse + strength / psi * s)
    df = phi / psi * (tail + strength * np.mean(s * T)) / inverse  # 1 - ν/inverse, not cancelled
    return Response(nu, T, df)


def solved(phi, psi, ridge, c1, tail, s=1.0):
    """The `Response` at ν + i·IMAGINARY with ridge = λ = ν (1 - df(ν)), dν/dλ, and the residual relative to ν.

    phi, psi, c1, tail, s : as in `response`.

    ν - λ - ν df(ν) is convex and increases at its only root above λ, so that Newton's iteration from the upper bound
    λ + tr C/n descends to that root and no other. Raises ArithmeticError if the residual exceeds 1e-12.
    """
    nu = ridge + phi / psi * (c1**2 + tail)
    for _ in range(500):
        at = response(nu + 1j * IMAGINARY, phi, psi, c1, tail, s)
        df, ddf = split(at.df)
        step = (nu - ridge - nu * df) / (1 - df - nu * ddf)
        if not step > 1e-15 * nu:
            break
        nu -= step
    residual = abs(nu - ridge - nu * df) / nu
    if not (nu >= ridge * (1 - 1e-12) and residual < 1e-12):
        raise ArithmeticError(f"the effective ridge did not converge: residual {residual:.1e} at λ = {ridge:g}")
    return at, 1 / (1 - df - nu * ddf), residual


def split(value):
    """(value, derivative in ν) of a quantity whose value at ν + i·IMAGINARY is given."""
    return value.real, value.imag / IMAGINARY


def best_linear(p: Problem):
    """Error of the best linear predictor, c⋆² - c⋆1² + σ_ε²: what no linear method beats with any amount of data."""
    return as_problem(p).target.tail + p.noise**2


def common_part(p, at):
    """Strength ‖δ‖²(1 - τ)/ν of F0's rank-one part against the rest, ‖δ‖² = 2c_2²/ψ (see `spectra.feature_spikes`)."""
    return 2 * p.student.coefficients(2)[2] ** 2 / p.psi * (1 - p.psi / p.phi * at.df) / at.nu
