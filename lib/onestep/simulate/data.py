"""Own inputs in place of Gaussian ones: rows or a sampler to draw from, and how far they are from Gaussian."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np

from ..checks import choice, whole

_DIRECTIONS = 64  # random directions on which tails are averaged
_ROWS = 1000  # in each of the two sets whose cosines are taken


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows to draw from, split anew in every replicate, with own labels or a teacher's.

    X : (m, d), finite numbers, no constant column.   y : (m,), own labels, or None: the Problem's teacher labels them.
    Raises ValueError naming what is wrong with which rows or columns.
    """

    X: np.ndarray
    y: np.ndarray | None = None

    def __post_init__(self):
        X = _numbers("X", self.X, 2)
        constant = np.flatnonzero(np.ptp(X, axis=0) == 0)
        if constant.size:
            raise ValueError(f"X: column {_list(constant)} is constant; drop it, or take prepared(X)")
        object.__setattr__(self, "X", X)
        if self.y is not None:
            object.__setattr__(self, "y", _labels(self.y, len(X)))

    @property
    def d(self):
        return self.X.shape[1]

    def samples(self, rng, sizes):
        """Disjoint samples of the given sizes: a list of (X (size, d), y (size,) or None)."""
        if sum(sizes) > len(self.X):
            asked = " + ".join(map(str, sizes))
            raise ValueError(f"X has {len(self.X)} rows, but {asked} = {sum(sizes)} are needed for step, fit and test")
        order = np.split(rng.permutation(len(self.X))[: sum(sizes)], np.cumsum(sizes)[:-1])
        return [(self.X[rows], None if self.y is None else self.y[rows]) for rows in order]


@dataclass(frozen=True, eq=False)
class Sampler:
    """A law of inputs, or of inputs with own labels.

    draw : function of (rng, size) that returns X (size, d), finite numbers, or a pair of X and y (size,).   d : inputs.
    """

    draw: Callable
    d: int

    def __post_init__(self):
        whole("d", self.d, 1)
        if not callable(self.draw):
            raise ValueError(f"draw = {self.draw!r}: must be a function of a generator and a size")

    def samples(self, rng, sizes):
        """As `Rows.samples`, but independent."""
        return [self._sample(rng, size) for size in sizes]

    def _sample(self, rng, size):
        drawn = self.draw(rng, size)
        X, y = drawn if isinstance(drawn, tuple) and len(drawn) == 2 else (drawn, None)
        X = _numbers("draw(rng, size)", X, 2)
        if X.shape != (size, self.d):
            raise ValueError(f"draw(rng, {size}) has shape {X.shape}: must be {(size, self.d)}")
        if y is not None:
            y = _numbers("y of draw(rng, size)", y, 1)
            if len(y) != size:
                raise ValueError(f"draw(rng, {size}) has {len(y)} labels for its {size} rows")
        return X, y


def as_data(data):
    """data, `Rows` or a `Sampler`; ValueError for anything else."""
    if not isinstance(data, Rows | Sampler):
        raise ValueError(f"data: must be simulate.data.Rows(X, y) or simulate.data.Sampler, not {type(data).__name__}")
    return data


def labelled(data) -> bool:
    """Whether `Rows` or a `Sampler` bring labels of their own; ValueError for anything else."""
    if isinstance(as_data(data), Rows):
        return data.y is not None
    return data.samples(np.random.default_rng(0), [4])[0][1] is not None


def has_signs(data) -> bool:
    """Whether data are `Rows` with own labels that are all -1 or 1, so that accuracy means something."""
    return isinstance(data, Rows) and data.y is not None and bool(np.all(np.abs(data.y) == 1))


def prepared(X, how="centre"):
    """Rows X (m, d) made more like the N(0, I_d) that theory assumes, all by one map; constant columns are dropped.

    how : "centre" subtracts the columns' means and divides all entries by one number, so that their mean square is 1;
        "whiten" also turns the covariance into I (see `whitened`); directions without variance are dropped.
    """
    choice("how", how, ("centre", "whiten"))
    X = _numbers("X", X, 2)
    X = X[:, np.ptp(X, axis=0) > 0]
    if not X.shape[1]:
        raise ValueError("X: all rows are the same")
    if how == "whiten":
        if len(X) <= X.shape[1]:
            raise ValueError(f"X {X.shape}: must have more rows than columns to be whitened")
        X = X / X.std(0)  # so that what varies little in its unit is no rounding of what varies much
        values = np.linalg.eigvalsh(np.atleast_2d(np.cov(X.T)))
        varying = int(np.sum(values > 1e-12 * values[-1]))
        return whitened(X, X, keep=None if varying == X.shape[1] else varying)
    X = X - X.mean(0)
    return X / np.sqrt(np.mean(X**2))


REMEDIES = {
    "centre": 'subtract the mean of each column: prepared(X, "centre")',
    "scale": 'divide by the root mean square: prepared(X, "centre")',
    "isotropy": 'whiten the rows: prepared(X, "whiten")',
    "level": "subtract the mean label",
    "own whitening": "rows whitened by their own covariance: take more, or whiten by others, whitened(X, reference)",
}  # what lengths, tails, products, skewness and spike depart by is a property of the rows: no linear map mends it


class BeyondTheory(UserWarning):
    """Own inputs are not what theory assumes; simulation does not mind."""


def departures(X, y=None):
    """How far rows X (m, d), m >= 4, are from N(0, I_d), the inputs that theory assumes; each number is 0 if they are.

    centre : ‖mean‖² in units of what Gaussian rows give, less 1.
    isotropy : relative variance of the covariance's eigenvalues beyond that of a Gaussian sample of as many rows.
    scale : mean squared entry, less 1.
    length : variance of ‖x‖² over that of a Gaussian, less 1 (which all units share).
    tails : mean excess kurtosis of projections on random directions.
    products : kurtosis of the cosine between two rows less that of Gaussian ones, over d; nearly 1 for rows ±√d e_j.
    skewness : of that cosine, over √d; nearly 1 for rows √d e_j.
    spike : with labels y, excess kurtosis of β̂ᵀx, with β = Xᵀy/n of one half of the rows and x from the other.
    level : with labels, their mean over their standard deviation.
    """
    X = _numbers("X", X, 2)
    m, d = X.shape
    whole("the number of rows of X", m, 4)
    rng = np.random.default_rng(0)
    scale, mean = np.mean(X**2), X.mean(0)
    values = np.linalg.eigvalsh(np.atleast_2d(np.cov(X.T)))
    found = {
        "centre": mean @ mean * m / (d * scale) - 1,
        "isotropy": values.var() / values.mean() ** 2 - (d - 1) * (d + 2) / ((m - 1) * d + 2),  # their exact mean
        "scale": scale - 1,
        "length": np.var(np.sum(X**2, axis=1)) / (2 * d * scale**2) - 1,
        "tails": np.mean(_kurtosis((X - mean) @ rng.standard_normal((d, _DIRECTIONS)))),
        "spike": 0.0,
        "level": 0.0,
    }
    order = rng.permutation(m)
    cosines = _cosines(X - mean, order[: min(m, 2 * _ROWS)])
    squares, centred = cosines**2, cosines - cosines.mean()
    found["products"] = (np.mean(squares**2) / squares.mean() ** 2 - 3 * d / (d + 2)) / d
    found["skewness"] = np.mean(centred**2 * centred) / np.std(cosines) ** 3 / d**0.5
    if y is not None:
        y = _labels(y, m)
        if np.ptp(y) == 0:
            raise ValueError(f"y: all {m} labels are {y[0]:g}")
        one, other = np.array_split(order, 2)
        found |= {"spike": _kurtosis(X[other] @ (X[one].T @ y[one])), "level": y.mean() / y.std()}
    return SimpleNamespace(**{name: float(number) for name, number in found.items()})


def beyond(X, y=None) -> dict:
    """The departures of rows X (m, d) that theory does not stand: {name: (number, limit)}, empty if none is found.

    Limits are what moves predicted losses by some per cent, widened by five standard errors of Gaussian rows: a mean of
    more than 1 % of the power, eigenvalues or scale off by .05, lengths that vary twice as much, kurtosis or products
    .1, skewness .05, a mean label of a tenth of the standard deviation. Lengths that vary less and lighter tails do no
    harm. Rows without any of these may still depart: that they suffice is not proved.
    """
    found = vars(departures(X, y))
    m, d = np.shape(X)
    limits = {
        "centre": 0.01 * m + 5 * (2 / d) ** 0.5,
        "isotropy": 0.05 + 5 * 2 / m,  # John's statistic: m times it is N(0, 4) as m, d → ∞ (Ledoit & Wolf 2002)
        "scale": 0.05 + 5 * (2 / (m * d)) ** 0.5,
        "length": 1 + 5 * (2 / m) ** 0.5,
        "tails": 0.1 + 5 * (24 / (m * min(d, _DIRECTIONS))) ** 0.5,
        "products": 0.1 + 25 / (d * min(m // 2, _ROWS)),
        "skewness": 0.05 + 5 * (6 / d) ** 0.5 / min(m // 2, _ROWS),
        "spike": 0.1 + 5 * (48 / m) ** 0.5,
        "level": 0.1 + 5 / m**0.5,
    }
    sizes = {name: x if name in ("length", "tails", "products", "spike") else abs(x) for name, x in found.items()}
    return {name: (found[name], limits[name]) for name, size in sizes.items() if size > limits[name]}


def examine(data) -> bool:
    """Whether own inputs bring their own labels; warns `BeyondTheory` of what is `beyond` in them.

    `Rows` are judged by all of them, a `Sampler` by a thousand rows, or 4d if that is more.
    """
    if isinstance(as_data(data), Rows):
        X, y = data.X, data.y
    else:
        ((X, y),) = data.samples(np.random.default_rng(0), [max(1000, 4 * data.d)])
    found = beyond(X, y)
    if found:
        numbers = ", ".join(f"{name} {number:.3g} (limit {limit:.2g})" for name, (number, limit) in found.items())
        if found.get("isotropy", (0.0,))[0] < 0:
            found["own whitening"] = found.pop("isotropy")
        remedies = "; ".join(REMEDIES[name] for name in found if name in REMEDIES)
        advice = f". To mend it: {remedies}" if remedies else ". No linear map of the rows mends that"
        warnings.warn(f"inputs depart from those that theory assumes: {numbers}{advice}", BeyondTheory, stacklevel=3)
    return y is not None


def whitened(X, reference, *, keep=None):
    """X (m, d) as linear functions of it whose mean is 0 and covariance I on `reference` (k, d), k > d; (m, keep).

    Whitening with an independent sample keeps rows of X independent of each other; their covariance is I up to d/k.

    keep : number of the reference's leading principal components, from 1 to d; when None all are taken and turned back,
        so that the result lies as close to X as white rows can. What has no variance cannot be whitened.
    """
    X, reference = _numbers("X", X, 2), _numbers("reference", reference, 2)
    d = reference.shape[1]
    if len(reference) <= d or d != X.shape[1]:
        raise ValueError(f"reference {reference.shape}: must have the columns of X and more rows than columns")
    count = d if keep is None else whole("keep", keep, 1)
    values, vectors = np.linalg.eigh(np.atleast_2d(np.cov(reference.T)))
    vectors *= np.sign(vectors[np.abs(vectors).argmax(axis=0), range(d)])  # what eigh leaves to chance
    varying = int(np.sum(values > 1e-12 * values[-1]))
    if count > varying:
        raise ValueError(f"keep = {keep}: the reference varies along {varying} of its {d} directions only")
    leading = slice(None, -count - 1, -1)
    white = (X - reference.mean(0)) @ vectors[:, leading] / np.sqrt(values[leading])
    return white @ vectors[:, leading].T if keep is None else white


def _cosines(X, order):
    """Cosines between each row of the first half of `order` and each of the second."""
    X = X[order] / np.maximum(np.linalg.norm(X[order], axis=1, keepdims=True), 1e-300)
    one, other = np.array_split(X, 2)
    return one @ other.T


def _kurtosis(x):
    """Excess kurtosis along the first axis."""
    squares = (x - x.mean(0)) ** 2
    return np.mean(squares**2, axis=0) / np.mean(squares, axis=0) ** 2 - 3


def _labels(y, m):
    y = _numbers("y", y, 1)
    if len(y) != m:
        raise ValueError(f"y has {len(y)} labels for the {m} rows of X")
    return y


def _numbers(name, values, ndim):
    try:
        masked = np.ma.is_masked(values) and not np.iscomplexobj(values)
        array = values.astype(float).filled(np.nan) if masked else np.asarray(values)
        array = array if np.iscomplexobj(array) else np.asarray(array, float)
    except (TypeError, ValueError, OverflowError):
        array = np.zeros(0, complex)
    if np.iscomplexobj(array):
        kind = getattr(values, "dtype", type(values).__name__)
        raise ValueError(f"{name}: must be an array of real numbers, not {kind}")
    if array.ndim != ndim or array.size == 0:
        raise ValueError(
            f"{name} has shape {array.shape}: must have {ndim} dimension{'s' * (ndim > 1)} and not be empty"
        )
    bad = np.flatnonzero(~np.isfinite(array).reshape(len(array), -1).all(1))
    if bad.size:
        raise ValueError(f"{name}: row {_list(bad)} holds a number that is not finite")
    return array


def _list(indices):
    return ", ".join(map(str, indices[:5])) + (" …" if len(indices) > 5 else "")
