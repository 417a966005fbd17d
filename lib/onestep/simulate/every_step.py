"""Losses after a real gradient step of any size.

Cost of one replicate with m steps, M = min(n, N):
2ndN·2 (gradient) + 2ndN·2 (pre-activations X̃W0ᵀ, X̃Gᵀ) + 4dN² (inner products of the rows of W) once, then
nN·M + M³/3 flops per step: the Gram matrix and its Cholesky factor.
"""

from __future__ import annotations

from math import factorial

import numpy as np

from ..checks import steps, whole
from ..hermite import LONGEST_SERIES, Polynomial
from ..problem import Problem
from . import averages
from .control_variates import variates
from .data import examine, has_signs
from .network import blocks, draw, features, gradient, ridge
from .replicates import JOBS, replicated


def losses(
    p: Problem, eta, *, trials=20, seed=0, jobs=JOBS, executor=None, test_size=None, redraws=1, data=None, degree=None
):
    """Losses after a step of each size, all steps on the same draws; η = 0 is the untrained network.

    Parameters
    ----------
    p : Problem
    eta : number or (steps,), step sizes >= 0
    trials, seed, jobs, executor : as in `repeat`
    test_size : size of a fresh test sample, needed with own data; None for the exact population test error
    redraws : label noises ε of the second stage over which each replicate is averaged: less spread at little cost
    data : own inputs, `data.Rows` or `data.Sampler`; the warning `data.BeyondTheory` says what theory does not cover
    degree : highest Hermite degree of f̂ to report as `learned`, an exact average over x

    Returns
    -------
    Result with
    train : (trials, *eta.shape), the penalty included
    test : (trials, *eta.shape), the label noise included
    learned : (trials, *eta.shape, degree + 1), coefficients b_k = E f̂(x) H_k(β⋆ᵀx)/k! of the fitted f̂
    accuracy : (trials, *eta.shape), for `Rows` with labels ±1 the share of test rows whose label's sign f̂ has
    """
    if test_size is None and data is not None:
        raise ValueError("test_size = None: exact averages are over Gaussian inputs; with own data give a number")
    if test_size is not None and degree is not None:
        raise ValueError(f"degree = {degree}: what was learned is an exact average, without a test_size")
    if data is not None and examine(data) and redraws > 1:
        raise ValueError(f"redraws = {redraws}: own labels have no noise to redraw")
    options = {
        "test_size": None if test_size is None else whole("test_size", test_size, 1),
        "redraws": whole("redraws", redraws, 1),
        "data": data,
        "degree": None if degree is None else whole("degree", degree, 0, LONGEST_SERIES - 1),
    }
    run = {"trials": trials, "seed": seed, "jobs": jobs, "executor": executor}
    return _losses(p, steps(eta), **options, **run)


@replicated()
def _losses(p, eta, *, test_size, redraws, data, degree, rng):
    now = draw(p, rng, data=data, test_size=test_size)
    G = gradient(p, now)
    base, move = now.X2 @ now.W0.T, now.X2 @ G.T
    signs = has_signs(data)
    if test_size is None:
        measure = _population_error(p, now, G, -1 if degree is None else degree)
    else:
        measure = _sample_error(p, now, G, signs)
    labels = redrawn_labels(p, now, redraws, rng)
    F = np.empty_like(base)
    out = []
    for step in np.atleast_1d(eta):
        a, train = ridge(features(p, base, move, step, out=F), labels, p.ridge)
        out.append([train.mean(), *measure(step, a)])
    if not np.all(np.isfinite(out)):
        raise ValueError(f"eta = {eta!r:.60}: the features overflow after so large a step")
    train, test, *more = np.reshape(np.transpose(out), (-1, *np.shape(eta)))
    found = {"train": train, "test": test} | ({"variates": variates(p, now, labels)} if data is None else {})
    if degree is not None:
        found["learned"] = np.stack(more, axis=-1)
    return found | ({"accuracy": more[0]} if signs else {})


def redrawn_labels(p: Problem, now, redraws, rng):
    """Labels of the second sample with `redraws` label noises, one a column; (n, 1) for a noiseless problem."""
    labels = now.y2[:, None]
    if redraws > 1 and p.noise:
        again = p.noise * rng.standard_normal((p.n, redraws - 1))
        labels = np.column_stack([labels, p.target(now.X2 @ now.beta_star)[:, None] + again])
    return labels


def _population_error(p, now, G, degree):
    """measure(step, a) -> [test error, b_0, …, b_degree] of readouts a (N, redraws), exact averages over x.

    From the rows of W = W0 + ηG through WWᵀ = W0W0ᵀ + η(W0Gᵀ + GW0ᵀ) + η²GGᵀ and Wβ⋆ = W0β⋆ + ηGβ⋆ alone.
    """
    inner, mixed, outer = now.W0 @ now.W0.T, now.W0 @ G.T, G @ G.T
    mixed += mixed.T.copy()
    start, shift = now.W0 @ now.beta_star, G @ now.beta_star
    products = np.empty_like(inner)
    hermite = [Polynomial(row) for row in np.eye(degree + 1)]

    def measure(step, a):
        for rows in blocks(products.shape):  # the upper triangle of WWᵀ
            part = rows, slice(rows.start, None)
            products[part] = inner[part] + step * mixed[part] + step**2 * outer[part]
        norms = np.sqrt(np.diagonal(products))
        cosines = (start + step * shift) / norms
        h, *each = averages.crosses(p.student, [p.target, *hermite], norms, cosines)
        K = averages.gram(p.student, products)
        test = np.mean(np.sum(a * (K @ a), axis=0) - 2 * (h @ a)) + p.label_power
        return [test, *(np.mean(e @ a) / factorial(k) for k, e in enumerate(each))]

    return measure


def _sample_error(p, now, G, signs):
    """measure(step, a) -> [test error] on the third sample; for labels ±1 also the share of signs that are right."""
    base, move = now.X3 @ now.W0.T, now.X3 @ G.T

    def measure(step, a):
        fitted = features(p, base, move, step) @ a
        error = np.mean((now.y3[:, None] - fitted) ** 2)
        return [error, np.mean(fitted * now.y3[:, None] > 0)] if signs else [error]

    return measure
