"""Losses at every step size, the best step and the best ridge.

One theory serves every step, 0 <= η <= Θ(√n), at the n and d at hand: the equivalent features (`equivalent`) turn the
network after the step into a deterministic problem. Here its fixed point is solved, and the test error is taken as a
derivative of the training loss. Where n is too large for it (N > 1e26) the finite spikes of `staircase` remain.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import factorial, sqrt

import numpy as np
from scipy import optimize
from scipy.interpolate import CubicSpline
from scipy.sparse.linalg import LinearOperator, gmres

from .. import checks
from ..hermite import Polynomial
from ..problem import Problem, as_problem
from . import equivalent, quadrature, staircase
from .first_batch import FirstBatch, first_batch, spread
from .random_features import IMAGINARY
from .units import STEP_NOISE

_TOLERANCE = 1e-9  # on the fixed point's residual (relative changes of κ and q, absolute of the self-energy)
# Relative change of either loss allowed when the quadrature is refined by half; typically ten times less.
_QUADRATURE = 1e-4
_ORDERS = (12, 18, 27, 40, 60, 90, 135)
_KNOTS = 8  # steps at which the average over first batches is evaluated
_HEAVIEST = 20  # spike weights c_1 η √(D/N) beyond which quadrature takes minutes, if activations oscillate from 10
WIDEST = 1e26  # units: rounding of m_0 weighs √N, and from here on it would look like a feature
FEWEST = 8  # inputs: below, degrees beyond 3 are learned too
# Relative errors over `equivalent.fluctuation`, as fitted in calibration/range_map.py: of the training loss over that
# of κ, of the test error over the sum of both.
TRAIN_ERROR, TEST_ERROR = 0.47, 0.11

# … and on which problems
CALIBRATED = {
    "n": (100, np.inf),
    "d": (10, np.inf),
    "d/n": (0.05, 1.5),
    "n/d²": (0, 0.25),
    "N/n": (0.2, 3.0),
    "ridge": (1e-3, 1.0),
    "noise": (0.0, 1.0),
}

METHODS = ("fixed_point", "spiked")


@dataclass(frozen=True)
class Error:
    """Standard deviations to expect of simulated/predicted - 1; arrays shaped like eta.

    Each is a constant times a number of order 1/n, `equivalent.fluctuation`, that grows with the activation's tails and
    where few units or samples dominate. The constants are fitted to half of the covered problems of
    calibration/range_map.csv and judged on the other half, stratum by stratum, the simulation's own error included:
    66 % of the deviations of training losses and 71 % of test errors lie within one standard deviation there, 94 and
    91 % within two. nan where no error is stated: for "spiked", for polynomial activations of degree 3 or more, where
    5 % is usual and a factor of 1.4 was found, and outside of `CALIBRATED` (`uncalibrated` says what). At n/d² > .25
    deviations of 1 to 6 % were found after large steps.
    """

    train: np.ndarray
    test: np.ndarray


@dataclass(frozen=True)
class Losses:
    """Predicted losses; arrays shaped like eta.

    train : L_tr, the penalty included.  test : L_te, label noise included.
    residual : largest violation of the fixed point's equations (below 1e-9, else an error was raised); 0 for "spiked".
    rel_std : `Error` to expect of the prediction.
    """

    train: np.ndarray
    test: np.ndarray
    residual: np.ndarray
    rel_std: Error


def losses(p, eta, *, method=None, growing_rows=None, step_noise=None) -> Losses:
    """Predicted train and test loss of the network after one gradient step of size eta.

    Parameters
    ----------
    p : Problem.
    eta : step size(s) >= 0, scalar or 1-D; the results have the same shape.
    method : "fixed_point" is the fixed point that covers every step from 0 to Θ(√n) at this n and d, for d >= 8 and
        N <= 1e26; "spiked" keeps finitely strong spikes beside untrained features, at any n, for steps with
        c_1 η √(D/N) <= 1/4, and counts nothing else of finite n. None takes "fixed_point" where N allows, else "spiked"
        with growing rows.
    growing_rows : for "spiked", whether spikes are the network's (see `growth_ratio`) or, by default, the slides'.
    step_noise : for "fixed_point", see there.

    Raises ValueError for bad input, a step or an option that the method does not cover, or c_1 = 0 (no spike forms);
    ArithmeticError when the fixed point or the quadrature does not converge.
    """
    as_problem(p)
    if method is None:
        method = "fixed_point" if p.N <= WIDEST else "spiked"
        growing_rows = True if method == "spiked" and growing_rows is None else growing_rows
    checks.choice("method", method, METHODS)
    options = {} if step_noise is None else {"step_noise": step_noise}
    if method == "fixed_point":
        if growing_rows is not None:
            raise ValueError(
                f'growing_rows = {growing_rows!r}: belongs to method="spiked"; "fixed_point" has them anyway'
            )
        return fixed_point(p, eta, **options)
    for name, value in options.items():
        raise ValueError(f'{name} = {value!r}: method="spiked" cannot use it; "fixed_point" can')
    found = staircase.spiked(p, eta, bool(growing_rows))
    none = np.full(np.shape(found.train), np.nan)[()]
    return Losses(found.train, found.test, np.zeros(np.shape(found.train))[()], Error(none, none))


def untrained(p) -> Losses:
    """Train and test loss of the network without a step, at the n and d at hand: `losses` at η = 0, and its errors.

    As d → ∞ these are `untrained_limit`, which needs no c_1 != 0.
    """
    return losses(p, 0.0)


def uncalibrated(p):
    """What of p lies outside of the problems on which `Error` was calibrated, in words; [] if nothing does."""
    as_problem(p)
    ratios = {"d/n": p.d / p.n, "n/d²": p.n / p.d**2, "N/n": p.N / p.n}
    found = {"n": p.n, "d": p.d, **ratios, "ridge": p.ridge, "noise": p.noise}
    said = [
        f"{name} = {found[name]:.3g}, not {f'{low:g} to {high:g}' if high < np.inf else f'{low:g} or more'}"
        for name, (low, high) in CALIBRATED.items()
        if not low <= found[name] <= high
    ]
    if isinstance(p.student, Polynomial) and np.any(p.student.series[3:]):
        said.append("activation = a polynomial of degree 3 or more")
    return said


def fixed_point(p, eta, *, step_noise="correlated") -> Losses:
    """Train and test loss after one gradient step of any size from 0 to Θ(√n), from one fixed point.

    Parameters
    ----------
    p : Problem.
    eta : step size, a number or 1-D array, >= 0.
    step_noise : "correlated" keeps the law of the gradient's part that is not rank one, "incoherent" all of it but the
        stretch 6c_3 η a_i β·w_i of each row, "isotropic" only its size, "absent" nothing: the spike alone.

    Raises ValueError on bad input and ArithmeticError when the fixed point or the quadrature does not converge.

    The losses are averages over first batches. For named activations and n/d² <= .25 simulated test errors were within
    .2 % of these, root mean square. Polynomial activations of degree 3 or more are not covered: their losses rest on
    few samples and units, and 5 % is usual. `Error` says what to expect of a problem.

    Source: this project, from the Gaussian equivalence of Moniri et al. (ICML 2024) conditioned on β̂ᵀx, as Cui et al.
    (ICML 2024) do for α = 1/2, and on lengths, with degrees 2 and 3 resolved as Aguirre-López, Franz and Pastore
    (2024) do for untrained features; derived in notebooks 21, 22 and 23.
    """
    eta = checks.steps(eta)
    flat = np.atleast_1d(eta)
    family, largest = _resolved(p, flat.max(), step_noise)
    out, solutions, solution = np.empty((5, flat.size)), [None] * flat.size, largest[1]
    for j in np.argsort(-flat, kind="stable"):
        out[:, j], solution = largest if flat[j] == flat.max() else family.evaluate(flat[j], solution)
        solutions[j] = solution
    out[:2] += _over_batches(family, flat, out[:2], solutions)
    out[3:] *= np.array([[TRAIN_ERROR], [TEST_ERROR]]) * (np.nan if uncalibrated(p) else 1.0)
    train, test, residual, *error = (row.reshape(eta.shape)[()] for row in out)
    return Losses(train, test, residual, Error(*error))


def fluctuations(p, eta):
    """What `rel_std` is proportional to at steps eta (1-D), calibrated or not; (2, steps), for train and test."""
    found, _ = _resolved(p, np.max(eta))
    return np.transpose([found.evaluate(step)[0][3:] for step in eta])


def _over_batches(family, eta, losses, solutions):
    """What averaging over first batches adds to the losses (2, steps) at the mean one; of order 1/n.

    Of many steps only `_KNOTS` are evaluated: what is added is smooth in asinh(u√N/2), u ∝ η the spike, within 1e-4.
    """
    place = np.arcsinh(eta * family.strength * sqrt(family.p.N) / 2)
    place, where, back = np.unique(place, return_index=True, return_inverse=True)
    wanted = np.linspace(0, place[-1], _KNOTS + 1)[:, None] if place.size > _KNOTS + 1 else place[:, None]
    chosen = np.unique(np.argmin(np.abs(place - wanted), axis=1))
    others = [replace(family, batch=batch) for batch in spread(family.batch, family.p.d)]
    ratios = []
    for j in where[chosen]:
        found = [other.both(eta[j], solutions[j]) for other in others] if eta[j] else [losses[:, j]]
        ratios.append(np.mean(found, axis=0) / losses[:, j] - 1)
    ratios = np.array(ratios)
    if chosen.size < place.size:
        ratios = CubicSpline(place[chosen], ratios)(place)
    return losses * ratios[back].T


def learned(p, eta, degree, **options):
    """Hermite coefficients b_k = E f̂(x) H_k(β⋆ᵀx)/k! of the fitted f̂, k = 0..degree, after a step of size eta.

    eta : step size(s) >= 0, scalar or 1-D; the result is (*eta.shape, degree + 1).   options : as for `fixed_point`.

    Of the mean first batch. The mean of f̂ given β̂ᵀx and the teacher's direction follows from the mean residual of the
    fit: that is the derivative of L_tr with respect to the labels, and 1 + κ_z times it is the residual of a sample
    left out.

    Raises as `fixed_point`, and ValueError for a degree that is no whole number >= 0.
    """
    eta, degree = checks.steps(eta), checks.whole("degree", degree, 0)
    flat = np.atleast_1d(eta)
    found, (_, solution) = _resolved(p, flat.max(), **options)
    out = np.empty((flat.size, degree + 1))
    for j in np.argsort(-flat, kind="stable"):
        features = found.features(flat[j])
        state, _ = found.solve(features, flat[j], solution)
        solution = features.solution(state)
        out[j] = [learned_at(features, state, k) for k in range(degree + 1)]
    return out.reshape(*eta.shape, degree + 1)


@dataclass(frozen=True)
class Best:
    """The best choice found: step size eta, ridge, and the predicted train and test loss there.

    at_bound : whether the search stopped at the end of its interval, so that something beyond may be better.
    """

    eta: float
    ridge: float
    train: float
    test: float
    at_bound: bool


def best_step(p, largest=None, **options):
    """The step size in [0, largest] with the smallest predicted test error; a `Best`.

    largest : defaults to 3√n, or to what quadrature resolves if that is less; steps of order √n are the largest the
        theory covers, so a minimum there is no optimum.
    options : as for `fixed_point`.
    """
    if largest is None:
        largest = min(3 * sqrt(as_problem(p).n), 0.999 * _HEAVIEST / family(p, **options).strength)
    largest = checks.number("largest", largest, above=0)
    grid = np.concatenate([[0.0], largest * np.geomspace(min(0.1, 0.1 / largest), 1, 24)])
    found, (_, solution) = _resolved(p, largest, **options)

    def test(eta):
        nonlocal solution
        (_, error, *_), solution = found.evaluate(eta, solution)
        return error

    eta = _least(grid[::-1], test)
    best = fixed_point(p, eta, **options)
    return Best(eta, p.ridge, float(best.train), float(best.test), bool(eta > 0.99 * largest))


def best_ridge(p, eta, smallest=1e-6, largest=1e3, **options):
    """The ridge in [smallest, largest] with the smallest predicted test error after a step eta; a `Best`."""
    eta = checks.number("eta", eta, least=0)
    smallest = checks.number("smallest", smallest, above=0)
    largest = checks.number("largest", largest, above=smallest)

    family, (_, solution) = _resolved(as_problem(p).replace(ridge=smallest), eta, **options)

    def test(log_ridge):
        nonlocal solution
        (_, error, *_), solution = replace(family, p=p.replace(ridge=float(np.exp(log_ridge)))).evaluate(eta, solution)
        return error

    ridge = float(np.exp(_least(np.linspace(np.log(smallest), np.log(largest), 15), test)))
    found = fixed_point(p.replace(ridge=ridge), eta, **options)
    at_bound = not 1.01 * smallest < ridge < 0.99 * largest
    return Best(eta, ridge, float(found.train), float(found.test), at_bound)


def _least(grid, function):
    """Minimiser of function between the neighbours of the grid's best point; that point if nothing beats it."""
    values = [function(x) for x in grid]
    j = int(np.argmin(values))
    bounds = sorted((grid[max(0, j - 1)], grid[min(grid.size - 1, j + 1)]))
    found = optimize.minimize_scalar(
        function, bounds=bounds, method="bounded", options={"xatol": 1e-3 * (bounds[1] - bounds[0])}
    )
    return float(found.x if found.fun < values[j] else grid[j])


def family(p, *, step_noise="correlated", order=_ORDERS[0]):
    """The `Family` of equivalent features of p on `order` quadrature nodes; the other arguments as for `losses`."""
    values = as_problem(p).readout_values
    checks.choice("step_noise", step_noise, STEP_NOISE)
    if p.student.coefficients(1)[1] == 0:
        raise ValueError(f"activation = {p.activation!r}: c_1 = 0, but without it the step makes no spike")
    if p.d < FEWEST:
        raise ValueError(f'd = {p.d}: must be at least {FEWEST} here; method="spiked" has no such limit')
    if p.N > WIDEST:
        raise ValueError(f'N = {p.N:.3g}: must be at most {WIDEST:g} here; method="spiked" has no such limit')
    return Family(p, values, first_batch(p, p.step_phi, order), step_noise, order)


def _resolved(p, eta, step_noise="correlated"):
    """The coarsest quadrature whose losses at the largest step agree with the next one's, and the solution there."""
    last = None
    for order in _ORDERS:
        finer = family(p, step_noise=step_noise, order=order)
        weight = eta * finer.strength
        if weight > _HEAVIEST:
            raise ValueError(
                f"eta = {eta:g}: makes spike weights c_1 η √(D/N) = {weight:.3g}; quadrature resolves them up to "
                f"{_HEAVIEST}, here for eta <= {eta * _HEAVIEST / weight:.4g} (√n = {sqrt(p.n):.4g})"
            )
        now = finer.evaluate(eta)
        if last is not None:
            change = np.max(np.abs(now[0][:2] / last[1][0][:2] - 1))
            if change < _QUADRATURE:
                return last
        last = finer, now
    raise ArithmeticError(
        f"the losses at eta = {eta:g} still change by {change:.1e}, more than {_QUADRATURE:g}, at {order} quadrature "
        f"nodes; a smaller eta (√n is {sqrt(p.n):.4g}) or larger n and N need fewer: {p}"
    )


@dataclass(frozen=True)
class Family:
    """Equivalent features of one problem at every step size, on the same nodes.

    values : equally likely values of √N a_i, or None for a Gaussian readout.  batch : the mean first batch.
    """

    p: Problem
    values: np.ndarray | None
    batch: FirstBatch
    step_noise: str
    order: int

    @property
    def strength(self):
        """Root mean square over units of the spike u, over η."""
        return abs(self.p.student.linear) * sqrt(self.batch.D / self.p.N)

    def features(self, eta):
        """`equivalent.Features` at step eta."""
        return equivalent.features(self.p, eta, self.batch, self.values, self.step_noise, self.order)

    def evaluate(self, eta, solution=None):
        """((train, test, residual, fluctuations), solution) at step eta, from the solution at another step if given."""
        features = self.features(eta)
        state, residual = self.solve(features, eta, solution)
        found = features.solution(state)
        units, samples = equivalent.fluctuation(features, found)
        return np.array([*losses_at(features, state), residual, samples, units + samples]), found

    def both(self, eta, solution=None):
        """(train, test) at step eta alone."""
        features = self.features(eta)
        return losses_at(features, self.solve(features, eta, solution)[0])

    def solve(self, features, eta, solution=None):
        """(packed state, residual): from `solution`, else cold, else from η = 0 (`lowered`), halving failing steps."""
        for start in (solution, None) if solution is not None else (None,):
            state, residual = iterate(features, start)
            if residual < _TOLERANCE:
                return state, residual
        reached, attempt, start = 0.0, 0.0, None
        for _ in range(40):
            here = features if attempt == eta else self.features(attempt)
            state, residual = iterate(here, start)
            if attempt == 0 and not residual < _TOLERANCE:
                state, residual = self.lowered(here)
            if residual < _TOLERANCE and attempt == eta:
                return state, residual
            if residual < _TOLERANCE:
                reached, start = attempt, here.solution(state)
                attempt = eta
            else:
                attempt = (reached + attempt) / 2
        raise ArithmeticError(f"the fixed point did not converge at eta = {eta:g} (residual {residual:.1e}): {self.p}")

    def lowered(self, features):
        """(packed state, residual) of features at no step, from the solution at larger ridges where that converges."""
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
    """L_tr, and L_te from one derivative of it.

    The test error of node z is e_z = ((1 + κ_z)²/p_z) ∂L_tr/∂ω_z (leave-one-out), so L_te = Σ p_z e_z is the derivative
    of L_tr in the single direction ω̇ = (1 + κ)²; the fixed point answers it through one linear solve.
    """
    sway = 1j * IMAGINARY * (1 + features.solution(state).kappa) ** 2

    def tangent(dx):
        return dx - equivalent.update(features, state + 1j * IMAGINARY * dx, 1.0).imag / IMAGINARY

    push = equivalent.update(features, state, 1 + sway).imag / IMAGINARY
    operator = LinearOperator((state.size, state.size), tangent, dtype=float)
    response, failed = gmres(operator, push, rtol=1e-5, restart=100, maxiter=3)
    if failed:
        raise ArithmeticError(f"the linear response of the fixed point did not converge: {features.p}")
    moved = equivalent.training_loss(features, state + 1j * IMAGINARY * response, 1 + sway)
    return moved.real, moved.imag / IMAGINARY


def learned_at(features, state, degree):
    """b_degree of the fit on the equivalent features: what y has of H_degree less what the residual keeps of it."""
    p, batch = features.p, features.batch
    function = Polynomial(np.eye(degree + 1)[degree])
    tilt, _ = quadrature.expand(function, batch.cosine[0] * features.z, batch.away * features.chi, p.d - 1)
    kept = 0.5j * IMAGINARY * (1 + features.solution(state).kappa)
    moved = replace(features, label=features.label + kept * tilt)
    residual = equivalent.training_loss(moved, state, 1.0).imag / IMAGINARY
    return (np.sum(features.label * tilt, axis=0) @ features.pz - residual) / factorial(degree)


def iterate(features, solution=None, memory=8, limit=300):
    """Anderson iteration of the fixed-point map from `solution`; returns the packed state and its residual."""
    x, past = features.start(solution), []
    for _ in range(limit):
        try:
            with np.errstate(all="ignore"):
                step = equivalent.update(features, x, 1.0) - x
        except np.linalg.LinAlgError:
            return x, np.inf
        residual = np.max(np.abs(step))
        if not np.isfinite(residual) or residual < _TOLERANCE:
            break
        past = [*past[-memory:], (x, step)]
        x = x + step
        if len(past) > 3:
            dx, ds = (np.diff(np.array(column), axis=0).T for column in zip(*past, strict=True))
            x = x - (dx + ds) @ np.linalg.lstsq(ds, step, rcond=1e-12)[0]
    return x, residual
