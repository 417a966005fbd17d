"""Measured spectra over replicates: how far the gradient is from rank one, the singular values of W and of F.

Every replicate redraws everything; all steps share its draws.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.linalg import eigh

from ..checks import steps, whole
from ..problem import Problem
from . import network
from .control_variates import variates
from .every_step import memory
from .replicates import Result, collect
from .svd import NORM, alignment, operator_norm, singular_triplets


@dataclass(frozen=True)
class Directions(Result):
    """The direction β = Xᵀ(y - f_0)/n of the step.

    Attributes
    ----------
    square : array, (trials,)
        ‖β‖².
    cosine : array, (trials,)
        Of β with β⋆.
    """

    square: np.ndarray
    cosine: np.ndarray


@dataclass(frozen=True)
class Gradients(Result):
    """Distance of the gradient from rank one, and the direction it points in.

    Attributes
    ----------
    gap : array, (trials,)
        ‖G - c_1 a βᵀ‖/‖G‖ with β = Xᵀ(y - f_0)/n.
    labels : array, (trials,)
        The same with β = Xᵀy/n.
    square, cosine : array, (trials,)
        As in `Directions`.
    """

    gap: np.ndarray
    labels: np.ndarray
    square: np.ndarray
    cosine: np.ndarray


@dataclass(frozen=True)
class Weights(Result):
    """Leading singular triplets of W = W0 + ηG.

    Attributes
    ----------
    first, second : array, (trials, steps)
        The two largest singular values.
    left, right : array, (trials, steps)
        Squared cosines of the first singular vectors with a and with β.
    """

    first: np.ndarray
    second: np.ndarray
    left: np.ndarray
    right: np.ndarray


@dataclass(frozen=True)
class Spectrum(Result):
    """All singular values, largest first.

    Attributes
    ----------
    values : array, (trials, steps, count)
    """

    values: np.ndarray


@dataclass(frozen=True)
class Features(Result):
    """Leading singular triplets of F = σ(X̃Wᵀ).

    Attributes
    ----------
    values : array, (trials, steps, count)
        Singular values divided by √n.
    overlap : array, (trials, steps, count, order + 1)
        Squared cosine of left vector j with the k-th monomial (X̃β)^{∘k} made orthogonal to the ones before; the
        constant comes last.
    """

    values: np.ndarray
    overlap: np.ndarray


def directions(p: Problem, **run) -> Directions:
    """Length of the step's direction β and its cosine with β⋆, without the gradient.

    Parameters
    ----------
    p : Problem
    **run
        trials, seed, jobs and executor, as in `repeat`.

    Returns
    -------
    Directions
    """
    return collect(Directions, partial(_directions, p), **run)


def _directions(p, rng):
    now = network.draw(p, rng)
    return _against(network.direction(p, now), now)


def gradients(p: Problem, **run) -> Gradients:
    """Distance of the gradient from rank one, and the direction it points in.

    Parameters
    ----------
    p : Problem
    **run
        trials, seed, jobs and executor, as in `repeat`.

    Returns
    -------
    Gradients
    """
    return collect(Gradients, partial(_gradients, p), memory(p), **run)


def _gradients(p, rng):
    now = network.draw(p, rng)
    G = network.gradient(p, now)
    betas = [network.direction(p, now, of=of) for of in network.DIRECTIONS]
    gaps = [operator_norm(G - np.outer(p.student.linear * now.a, beta), NORM) for beta in betas]
    gap, labels = np.array(gaps) / operator_norm(G, NORM)
    return {"gap": gap, "labels": labels, "variates": _variates(p, now)} | _against(betas[0], now)


def weights(p: Problem, eta, **run) -> Weights:
    """The two largest singular values of W after each step, and where the first vectors point.

    Parameters
    ----------
    p : Problem
    eta : float or array, (steps,)
        Step sizes >= 0.
    **run
        trials, seed, jobs and executor, as in `repeat`.

    Returns
    -------
    Weights

    Raises
    ------
    ValueError
        For a bad argument, or where W has one singular value alone.
    """
    if min(p.N, p.d) < 2:
        raise ValueError(f"N = {p.N}, d = {p.d}: both must be at least 2 for two singular values")
    return collect(Weights, partial(_weights, p, np.atleast_1d(steps(eta))), memory(p), **run)


def _weights(p, eta, rng):
    now = network.draw(p, rng)
    G, beta = network.gradient(p, now), network.direction(p, now)
    W0, G, (near, far) = (now.W0, G, (beta, now.a)) if p.d <= p.N else (now.W0.T, G.T, (now.a, beta))
    inner, mixed, outer = W0.T @ W0, W0.T @ G, G.T @ G
    mixed += mixed.T.copy()
    out = []
    for step in eta:
        gram = inner + step * mixed + step**2 * outer
        squares, vectors = eigh(gram, subset_by_index=[len(gram) - 2, len(gram) - 1])
        first = vectors[:, 1]
        cosines = [alignment(W0 @ first + step * (G @ first), far), alignment(first, near)]
        out.append([*np.sqrt(squares[::-1]), *(cosines if p.d <= p.N else cosines[::-1])])
    parts = dict(zip(("first", "second", "left", "right"), np.transpose(out), strict=True))
    return parts | {"variates": _variates(p, now)}


def weight_spectrum(p: Problem, eta, **run) -> Spectrum:
    """All min(N, d) singular values of W after each step.

    Parameters
    ----------
    p, eta, **run
        As in `weights`.

    Returns
    -------
    Spectrum
    """
    return collect(Spectrum, partial(_weight_spectrum, p, np.atleast_1d(steps(eta))), memory(p), **run)


def _weight_spectrum(p, eta, rng):
    now = network.draw(p, rng)
    G = network.gradient(p, now)
    return {"values": [np.linalg.svd(now.W0 + step * G, compute_uv=False) for step in eta]}


def feature_spectrum(p: Problem, eta, **run) -> Spectrum:
    """All min(n, N) singular values of F/√n after each step.

    Parameters
    ----------
    p, eta, **run
        As in `weights`.

    Returns
    -------
    Spectrum
    """
    return collect(Spectrum, partial(_feature_spectrum, p, np.atleast_1d(steps(eta))), memory(p), **run)


def _feature_spectrum(p, eta, rng):
    _, base, move = _activations(p, rng)
    out = []
    for step in eta:
        F = network.features(p, base, move, step)
        gram = F.T @ F if p.N <= p.n else F @ F.T
        out.append(np.sqrt(np.maximum(eigh(gram / p.n, eigvals_only=True, overwrite_a=True)[::-1], 0.0)))
    return {"values": out}


def features(p: Problem, eta, count, *, order=0, **run) -> Features:
    """The `count` largest singular values of F/√n after each step, and their left vectors against `order` monomials.

    Parameters
    ----------
    p, eta, **run
        As in `weights`.
    count : int
        Number of singular values, >= 1.
    order : int
        Highest monomial, >= 0.

    Returns
    -------
    Features
    """
    replicate = partial(_features, p, np.atleast_1d(steps(eta)), count, whole("order", order, 0))
    return collect(Features, replicate, memory(p), **run)


def _features(p, eta, count, order, rng):
    now, base, move = _activations(p, rng)
    beta = network.direction(p, now)
    z, u = now.X2 @ beta / np.linalg.norm(beta), np.sqrt(p.N) * now.a
    basis = np.linalg.qr(z[:, None] ** [*range(1, order + 1), 0])[0]
    out = []
    for step in eta:
        top = singular_triplets(network.features(p, base, move, step), count, tolerance=NORM)
        out.append(np.column_stack([top.values / np.sqrt(p.n), (basis.T @ top.left).T ** 2]))
    sixth = 15.0 if p.readout_values is None else np.mean(p.readout_values**6)
    moments = [np.mean(x**k) - mean for x, k, mean in ((u, 6, sixth), (z, 2, 1), (z, 4, 3), (z, 6, 15))]
    table = np.array(out)
    controls = np.concatenate([_variates(p, now), moments])
    return {"values": table[..., 0], "overlap": table[..., 1:], "variates": controls}


def _variates(p, now):
    """`variates`, and W0 along a and along β_y = Xᵀy/n, independent of it: ‖W0ᵀa‖², ‖W0β_y‖²/‖β_y‖² and aᵀW0β_y."""
    hidden, beta = now.W0.T @ now.a, network.direction(p, now, of="labels")
    along = now.W0 @ beta / np.linalg.norm(beta)
    more = [hidden @ hidden - 1, along @ along - p.N / p.d, hidden @ beta]
    return np.append(variates(p, now, now.y2[:, None]), more)


def _activations(p, rng):
    now = network.draw(p, rng)
    return now, now.X2 @ now.W0.T, now.X2 @ network.gradient(p, now).T


def _against(beta, now):
    square = beta @ beta
    return {"square": square, "cosine": beta @ now.beta_star / np.sqrt(square)}
