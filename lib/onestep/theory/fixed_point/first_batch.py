"""The first batch: the law of its residuals y and what it does to the first layer.

    M = Xᵀdiag(y)X/n,   C = Xᵀdiag(y²)X/n,   β = Xᵀy/n,   D = ‖β‖².

`FirstBatch` is the mean one, to relative order 1/d; `spread` gives two about it, as first batches differ by 1/√n.
Shapes: Y nodes of y, A directions e_a that y depends on (β⋆; W0ᵀa with the full initial output), x_a = e_aᵀx.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import sqrt

import numpy as np

from ...problem import Problem
from .. import quadrature


@dataclass(frozen=True)
class FirstBatch:
    """The law of the residuals y in the gradient step, with the inputs along the directions e_a they depend on.

    phi : d over the size of the first batch.  y : (Y,) Gauss nodes.  weight : (Y,) weights of E f(y).
    along, pair : (A, Y), (A, A, Y) of E x_a f(y), E x_a x_b f(y).
    mean : (A,) part of β along the e_a.  rest : square length of what is orthogonal to them.
    level, level_std : mean and standard deviation over batches of tr M/d, the mean residual.
    shift : what was added to β along e_1.
    """

    phi: float
    y: np.ndarray
    weight: np.ndarray
    along: np.ndarray
    pair: np.ndarray
    mean: np.ndarray
    rest: float
    level: float
    level_std: float
    shift: float = 0.0

    @cached_property
    def moments(self):
        """E y^k, k = 0..4."""
        return self.weight @ self.y[:, None] ** np.arange(5)

    @cached_property
    def powers(self):
        """(3, Y) weights of E y^k f(y), k = 0, 1, 2."""
        return self.weight * self.y ** np.arange(3)[:, None]

    @cached_property
    def D(self):
        """‖β‖², eq. (5)."""
        return float(self.mean @ self.mean + self.rest)

    @cached_property
    def cosine(self):
        """(A,) cosines of β with the directions, eq. (5)."""
        return self.mean / sqrt(self.D)

    @cached_property
    def share(self):
        """How much of β̂ the batch's own β makes, the rest being the shift along e_1."""
        return 1 - self.shift * self.mean[-1] / self.D

    @cached_property
    def away(self):
        """|sin| of the angle between β and the teacher's direction e_0."""
        return sqrt((self.rest + np.sum(self.mean[1:] ** 2)) / self.D)

    def moment_along(self, k):
        """E y^k β̂ᵀx, k = 1..3, whose second term is a sample's own part of β."""
        return float(self.cosine @ (self.along @ self.y**k) + self.phi * self.moments[k + 1] / sqrt(self.D))

    @cached_property
    def plane(self):
        """I, M, M², C in the plane of β̂ and ζ, the part of e_0 orthogonal to it, by eq. (9); (4, 2, 2)."""
        A, (_, _, m2, m3, m4) = self.mean.size, self.moments
        edge = self.phi * self.along / sqrt(self.phi * m2)
        M, C = (
            np.block([[self.pair @ self.y**k, (edge @ self.y ** (k + 1))[:, None]], [edge @ self.y ** (k + 1), corner]])
            for k, corner in ((1, self.phi * m3 / m2), (2, m2 + self.phi * m4 / m2))
        )
        square = M[:, :A] @ M[:A] + self.phi * C  # what M sends outside of the directions e_a has the length φC
        hat = np.append(self.cosine, sqrt(self.rest / self.D))
        axes = np.array([hat, (np.eye(A + 1)[0] - self.cosine[0] * hat) / self.away])
        return axes @ np.array([np.eye(A + 1), M, square, C]) @ axes.T

    def shifted(self, by):
        """The batch with β + by·e_1 in the place of β: its own y, M and C, another direction."""
        return replace(self, mean=self.mean + by * np.eye(self.mean.size)[1], shift=by)

    @property
    def image(self):
        """(A,) e_aᵀMβ̂, by eq. (9)."""
        edge = sqrt(self.phi * self.rest / (self.moments[2] * self.D))
        return self.pair @ self.y @ self.cosine + edge * (self.along @ self.y**2)

    @property
    def turned(self):
        """What (1/n)Σ y²x has along Mβ̂ beyond what its part along β̂ gives, eq. (16)."""
        along = self.along @ self.y**2 @ self.image
        return float(self.phi * self.moment_along(3) + along - self.moment_along(2) * self.plane[1, 0, 0])

    @property
    def outside(self):
        """Length of the part of Mβ̂ outside of the plane of β̂ and ζ."""
        (M, _), square = self.plane[1], self.plane[2, 0, 0]
        return sqrt(max(0.0, square - M @ M))

    @property
    def traces(self):
        """(1/d) tr of I, M, M², C, eq. (7)."""
        return np.array([1, 0, self.phi, 1]) * self.moments[2] ** np.array([0, 1, 1, 1])

    @property
    def products(self):
        """(4, 4), (1/d) tr of the products of I, M, M², C less their traces: from free cumulants φ^(k-1) E y^k."""
        phi, (_, _, m2, m3, m4) = self.phi, self.moments
        found = np.zeros((4, 4))
        found[1:, 1:] = [[m2, phi * m3, m3], [phi * m3, phi * (phi * m4 + m2**2), phi * m4], [m3, phi * m4, m4]]
        return phi * found

    @cached_property
    def excess(self):
        """By how much the traces of I, M, M², C exceed d times those of `traces`, as d → ∞, eq. (8); (4,)."""
        M, m2 = self.pair @ self.y, self.moments[2]
        E_2 = np.trace(self.pair @ self.y**2) - len(M) * m2
        return np.array([0.0, np.trace(M), 2 * self.phi * (m2 + E_2) + np.sum(M**2), E_2])


def first_batch(p: Problem, order):
    """The mean `FirstBatch` of p on at most order + 1 nodes."""
    x_0, weight = p.target.nodes()
    variance = p.noise**2 + (p.student.second_moment if p.initial_output == "full" else 0.0)
    noise, chance = quadrature.gauss_hermite(32 if variance else 1)
    y = (p.target(x_0)[:, None] + sqrt(variance) * noise).ravel()
    root = np.sqrt(np.outer(weight, chance).ravel())
    x_0, noise = np.repeat(x_0, noise.size), np.tile(noise, x_0.size)
    along, pair = [x_0], [[x_0**2]]  # means given x_0 and y of x_a and x_a x_b
    if p.initial_output == "full":  # y - σ⋆(x_0) holds -f_0, linear part -c_1 x_1: x_1 is N(share·noise, 1 - share²)
        share = -p.student.linear / sqrt(variance)
        x_1 = share * noise
        along, pair = [x_0, x_1], [[x_0**2, x_0 * x_1], [x_0 * x_1, 1 - share**2 + x_1**2]]
    # Gauss weights for E x_a f(y): of √weight E[x_a | y] the part in the Krylov space of √weight under y
    nodes, lift = quadrature.gauss(y, root, order + 1)
    weight = lift @ root
    along, pair = (weight * (np.array(part) * root @ lift.T) for part in (along, pair))
    mean, size = along @ nodes, p.step_phi * weight**2 @ nodes**2
    rest, level_std = size * (1 - len(mean) / p.d), sqrt(size / p.d * (1 + 2 / p.d))
    return FirstBatch(p.step_phi, nodes, weight**2, along, pair, mean, rest, 0.0, level_std)


def spread(batch, d):
    """Two first batches of d inputs whose D varies as that of drawn ones does, and `mean`, `rest`, `level` with it.

    Eq. (43), from the covariance over samples of y x_a, y²/E y² and y.
    """
    y, (_, _, m2, m3, m4) = batch.y, batch.moments
    mixed = batch.along @ np.transpose([y**3 / m2, y**2])
    second = np.block([[batch.pair @ y**2, mixed], [mixed.T, np.array([[m4 / m2**2, m3 / m2], [m3 / m2, m2]])]])
    first = np.array([*(batch.along @ y), 1.0, 0.0])
    covariance = batch.phi * (second - np.outer(first, first))  # of mean, log rest and level, times d
    covariance[-2, -2] += 2
    slope = np.array([*(2 * batch.mean), batch.rest, 0.0])
    step = covariance @ slope / sqrt(d * (slope @ covariance @ slope))
    *along, log_rest, level = step
    level_std, means = sqrt(max(0.0, batch.level_std**2 - level**2)), batch.mean + np.outer((-1, 1), along)
    rests = batch.rest * np.exp([-log_rest, log_rest]) / np.cosh(log_rest)  # of mean batch.rest
    return [
        replace(batch, mean=mean, rest=float(rest), level=s * level, level_std=level_std)
        for mean, rest, s in zip(means, rests, (-1, 1), strict=True)
    ]
