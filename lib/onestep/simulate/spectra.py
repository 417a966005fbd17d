"""Measured spectra over replicates: how far the gradient is from rank one, the singular values of W and of F.

Every replicate redraws everything; all steps share its draws. `trials`, `seed`, `jobs` and `executor` are those of
`repeat`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.linalg import eigh

from .. import checks
from ..checks import number, steps, whole
from ..problem import Problem
from . import network
from .control_variates import variates
from .every_step import memory
from .replicates import key, repeat
from .svd import alignment, operator_norm, singular_triplets

_NORM = 1e-3  # relative residual of operator norms: their error is of its square


@dataclass(frozen=True)
class Gradients:
    """One number a replicate, each (trials,).

    gap : ‖G - c_1 a βᵀ‖/‖G‖ with β = Xᵀ(y - f_0)/n.  labels : the same with β = Xᵀy/n.
    square : ‖β‖².  cosine : of β with β⋆.  variates : (trials, k), statistics of the draws with mean zero.
    """

    gap: np.ndarray
    labels: np.ndarray
    square: np.ndarray
    cosine: np.ndarray
    variates: np.ndarray


@dataclass(frozen=True)
class Weights:
    """Leading singular triplets of W = W0 + ηG: each (trials, len(eta)).

    first, second : the two largest singular values.  left, right : squared cosines of the first singular vectors with
        a and with β.  variates : (trials, k), statistics of the draws with mean zero.
    """

    first: np.ndarray
    second: np.ndarray
    left: np.ndarray
    right: np.ndarray
    variates: np.ndarray


@dataclass(frozen=True)
class Features:
    """Leading singular triplets of F = σ(X̃Wᵀ).

    values : (trials, len(eta), count), divided by √n.  overlap : (trials, len(eta), count, order + 1), squared cosine
        of left vector j with the k-th monomial (X̃β)^{∘k} made orthogonal to the ones before; the constant comes last.
    variates : (trials, k), statistics of the draws with mean zero.
    """

    values: np.ndarray
    overlap: np.ndarray
    variates: np.ndarray


def directions(p: Problem, *, trials=20, seed=0, jobs=2, executor=None):
    """(‖β‖², cosine of β with β⋆), each (trials,), without the gradient."""
    return np.array(repeat(partial(_directions, p), trials, seed, jobs=jobs, executor=executor)).T


def _directions(p, rng):
    now = network.draw(p, rng)
    return _against(network.direction(p, now), now)


def gradients(p: Problem, *, trials=20, seed=0, jobs=2, executor=None) -> Gradients:
    """Distance of the gradient from rank one, and the direction it points in."""
    results, known = zip(
        *repeat(partial(_gradients, p), trials, seed, jobs=jobs, gib=memory(p), executor=executor), strict=True
    )
    return Gradients(*np.transpose(results), np.array(known))


def _gradients(p, rng):
    now = network.draw(p, rng)
    G = network.gradient(p, now)
    betas = [network.direction(p, now, of=of) for of in network.DIRECTIONS]
    gaps = [operator_norm(G - np.outer(p.student.linear * now.a, beta), _NORM) for beta in betas]
    return [*(np.array(gaps) / operator_norm(G, _NORM)), *_against(betas[0], now)], _variates(p, now)


def weights(p: Problem, eta, *, trials=20, seed=0, jobs=2, executor=None) -> Weights:
    """The two largest singular values of W after each step, and where the first vectors point.  eta : 1-D, >= 0."""
    eta = np.atleast_1d(steps(eta))
    results, known = zip(
        *repeat(partial(_weights, p, eta), trials, seed, jobs=jobs, gib=memory(p), executor=executor), strict=True
    )
    return Weights(*np.swapaxes(results, 0, 1), np.array(known))


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
    return np.transpose(out), _variates(p, now)


def weight_spectrum(p: Problem, eta, *, trials=4, seed=0, jobs=2, executor=None):
    """All singular values of W after one step of size eta >= 0, largest first; shape (trials, min(N, d))."""
    number("eta", eta, least=0)
    return np.array(
        repeat(partial(_weight_spectrum, p, eta), trials, seed, jobs=jobs, gib=memory(p), executor=executor)
    )


def _weight_spectrum(p, eta, rng):
    now = network.draw(p, rng)
    return np.linalg.svd(now.W0 + eta * network.gradient(p, now), compute_uv=False)


def feature_spectrum(p: Problem, eta, *, seed=0):
    """All singular values of F/√n of one replicate at each step, largest first; (len(eta), min(n, N)).  eta : 1-D."""
    checks.memory(memory(p))
    _, base, move = _activations(p, key(seed, 0))
    out = []
    for step in np.atleast_1d(steps(eta)):
        F = network.features(p, base, move, step)
        gram = F.T @ F if p.N <= p.n else F @ F.T
        out.append(np.sqrt(np.maximum(eigh(gram / p.n, eigvals_only=True, overwrite_a=True)[::-1], 0.0)))
    return np.array(out)


def features(p: Problem, eta, count, *, order=0, trials=4, seed=0, jobs=2, executor=None) -> Features:
    """The `count` largest singular values of F/√n after each step, and their left vectors against `order` monomials.

    eta : 1-D, >= 0.  count : whole number >= 1.  order : whole number >= 0.
    """
    eta = np.atleast_1d(steps(eta))
    replicate = partial(_features, p, eta, count, whole("order", order, 0))
    results, known = zip(*repeat(replicate, trials, seed, jobs=jobs, gib=memory(p), executor=executor), strict=True)
    table = np.array(results)
    return Features(table[..., 0], table[..., 1:], np.array(known))


def _features(p, eta, count, order, rng):
    now, base, move = _activations(p, rng)
    beta = network.direction(p, now)
    z, u = now.X2 @ beta / np.linalg.norm(beta), np.sqrt(p.N) * now.a
    basis = np.linalg.qr(z[:, None] ** [*range(1, order + 1), 0])[0]
    out = []
    for step in eta:
        top = singular_triplets(network.features(p, base, move, step), count, tolerance=_NORM)
        out.append(np.column_stack([top.values / np.sqrt(p.n), (basis.T @ top.left).T ** 2]))
    moments = [np.mean(x**k) - mean for x, k, mean in ((u, 6, 15), (z, 2, 1), (z, 4, 3), (z, 6, 15))]
    return out, np.concatenate([_variates(p, now), moments])


def _variates(p, now):
    """`variates`, and how W0 sees a and β_y = Xᵀy/n, which does not know W0: ‖W0ᵀa‖², ‖W0β_y‖²/‖β_y‖² and aᵀW0β_y."""
    hidden, beta = now.W0.T @ now.a, network.direction(p, now, of="labels")
    along = now.W0 @ beta / np.linalg.norm(beta)
    more = [hidden @ hidden - 1, along @ along - p.N / p.d, hidden @ beta]
    return np.append(variates(p, now, now.y2[:, None]), more)


def _activations(p, rng):
    now = network.draw(p, rng)
    return now, now.X2 @ now.W0.T, now.X2 @ network.gradient(p, now).T


def _against(beta, now):
    square = beta @ beta
    return square, beta @ now.beta_star / np.sqrt(square)
