"""The first batch: the law of its residuals y and what it does to the first layer.

    M = Xᵀdiag(y)X/n,   C = Xᵀdiag(y²)X/n,   β = Xᵀy/n,   D = lim ‖β‖².

Shapes: Y nodes of y, A directions e_a that y depends on (β⋆; W0ᵀa with the full initial output).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from math import sqrt

import numpy as np

from ..problem import Problem
from . import quadrature


@dataclass(frozen=True)
class FirstBatch:
    """The law of the residuals y that the gradient step sees, with the inputs along the directions e_a they depend on.

    phi : d over the size of the first batch.   y : (Y,) quadrature nodes.
    one : (Y,) weights of E f(y);  along : (A, Y) of E s_a f(y);  pair : (A, A, Y) of E s_a s_b f(y), with s_a = e_aᵀx.
    """

    phi: float
    y: np.ndarray
    one: np.ndarray
    along: np.ndarray
    pair: np.ndarray

    def moment(self, k):
        """E y^k."""
        return float(self.one @ self.y**k)

    @cached_property
    def powers(self):
        """(3, Y) weights of E y^k f(y), k = 0, 1, 2."""
        return self.one * self.y ** np.arange(3)[:, None]

    @property
    def mean(self):
        """(A,) E s_a y: the part of β in the span of the directions."""
        return self.along @ self.y

    @cached_property
    def D(self):
        """Limit of ‖β‖²."""
        return float(self.mean @ self.mean + self.phi * self.moment(2))

    @cached_property
    def cosine(self):
        """(A,) cosines of β with the directions."""
        return self.mean / sqrt(self.D)

    @cached_property
    def square_along(self):
        """E y² β̂ᵀx."""
        return float(self.cosine @ (self.along @ self.y**2) + self.phi * self.moment(3) / sqrt(self.D))

    @cached_property
    def away(self):
        """|sin| of the angle between β and the teacher's direction e_0."""
        return sqrt((self.phi * self.moment(2) + np.sum(self.mean[1:] ** 2)) / self.D)

    @cached_property
    def plane(self):
        """I, M, M², C in the plane of β̂ and ζ, the part of e_0 orthogonal to it; (4, 2, 2)."""
        A, m2 = self.mean.size, self.moment(2)
        root = sqrt(self.phi * m2)
        M, C = np.zeros((A + 1, A + 1)), np.zeros((A + 1, A + 1))
        M[:A, :A], C[:A, :A] = self.pair @ self.y, self.pair @ self.y**2
        M[:A, A] = M[A, :A] = self.phi * (self.along @ self.y**2) / root
        C[:A, A] = C[A, :A] = self.phi * (self.along @ self.y**3) / root
        M[A, A], C[A, A] = self.phi * self.moment(3) / m2, m2 + self.phi * self.moment(4) / m2
        hat = np.append(self.cosine, sqrt(self.phi * m2 / self.D))
        zeta = (np.eye(A + 1)[0] - self.cosine[0] * hat) / self.away
        onto = np.array([hat, zeta])
        square = M[:, :A] @ M[:A] + self.phi * C  # what M sends outside of the directions e_a has the length φC
        return np.array([onto @ X @ onto.T for X in (np.eye(A + 1), M, square, C)])

    @cached_property
    def traces(self):
        """(1/d) tr of the products of I, M, M², C, from free cumulants φ^(k-1) E y^k; (4, 4)."""
        phi, (m2, m3, m4) = self.phi, (self.moment(j) for j in (2, 3, 4))
        return np.array(
            [
                [1, 0, phi * m2, m2],
                [0, phi * m2, phi**2 * m3, phi * m3],
                [phi * m2, phi**2 * m3, phi**3 * m4 + 2 * phi**2 * m2**2, phi**2 * m4 + phi * m2**2],
                [m2, phi * m3, phi**2 * m4 + phi * m2**2, phi * m4 + m2**2],
            ]
        )


def first_batch(p: Problem, phi, order):
    """A `FirstBatch` on at most order // 2 + 4 Gauss nodes in y, for a first batch of d/phi samples."""
    s, weight = p.target.nodes()
    spread = p.noise**2 + (p.student.second_moment if p.initial_output == "full" else 0.0)
    noise, chance = quadrature.gauss_hermite(32) if spread else (np.zeros(1), np.ones(1))
    y = (p.target(s)[:, None] + sqrt(spread) * noise).ravel()
    root = np.sqrt((weight[:, None] * chance).ravel())
    s, noise = np.repeat(s, noise.size), np.tile(noise, s.size)
    along, pair = [s], [[s**2]]
    if p.initial_output == "full":  # f0 is linear in its own direction W0ᵀa, and that part correlates with the noise
        share = -p.student.linear / sqrt(spread)
        along.append(share * noise)
        pair = [[s**2, s * along[1]], [s * along[1], 1 - share**2 + along[1] ** 2]]
    nodes, vectors, basis = quadrature.lanczos(y, root, order // 2 + 4)
    weights = vectors[0] * (np.array([*along, *chain(*pair)]) * root @ basis.T @ vectors)
    A = len(along)
    return FirstBatch(phi, nodes, vectors[0] ** 2, weights[:A], weights[A:].reshape(A, A, -1))
