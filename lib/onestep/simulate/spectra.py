"""Measured spectra over replicates: how far the gradient is from rank one, the singular values of W and of F.

Every replicate redraws everything; all steps share its draws.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh

from ..checks import steps, whole
from ..problem import Problem
from . import network
from .control_variates import variates
from .replicates import replicated
from .svd import NORM, alignment, operator_norm, singular_triplets


@replicated()
def directions(p: Problem, *, rng):
    """The step's direction β = Xᵀ(y - f_0)/n: square, ‖β‖², and its cosine with β⋆, (trials,)."""
    now = network.draw(p, rng)
    return _against(network.direction(p, now), now)


@replicated()
def gradients(p: Problem, *, rng):
    """Distance of the gradient from rank one, ‖G - c_1 a βᵀ‖/‖G‖, and the direction it points in; all (trials,).

    gap has β = Xᵀ(y - f_0)/n, labels has Xᵀy/n; square and cosine are those of `directions`.
    """
    now = network.draw(p, rng)
    G = network.gradient(p, now)
    betas = [network.direction(p, now, of=of) for of in network.DIRECTIONS]
    gaps = [operator_norm(G - np.outer(p.student.linear * now.a, beta), NORM) for beta in betas]
    gap, labels = np.array(gaps) / operator_norm(G, NORM)
    return {"gap": gap, "labels": labels, "variates": _variates(p, now)} | _against(betas[0], now)


@replicated()
def weights(p: Problem, eta, *, rng):
    """The two largest singular values of W = W0 + ηG, and where the first vectors point; all (trials, steps).

    first, second : singular values.   left, right : squared cosines of the first vectors with a and with β.
    """
    if min(p.N, p.d) < 2:
        raise ValueError(f"N = {p.N}, d = {p.d}: both must be at least 2 for two singular values")
    now, out = network.draw(p, rng), []
    G, beta = network.gradient(p, now), network.direction(p, now)
    for step in np.atleast_1d(steps(eta)):
        W = now.W0 + step * G
        squares, vectors = eigh(W.T @ W, subset_by_index=[p.d - 2, p.d - 1])
        right = vectors[:, 1]
        out.append([*np.sqrt(squares[::-1]), alignment(W @ right, now.a), alignment(right, beta)])
    parts = dict(zip(("first", "second", "left", "right"), np.transpose(out), strict=True))
    return parts | {"variates": _variates(p, now)}


@replicated()
def weight_spectrum(p: Problem, eta, *, rng):
    """All min(N, d) singular values of W after each step, largest first: values (trials, steps, count)."""
    now = network.draw(p, rng)
    G = network.gradient(p, now)
    return {"values": [np.linalg.svd(now.W0 + step * G, compute_uv=False) for step in np.atleast_1d(steps(eta))]}


@replicated()
def feature_spectrum(p: Problem, eta, *, rng):
    """All min(n, N) singular values of F/√n after each step, largest first: values (trials, steps, count)."""
    _, base, move = _activations(p, rng)
    out = []
    for step in np.atleast_1d(steps(eta)):
        F = network.features(p, base, move, step)
        gram = F.T @ F if p.N <= p.n else F @ F.T
        out.append(np.sqrt(np.maximum(eigh(gram / p.n, eigvals_only=True, overwrite_a=True)[::-1], 0.0)))
    return {"values": out}


@replicated()
def features(p: Problem, eta, count, *, order=0, rng):
    """The `count` leading singular triplets of F after each step, against monomials of X̃β up to degree `order`.

    values : (trials, steps, count), singular values divided by √n.
    overlap : (trials, steps, count, order + 1), squared cosine of left vector j with the k-th monomial (X̃β)^{∘k} made
        orthogonal to the ones before; the constant comes last.
    """
    now, base, move = _activations(p, rng)
    beta = network.direction(p, now)
    z, u = now.X2 @ beta / np.linalg.norm(beta), np.sqrt(p.N) * now.a
    basis = np.linalg.qr(z[:, None] ** [*range(1, whole("order", order, 0) + 1), 0])[0]
    values, overlap = [], []
    for step in np.atleast_1d(steps(eta)):
        left, sizes, _ = singular_triplets(network.features(p, base, move, step), count, NORM)
        values.append(sizes / np.sqrt(p.n))
        overlap.append((left.T @ basis) ** 2)
    sixth = 15.0 if p.readout_values is None else np.mean(p.readout_values**6)
    moments = [np.mean(x**k) - mean for x, k, mean in ((u, 6, sixth), (z, 2, 1), (z, 4, 3), (z, 6, 15))]
    return {"values": values, "overlap": overlap, "variates": np.concatenate([_variates(p, now), moments])}


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
