"""Losses of the limit features themselves: untrained features plus spikes of infinite strength."""

from __future__ import annotations

from functools import partial
from math import ceil

import numpy as np
from numpy.polynomial.hermite_e import hermevander
from scipy.linalg import cho_factor, cho_solve
from scipy.special import factorial

from ..checks import whole
from ..hermite import Polynomial, monomials
from ..problem import Problem
from . import averages
from .every_step import Losses, memory
from .network import direction, draw
from .replicates import repeat
from .variates import variates

_STRONG = 1e3  # weight of a limit spike: the penalty then costs it 1e-6 of what it costs a feature


def plateaus(p: Problem, orders, trials=20, seed=0, jobs=2, executor=None, moments=False) -> Losses:
    """Simulated losses of the limit features [F0 Q, s·z, …, s·z^{∘ℓ}], s → ∞, for every ℓ in orders (0 is F0 itself).

    z = X̃β/‖β‖ with β = Xᵀr/n of the replicate; Q projects off a, …, a^{∘ℓ}, the hidden directions that the spikes fill.
    These are the features that a step n^α, (ℓ-1)/2ℓ < α < ℓ/(2ℓ+2), ends in when n → ∞: spikes so strong that the ridge
    penalty does not see them. Test errors are population averages.

    orders : whole numbers ℓ >= 0; or ℓ - 1/2 with ℓ >= 2, exactly at the threshold α = (ℓ-1)/2ℓ, where spike ℓ keeps
        the strength c_ℓ (c_1 n^α ‖β‖)^ℓ on z^{∘ℓ}(a^{∘ℓ})ᵀ.
    moments : whether the variates also hold the second sample's moments of z, which explain most of the spread of the
        increments from stair to stair but, being many, pay from some hundred trials on.
    Returns arrays (trials, len(orders)).  Errors as in `losses`.
    """
    orders = [_order(order) for order in orders]
    replicate = partial(_plateaus, p, orders, moments)
    results, known = zip(*repeat(replicate, trials, seed, jobs, memory(p), executor), strict=True)
    return Losses(*np.moveaxis(np.array(results), 1, 0), np.array(known))


def _order(order):
    return order if isinstance(order, float) and order > 1 and order % 1 == 0.5 else whole("orders", order, 0)


def _plateaus(p, orders, moments, rng):
    now = draw(p, rng)
    beta = direction(p, now)
    unit = beta / np.linalg.norm(beta)
    z, K = now.X2 @ unit, ceil(max(orders))
    F = np.column_stack([p.student(now.X2 @ now.W0.T), _STRONG * z[:, None] ** np.arange(1, K + 1)])
    S, right, power = F.T @ F, F.T @ now.y2, now.y2 @ now.y2

    # Second moments of all features and their products with y, exact over x ~ N(0, I).
    norms = np.linalg.norm(now.W0, axis=1)
    powers = [Polynomial(row) for row in monomials(K)[1:]]
    nodes, weights = Polynomial(np.ones(K + 1)).nodes()
    H = np.empty((p.N + K, p.N + K))
    h = np.empty(p.N + K)
    H[: p.N, : p.N] = averages.gram(p.student, now.W0 @ now.W0.T)
    h[: p.N] = averages.cross(p.student, p.target, norms, now.W0 @ now.beta_star / norms)
    one, overlap, toward = np.ones(1), now.beta_star @ unit, now.W0 @ unit / norms
    for k, monomial in enumerate(powers):
        at = p.N + k
        H[at, : p.N] = H[: p.N, at] = _STRONG * averages.cross(p.student, monomial, norms, toward)
        h[at] = _STRONG * averages.cross(monomial, p.target, one, overlap * one)[0]
        H[at, p.N :] = [_STRONG**2 * weights @ (monomial(nodes) * other(nodes)) for other in powers]

    out = np.empty((2, len(orders)))
    for j, order in enumerate(orders):
        full, born = int(order), ceil(order)
        filled = np.linalg.qr(now.a[:, None] ** np.arange(1, full + 1))[0]
        hidden = np.zeros(p.N)
        if born > full:
            strength = p.student.linear * p.n ** (full / (2 * born)) * np.linalg.norm(beta)
            hidden = p.student.coefficients(born)[born] * strength**born * now.a**born / _STRONG
            hidden -= filled @ (filled.T @ hidden)

        def limit(rows, filled=filled, hidden=hidden, full=full, born=born):
            """Vᵀ rows; F V are the limit features, a spike being born added to F0 Q."""
            top = rows[: p.N] - filled @ (filled.T @ rows[: p.N]) + np.multiply.outer(hidden, rows[p.N + born - 1])
            return np.concatenate([top, rows[p.N : p.N + full]])

        gram, products = limit(limit(S).T), limit(right)
        gram[np.diag_indices_from(gram)] += p.ridge * p.n
        a = cho_solve(cho_factor(gram, lower=True, overwrite_a=True, check_finite=False), products, check_finite=False)
        out[0, j] = (power - products @ a) / p.n
        readout = np.zeros(p.N + K)
        readout[: p.N + full] = a
        readout[p.N + born - 1] += hidden @ a[: p.N]
        out[1, j] = readout @ (H @ readout) - 2 * (readout @ h) + p.label_power
    known = variates(p, now, now.y2[:, None])
    return out, np.concatenate([known, _moments(p, z, now.y2, float(overlap), K)]) if moments else known


def _moments(p, z, y, overlap, K):
    """Means over a sample, less expected, (3K,): of h_k(z), k = 1..2K, and y h_k(z), k = 1..K; h_k = H_k/√k!."""
    basis = hermevander(z, 2 * K)[:, 1:] / np.sqrt(factorial(np.arange(1, 2 * K + 1)))
    expected = p.target.normalized(K)[1:] * overlap ** np.arange(1, K + 1)
    return np.concatenate([basis.mean(0), y @ basis[:, :K] / len(y) - expected])
