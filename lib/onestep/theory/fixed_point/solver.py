"""Solving the fixed point: quadrature fine enough, Anderson iteration, and the losses from one implicit derivative."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import factorial, sqrt
from typing import NamedTuple

import numpy as np
from scipy.sparse.linalg import LinearOperator, gmres

from ... import checks
from ...hermite import Polynomial
from ...problem import Problem, as_problem
from .. import quadrature
from ..random_features import IMAGINARY
from . import equations
from .first_batch import FirstBatch, first_batch
from .nodes import features as equivalent_features
from .nodes import fluctuation
from .units import ANISOTROPIC, STEP_NOISE

_TOLERANCE = 1e-9  # on the fixed point's residual (relative changes of κ and q, absolute of the self-energy)
_QUADRATURE = 1e-4  # relative change of either loss when the quadrature is refined by half; typically ten times less
_ITERATIONS, _MEMORY = 300, 8  # of Anderson's method: the most, and the differences that it keeps
_ORDERS = (12, 18, 27, 40, 60, 90, 135)
HEAVIEST = 20  # spike weights c_1 η √(D/N) beyond which quadrature takes minutes, if activations oscillate from 10
WIDEST = 1e26  # units: rounding of m_0 weighs √N, and from here on it would look like a feature
FEWEST = 8  # inputs: below, degrees beyond 3 are learned too


def family(p, *, step_noise="correlated", order=_ORDERS[0]):
    """The `Family` of equivalent features of p on `order` quadrature nodes.   step_noise : one of `STEP_NOISE`."""
    as_problem(p)
    checks.choice("step_noise", step_noise, STEP_NOISE)
    c_1, _, c_3 = p.student.coefficients(3)[1:]
    if c_1 == 0:
        raise ValueError(f"activation = {p.activation!r}: c_1 = 0, but without it the step makes no spike")
    if p.d < FEWEST:
        raise ValueError(f'd = {p.d}: must be at least {FEWEST} here; method="spiked" has no such limit')
    if p.N > WIDEST:
        raise ValueError(f'N = {p.N:.3g}: must be at most {WIDEST:g} here; method="spiked" has no such limit')
    return Family(p, first_batch(p, p.step_phi, order, 3 * c_3 / c_1 * (step_noise in ANISOTROPIC)), step_noise, order)


def resolved(p, eta, step_noise="correlated"):
    """The `Family` on the coarsest quadrature whose losses at the step eta agree with the next one's, `Solved` there.

    eta : the largest step asked for, which needs the finest quadrature.
    """
    coarse, before = None, np.inf
    for order in _ORDERS:
        fine = family(p, step_noise=step_noise, order=order)
        if (weight := eta * fine.strength) > HEAVIEST:
            raise ValueError(
                f"eta = {eta:g}: makes spike weights c_1 η √(D/N) = {weight:.3g}; quadrature resolves them up to "
                f"{HEAVIEST}, here for eta <= {eta * HEAVIEST / weight:.4g} (√n = {sqrt(p.n):.4g})"
            )
        solved = fine.evaluate(eta)
        if (change := np.max(np.abs(solved.losses / before - 1))) < _QUADRATURE:
            return coarse
        coarse, before = (fine, solved), solved.losses
    raise ArithmeticError(
        f"the losses at eta = {eta:g} still change by {change:.1e}, more than {_QUADRATURE:g}, at {order} quadrature "
        f"nodes; a smaller eta (√n is {sqrt(p.n):.4g}) or larger n and N need fewer: {p}"
    )


class Solved(NamedTuple):
    """The solved fixed point at one step.   losses : (2,) L_tr and L_te.   residual : of the equations."""

    losses: np.ndarray
    residual: float
    features: equivalent_features
    state: np.ndarray

    @property
    def solution(self):
        """The `Solution`, to start from at another step size."""
        return self.features.solution(self.state)

    @property
    def fluctuations(self):
        """(2,), what the standard deviations of both losses are proportional to (`nodes.fluctuation`)."""
        of_q, of_kappa = fluctuation(self.features, self.solution)
        return np.array([of_kappa, of_q + of_kappa])


@dataclass(frozen=True)
class Family:
    """Equivalent features of one problem at every step size, on the same nodes.   batch : the mean first batch."""

    p: Problem
    batch: FirstBatch
    step_noise: str
    order: int

    @property
    def strength(self):
        """Root mean square over units of the spike u, over η."""
        return abs(self.p.student.linear) * sqrt(self.batch.D / self.p.N)

    def features(self, eta):
        """`nodes.Features` at step eta."""
        return equivalent_features(self.p, eta, self.batch, self.p.readout_values, self.step_noise, self.order)

    def evaluate(self, eta, solution=None) -> Solved:
        """`Solved` at step eta, iterated from the `Solution` at another step if one is given."""
        features = self.features(eta)
        state, residual = self.solve(features, eta, solution)
        return Solved(losses_at(features, state), residual, features, state)

    def solve(self, features, eta, solution=None):
        """(packed state, residual) of the fixed point of features, those at step eta.

        Iterated from `solution`, else from zero, else from the solution at half the step, at η = 0 at a larger ridge.
        """
        for start in (solution, None) if solution is not None else (None,):
            state, residual = iterate(features, start)
            if residual < _TOLERANCE:
                return state, residual
        easier, near = (self, eta / 2) if eta > 1e-6 else (replace(self, p=self.p.replace(ridge=2 * self.p.ridge)), 0.0)
        if easier.p.ridge > 1e3 * (1 + self.p.student.second_moment):
            raise ArithmeticError(f"the fixed point did not converge at eta = {eta:g} ({residual:.1e}): {self.p}")
        there = easier.features(near)
        return self.solve(features, eta, there.solution(easier.solve(there, near)[0]))


def losses_at(features, state):
    """L_tr, eq. (36), and L_te, eq. (38), its derivative in the direction ω̇ = (1 + κ)² of sample weights; (2,)."""
    # x = U(x, ω) gives (1 - ∂U/∂x) ẋ = (∂U/∂ω) ω̇; both products are taken by complex steps
    omega = 1 + 1j * IMAGINARY * (1 + features.solution(state).kappa) ** 2

    def tangent(dx):
        return dx - equations.update(features, state + 1j * IMAGINARY * dx, 1.0).imag / IMAGINARY

    forcing = equations.update(features, state, omega).imag / IMAGINARY
    operator = LinearOperator((state.size, state.size), tangent, dtype=float)
    response, failed = gmres(operator, forcing, rtol=1e-5, restart=100, maxiter=3)
    if failed:
        raise ArithmeticError(f"the linear response of the fixed point did not converge: {features.p}")
    moved = equations.training_loss(features, state + 1j * IMAGINARY * response, omega)
    return np.array([moved.real, moved.imag / IMAGINARY])


def learned_at(features, state, degree):
    """b_degree of the fit on the equivalent features, eq. (40)."""
    p, batch = features.p, features.batch
    function = Polynomial(np.eye(degree + 1)[degree])
    hermite, _ = quadrature.expand(function, batch.cosine[0] * features.z, batch.away * features.chi, p.d - 1)
    half_delta = 0.5j * IMAGINARY  # so that the derivative in δ comes with the factor 1/2 of eq. (40)
    moved = replace(features, label=features.label + half_delta * (1 + features.solution(state).kappa) * hermite)
    half_slope = equations.training_loss(moved, state, 1.0).imag / IMAGINARY
    return (np.sum(features.label * hermite, axis=0) @ features.pz - half_slope) / factorial(degree)


def iterate(features, solution=None):
    """Anderson iteration of the fixed-point map U from `solution`; returns the packed state x and max |U(x) - x|.

    With the differences ΔX of the last states, and ΔS of their steps s = U(x) - x, the next state is
    x + s - (ΔX + ΔS) γ, where γ minimises ‖s - ΔS γ‖ (Walker & Ni 2011).
    """
    x, past = features.start(solution), []
    for _ in range(_ITERATIONS):
        try:
            with np.errstate(all="ignore"):
                step = equations.update(features, x, 1.0) - x
        except np.linalg.LinAlgError:
            return x, np.inf
        residual = np.max(np.abs(step))
        if not np.isfinite(residual) or residual < _TOLERANCE:
            break
        past = [*past[-_MEMORY:], (x, step)]
        x = x + step
        if len(past) > 3:
            states, steps = (np.array(column) for column in zip(*past, strict=True))
            dx, ds = np.diff(states, axis=0).T, np.diff(steps, axis=0).T
            x = x - (dx + ds) @ np.linalg.lstsq(ds, step, rcond=1e-12)[0]
    return x, residual
