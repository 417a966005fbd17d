"""Exact averages over x ~ N(0, I_d): second moments of the features, hence test errors without a test sample.

For w, v in R^d with norms r, s and cosine c, E σ(wᵀx) σ(vᵀx) = Σ_k a_k(r) a_k(s) c^k, a_k(r) = E σ(rg) H_k(g)/√k!.
Closed forms replace the series for the ReLU (arc-cosine kernel, Cho & Saul 2009), erf (arc-sine, Williams 1998) and
the tilted sine.
"""

from __future__ import annotations

import numpy as np
from numpy.polynomial.chebyshev import chebinterpolate, chebvander

from ..hermite import NAMED, Function, ShiftedReLU
from .network import blocks

_ORDER = 200  # terms tabulated; the series is cut as soon as what is left is below _PRECISION
_PRECISION = 1e-9
_TOLERATED = 1e-6  # what may be left where the table ends first
_GRID = 48  # Chebyshev nodes in the row norm r: a_k(r) is analytic in r; to rounding for norms within a factor of ten


class Unresolved(ValueError):
    """The expansion of an activation is too long for exact averages."""


def gram(student: Function, products):
    """K_ij = E σ(w_iᵀx) σ(w_jᵀx) from the products w_iᵀw_j (N, N): their upper triangle is read, all overwritten."""
    norms = np.sqrt(np.maximum(np.diagonal(products), 1e-300))
    if isinstance(student, ShiftedReLU):
        kernel, table = _arc_cosine, norms
    elif student == NAMED["erf"]:
        kernel, table = _arc_sine, norms
    elif student == NAMED["tilted_sin"]:
        kernel, table = _tilted_sine, norms
    else:
        kernel, table = _series, _table(student, norms, _ORDER)
    np.fill_diagonal(products, 0.0)  # its averages have one row each, and its cosine 1 must not decide the order
    for block in blocks(products.shape):
        rest = slice(block.start, None)  # K is symmetric: what lies before is known
        values = kernel(products[block, rest], table[block], table[rest], norms[block], norms[rest])
        products[block, rest], products[rest, block] = values, values.T
    np.fill_diagonal(products, student.moments(0.0, norms)[2])
    return products


def crosses(student: Function, targets, norms, cosines):
    """E σ(w_iᵀx) σ⋆(β⋆ᵀx) = Σ_k a_k(r_i) b_k c_i^k for each of several σ⋆, by one table of the a_k; (len(targets), N).

    norms, cosines : (N,), of the rows w_i; cosines with the unit vector β⋆.
    The table ends where |b_k| max|c|^k is negligible for every target.
    """
    far, sizes = np.abs(cosines).max() ** np.arange(_ORDER + 1), [np.sqrt(f.second_moment) for f in targets]
    series = [f.normalized(_ORDER) for f in targets]
    needed = [_last_needed(np.abs(b) * far, size) for b, size in zip(series, sizes, strict=True)]
    most = max(needed, default=0)
    table = _table(student, norms, most)
    powers = np.cumprod(np.broadcast_to(cosines[:, None], (len(cosines), most)), axis=1)
    out = np.empty((len(series), len(cosines)))
    for j, (b, size, used) in enumerate(zip(series, sizes, needed, strict=True)):
        a = table[:, : used + 1]
        if used > _ORDER - 2:
            used = _cut(np.abs(a).max(0) * np.abs(b[: used + 1]) * far[: used + 1], size * np.sqrt((a**2).sum(1).max()))
        out[j] = a[:, 0] * b[0] + (a[:, 1 : used + 1] * b[1 : used + 1] * powers[:, :used]).sum(1)
    return out


def _arc_cosine(products, r, s, *_):
    shift = ShiftedReLU.shift
    scale = r[:, None] * s
    c = np.clip(products / scale, -1.0, 1.0)
    kernel = scale / (2 * np.pi) * (np.sqrt(1 - c**2) + (np.pi - np.arccos(c)) * c)
    return kernel - shift**2 * (r[:, None] + s) + shift**2


def _arc_sine(products, r, s, *_):
    return 2 / np.pi * np.arcsin(2 * products / np.sqrt(np.outer(1 + 2 * r**2, 1 + 2 * s**2)))


def _tilted_sine(products, r, s, *_):
    # sin(u + π/4) sin(v + π/4) = (cos(u - v) + sin(u + v))/2, less the mean e^{-1/2}/√2 of each factor at scale 1
    mean, at_r, at_s = (np.exp(-(x**2) / 2) / np.sqrt(2) for x in (1.0, r, s))
    kernel = np.exp(products - np.add.outer(r**2, s**2) / 2) / 2  # in one: exp(products) overflows after large steps
    return kernel - mean * (at_r[:, None] + at_s) + mean**2


def _series(products, a, b, r, s):
    c = np.clip(products / (r[:, None] * s), -1.0, 1.0)
    bound = np.abs(a).max(0) * np.abs(b).max(0) * np.abs(c).max() ** np.arange(a.shape[1])
    used = _cut(bound, (b**2).sum(1).max())
    total = np.zeros_like(c)
    for k in range(used, -1, -1):
        total *= c
        total += np.multiply.outer(a[:, k], b[:, k])
    return total


def _table(student, norms, order):
    """a_k(r), k = 0..order, at every row norm, (N, order + 1), interpolated from Chebyshev nodes."""
    low, high = norms.min(), norms.max()
    if high - low < 1e-12 * high:
        return np.broadcast_to(student.normalized(order, high), (len(norms), order + 1))
    series = chebinterpolate(lambda x: student.normalized(order, (low + high + (high - low) * x) / 2), _GRID - 1)
    return chebvander((2 * norms - low - high) / (high - low), _GRID - 1) @ series


def _last_needed(bound, scale):
    """Index of the last term that a series needs for what is left out to stay below _PRECISION·scale."""
    rest = np.cumsum(bound[::-1])[::-1]
    needed = np.flatnonzero(rest > _PRECISION * scale)
    return int(needed[-1]) if needed.size else 0


def _cut(bound, scale):
    """The last term needed, or the last there is; ValueError if more than _TOLERATED is left."""
    used, rest = _last_needed(bound, scale), sum(bound[-2:])  # every second one of an even or odd function vanishes
    if used >= len(bound) - 2 and rest > _TOLERATED * scale:
        raise Unresolved(
            f"activation: its expansion is not resolved by {len(bound)} terms at this step (remainder "
            f"{rest / scale:.0e}); give simulate.losses a test_size to average over a fresh sample instead"
        )
    return used
