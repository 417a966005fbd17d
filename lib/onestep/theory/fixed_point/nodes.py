"""The equivalent features on nodes of the inputs and of the hidden units, and the state of the fixed point on them.

Shapes: Z nodes μ, U nodes of units, R modes of m_1, m = 2R.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import sqrt

import numpy as np

from ...problem import Problem
from .. import quadrature
from .first_batch import FirstBatch
from .units import Units, units

# Of σ's root mean square: directions of m_k kept, the others being noise. N weighs the square of those of degree 0.
_SMALLEST = np.array([1e-6, 1e-4, 1e-4, 1e-4])
_STILL = 1e-9  # a step that changes nothing: none at all leaves no direction
ISOTROPIC = [0, 2, 3]  # degrees in which the first batch has no special direction


@dataclass(frozen=True)
class Modes:
    """Leading modes of m_k, eq. (23): m_k(u, μ) = Σ_r c[u, r] h[μ, r].

    c : (…, U, R).  h : (…, Z, R), orthonormal under p_μ.  units, nodes : (…, U, R²) and (…, Z, R²), their products of
    two modes, so that Σ_u w_u c_uc_uᵀ and c_uᵀ F c_u become products with a matrix.
    """

    c: np.ndarray
    h: np.ndarray

    @cached_property
    def units(self):
        return _products(self.c)

    @cached_property
    def nodes(self):
        return _products(self.h)


def _products(x):
    return (x[..., :, None] * x[..., None, :]).reshape(*x.shape[:-1], -1)


@dataclass(frozen=True)
class Features:
    """The equivalent features of one problem at one step size.

    z, chi, pz : (Z,) nodes μ of the inputs and their weights.  m : (4, U, Z) m_0 … m_3.  noise : (U, Z), rest of E σ².
    label : (4, Z) of the teacher along ζ, given μ.  unseen : (Z,) rest of E σ⋆², plus σ_ε².
    linear : `Modes` of m_1.  isotropic : those of m_0, m_2, m_3, with modes that are 0 up to one number R.
    """

    p: Problem
    batch: FirstBatch
    units: Units
    z: np.ndarray
    chi: np.ndarray
    pz: np.ndarray
    m: np.ndarray
    noise: np.ndarray
    label: np.ndarray
    unseen: np.ndarray
    linear: Modes
    isotropic: Modes

    @cached_property
    def basis(self):
        """(Z, R), the orthonormal modes of √p_μ m_1."""
        return np.sqrt(self.pz)[:, None] * self.linear.h

    @cached_property
    def dimensions(self):
        """D_0 … D_3 of the inputs orthogonal to β̂."""
        return quadrature.dimensions(float(self.p.d - 1))

    @cached_property
    def scale(self):
        """Factors on a packed state: the roots of the nodes' weights on log κ and log q, the labels' unit on S."""
        unit = np.repeat([1, 1 / sqrt(self.batch.moments[2])], self.basis.shape[1])
        return np.concatenate([np.sqrt(self.pz), np.sqrt(self.units.chance), np.outer(unit, unit).ravel()])

    def start(self, solution=None):
        """A packed state to iterate from: that of `solution`, at another step size on as many nodes, or zero."""
        if solution is None:
            return np.zeros(self.scale.size)
        carry = np.kron(np.eye(2), self.basis.T @ solution.basis)
        parts = np.log(solution.kappa), np.log(solution.q), (carry @ solution.S @ carry.T).ravel()
        return self.scale * np.concatenate(parts)

    def solution(self, state):
        """The `Solution` that a packed state stands for."""
        Z, m = self.z.size, 2 * self.basis.shape[1]
        kappa, q, S = np.split(state / self.scale, [Z, Z + self.units.chance.size])
        return Solution(np.exp(kappa), np.exp(q), S.reshape(m, m), self.basis)


@dataclass(frozen=True)
class Solution:
    """kappa : (Z,) leverage ratios.  q : (U,) diagonal of the resolvent.  S : (m, m) self-energy in `basis` (Z, R)."""

    kappa: np.ndarray
    q: np.ndarray
    S: np.ndarray
    basis: np.ndarray


def features(p: Problem, eta, batch, step_noise, order, lengths):
    """`Features` after a step eta on a `FirstBatch`.   order, lengths : numbers of nodes of z and of χ.

    With the full initial output the step from W0 along β is one along β + W0ᵀa/(ηc_1) from rows with Σ a_i w_i = 0.
    """
    if p.initial_output == "full":
        eta = max(eta, _STILL)
        batch = batch.shifted(1 / (p.student.linear * eta))
    strip = 1 / sqrt(1 + (eta * p.student.linear) ** 2 * batch.D / p.N / 4)
    hidden = units(p, eta, batch, step_noise, order, strip)
    z, pz = quadrature.graded(order, strip)
    chi, pc = quadrature.length(p.d - 1, lengths)
    z, chi, pz = np.repeat(z, chi.size), np.tile(chi, z.size), np.outer(pz, pc).ravel()
    # eq. (2) for units, eq. (4) for the label
    m, noise = quadrature.expand(p.student, hidden.spike[:, None] * z, hidden.length[:, None] * chi, p.d - 1)
    label, unseen = quadrature.expand(p.target, batch.cosine[0] * z, batch.away * chi, p.d - 1)
    by_units, by_nodes = np.sqrt(hidden.chance)[:, None], np.sqrt(pz)
    left, size, right = np.linalg.svd(m * by_units * by_nodes, full_matrices=False)
    kept = size > _SMALLEST[:, None] * sqrt(p.student.second_moment)
    c, h = left / by_units * (size * kept)[:, None], np.swapaxes(right * kept[..., None] / by_nodes, 1, 2)
    one, *most = np.count_nonzero(kept, axis=1)[[1, *ISOTROPIC]]
    linear = Modes(c[1, :, :one], h[1, :, :one])
    isotropic = Modes(c[ISOTROPIC, :, : max(most)], h[ISOTROPIC, :, : max(most)])
    noise = noise + np.sum((m - c @ np.swapaxes(h, 1, 2)) ** 2, axis=0)
    return Features(p, batch, hidden, z, chi, pz, m, noise, label, unseen + p.noise**2, linear, isotropic)
