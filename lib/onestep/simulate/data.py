"""Own inputs in place of Gaussian ones: rows or a sampler to draw from, and how far they are from Gaussian."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from ..checks import whole


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
            raise ValueError(f"X: column {_list(constant)} is constant; drop it")
        object.__setattr__(self, "X", X)
        if self.y is not None:
            y = _numbers("y", self.y, 1)
            if len(y) != len(X):
                raise ValueError(f"y has {len(y)} labels for the {len(X)} rows of X")
            object.__setattr__(self, "y", y)

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
    """A law of inputs.   draw : function of (rng, size) that returns (size, d) finite numbers.   d : inputs."""

    draw: Callable
    d: int

    def __post_init__(self):
        whole("d", self.d, 1)
        if not callable(self.draw):
            raise ValueError(f"draw = {self.draw!r}: must be a function of a generator and a size")

    def samples(self, rng, sizes):
        """Independent samples of the given sizes: a list of (X (size, d), None)."""
        drawn = [_numbers("draw(rng, size)", self.draw(rng, size), 2) for size in sizes]
        for X, size in zip(drawn, sizes, strict=True):
            if X.shape != (size, self.d):
                raise ValueError(f"draw(rng, {size}) has shape {X.shape}: must be {(size, self.d)}")
        return [(X, None) for X in drawn]


@dataclass(frozen=True)
class Departures:
    """How far rows are from N(0, I_d), the inputs that theory assumes; each number is 0 for Gaussian rows, up to noise.

    centre : ‖mean‖² in units of what Gaussian rows give, less 1.
    isotropy : relative variance of the covariance's eigenvalues beyond that of a Gaussian sample of as many rows.
    scale : mean squared entry, less 1.
    length : variance of ‖x‖² over that of a Gaussian, less 1 (the common part that all units feel).
    tails : mean excess kurtosis of projections on random directions.
    """

    centre: float
    isotropy: float
    scale: float
    length: float
    tails: float


def departures(X, seed=0) -> Departures:
    """The `Departures` of rows X (m, d), m >= 2.   seed : of the random directions."""
    X = _numbers("X", X, 2)
    m, d = X.shape
    whole("the number of rows of X", m, 2)
    scale, mean = np.mean(X**2), X.mean(0)
    values = linalg.eigvalsh(np.cov(X.T, ddof=1)) if d > 1 else np.array([X.var(ddof=1)])
    spread = values.var() / values.mean() ** 2 - d / m
    directions = np.random.default_rng(seed).standard_normal((d, 64))
    projected = (X - mean) @ (directions / np.linalg.norm(directions, axis=0))
    kurtosis = np.mean(projected**4, axis=0) / np.mean(projected**2, axis=0) ** 2 - 3
    length = np.var(np.sum(X**2, axis=1)) / (2 * d * scale**2)
    return Departures(
        float(mean @ mean * m / (d * scale) - 1),
        float(spread),
        float(scale - 1),
        float(length - 1),
        float(kurtosis.mean()),
    )


def whitened(X, reference):
    """X (m, d) moved and turned so that `reference` (k, d), k > d, would have mean 0 and covariance I; (m, d).

    Whitening with an independent sample keeps rows of X independent of each other.
    """
    X, reference = _numbers("X", X, 2), _numbers("reference", reference, 2)
    if len(reference) <= reference.shape[1] or reference.shape[1] != X.shape[1]:
        raise ValueError(f"reference {reference.shape}: must have the columns of X and more rows than columns")
    mean = reference.mean(0)
    root = linalg.cholesky(np.cov(reference.T), lower=True)
    return linalg.solve_triangular(root, (X - mean).T, lower=True).T


def _numbers(name, values, ndim):
    try:
        array = np.asarray(values, float)
    except (TypeError, ValueError):
        raise ValueError(
            f"{name}: must be numbers, not {type(values).__name__} of {np.asarray(values).dtype}"
        ) from None
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
