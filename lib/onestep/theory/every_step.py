"""Losses at every step size, the best step and the best ridge.

One theory serves every step, 0 <= η <= Θ(√n), at the n and d at hand: equivalent features turn the network after
the step into a deterministic problem, whose fixed point `fixed_point` solves, with the test error as a derivative of
the training loss. Where n is too large for it (N > 1e26) the finite spikes of `staircase` remain.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
import scipy  # its parts are imported where they are first used: optimize and interpolate take a third of a second

from .. import checks
from ..hermite import LONGEST_SERIES
from ..problem import as_problem
from .coverage import LONGEST, SPREAD, uncalibrated, warn
from .fixed_point.first_batch import spread
from .fixed_point.solver import QUADRATURE, family, learned_at, resolved

_RIDGES = (1e-6, 1e3)  # between which the best ridge is looked for
_KNOTS = 8  # steps at which the average over first batches is evaluated
_ROUNDED, _ROUNDING = 1e16, 0.01  # units from which on rounding is looked for at every step, and how much is too much


@dataclass(frozen=True)
class Error:
    """Standard deviations to expect of simulated/predicted - 1; arrays shaped like eta.

    Both are 1.1 √(E y²/√(L_tr L_te))/n, and no less than quadrature leaves: of order 1/n, and larger where the losses
    are a small part of the labels' power. In every stratum (no noise, small ridge, each step …) of the covered problems
    of calibration/stated_errors.csv, and of corners of their range, at least 65 % of the deviations lie within one
    standard deviation and 92 % within two, the simulation's own error included; most lie closer. nan where no error is
    stated: for η√(E σ² E y²) above 1.1 √n, and outside of `coverage.CALIBRATED` (see `uncalibrated`).
    """

    train: np.ndarray
    test: np.ndarray


@dataclass(frozen=True)
class Losses:
    """Predicted losses; arrays shaped like eta.

    train : L_tr, the penalty included.  test : L_te, label noise included.
    Both losses rest on quadrature, refined until neither changes by 1e-4 at the largest step asked for; errors of 1e-3
    were seen with few units (N = 28) and with teachers that grow faster than linearly. The test error rests on linear
    equations besides, which are solved to 1e-5.
    rel_std : `Error` to expect of the prediction.
    """

    train: np.ndarray
    test: np.ndarray
    rel_std: Error


def losses(p, eta, *, step_noise="correlated") -> Losses:
    """Predicted train and test loss after one gradient step of any size from 0 to Θ(√n), averages over first batches.

    Warns of polynomial activations of degree 3 or more, whose losses rest on few samples and units, and of teachers
    with a strong quadratic part at n ~ d². docs/theory.md has the derivation and its sources.

    Parameters
    ----------
    p : the `Problem`; c_1 not 0 (no spike forms), d >= 8, N <= 1e26. Beyond, `staircase.spiked` has spikes alone.
    eta : (...) or number >= 0, the step.
    step_noise : "correlated" keeps the law of the gradient's part that is not rank one, "incoherent" all of it but the
        stretch 6c_3 η a_i β·w_i of each row, "isotropic" only its size, "absent" nothing: the spike alone.

    Returns
    -------
    `Losses`. ArithmeticError if the fixed point or the quadrature does not converge, or rounding spoils it (huge n).
    """
    as_problem(p)
    eta = checks.steps(eta)
    warn(p, np.any(eta))
    return _losses(p, eta, step_noise)


def _losses(p, eta, step_noise="correlated"):
    flat = np.atleast_1d(eta)
    family, solved = _downwards(p, flat, step_noise)
    mean_batch = np.transpose([each.losses for each in solved])
    losses = mean_batch + _over_batches(family, flat, mean_batch, [each.solution for each in solved])
    if not np.all(losses > 0):
        raise ArithmeticError(f"n = {p.n:g}, N = {p.N:g}: rounding spoils the fixed point at this size")
    error = np.hypot(SPREAD * np.sqrt(p.label_power / np.sqrt(np.prod(losses, axis=0))) / p.n, QUADRATURE)
    error[(flat * sqrt(p.student.second_moment * p.label_power / p.n) > LONGEST) | bool(uncalibrated(p))] = np.nan
    train, test, error = (np.reshape(row, np.shape(eta))[()] for row in (*losses, error))
    return Losses(train, test, Error(error, error))


def _downwards(p, eta, step_noise="correlated"):
    """`Family` of p and `Solved` at steps eta (steps,), from the largest down, each from the one before."""
    found, last = resolved(p, eta.max(), step_noise)
    solved, top = [last] * eta.size, last
    for j in np.argsort(-eta, kind="stable"):
        solved[j] = last = top if eta[j] == eta.max() else found.evaluate(eta[j], last.solution)
    if p.N > _ROUNDED:
        other = family(p, step_noise=step_noise, order=found.order + 7, lengths=found.lengths)
        for step, each in zip(eta, solved, strict=True):
            if not np.max(np.abs(other.evaluate(step).losses / each.losses - 1)) < _ROUNDING:
                raise ArithmeticError(
                    f"n = {p.n:g}, N = {p.N:g}: rounding spoils the fixed point at eta = {step:g}; "
                    "for steps far below √n theory.staircase.spiked(p, eta) has no such limit"
                )
    return found, solved


def _over_batches(family, eta, losses, solutions):
    """What averaging over first batches adds to the losses (2, steps) at the mean one, (2, steps); of order 1/n.

    Of many steps only about `_KNOTS` are evaluated, and a spline in asinh(u√N/2), u ∝ η the spike, gives the others
    within 1e-4.
    """
    scaled = np.arcsinh(eta * family.strength * sqrt(family.p.N) / 2)
    scaled, first, inverse = np.unique(scaled, return_index=True, return_inverse=True)
    wanted = np.linspace(0, scaled[-1], _KNOTS + 1)[:, None] if scaled.size > _KNOTS + 1 else scaled[:, None]
    knots = np.unique(np.argmin(np.abs(scaled - wanted), axis=1))
    others = [replace(family, batch=batch) for batch in spread(family.batch, family.p.d)]
    changes = []  # relative, at the knots; none without a step
    for j in first[knots]:
        found = [other.evaluate(eta[j], solutions[j]).losses for other in others] if eta[j] else [losses[:, j]]
        changes.append(np.mean(found, axis=0) / losses[:, j] - 1)
    changes = np.array(changes)
    if knots.size < scaled.size:
        changes = scipy.interpolate.CubicSpline(scaled[knots], changes)(scaled)
    return losses * changes[inverse].T


def learned(p, eta, degree):
    """E f̂(x) H_k(β⋆ᵀx)/k!, k = 0..degree, of the fit f̂ for the mean first batch, eq. (42); (*eta.shape, degree + 1).

    The mean over batches differs by an order 1/n; for c⋆1 = 0 that was a third of coefficient 0 at n = 300.
    """
    eta, degree = checks.steps(eta), checks.whole("degree", degree, 0, LONGEST_SERIES - 1)
    warn(p, np.any(eta))
    _, solved = _downwards(p, np.atleast_1d(eta))
    out = [[learned_at(each.features, each.state, k) for k in range(degree + 1)] for each in solved]
    return np.reshape(out, (*eta.shape, degree + 1))


@dataclass(frozen=True)
class Best:
    """The best choice found: step size eta, ridge, and the predicted test error there.

    at_bound : whether the search stopped at the end of its interval, so that something beyond may be better.
    """

    eta: float
    ridge: float
    test: float
    at_bound: bool


def best_step(p, largest=None) -> Best:
    """The step size in [0, largest] with the smallest predicted test error.

    Parameters
    ----------
    p : the `Problem`.
    largest : 3√n by default, and never more than quadrature resolves. Steps of order √n are the largest that the
        theory covers, so that a minimum there is no optimum.

    Returns
    -------
    `Best`.
    """
    warn(p)
    largest = 3 * sqrt(p.n) if largest is None else checks.number("largest", largest, above=0)
    coarsest = family(p)
    largest = min(largest, coarsest.largest)
    grid = np.concatenate([[0.0], largest * np.geomspace(min(0.1, 0.1 / largest), 1, 24)])
    low, high = _bracket(grid[::-1], coarsest.evaluate)
    found, last = resolved(p, high)
    eta = _least_test_error(low, high, found.evaluate, last)
    return Best(eta, p.ridge, float(_losses(p, eta).test), bool(eta > 0.99 * largest))


def best_ridge(p, eta) -> Best:
    """The ridge in [1e-6, 1e3] with the smallest predicted test error after one step.

    Parameters
    ----------
    p : the `Problem`; its own ridge is not used.
    eta : number >= 0, the step.

    Returns
    -------
    `Best`.
    """
    eta, (smallest, largest) = checks.number("eta", eta, least=0), _RIDGES
    warn(p, eta > 0)
    family, last = resolved(as_problem(p).replace(ridge=smallest), eta)

    def evaluate(log_ridge, solution):
        return replace(family, p=p.replace(ridge=float(np.exp(log_ridge)))).evaluate(eta, solution)

    bounds = _bracket(np.linspace(np.log(smallest), np.log(largest), 15), evaluate, last)
    ridge = float(np.exp(_least_test_error(*bounds, evaluate, last)))
    test = float(_losses(p.replace(ridge=ridge), eta).test)
    return Best(eta, ridge, test, not 1.01 * smallest < ridge < 0.99 * largest)


def _bracket(grid, evaluate, last=None):
    """The neighbours, in order, of the grid's point with the least test error.   evaluate, last : as below."""
    errors = []
    for x in grid:
        last = evaluate(x, last and last.solution)
        errors.append(last.losses[1])
    j = int(np.argmin(errors))
    return sorted((grid[max(0, j - 1)], grid[min(grid.size - 1, j + 1)]))


def _least_test_error(low, high, evaluate, last):
    """The x in [low, high] with the least test error, to a thousandth of the interval; an end where none is better.

    evaluate : (x, `Solution` near x) -> `Solved`.   last : `Solved` to start from.
    """

    def function(x):
        return evaluate(x, last.solution).losses[1]

    found = scipy.optimize.minimize_scalar(
        function, bounds=(low, high), method="bounded", options={"xatol": 1e-3 * (high - low)}
    )
    return float(min((low, high, found.x), key=lambda x: found.fun if x == found.x else function(x)))
