"""Multi-index targets y = g(v_1ᵀx, …, v_rᵀx), orthonormal v_j, by their Hermite expansion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import factorial, isfinite, prod

import numpy as np
from numpy.polynomial import hermite_e

from .checks import whole


@dataclass(frozen=True, eq=False)
class Target:
    """g(z) = Σ_α C_α Π_j H_{α_j}(z_j) from {(α_1, ..., α_r): C_α}, all keys of one length r.

    Raises ValueError for keys that are not tuples of whole numbers >= 0 of one length, or coefficients not finite.
    """

    terms: Mapping

    def __post_init__(self):
        terms = dict(self.terms)
        keys = [key for key in terms if isinstance(key, tuple)]
        if not terms or len(keys) < len(terms) or len({len(key) for key in keys}) != 1 or not keys[0]:
            raise ValueError(f"terms = {terms!r}: keys must be tuples of one length r >= 1, at least one")
        if not all(isinstance(order, int) and order >= 0 for key in keys for order in key):
            raise ValueError(f"terms = {terms!r}: Hermite orders must be whole numbers >= 0")
        if not all(isfinite(value) and value for value in terms.values()):
            raise ValueError(f"terms = {terms!r}: coefficients must be finite and not 0")
        object.__setattr__(self, "terms", terms)

    def __call__(self, z):
        """g at z, (..., r)."""
        values = np.zeros(z.shape[:-1])
        for alpha, coefficient in self.terms.items():
            factors = (hermite_e.hermeval(z[..., j], np.eye(k + 1)[k]) for j, k in enumerate(alpha) if k)
            values += prod(factors, start=coefficient)
        return values

    @property
    def r(self):
        """Number of directions."""
        return len(next(iter(self.terms)))

    @property
    def power(self):
        """E g²."""
        return float(sum(c**2 * prod(map(factorial, alpha)) for alpha, c in self.terms.items()))

    @property
    def preprocessed(self):
        """The target without its 0th and 1st Hermite parts; ValueError if nothing is left."""
        return Target({alpha: c for alpha, c in self.terms.items() if sum(alpha) > 1})

    def tensor(self, k):
        """E[g(z) H_k(z)], the symmetric tensor of order k, shape (r,) * k."""
        out = np.zeros((self.r,) * whole("k", k, 0))
        for index in np.ndindex(out.shape):
            alpha = tuple(index.count(j) for j in range(self.r))
            out[index] = self.terms.get(alpha, 0.0) * prod(map(factorial, alpha))
        return out

    def arrival(self):
        """The giant step, 1, 2, ..., at which n = Θ(d) fresh samples a step reach each direction; 0 for never. (r,)

        A term contributes once it is linear in the directions not yet learned (Abbe et al. 2022; Dandi et al. 2023).
        """
        arrived = np.zeros(self.r, int)
        for step in range(1, self.r + 1):
            unknown = arrived == 0
            for alpha in self.terms:
                new = np.array(alpha) * unknown
                if new.sum() == 1:
                    arrived[new == 1] = step
        return arrived
