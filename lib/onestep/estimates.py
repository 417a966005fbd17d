"""Thresholds and scaling exponents from simulations, with their uncertainty."""

from __future__ import annotations

import numpy as np


def crossing(x, y, level):
    """Where a curve first rises through `level`, interpolated linearly in log x.

    x : (k,) increasing, > 0.   y : (k,).   Raises ValueError for a curve that does not cross.
    """
    x, y = _grid(x), np.asarray(y, float)
    k = int(np.argmax(y >= level))
    if k == 0:
        raise ValueError(f"level = {level!r}: the curve does not rise through it between x = {x[0]:g} and {x[-1]:g}")
    return float(x[k - 1] * (x[k] / x[k - 1]) ** ((level - y[k - 1]) / (y[k] - y[k - 1])))


def mean_crossing(x, samples, level):
    """Log of the crossing of the mean curve and its standard error (jackknife over trials).

    x : (k,) increasing, > 0.   samples : (trials, k), trials >= 2.   Raises ValueError as `crossing`.
    """
    samples = np.asarray(samples, float)
    trials = len(samples)
    total = samples.sum(axis=0)
    without = np.log([crossing(x, (total - row) / (trials - 1), level) for row in samples])
    error = np.sqrt((trials - 1) * np.mean((without - without.mean()) ** 2))
    return float(np.log(crossing(x, total / trials, level))), float(error)


def threshold(x, success):
    """Mean and standard error of the log of the size at which trials begin to succeed (Spearman–Kärber).

    x : (k,) increasing, > 0.   success : (trials, k), True or False, each entry an independent trial.
    Raises ValueError unless all trials fail at the first x and succeed at the last.
    """
    x, success = _grid(x), np.asarray(success, bool)
    rate = success.mean(axis=0)
    if rate[0] != 0 or rate[-1] != 1:
        raise ValueError(f"success rates run from {rate[0]:g} to {rate[-1]:g}: x must span failure and success")
    log = np.log(x)
    width = (log[2:] - log[:-2]) / 2
    variance = width**2 * (rate * (1 - rate))[1:-1] / max(len(success) - 1, 1)
    return float(np.diff(rate) @ (log[1:] + log[:-1]) / 2), float(np.sqrt(variance.sum()))


def power_law(x, log_y, error):
    """Exponent p of y ~ x^p and its standard error, by least squares weighted with the errors of log y.

    x, log_y, error : (k,), k >= 2, errors > 0. Scatter beyond the errors widens the standard error (Birge's ratio).
    """
    log_x, log_y, error = np.log(_grid(x)), np.asarray(log_y, float), np.asarray(error, float)
    if log_y.shape != log_x.shape or error.shape != log_x.shape or not np.all(error > 0):
        raise ValueError(f"log_y {log_y.shape} and error {error.shape}: must be positive errors on as many points as x")
    weight = 1 / error**2
    centred = log_x - np.average(log_x, weights=weight)
    precision = weight @ centred**2
    exponent = weight * centred @ log_y / precision
    residual = log_y - np.average(log_y, weights=weight) - exponent * centred
    birge = weight @ residual**2 / (len(log_x) - 2) if len(log_x) > 2 else 1.0
    return float(exponent), float(np.sqrt(max(birge, 1.0) / precision))


def exponent(x, samples, moment=0):
    """Exponent of y ~ x^p and its standard error, from independent replicates of y at every x, by `power_law`.

    x : (k,) increasing, > 0.   samples : k arrays of positive numbers, at least two in each.
    moment : 0 fits the geometric mean of the replicates, m >= 1 the mean of y^m, to the power 1/m.
    The relative spread of y is taken as proportional to x^{-1/2} and pooled over x, so that few replicates suffice at
    the largest.
    """
    x, samples = _grid(x), [np.asarray(y, float) for y in samples]
    counts = np.array([len(y) for y in samples])
    if len(samples) != len(x) or counts.min() < 2:
        raise ValueError(f"samples: must be {len(x)} arrays of at least two numbers, not of {counts.tolist()}")
    if moment:
        means = [np.mean(y**moment) for y in samples]
        deviations = [y**moment / mean / moment for y, mean in zip(samples, means, strict=True)]
        logs = np.log(means) / moment
    else:
        deviations = [np.log(y) for y in samples]
        logs = [y.mean() for y in deviations]
    spread = np.sqrt(np.average(x * [y.var(ddof=1) for y in deviations], weights=counts - 1))
    return power_law(x, logs, spread / np.sqrt(x * counts))


def _grid(x):
    x = np.asarray(x, float)
    if x.ndim != 1 or len(x) < 2 or not x[0] > 0 or not np.all(np.diff(x) > 0):
        raise ValueError(f"x = {x}: must be at least two positive numbers in increasing order")
    return x
