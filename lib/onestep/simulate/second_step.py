"""A second step on the first layer, simulated: on the batch of the first step or on a fresh one.

Every replicate takes both, from one W_1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.linalg import eigh

from .. import checks
from ..checks import number, whole
from ..problem import Problem, as_problem
from .control_variates import variates
from .every_step import memory
from .network import Draw, direction, draw, gradient, ridge
from .replicates import Result, collect

_STRONG = 1e4  # scale of a feature whose penalty does not count


@dataclass(frozen=True)
class Outliers(Result):
    """Leading singular triplets of W_2 after a second step on the same batch (first) and on a fresh one.

    Attributes
    ----------
    value : array, (trials, 2, count)
        Singular values.
    ahead : array, (trials, 2, count)
        Squared cosines of right vectors with β⋆.
    """

    value: np.ndarray
    ahead: np.ndarray


@dataclass(frozen=True)
class Directions(Result):
    """d_k = Xᵀ(y ∘ z^k)/n with z = Xβ, on the first step's batch (first) and on a fresh one.

    Attributes
    ----------
    ahead : array, (trials, 2, count)
        β⋆ᵀd_k.
    square : array, (trials, 2, count)
        ‖d_k‖².
    variates : array, (trials, 3)
        Averages of x⋆y and x⋆y² over the first step's batch and of x⋆²y over the fresh one, x⋆ = β⋆ᵀx, less their
        means.
    """

    ahead: np.ndarray
    square: np.ndarray


@dataclass(frozen=True)
class FirstStairs(Result):
    """Training losses of four networks on the same draws, in the order of `first_stairs`.

    Attributes
    ----------
    train : array, (trials, 4)
    """

    train: np.ndarray


@dataclass(frozen=True)
class Losses(Result):
    """Losses after a second step on the batch of the first (first) and on a fresh one.

    Attributes
    ----------
    train, test : array, (trials, 2, steps)
    """

    train: np.ndarray
    test: np.ndarray


def outliers(p: Problem, eta1, eta2, *, count=2, **run) -> Outliers:
    """The `count` largest singular values of W_2 = W_0 + η_1G_1 + η_2G_2, and how far their vectors point ahead.

    Parameters
    ----------
    p : Problem
    eta1, eta2 : float
        Step sizes >= 0.
    count : int
        Number of singular values, >= 1.
    **run
        trials, seed, jobs and executor, as in `repeat`.

    Returns
    -------
    Outliers

    Raises
    ------
    ValueError
        For a bad argument, or when the memory needed is not there.
    """
    steps = number("eta1", eta1, least=0), number("eta2", eta2, least=0)
    return collect(Outliers, partial(_outliers, p, *steps, whole("count", count, 1)), memory(p), **run)


def _outliers(p, eta1, eta2, count, rng):
    now = draw(p, rng)
    out = []
    for W in _stepped_twice(p, now, eta1, eta2):
        size = min(W.shape)
        squares, vectors = eigh(W.T @ W, subset_by_index=[W.shape[1] - min(count, size), W.shape[1] - 1])
        out.append([np.sqrt(squares[::-1]), (now.beta_star @ vectors)[::-1] ** 2])
    value, ahead = np.swapaxes(out, 0, 1)
    return {"value": value, "ahead": ahead, "variates": variates(p, now, now.y2[:, None])}


def _stepped_twice(p, now, eta1, eta2):
    """W_2 of the reused batch and of a fresh one, the draw's second sample."""
    first = replace(now, W0=now.W0 + eta1 * gradient(p, now))
    for batch in (first, replace(first, X=now.X2, y=now.y2)):
        yield first.W0 + eta2 * gradient(p, batch)


def directions(p: Problem, count=3, **run) -> Directions:
    """The directions d_0, …, d_{count - 1} that a second step learns; no network is drawn.

    Parameters
    ----------
    p : Problem
    count : int
        Number of directions, >= 1.
    **run
        trials, seed, jobs and executor, as in `repeat`.

    Returns
    -------
    Directions

    Raises
    ------
    ValueError
        For a bad argument.
    """
    return collect(Directions, partial(_directions, p.replace(N=1), whole("count", count, 1)), **run)


def _directions(p, count, rng):
    now = draw(p, rng)
    found = _both_batches(now, direction(p, now), np.arange(count))
    return {
        "ahead": [now.beta_star @ d for d in found],
        "square": [np.sum(d**2, axis=0) for d in found],
        "variates": _averages(p, now),
    }


def _averages(p, now):
    """The variates of `Directions`."""
    z, weight = p.target.nodes()
    f, (x, x2) = p.target(z), (X @ now.beta_star for X in (now.X, now.X2))
    found = [np.mean(x * now.y), np.mean(x * now.y**2), np.mean(x2**2 * now.y2)]
    return found - weight @ np.column_stack([z * f, z * f**2, z**2 * f])


def _both_batches(now, beta, powers):
    """d_k of the reused batch and of a fresh one, each (d, len(powers))."""
    return [X.T @ (y[:, None] * (X @ beta)[:, None] ** powers) / len(y) for X, y in ((now.X, now.y), (now.X2, now.y2))]


def first_stairs(p: Problem, eta1, eta2, **run) -> FirstStairs:
    """Training losses with spikes of infinite strength along what the steps learn.

    The four losses are those without a step; with β; with η_1β + η_2d_0 and d_1 of the same batch; and with those of a
    fresh one. Features F_0 lose their part along a and, for two directions, along a².

    Parameters
    ----------
    p : Problem
    eta1, eta2 : float
        Step sizes, >= 0 and > 0, of which the ratio counts.
    **run
        trials, seed, jobs and executor, as in `repeat`.

    Returns
    -------
    FirstStairs

    Raises
    ------
    ValueError
        For a bad argument, or when the memory needed is not there.
    """
    steps = number("eta1", eta1, least=0), number("eta2", eta2, above=0)
    return collect(FirstStairs, partial(_first_stairs, p, *steps), memory(p), **run)


def _first_stairs(p, eta1, eta2, rng):
    now = draw(p, rng, test_size=p.n)
    F0, beta, out = p.student(now.X3 @ now.W0.T), direction(p, now), []
    learned = [np.zeros((p.d, 0)), beta[:, None]]
    learned += [found[:, :2] + np.outer(eta1 / eta2 * beta, [1, 0]) for found in _both_batches(now, beta, np.arange(2))]
    for B in learned:
        hidden = np.linalg.qr(now.a[:, None] ** np.arange(1, B.shape[1] + 1))[0]
        Z = _STRONG * now.X3 @ (B / np.linalg.norm(B, axis=0))
        out.append(ridge(np.column_stack([F0 - (F0 @ hidden) @ hidden.T, Z]), now.y3, p.ridge)[1])
    return {"train": out, "variates": variates(p, replace(now, X2=now.X3, y2=now.y3), now.y3[:, None])}


def losses(p: Problem, eta1, eta2, **run) -> Losses:
    """Losses of ridge regression on a sample of its own, after a first step and second steps of several sizes.

    The test error is that on 2n further rows.

    Parameters
    ----------
    p : Problem
    eta1 : float
        Size of the first step, >= 0.
    eta2 : array_like, (steps,)
        Sizes of the second step, >= 0; 0 is the network after one step.
    **run
        trials, seed, jobs and executor, as in `repeat`.

    Returns
    -------
    Losses

    Raises
    ------
    ValueError
        For a bad argument, or when the memory needed is not there.
    """
    eta1, eta2 = number("eta1", eta1, least=0), np.atleast_1d(checks.steps(eta2, "eta2"))
    return collect(Losses, partial(_losses, p, eta1, eta2), memory(p, 3 * as_problem(p).n), **run)


def _losses(p, eta1, eta2, rng):
    now = draw(p, rng, test_size=3 * p.n)
    W1 = now.W0 + eta1 * gradient(p, now)
    gradients = [gradient(p, replace(now, W0=W1, X=X, y=y)) for X, y in ((now.X, now.y), (now.X2, now.y2))]
    train, test = np.moveaxis([[_errors(p, now, W1 + eta * G) for eta in eta2] for G in gradients], -1, 0)
    return {"train": train, "test": test}


def _errors(p, now: Draw, W):
    """Training loss and test error of ridge regression on the first n rows of the draw's last sample."""
    F = p.student(now.X3 @ W.T)
    fit, train = ridge(F[: p.n], now.y3[: p.n], p.ridge)
    return train, np.mean((now.y3[p.n :] - F[p.n :] @ fit) ** 2)
