"""Losses of the limit features themselves: untrained features plus spikes of infinite strength."""

from __future__ import annotations

from functools import partial
from math import ceil

import numpy as np

from ..checks import whole
from ..hermite import Polynomial, monomials
from ..problem import Problem
from . import averages
from .every_step import Losses, memory
from .network import direction, draw, ridge
from .replicates import repeat
from .variates import variates

_STRONG = 1e3  # weight of a limit spike: the penalty then costs it 1e-6 of what it costs a feature


def plateaus(p: Problem, orders, trials=20, seed=0, jobs=2, executor=None) -> Losses:
    """Simulated losses of the limit features [F0 Q, s·z, …, s·z^{∘ℓ}], s → ∞, for every ℓ in orders (0 is F0 itself).

    z = X̃β/‖β‖ with β = Xᵀr/n of the replicate; Q projects off a, …, a^{∘ℓ}, the hidden directions that the spikes fill.
    These are the features that a step n^α, (ℓ-1)/2ℓ < α < ℓ/(2ℓ+2), ends in when n → ∞: spikes so strong that the ridge
    penalty does not see them. Test errors are population averages.

    orders : whole numbers ℓ >= 0; or ℓ - 1/2 with ℓ >= 2, exactly at the threshold α = (ℓ-1)/2ℓ, where spike ℓ keeps
        the strength c_ℓ (c_1 n^α ‖β‖)^ℓ on z^{∘ℓ}(a^{∘ℓ})ᵀ.
    Returns arrays (trials, len(orders)).  Errors as in `losses`.
    """
    orders = [_order(order) for order in orders]
    results, known = zip(*repeat(partial(_plateaus, p, orders), trials, seed, jobs, memory(p), executor), strict=True)
    return Losses(*np.moveaxis(np.array(results), 1, 0), np.array(known))


def _order(order):
    return order if isinstance(order, float) and order > 1 and order % 1 == 0.5 else whole("orders", order, 0)


def _plateaus(p, orders, rng):
    now = draw(p, rng)
    beta = direction(p, now)
    unit = beta / np.linalg.norm(beta)
    z, K = now.X2 @ unit, ceil(max(orders))
    F0 = p.student(now.X2 @ now.W0.T)
    spikes = _STRONG * z[:, None] ** np.arange(1, K + 1)

    # Second moments of all features and their products with y, exact over x ~ N(0, I).
    norms = np.linalg.norm(now.W0, axis=1)
    powers = [Polynomial(row) for row in monomials(K)[1:]]
    nodes, weights = Polynomial(np.ones(K + 1)).nodes()
    H = np.empty((p.N + K, p.N + K))
    h = np.empty(p.N + K)
    H[: p.N, : p.N] = averages.gram(p.student, now.W0 @ now.W0.T)
    h[: p.N] = averages.cross(p.student, p.target, norms, now.W0 @ now.beta_star / norms)
    one, overlap, toward = np.ones(1), now.beta_star @ unit, now.W0 @ unit / norms
    for k, power in enumerate(powers):
        at = p.N + k
        H[at, : p.N] = H[: p.N, at] = _STRONG * averages.cross(p.student, power, norms, toward)
        h[at] = _STRONG * averages.cross(power, p.target, one, overlap * one)[0]
        H[at, p.N :] = [_STRONG**2 * weights @ (power(nodes) * other(nodes)) for other in powers]

    out = np.empty((2, len(orders)))
    for j, order in enumerate(orders):
        full, born = int(order), ceil(order)
        filled = np.linalg.qr(now.a[:, None] ** np.arange(1, full + 1))[0]
        F = np.column_stack([F0 - (F0 @ filled) @ filled.T, spikes[:, :full]])
        hidden = np.zeros(p.N)
        if born > full:
            strength = p.student.linear * p.n ** (full / (2 * born)) * np.linalg.norm(beta)
            hidden = p.student.coefficients(born)[born] * strength**born * now.a**born
            hidden -= filled @ (filled.T @ hidden)
            F[:, : p.N] += np.outer(z**born, hidden)
        a, out[0, j] = ridge(F, now.y2, p.ridge)
        readout = np.zeros(p.N + K)
        readout[: p.N + full] = a
        readout[p.N + born - 1] += hidden @ a[: p.N] / _STRONG
        out[1, j] = readout @ (H @ readout) - 2 * (readout @ h) + p.label_power
    return out, variates(p, now, now.y2[:, None])
