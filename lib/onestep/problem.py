"""`Problem`: one frozen description of an experiment, read by theory and simulation alike."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite, sqrt

import numpy as np

from . import hermite
from .checks import choice, floats, number, whole

FIRST_LAYERS = ("sphere", "gaussian")
INITIAL_OUTPUTS = ("negligible", "full")
_ZERO_MEAN = 1e-9  # c_0 allowed, relative to the root mean square: far above quadrature error, far below any effect


@dataclass(frozen=True)
class Problem:
    """Two-layer network f(x) = aᵀσ(Wx), one gradient step on W, then ridge regression on fresh data.

    Parameters
    ----------
    n, d, N : samples per stage, inputs, hidden units; whole numbers >= 1, in theory up to 1e300 or what the call says.
    ridge : λ > 0 in min_a ‖ỹ - Fa‖²/n + λ‖a‖².
    activation : σ with c_0 = 0: a name in `hermite.NAMED`, Hermite coefficients, a callable or a `hermite.Function`.
    teacher : σ⋆ with c⋆0 = 0, specified likewise; y = σ⋆(β⋆ᵀx) + ε with ‖β⋆‖ = 1.
    noise : σ_ε >= 0, the standard deviation of ε.
    first_layer : "sphere" (rows of W0 uniform on the unit sphere) or "gaussian" (entries N(0, 1/d)).
    initial_output : "negligible" (the gradient is taken at residual y: output scaled by 1/√N as in Ba et al. 2022,
        with the step scaled by √N) or "full" (residual y - σ(XW0ᵀ)a, as the slides' text reads).
    readout : law of √N a_i: "gaussian", or a list of equally likely values with mean square 1.
    step_samples : size of the sample that the gradient step uses; None for n, as many as the ridge regression has.

    Raises
    ------
    ValueError naming the field, its value and what is allowed.

    Source: Moniri, Lee, Hassani, Dobriban (ICML 2024), section "One gradient step".
    """

    n: int
    d: int
    N: int
    ridge: float = 0.01
    activation: str | tuple | Callable = "shifted_relu"
    teacher: str | tuple | Callable = (0.0, 1.0)
    noise: float = 0.0
    first_layer: str = "sphere"
    initial_output: str = "negligible"
    readout: str | tuple = "gaussian"
    step_samples: int | None = None

    def __post_init__(self):
        checked = {field: whole(field, getattr(self, field), 1) for field in ("n", "d", "N")}
        checked["ridge"] = number("ridge", self.ridge, above=0)
        checked["noise"] = number("noise", self.noise, least=0)
        choice("first_layer", self.first_layer, FIRST_LAYERS)
        choice("initial_output", self.initial_output, INITIAL_OUTPUTS)
        checked["readout"] = _readout(self.readout)
        if self.step_samples is not None:
            checked["step_samples"] = whole("step_samples", self.step_samples, 1)
        if checked["noise"] > 1e150:
            raise ValueError(f"noise = {self.noise!r}: must be at most 1e150, as its square enters")
        for field, value in checked.items():
            object.__setattr__(self, field, value)
        for field in ("activation", "teacher"):
            spec = getattr(self, field)
            if isinstance(spec, Sequence | np.ndarray) and not isinstance(spec, str):
                object.__setattr__(self, field, _coefficients(field, spec))
            expansion = hermite.function(getattr(self, field), field)
            spec = expansion.name or spec if callable(spec) else spec
            if expansion.fault:
                raise ValueError(f"{field} = {spec!r}: {expansion.fault}")
            if field == "activation" and expansion.jumps:
                raise ValueError(
                    f"activation = {spec!r}: jumps at {expansion.jumps[0]:g}, which a gradient step does not see"
                )
            if not isfinite(expansion.second_moment) or expansion.second_moment == 0:
                raise ValueError(f"{field} = {spec!r}: its Gaussian second moment must be finite and positive")
            if abs(expansion.mean) > _ZERO_MEAN * sqrt(expansion.second_moment):
                remedy = "let the first coefficient be 0"
                if not isinstance(expansion, hermite.Polynomial):
                    remedy = f"subtract {expansion.mean!r}, or use hermite.centred (--centre on the command line)"
                raise ValueError(f"{field} = {spec!r}: needs Gaussian mean c_0 = 0; {remedy}")

    def __getstate__(self):
        """The fields alone, so that a Problem travels to other processes: what is cached may hold functions."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    @cached_property
    def student(self):
        """σ as a `hermite.Function`."""
        return hermite.exact(hermite.function(self.activation))

    @cached_property
    def target(self):
        """σ⋆ as a `hermite.Function`."""
        return hermite.exact(hermite.function(self.teacher, "teacher"))

    @property
    def phi(self):
        """φ = d/n."""
        return self.d / self.n

    @property
    def psi(self):
        """ψ = d/N."""
        return self.d / self.N

    @property
    def first_samples(self):
        """Size of the sample that the gradient step uses."""
        return self.n if self.step_samples is None else self.step_samples

    @property
    def step_phi(self):
        """d over the size of the sample that the gradient step uses: φ unless `step_samples` says otherwise."""
        return self.d / self.first_samples

    @property
    def readout_values(self):
        """The values of √N a_i as a float array, or None for a Gaussian readout."""
        return None if self.readout == "gaussian" else np.array(self.readout)

    @property
    def label_power(self):
        """E y² = c⋆² + σ_ε²."""
        return self.target.second_moment + self.noise**2

    @property
    def D(self):
        """Limit of ‖β‖², β = Xᵀr/n with r the residual in the gradient.

        c⋆1² + φ(c⋆² + σ_ε²) for a negligible initial output; the full one adds c_1² + φ E σ². φ is `step_phi`.
        """
        D = self.target.linear**2 + self.step_phi * self.label_power
        if self.initial_output == "full":
            D += self.student.linear**2 + self.step_phi * self.student.second_moment
        return D

    @property
    def row_growth(self):
        """Limit of ‖e_i‖²/a_i², e_i the part of row i of the gradient other than c_1 a_i β: φ E r² Var σ'(g)."""
        power = self.label_power + (self.student.second_moment if self.initial_output == "full" else 0.0)
        return self.step_phi * power * (self.student.slope_second_moment - self.student.linear**2)

    @property
    def rho(self):
        """ρ = c⋆1/√D, the limiting cosine between β and β⋆."""
        return self.target.linear / sqrt(self.D)

    def replace(self, **changes):
        """The same problem with some fields changed (and validated again)."""
        unknown = set(changes) - {f.name for f in dataclasses.fields(self)}
        if unknown:
            raise ValueError(f"unknown field {', '.join(sorted(unknown))}: a Problem has n, d, N, ridge, activation, …")
        return dataclasses.replace(self, **changes)

    def scaled(self, n):
        """The same ratios φ, ψ at another n (d and N rounded to whole numbers)."""
        n = whole("n", n, 1)
        sizes = {"d": self.d, "N": self.N}
        if self.step_samples is not None:
            sizes["step_samples"] = self.step_samples
        return self.replace(n=n, **{field: max(1, _ratio(n, size, self.n)) for field, size in sizes.items()})


def as_problem(p, standard=False):
    """p, a `Problem`; with `standard`, one whose readout is Gaussian and whose step uses n samples."""
    if not isinstance(p, Problem):
        raise ValueError(f"p = {p!r:.60}: must be a Problem, as in Problem(n=1000, d=300, N=500)")
    if standard and (p.readout != "gaussian" or p.step_samples is not None):
        raise ValueError(
            f'readout = {p.readout!r:.40}, step_samples = {p.step_samples}: must be "gaussian" and None here; '
            "theory.losses(p, eta) covers others"
        )
    return p


def _readout(values):
    if isinstance(values, str) and values == "gaussian":
        return values
    out = floats(values)
    if out.ndim != 1 or out.size == 0 or not np.all(np.isfinite(out)) or abs(np.mean(out**2) - 1) > 1e-9:
        raise ValueError(f'readout = {values!r}: must be "gaussian" or a list of values of √N a_i with mean square 1')
    return tuple(out.tolist())


def _coefficients(field, spec):
    values = floats(spec)
    if values.ndim != 1 or np.any(np.isnan(values)):
        raise ValueError(f"{field} = {spec!r}: must be a list of Hermite coefficients, numbers")
    return tuple(values.tolist())


def _ratio(n, part, whole):
    return (2 * n * part + whole) // (2 * whole)  # n·part/whole rounded, exact for integers of any size
