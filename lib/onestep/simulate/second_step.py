"""A second step on the first layer, simulated: on the batch of the first step or on a fresh one.

Every replicate takes both, from one W_1; an axis of length 2 holds the reused batch first and the fresh one second.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.linalg import eigh

from ..checks import number, steps, whole
from ..problem import Problem
from .control_variates import variates
from .network import direction, draw, gradient, ridge
from .replicates import memory, replicated

_STRONG = 1e4  # scale of a feature whose penalty does not count


@replicated()
def outliers(p: Problem, eta1, eta2, *, count=2, rng):
    """The `count` largest singular values of W_2 = W_0 + η_1G_1 + η_2G_2, and how far their vectors point ahead.

    value : (trials, 2, count), singular values.   ahead : (trials, 2, count), squared cosines of right vectors with β⋆.
    """
    eta1, eta2, count = number("eta1", eta1, least=0), number("eta2", eta2, least=0), whole("count", count, 1)
    now, value, ahead = draw(p, rng), [], []
    W1 = now.W0 + eta1 * gradient(p, now)
    for G in _both_gradients(p, now, W1):
        W = W1 + eta2 * G
        squares, vectors = eigh(W.T @ W, subset_by_index=[p.d - min(count, *W.shape), p.d - 1])
        value.append(np.sqrt(squares[::-1]))
        ahead.append((now.beta_star @ vectors)[::-1] ** 2)
    return {"value": value, "ahead": ahead, "variates": variates(p, now, now.y2[:, None])}


@replicated()
def directions(p: Problem, count=3, *, rng):
    """The directions d_k = Xᵀ(y ∘ z^k)/n, z = Xβ, that a second step learns, k < count; no network is drawn.

    ahead, square : (trials, 2, count), β⋆ᵀd_k and ‖d_k‖².
    variates : (trials, 3), averages of x⋆y and x⋆y² over the first step's batch and of x⋆²y over the fresh one,
        x⋆ = β⋆ᵀx, less their means.
    """
    now = draw(p.replace(N=1), rng)
    found = _both_batches(now, direction(p, now), np.arange(whole("count", count, 1)))
    z, weight = p.target.nodes()
    f, (x, x2) = p.target(z), (X @ now.beta_star for X in (now.X, now.X2))
    means = weight @ np.column_stack([z * f, z * f**2, z**2 * f])
    return {
        "ahead": [now.beta_star @ d for d in found],
        "square": [np.sum(d**2, axis=0) for d in found],
        "variates": [np.mean(x * now.y), np.mean(x * now.y**2), np.mean(x2**2 * now.y2)] - means,
    }


@replicated()
def first_stairs(p: Problem, eta1, eta2, *, rng):
    """Training losses, train (trials, 4), with spikes of infinite strength along what the steps learn.

    The four are those without a step; with β; with η_1β + η_2d_0 and d_1 of the same batch; and with those of a fresh
    one. Features F_0 lose their part along a and, for two directions, along a². Of the step sizes the ratio counts.
    """
    ratio = number("eta1", eta1, least=0) / number("eta2", eta2, above=0)
    now, out = draw(p, rng, test_size=p.n), []
    F0, beta = p.student(now.X3 @ now.W0.T), direction(p, now)
    learned = [np.zeros((p.d, 0)), beta[:, None]]
    learned += [found + np.outer(ratio * beta, [1, 0]) for found in _both_batches(now, beta, np.arange(2))]
    for B in learned:
        hidden = np.linalg.qr(now.a[:, None] ** np.arange(1, B.shape[1] + 1))[0]
        Z = _STRONG * now.X3 @ (B / np.linalg.norm(B, axis=0))
        out.append(ridge(np.column_stack([F0 - (F0 @ hidden) @ hidden.T, Z]), now.y3, p.ridge)[1])
    return {"train": out, "variates": variates(p, replace(now, X2=now.X3, y2=now.y3), now.y3[:, None])}


@replicated(lambda p, *_, **__: memory(p, test_size=3 * p.n))
def losses(p: Problem, eta1, eta2, *, rng):
    """Ridge regression after a first step and second steps of several sizes η_2 >= 0: train, test (trials, 2, steps).

    The fit has a sample of its own, and the test error is that on 2n further rows.
    """
    eta1, eta2 = number("eta1", eta1, least=0), np.atleast_1d(steps(eta2, "eta2"))
    now = draw(p, rng, test_size=3 * p.n)
    W1 = now.W0 + eta1 * gradient(p, now)
    found = [[_errors(p, now, W1 + eta * G) for eta in eta2] for G in _both_gradients(p, now, W1)]
    return dict(zip(("train", "test"), np.moveaxis(found, -1, 0), strict=True))


def _both_gradients(p, now, W):
    """The gradient at W on the reused batch, and on a fresh one, the draw's second sample."""
    return [gradient(p, replace(now, W0=W, X=X, y=y)) for X, y in ((now.X, now.y), (now.X2, now.y2))]


def _both_batches(now, beta, powers):
    """d_k of the reused batch and of a fresh one, each (d, len(powers))."""
    return [X.T @ (y[:, None] * (X @ beta)[:, None] ** powers) / len(y) for X, y in ((now.X, now.y), (now.X2, now.y2))]


def _errors(p, now, W):
    """Training loss and test error of ridge regression on the first n rows of the draw's last sample."""
    F = p.student(now.X3 @ W.T)
    fit, train = ridge(F[: p.n], now.y3[: p.n], p.ridge)
    return train, np.mean((now.y3[p.n :] - F[p.n :] @ fit) ** 2)
