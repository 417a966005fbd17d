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
from .nodes import Solution, fluctuation
from .nodes import features as equivalent_features
from .units import ANISOTROPIC, STEP_NOISE

_TOLERANCE = 1e-9  # on the fixed point's residual (relative changes of κ and q, absolute of the self-energy)
# Relative change of either loss allowed when the quadrature is refined by half; typically ten times less.
_QUADRATURE = 1e-4
_ITERATIONS, _MEMORY = 300, 8  # of Anderson's method: the most, and the differences that it keeps
_ORDERS = (12, 18, 27, 40, 60, 90, 135)
HEAVIEST = 20  # spike weights c_1 η √(D/N) beyond which quadrature takes minutes, if activations oscillate from 10
WIDEST = 1e26  # units: rounding of m_0 weighs √N, and from here on it would look like a feature
FEWEST = 8  # inputs: below, degrees beyond 3 are learned too


def family(p, *, step_noise="correlated", order=_ORDERS[0]):
    """The `Family` of equivalent features of p on `order` quadrature nodes; the other arguments as for `losses`.

    Parameters
    ----------
    p : Problem
    step_noise : str
        One of `STEP_NOISE`, as for `losses`.
    order : int, optional
        Number of nodes.
    """
    as_problem(p)
    checks.choice("step_noise", step_noise, STEP_NOISE)
    if p.student.coefficients(1)[1] == 0:
        raise ValueError(f"activation = {p.activation!r}: c_1 = 0, but without it the step makes no spike")
    if p.d < FEWEST:
        raise ValueError(f'd = {p.d}: must be at least {FEWEST} here; method="spiked" has no such limit')
    if p.N > WIDEST:
        raise ValueError(f'N = {p.N:.3g}: must be at most {WIDEST:g} here; method="spiked" has no such limit')
    c_1, _, c_3 = p.student.coefficients(3)[1:]
    tau = 3 * c_3 / c_1 * (step_noise in ANISOTROPIC)
    return Family(p, first_batch(p, p.step_phi, order, tau), step_noise, order)


def resolved(p, eta, step_noise="correlated"):
    """The `Family` on the coarsest quadrature whose losses at the step eta agree with the next one's, `Solved` there.

    eta : the largest step asked for, which needs the finest quadrature.
    """
    coarse = on_coarse = None
    for order in _ORDERS:
        fine = family(p, step_noise=step_noise, order=order)
        weight = eta * fine.strength
        if weight > HEAVIEST:
            raise ValueError(
                f"eta = {eta:g}: makes spike weights c_1 η √(D/N) = {weight:.3g}; quadrature resolves them up to "
                f"{HEAVIEST}, here for eta <= {eta * HEAVIEST / weight:.4g} (√n = {sqrt(p.n):.4g})"
            )
        on_fine = fine.evaluate(eta)
        if coarse is not None:
            change = np.max(np.abs(on_fine.losses / on_coarse.losses - 1))
            if change < _QUADRATURE:
                return coarse, on_coarse
        coarse, on_coarse = fine, on_fine
    raise ArithmeticError(
        f"the losses at eta = {eta:g} still change by {change:.1e}, more than {_QUADRATURE:g}, at {order} quadrature "
        f"nodes; a smaller eta (√n is {sqrt(p.n):.4g}) or larger n and N need fewer: {p}"
    )


class Solved(NamedTuple):
    """Losses at one step size, from the solved fixed point.

    losses : (2,), L_tr and L_te.  residual : of the fixed point.  fluctuations : (2,), what the standard deviations of
    both losses are proportional to (`nodes.fluctuation`).  solution : to start from at another step.
    """

    losses: np.ndarray
    residual: float
    fluctuations: np.ndarray
    solution: Solution


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

    def evaluate(self, eta, solution=None):
        """`Solved` at step eta, iterated from the `Solution` at another step if one is given."""
        features = self.features(eta)
        state, residual = self.solve(features, eta, solution)
        found = features.solution(state)
        of_q, of_kappa = fluctuation(features, found)
        fluctuations = np.array([of_kappa, of_q + of_kappa])
        return Solved(np.array(losses_at(features, state)), residual, fluctuations, found)

    def losses(self, eta, solution=None):
        """(L_tr, L_te) at step eta, without what else `evaluate` returns."""
        features = self.features(eta)
        return losses_at(features, self.solve(features, eta, solution)[0])

    def solve(self, features, eta, solution=None):
        """(packed state, residual) of the fixed point of features, those at step eta.

        Iterated from `solution`, else from zero, else by continuation from η = 0, the next step being eta or, where
        that fails, half as far. Raises ArithmeticError if 40 steps do not reach eta.
        """
        for start in (solution, None) if solution is not None else (None,):
            state, residual = iterate(features, start)
            if residual < _TOLERANCE:
                return state, residual
        reached, attempt, start = 0.0, 0.0, None
        for _ in range(40):
            here = features if attempt == eta else self.features(attempt)
            state, residual = iterate(here, start)
            if attempt == 0 and not residual < _TOLERANCE:
                state, residual = self.from_larger_ridge(here)
            if residual < _TOLERANCE and attempt == eta:
                return state, residual
            if residual < _TOLERANCE:
                reached, start = attempt, here.solution(state)
                attempt = eta
            else:
                attempt = (reached + attempt) / 2
        raise ArithmeticError(f"the fixed point did not converge at eta = {eta:g} (residual {residual:.1e}): {self.p}")

    def from_larger_ridge(self, features):
        """(packed state, residual) of the features at η = 0, iterated from the solution at a larger ridge."""
        state, residual = features.start(), np.inf
        for factor in (1.5, 5.0, 20.0):
            easier = replace(self, p=self.p.replace(ridge=factor * self.p.ridge)).features(0.0)
            near, residual = iterate(easier)
            if residual < _TOLERANCE:
                state, residual = iterate(features, easier.solution(near))
            if residual < _TOLERANCE:
                break
        return state, residual


def losses_at(features, state):
    """L_tr, eq. (36), and L_te, eq. (38): the derivative of L_tr in the direction ω̇ = (1 + κ)² of sample weights."""
    # x = U(x, ω) gives (1 - ∂U/∂x) ẋ = (∂U/∂ω) ω̇; both products are taken by complex steps
    omega_dot = 1j * IMAGINARY * (1 + features.solution(state).kappa) ** 2

    def tangent(dx):
        return dx - equations.update(features, state + 1j * IMAGINARY * dx, 1.0).imag / IMAGINARY

    forcing = equations.update(features, state, 1 + omega_dot).imag / IMAGINARY
    operator = LinearOperator((state.size, state.size), tangent, dtype=float)
    response, failed = gmres(operator, forcing, rtol=1e-5, restart=100, maxiter=3)
    if failed:
        raise ArithmeticError(f"the linear response of the fixed point did not converge: {features.p}")
    moved = equations.training_loss(features, state + 1j * IMAGINARY * response, 1 + omega_dot)
    return moved.real, moved.imag / IMAGINARY


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
