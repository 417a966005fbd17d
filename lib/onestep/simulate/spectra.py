"""Measured spectra over replicates: how far the gradient is from rank one, the singular values of W and of F.

Every replicate redraws everything, with SeedSequence(seed, spawn_key=(trial,)); all steps share its draws.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from ..checks import number, steps, whole
from ..problem import Problem
from . import network
from .replicates import key, replicates
from .svd import alignment, operator_norm, singular_triplets

_NORM = 1e-3  # relative residual of operator norms: their error is of its square


@dataclass(frozen=True)
class Gradients:
    """One number a replicate, each (trials,).

    gap : ‖G - c_1 a βᵀ‖/‖G‖ with β = Xᵀr/n, r the residual the gradient sees.  labels : the same with β = Xᵀy/n.
    square : ‖β‖².  cosine : of β with β⋆.
    """

    gap: np.ndarray
    labels: np.ndarray
    square: np.ndarray
    cosine: np.ndarray


@dataclass(frozen=True)
class Weights:
    """Leading singular triplets of W = W0 + ηG: each (trials, len(eta)).

    first, second : the two largest singular values.  left, right : squared cosines of the first singular vectors with
        a and with β.
    """

    first: np.ndarray
    second: np.ndarray
    left: np.ndarray
    right: np.ndarray


@dataclass(frozen=True)
class Features:
    """Leading singular triplets of F = σ(X̃Wᵀ).

    values : (trials, len(eta), count), divided by √n.  overlap : (trials, len(eta), count, order + 1), squared cosine
        of left vector j with the k-th monomial (X̃β)^{∘k} made orthogonal to the ones before; the constant comes last.
    """

    values: np.ndarray
    overlap: np.ndarray


def direction(p: Problem, draw):
    """β = Xᵀr/n, r = y or the residual, as `p.initial_output` says; shape (d,)."""
    return draw.X.T @ network.residual(p, draw) / len(draw.X)


def directions(p: Problem, trials=20, seed=0, jobs=2):
    """(‖β‖², cosine of β with β⋆), each (trials,), without the gradient."""

    def replicate(trial):
        now = network.draw(p, key(seed, trial))
        return _against(direction(p, now), now)

    return np.array(replicates(replicate, whole("trials", trials, 1), jobs)).T


def gradients(p: Problem, trials=20, seed=0, jobs=2) -> Gradients:
    """Distance of the gradient from rank one, and the direction it points in.

    trials, jobs : whole numbers >= 1.  seed : whole number >= 0.  Results do not depend on jobs.
    """
    c1 = p.student.linear

    def replicate(trial):
        now = network.draw(p, key(seed, trial))
        G = network.gradient(p, now)
        norm, seen = operator_norm(G, _NORM), direction(p, now)
        gaps = [operator_norm(G - np.outer(c1 * now.a, beta), _NORM) for beta in (seen, now.X.T @ now.y / p.n)]
        return gaps[0] / norm, gaps[1] / norm, *_against(seen, now)

    return Gradients(*np.array(replicates(replicate, whole("trials", trials, 1), jobs)).T)


def weights(p: Problem, eta, trials=20, seed=0, jobs=2) -> Weights:
    """The two largest singular values of W after each step, and where the first vectors point.  eta : 1-D, >= 0."""
    eta = np.atleast_1d(steps(eta))

    def replicate(trial):
        now = network.draw(p, key(seed, trial))
        G, beta = network.gradient(p, now), direction(p, now)
        inner, mixed, outer = now.W0.T @ now.W0, now.W0.T @ G, G.T @ G
        mixed += mixed.T.copy()
        out = []
        for step in eta:
            gram = inner + step * mixed + step**2 * outer
            squares, vectors = eigh(gram, subset_by_index=[p.d - 2, p.d - 1])
            left = now.W0 @ vectors[:, 1] + step * (G @ vectors[:, 1])
            out.append([*np.sqrt(squares[::-1]), alignment(left, now.a), alignment(vectors[:, 1], beta)])
        return np.transpose(out)

    return Weights(*np.swapaxes(replicates(replicate, whole("trials", trials, 1), jobs), 0, 1))


def weight_spectrum(p: Problem, eta, trials=4, seed=0, jobs=2):
    """All singular values of W after one step, largest first; shape (trials, min(N, d))."""
    number("eta", eta, least=0)

    def replicate(trial):
        now = network.draw(p, key(seed, trial))
        return np.linalg.svd(now.W0 + eta * network.gradient(p, now), compute_uv=False)

    return np.array(replicates(replicate, whole("trials", trials, 1), jobs))


def feature_spectrum(p: Problem, eta, seed=0):
    """All singular values of F/√n of one replicate at each step, largest first; (len(eta), min(n, N)).  eta : 1-D."""
    _, base, move = _activations(p, seed, 0)
    out = []
    for step in np.atleast_1d(steps(eta)):
        F = network.features(p, base, move, step)
        gram = F.T @ F if p.N <= p.n else F @ F.T
        out.append(np.sqrt(np.maximum(eigh(gram / p.n, eigvals_only=True, overwrite_a=True)[::-1], 0.0)))
    return np.array(out)


def features(p: Problem, eta, count, order=0, trials=4, seed=0, jobs=2) -> Features:
    """The `count` largest singular values of F/√n after each step, and their left vectors against `order` monomials.

    eta : 1-D, >= 0.  count, trials : whole numbers >= 1.  order : whole number >= 0.
    """
    eta = np.atleast_1d(steps(eta))
    whole("order", order, 0)

    def replicate(trial):
        now, base, move = _activations(p, seed, trial)
        z = now.X2 @ direction(p, now)
        basis = np.linalg.qr((z / np.sqrt(np.mean(z**2)))[:, None] ** [*range(1, order + 1), 0])[0]
        out = []
        for step in eta:
            F = network.features(p, base, move, step)
            top = singular_triplets(F, count, _NORM)
            out.append(np.column_stack([top.values / np.sqrt(p.n), (basis.T @ top.left).T ** 2]))
        return out

    table = np.array(replicates(replicate, whole("trials", trials, 1), jobs))
    return Features(table[..., 0], table[..., 1:])


def _activations(p, seed, trial):
    now = network.draw(p, key(seed, trial))
    return now, now.X2 @ now.W0.T, now.X2 @ network.gradient(p, now).T


def _against(beta, now):
    square = beta @ beta
    return square, beta @ now.beta_star / np.sqrt(square)
