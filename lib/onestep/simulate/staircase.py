"""Losses of the limit features themselves: untrained features plus spikes of infinite strength."""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

import numpy as np
from numpy.polynomial.hermite_e import hermevander
from scipy.linalg import cho_solve
from scipy.special import factorial

from ..checks import whole
from ..hermite import Polynomial, monomials
from ..problem import Problem
from . import averages
from .control_variates import variates
from .network import direction, draw, gram_factor, redraw
from .replicates import replicated


@replicated()
def plateaus(p: Problem, orders, *, redraws=1, moments=False, rng):
    """Losses of the limit features [F0 Q, z, …, z^{∘ℓ}], powers unpenalised, for ℓ in orders (0: F0 itself).

    z = X̃β/‖β‖ with β = Xᵀr/n of the replicate; Q projects off a, …, a^{∘ℓ}, the hidden directions that the spikes fill.
    These are the features that a step n^α, (ℓ-1)/2ℓ < α < ℓ/(2ℓ+2), ends in when n → ∞: spikes so strong that the ridge
    penalty does not see them.

    orders : whole numbers ℓ >= 0 with c_1, …, c_ℓ not 0; or ℓ - 1/2 with ℓ >= 2, exactly at the threshold
        α = (ℓ-1)/2ℓ, where spike ℓ keeps the strength c_ℓ (c_1 n^α ‖β‖)^ℓ on z^{∘ℓ}(a^{∘ℓ})ᵀ.
    redraws : draws of everything but W0 and X̃ over which each replicate is averaged. One factorisation serves them all,
        and drops of the losses are nearly independent between them.
    moments : whether the variates also hold the second sample's moments of z, which explain most of the spread of the
        increments from stair to stair but, being many, pay from some hundred trials on.

    train, test : (trials, len(orders)), test errors as exact averages.
    """
    orders, redraws = _orders(orders), whole("redraws", redraws, 1)
    missing = np.flatnonzero(p.student.coefficients(int(max(orders)))[1:] == 0)
    if missing.size:
        raise ValueError(
            f"orders = {orders}: c_{missing[0] + 1} = 0, so that no step bears spike {missing[0] + 1}; stop below it"
        )
    first = draw(p, rng)
    draws = [first, *(redraw(p, first, rng) for _ in range(redraws - 1))]
    units = np.array([beta / np.linalg.norm(beta) for beta in (direction(p, now) for now in draws)])
    out = LimitFits(p, first).losses(draws, units, orders)
    controls = [variates(p, now, now.y2[:, None]) for now in draws]
    if moments:
        top = ceil(max(orders))
        controls = np.hstack([controls, [_moments(p, now, unit, top) for now, unit in zip(draws, units, strict=True)]])
    train, test = np.mean(out, axis=0).T
    return {"train": train, "test": test, "variates": np.mean(controls, axis=0)}


def _orders(orders):
    if not np.iterable(orders) or isinstance(orders, str) or len(orders) == 0:
        raise ValueError(f"orders = {orders!r}: must be a list of whole numbers >= 0, or of those less 1/2")
    return [
        order if isinstance(order, float) and order > 1 and order % 1 == 0.5 else whole("orders", order, 0)
        for order in orders
    ]


class LimitFits:
    """Ridge fits on the untrained features F0 of one draw, with and without spikes of infinite strength."""

    def __init__(self, p: Problem, first):
        self.p, self.F0 = p, p.student(first.X2 @ first.W0.T)
        self.factor = gram_factor(self.F0, p.ridge * p.n)
        self.K = averages.gram(p.student, first.W0 @ first.W0.T)

    def losses(self, draws, units, orders):
        """(training loss, test error) of each draw at each order of `plateaus`, (len(draws), len(orders), 2).

        The draws share W0 and X2 with that of the fits; units (len(draws), d) are the directions of their spikes.
        """
        averages = _averages(self.p, draws, units, ceil(max(orders)))
        each = zip(draws, units, averages, strict=True)
        return np.array([self._fits(now, now.X2 @ unit, orders, means) for now, unit, means in each])

    def _fits(self, now, z, orders, means):
        """The losses of one draw; what passes over F0 is done once for all orders."""
        A = np.column_stack([now.y2, z[:, None] ** np.arange(1, len(means.gram) + 1)])  # y, z, …, z^top
        inner, cross = A.T @ A, self.F0.T @ A
        solved = cho_solve(self.factor, cross, check_finite=False)
        return [self._fit(now, order, inner, cross, solved, means) for order in orders]

    def _fit(self, now, order, inner, cross, solved, means):
        """(training loss, test error) of the fit F0 b + Z c, Z = [z, …, z^k], c unpenalised, under linear constraints.

        inner, cross, solved : AᵀA, F0ᵀA and (F0ᵀF0 + λnI)⁻¹F0ᵀA of A = [y, z, …, z^top].
        Spikes of infinite strength let b vanish along a, …, a^{∘ℓ}; one of finite strength, z^{∘k}hᵀ, sets c_k = h·b.
        """
        B, E = _constraints(self.p, now, order)
        k = len(E)
        powers = slice(1, k + 1)
        # Lagrange's conditions: b = b_0 - (F0ᵀF0 + λnI)⁻¹[F0ᵀZ, B](c, μ), and the Schur complement gives c and μ
        side = np.column_stack([cross[:, powers], B])
        behind = np.column_stack([solved[:, powers], cho_solve(self.factor, B, check_finite=False) if k else B])
        schur = np.block([[inner[powers, powers], E], [E, np.zeros((k, k))]]) - side.T @ behind
        multipliers = np.linalg.solve(schur, np.append(inner[powers, 0], np.zeros(k)) - side.T @ solved[:, 0])
        b, c = solved[:, 0] - behind @ multipliers, multipliers[:k]
        train = (inner[0, 0] - cross[:, 0] @ b - inner[0, powers] @ c) / self.p.n
        second = b @ (self.K @ b + 2 * (means.mixed[:, :k] @ c)) + c @ means.gram[:k, :k] @ c
        return train, second - 2 * (means.labels @ b + means.powers[:k] @ c) + self.p.label_power


def _moments(p, now, unit, top):
    """Means less expected, (3 top,): of h_k(z), k = 1..2 top, and y h_k(z), k = 1..top; h_k = H_k/√k!."""
    z = now.X2 @ unit
    basis = hermevander(z, 2 * top)[:, 1:] / np.sqrt(factorial(np.arange(1, 2 * top + 1)))
    expected = p.target.normalized(top)[1:] * (now.beta_star @ unit) ** np.arange(1, top + 1)
    return np.concatenate([basis.mean(0), now.y2 @ basis[:, :top] / len(z) - expected])


class _Averages(NamedTuple):
    """Averages over x ~ N(0, I) for one draw, with the powers z^k, k = 1, …, top.

    labels : (N,), E y σ(Wx).  powers : (top,), E y z^k.  mixed : (N, top), E σ(Wx) z^k.  gram : (top, top), E z^{j+k}.
    """

    labels: np.ndarray
    powers: np.ndarray
    mixed: np.ndarray
    gram: np.ndarray


def _averages(p, draws, units, top):
    """`_Averages` of each of the draws, which share W0."""
    W0, shape = draws[0].W0, (len(draws), -1)
    norms, ones = np.linalg.norm(W0, axis=1), np.ones(len(draws))
    teachers = np.array([now.beta_star for now in draws])
    powers = [Polynomial(row) for row in monomials(top)[1:]]
    tiled, ahead, toward = np.tile(norms, len(draws)), teachers @ W0.T / norms, units @ W0.T / norms
    labels = averages.cross(p.student, p.target, tiled, ahead.ravel()).reshape(shape)
    overlap = np.sum(teachers * units, axis=1)
    with_labels = [averages.cross(power, p.target, ones, overlap) for power in powers]
    with_labels = np.reshape(with_labels, (top, len(draws))).T.copy()
    mixed = np.moveaxis(averages.crosses(p.student, powers, tiled, toward.ravel()).reshape(top, len(draws), p.N), 0, -1)
    return [_Averages(*each, _gram(top)) for each in zip(labels, with_labels, mixed, strict=True)]


def _gram(top):
    """E z^{j+k} for j, k = 1, …, top and z ~ N(0, 1), (top, top)."""
    nodes, weights = Polynomial(np.ones(top + 1)).nodes()
    powers = [Polynomial(row) for row in monomials(top)[1:]]
    return np.array([[weights @ (one(nodes) * other(nodes)) for other in powers] for one in powers]).reshape(top, top)


def _constraints(p, now, order):
    """B (N, k) and E (k, k) of the constraints Bᵀb + Ec = 0, k = order rounded up."""
    full, k = int(order), ceil(order)
    B, E = np.zeros((p.N, k)), np.zeros((k, k))
    B[:, :full] = np.linalg.qr(now.a[:, None] ** np.arange(1, full + 1))[0]
    if k > full:
        strength = p.student.linear * p.n ** (full / (2 * k)) * np.linalg.norm(direction(p, now))
        hidden = p.student.coefficients(k)[k] * strength**k * now.a**k
        hidden -= B[:, :full] @ (B[:, :full].T @ hidden)
        B[:, full], E[full, full] = hidden, -1.0
    return B, E
