"""Numbers with their standard errors: means over replicates, limits n → ∞, thresholds and scaling exponents.

samples are (trials, …), replicates first, at least two; places x are (k,), positive and increasing, at least two. Other
input raises ValueError, and so does a curve without the crossing or the minimum that is asked for.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass, replace
from math import inf

import numpy as np
from scipy import special

from . import checks


@dataclass(frozen=True)
class Estimate:
    """A measured number, or an array of them, with standard error and the degrees of freedom that it rests on.

    Parameters
    ----------
    value, se, dof : floats or arrays of one shape; se = 0 with dof = inf for a number without noise
    chi2, spare : χ² of the fit that it comes from, and the degrees of freedom of χ². Where χ² is the larger one, se has
        been widened by √(χ²/spare), and verdicts say so; a sum has those of its worse fit

    Sums, differences and multiples by numbers are those of independent estimates (Welch-Satterthwaite for dof): what
    shares draws is to be combined replicate by replicate, before the mean is taken.
    """

    value: np.ndarray | float
    se: np.ndarray | float
    dof: np.ndarray | float = inf
    chi2: np.ndarray | float = 0.0
    spare: np.ndarray | int = 0

    __array_ufunc__ = None  # array + Estimate is an Estimate

    def __str__(self):
        value, se = np.broadcast_arrays(self.value, self.se)
        return ", ".join(_rounded(*pair) for pair in zip(value.flat, se.flat, strict=True))

    def __add__(self, other):
        if not isinstance(other, Estimate):
            return replace(self, value=self.value + other)
        value = np.asarray(self.value + other.value)
        same = [np.broadcast_to(x, value.shape) for x in (self.se, other.se, self.dof, other.dof)]
        parts, dofs = np.array(same[:2]) ** 2, np.array(same[2:], float)
        worse = self.chi2 / np.maximum(self.spare, 1) >= other.chi2 / np.maximum(other.spare, 1)
        fit = [np.where(worse, *pair)[()] for pair in ((self.chi2, other.chi2), (self.spare, other.spare))]
        return Estimate(value[()], np.sqrt(parts.sum(0))[()], _satterthwaite(parts, dofs), *fit)

    def __mul__(self, factor):
        return replace(self, value=self.value * factor, se=self.se * np.abs(factor))

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self):
        return self * -1.0

    def __sub__(self, other):
        return self + -other

    def __rsub__(self, other):
        return -self + other

    def __truediv__(self, factor):
        return self * (1 / factor)

    def __getitem__(self, at):
        parts = (self.se, self.dof, self.chi2, self.spare)
        return Estimate(self.value[at], *(np.broadcast_to(part, np.shape(self.value))[at] for part in parts))

    def reach(self, level):
        """Half the width of the two-sided Student interval that misses the truth with probability `level`."""
        return -special.stdtrit(self.dof, level / 2) * self.se  # scipy.stats takes half a second to import


def _rounded(value, se):
    """Value ± se as text, both to the second digit of the standard error."""
    if not 0 < se < inf:
        return f"{value:.4g}"
    places = max(-int(f"{se:.1e}".partition("e")[2]) + 1, 0)
    return f"{value:z.{places}f} ± {se:.{places}f}"


def _satterthwaite(parts, dofs):
    with np.errstate(divide="ignore", invalid="ignore"):
        dof = parts.sum(0) ** 2 / np.sum(parts**2 / dofs, axis=0)
    return np.where(np.isnan(dof), inf, dof)[()]


def mean(samples) -> Estimate:
    """Mean over replicates, the first axis, with the standard error from their spread."""
    samples = _replicates(samples)
    trials = len(samples)
    se = samples.std(0, ddof=1) / np.sqrt(trials)
    return Estimate(samples.mean(0)[()], se[()], np.full(np.shape(se), float(trials - 1))[()])


def controlled(samples, controls) -> Estimate:
    """Mean over replicates with the part that `controls` explain regressed out (control variates).

    controls : (trials, k), k < trials - 1, each of known mean, which has been subtracted.

    The standard error is that of what the controls do not explain. The mean has a bias of order k/trials, and none
    where samples and controls are jointly normal (Lavenberg & Welch 1981).
    """
    samples, controls = _replicates(samples), checks.floats(controls)
    trials, count = len(samples), controls.shape[-1] if controls.ndim else 0
    if controls.shape != (trials, count) or trials - 1 - count < 1 or not np.isfinite(controls).all():
        raise ValueError(f"controls {controls.shape}: must be finite, ({trials}, k) with k < {trials - 1}")
    design = np.column_stack([np.ones(trials), controls])
    flat = samples.reshape(trials, -1)
    inverse = np.linalg.pinv(design)
    fit = inverse @ flat
    dof = float(trials - 1 - count)
    variance = np.sum((flat - design @ fit) ** 2, axis=0) / dof * np.sum(inverse[0] ** 2)
    shape = samples.shape[1:]
    return Estimate(fit[0].reshape(shape)[()], np.sqrt(variance).reshape(shape)[()], np.full(shape, dof)[()])


def limit(sizes, parts, *, powers=(1,)) -> Estimate:
    """The limit n → ∞ of independent estimates at several n whose bias is a sum of n^-p over `powers`.

    parts : an Estimate at each of the sizes, all of one shape; more of them than powers.

    Least squares weighted with the standard errors. With more sizes than unknowns, scatter beyond the errors widens
    the standard error (Birge's ratio). The degrees of freedom remain those of the errors, so that intervals are too
    short where the scatter is real: by simulation, with three sizes and scatter of three standard errors one of 95 %
    misses in 24 %.
    """
    sizes, powers = _grid(sizes, "sizes"), np.atleast_1d(checks.floats(powers))
    if not np.all((powers > 0) & (powers < inf)):
        raise ValueError(f"powers = {powers}: must be numbers > 0")
    if len(sizes) <= len(powers):
        raise ValueError(f"sizes = {sizes}: must be more than the {len(powers)} powers of the bias")
    return _weighted(np.column_stack([np.ones(len(sizes)), *((sizes / sizes[-1]) ** -p for p in powers)]), parts)


def power_law(x, parts) -> Estimate:
    """Exponent p of y ~ x^p, from independent estimates of log y at each x; the fit and its error are as in `limit`.

    parts : an Estimate at each x, all of one shape.
    """
    return _weighted(np.vander(np.log(_grid(x)), 2), parts)


def _weighted(design, parts):
    """The first coefficient of a least-squares fit of design (k, ·) to k Estimates of one shape, elementwise."""
    if not isinstance(parts, list | tuple) or len(parts) != len(design):
        raise ValueError(f"parts: must be a list of {len(design)} Estimates, one at each place, not {parts!r:.60}")
    if not all(isinstance(x, Estimate) and np.min(x.se) > 0 and np.isfinite(x.value + x.se).all() for x in parts):
        raise ValueError("parts: must be finite Estimates with standard errors > 0")
    if len(shapes := {np.shape(x.value) for x in parts}) > 1:
        raise ValueError(f"parts: must be of one shape, not {sorted(shapes)}")
    (shape,) = shapes
    columns = (
        np.array([np.broadcast_to(getattr(part, field), shape) for part in parts], float).reshape(len(parts), -1).T
        for field in ("value", "se", "dof")
    )
    fits = [_fit(design, *column) for column in zip(*columns, strict=True)]
    return Estimate(*(np.array(column).reshape(shape)[()] for column in zip(*map(astuple, fits), strict=True)))


def _fit(design, value, error, dof):
    """The first coefficient of a least-squares fit weighted by 1/error, an `Estimate`."""
    weight = 1 / error
    inverse = np.linalg.pinv(design * weight[:, None]) * weight
    parts = (inverse[0] * error) ** 2
    spare = len(value) - design.shape[1]
    chi2 = np.sum(((value - design @ (inverse @ value)) * weight) ** 2) if spare else 0.0
    se = np.sqrt(parts.sum() * max(1.0, chi2 / max(spare, 1)))
    return Estimate(inverse[0] @ value, se, _satterthwaite(parts, dof), chi2, spare)


def crossing(x, y, level):
    """Where a curve y (k,) first rises through `level`, interpolated linearly in log x."""
    x, y, level = _grid(x), checks.floats(y), checks.number("level", level)
    if y.shape != x.shape or not np.isfinite(y).all():
        raise ValueError(f"y {y.shape}: must be {len(x)} finite numbers, one at each x")
    rises = np.flatnonzero((y[:-1] < level) & (y[1:] >= level))
    if not rises.size:
        raise ValueError(f"level = {level!r}: the curve does not rise through it between x = {x[0]:g} and {x[-1]:g}")
    k = rises[0] + 1
    return float(x[k - 1] * (x[k] / x[k - 1]) ** ((level - y[k - 1]) / (y[k] - y[k - 1])))


def jackknife(statistic, samples) -> Estimate:
    """A statistic of the mean curve of samples (trials, k), a function (k,) -> float, with the jackknife's error."""
    samples = _replicates(samples)
    trials = len(samples)
    total = samples.sum(axis=0)
    without = np.array([statistic((total - row) / (trials - 1)) for row in samples])
    error = np.sqrt((trials - 1) * np.mean((without - without.mean()) ** 2))
    return Estimate(float(statistic(total / trials)), float(error), float(trials - 1))


def ratio(samples, others) -> Estimate:
    """Geometric mean of positive samples (trials,) over that of independent others, from the spread of either."""
    gap = mean(np.log(_replicates(samples))) - mean(np.log(_replicates(others)))
    value = float(np.exp(gap.value))
    return replace(gap, value=value, se=value * gap.se)


def _replicates(samples):
    found = checks.floats(samples)
    if found.ndim == 0 or len(found) < 2 or not np.isfinite(found).all():
        raise ValueError(f"samples: must be at least two finite numbers along the first axis, not {samples!r:.60}")
    return found


def _grid(x, name="x"):
    x = checks.floats(x)
    if x.ndim != 1 or len(x) < 2 or not 0 < x[0] < x[-1] < inf or not np.all(np.diff(x) > 0):
        raise ValueError(f"{name} = {x}: must be at least two positive numbers in increasing order")
    return x
