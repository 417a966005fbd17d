"""Solving the fixed point: quadrature fine enough, Anderson iteration, and the losses from one implicit derivative."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import factorial, sqrt
from typing import NamedTuple

import numpy as np
from scipy.sparse.linalg import LinearOperator, gmres

from ... import checks
from ...blas import one_thread
from ...hermite import Polynomial
from ...problem import Problem, as_problem
from .. import quadrature
from ..random_features import IMAGINARY
from . import equations
from .first_batch import FirstBatch, first_batch, spread
from .nodes import Features
from .nodes import features as equivalent_features
from .units import STEP_NOISE

_TOLERANCE = 1e-9  # on the fixed point's residual (relative changes of κ and q, absolute of the self-energy)
QUADRATURE = 1e-4  # relative change of either loss when the quadrature is refined by half; typically ten times less
_LENGTHS = 1e-3  # … and when inputs get one more length; what is left is about half of it at d = 10, less above
_ITERATIONS, _MEMORY = 300, 8  # of Anderson's method: the most, and the differences that it keeps
_ORDERS, _FEW = (12, 18, 27, 40, 60, 90, 135), tuple(range(2, 13))  # nodes of z and of units; of the inputs' lengths
HEAVIEST = 20  # spike weights c_1 η √(D/N) beyond which quadrature takes minutes, if activations oscillate from 10
WIDEST = 1e26  # units: rounding of m_0 weighs √N, and from here on it would look like a feature
FEWEST = 8  # inputs: below, degrees beyond 3 are learned too
_LEAST = 1e-3  # |c_1| of σ's root mean square, with which m_1 still has modes
_OTHER = "theory.staircase.spiked(p, eta) has no such limit"
_SIMULATE = "simulate.losses(p, eta) needs no theory"


def family(p, *, step_noise="correlated", order=_ORDERS[0], lengths=_FEW[0]):
    """The `Family` of equivalent features of p on `order` nodes of z and of units and on `lengths` of the inputs.

    step_noise : one of `STEP_NOISE`.
    """
    as_problem(p)
    checks.choice("step_noise", step_noise, STEP_NOISE)
    linear, size = p.student.linear, sqrt(p.student.second_moment)
    if abs(linear) < _LEAST * size:
        found = f"c_1 = {linear:.2g}" + f", below {_LEAST:g} √(E σ²) = {_LEAST * size:.2g}" * (linear != 0)
        raise ValueError(f"activation = {p.activation!r}: {found}, but without it the step makes no spike; {_SIMULATE}")
    if p.d < FEWEST:
        raise ValueError(f"d = {p.d}: must be at least {FEWEST} here; {_OTHER}")
    if p.N > WIDEST:
        raise ValueError(f"N = {p.N:.3g}: must be at most {WIDEST:g} here; {_OTHER}")
    return Family(p, first_batch(p, order), step_noise, order, lengths)


def resolved(p, eta, step_noise="correlated"):
    """The `Family` of p on the coarsest quadrature that resolves the step eta, and `Solved` there.

    eta : the largest step asked for, which needs the finest quadrature.
    """
    coarse = family(p, step_noise=step_noise, order=_ORDERS[0])
    found = coarse, coarse.evaluate(eta)
    for name, numbers, tolerance in (("lengths", _FEW, _LENGTHS), ("order", _ORDERS, QUADRATURE)):
        found = _refined(*found, eta, name, numbers[1:], tolerance)
    return found


def _refined(coarse, solved, eta, name, numbers, tolerance):
    """The first `Family`, with more and more nodes in `name`, whose losses agree with the next one's; its `Solved`."""
    p = coarse.p
    for number in numbers:
        nodes = {"order": coarse.order, "lengths": coarse.lengths, name: number}
        fine = family(p, step_noise=coarse.step_noise, **nodes)
        finer = fine.evaluate(eta)
        if (change := np.max(np.abs(finer.losses / solved.losses - 1))) < tolerance:
            return coarse, solved
        coarse, solved = fine, finer
    raise ArithmeticError(
        f"the losses at eta = {eta:g} still change by {change:.1e}, more than {tolerance:g}, at {number} quadrature "
        f"nodes; a smaller eta (√n is {sqrt(p.n):.4g}), more inputs or a larger ridge need fewer: {p}"
    )


class Solved(NamedTuple):
    """The solved fixed point at one step.   losses : (2,) L_tr and L_te."""

    losses: np.ndarray
    features: Features
    state: np.ndarray

    @property
    def solution(self):
        """The `Solution`, to start from at another step size."""
        return self.features.solution(self.state)


@dataclass(frozen=True)
class Family:
    """Equivalent features of one problem at every step size, on the same nodes.   batch : the mean first batch."""

    p: Problem
    batch: FirstBatch
    step_noise: str
    order: int
    lengths: int

    @property
    def strength(self):
        """Root mean square over units of the spike u, over η."""
        return abs(self.p.student.linear) * sqrt(self.batch.D / self.p.N)

    @property
    def largest(self):
        """The largest step that quadrature resolves, for both first batches of eq. (43)."""
        return 0.999 * HEAVIEST / max(replace(self, batch=batch).strength for batch in spread(self.batch, self.p.d))

    def features(self, eta):
        """`nodes.Features` at step eta."""
        if (weight := eta * self.strength) > HEAVIEST:
            raise ValueError(
                f"eta = {eta:g}: makes spike weights c_1 η √(D/N) = {weight:.3g}; quadrature resolves them up to "
                f"{HEAVIEST}, here for eta <= {HEAVIEST / self.strength:.4g} (√n = {sqrt(self.p.n):.4g})"
            )
        return equivalent_features(self.p, eta, self.batch, self.step_noise, self.order, self.lengths)

    @one_thread()
    def evaluate(self, eta, solution=None) -> Solved:
        """`Solved` at step eta, iterated from the `Solution` at another step if one is given."""
        features = self.features(eta)
        state, _ = self.solve(features, eta, solution)
        return Solved(losses_at(features, state), features, state)

    def solve(self, features, eta, solution=None):
        """(packed state, residual) of the fixed point of features, those at step eta.

        Iterated from `solution`, else from zero, else by continuation: from η = 0 and a large ridge to the features'
        own, the next attempt going all the way or, where that fails, half as far.
        """
        for start in (solution, None) if solution is not None else (None,):
            state, residual = iterate(features, start)
            if residual < _TOLERANCE:
                return state, residual
        reached, attempt, start = 0.0, 0.0, None
        for _ in range(40):
            easier = replace(self, p=self.p.replace(ridge=self.p.ridge * 1e3 ** (1 - attempt)))
            here = features if attempt == 1 else easier.features(attempt * eta)
            state, residual = iterate(here, start)
            if residual < _TOLERANCE:
                if attempt == 1:
                    return state, residual
                reached, attempt, start = attempt, 1.0, here.solution(state)
            elif attempt == reached:
                break
            else:
                attempt = (reached + attempt) / 2
        failed = f"the fixed point did not converge at eta = {eta:g} ({residual:.1e}); {_SIMULATE}"
        raise ArithmeticError(f"{failed}: {self.p}")


def losses_at(features, state):
    """L_tr, eq. (37), and L_te, eq. (40): the derivative of L_tr in the direction (1 + κ)² of sample weights; (2,)."""
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


@one_thread()
def learned_at(features, state, degree):
    """b_degree of the fit on the equivalent features, eq. (42)."""
    p, batch = features.p, features.batch
    function = Polynomial(np.eye(degree + 1)[degree])
    hermite, _ = quadrature.expand(function, batch.cosine[0] * features.z, batch.away * features.chi, p.d - 1)
    half_delta = 0.5j * IMAGINARY  # so that the derivative in δ comes with the factor 1/2 of eq. (42)
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
        if len(past) > 1:
            states, steps = (np.array(column) for column in zip(*past, strict=True))
            dx, ds = np.diff(states, axis=0).T, np.diff(steps, axis=0).T
            x = x - (dx + ds) @ np.linalg.lstsq(ds, step, rcond=1e-12)[0]
    return x, residual
