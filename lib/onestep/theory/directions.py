"""What one giant step learns of a multi-index target, predicted: signal and noise of a neuron's gradient.

For a neuron w on the unit sphere, E[y x σ'(wᵀx)] = Σ_k k c_k C_k[w, ..., w, ·] by Stein's lemma, with the target's
Hermite tensors C_k = E[y H_k(z)] (Damian et al. 2022; Dandi et al. 2023). Along the target's directions w has entries
of size 1/√d, so the part of order k is of size d^{(1-k)/2}; n samples add the variance E y² E σ'²/n per coordinate.
The lowest part of order ℓ with C_ℓ ≠ 0 and c_ℓ ≠ 0 is learned when n reaches d^ℓ.
"""

from __future__ import annotations

import numpy as np
from numpy.polynomial import hermite_e

from .. import hermite
from ..checks import number, whole

_ORDER = 6  # Hermite parts of the target that are kept
_NODES = 40  # quadrature nodes per direction


def energy(target, d, n, *, activation="shifted_relu", preprocess=False):
    """Predicted mean energy of the moved neurons along each direction, (len(n), r).

    target, activation, preprocess : As for the simulation; the estimated linear part adds its own noise. Leading order
    in 1/d; exact averages over the neuron's start.  d : Inputs.  n : (k,), Numbers of samples, > 0.
    """
    d, n = whole("d", d, target.r), np.atleast_1d(np.asarray(n, float))
    for size in n:
        number("n", float(size), above=0)
    student = hermite.function(activation)
    c = student.coefficients(_ORDER)
    labels = target.preprocessed if preprocess else target
    noise = labels.power * student.slope_second_moment
    if preprocess:
        noise += c[1] ** 2 * target.power
    nodes, weights = hermite_e.hermegauss(_NODES)
    start, mass = _product(nodes, target.r), _product(weights, target.r).prod(axis=1)
    signal = sum(k * c[k] * _contract(labels.tensor(k), start / np.sqrt(d)) for k in range(1, _ORDER + 1))
    variance = noise / n[:, None, None]
    share = (signal**2 + variance) / (np.sum(signal**2, axis=-1, keepdims=True) + d * variance)
    return np.einsum("q,nqj->nj", mass / mass.sum(), share)


def _product(values, r):
    """All r-tuples of values, (len(values)**r, r)."""
    return np.stack(np.meshgrid(*[values] * r, indexing="ij"), axis=-1).reshape(-1, r)


def _contract(tensor, w):
    """C[w, ..., w, ·] for every row of w, (len(w), r); C is symmetric."""
    r = w.shape[1]
    if tensor.ndim == 1 or not tensor.any():  # the same for every row: C itself, or 0
        return np.broadcast_to(tensor.reshape(-1, r)[0], w.shape)
    out = w @ tensor.reshape(r, -1)
    for _ in range(tensor.ndim - 2):
        out = (w[:, None, :] @ out.reshape(len(w), r, -1))[:, 0]
    return out
