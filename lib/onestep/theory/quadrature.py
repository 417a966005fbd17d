"""Quadrature rules of the every-step theory, and the expansion of a function on a high-dimensional sphere."""

from __future__ import annotations

from functools import lru_cache
from math import asinh, pi, sqrt

import numpy as np
from numpy.polynomial import hermite_e
from scipy.linalg import eigh_tridiagonal

from ..checks import frozen
from ..hermite import gauss_legendre

DEGREES = 4  # harmonics of degree 0, 1, 2, 3 are resolved; the rest is noise
# Nodes of a smooth function, nodes between kinks and reach; the finer rule where √N times an error must stay small
_USUAL, _FINE, _LARGE = (48, 16, 6.0), (96, 72, 9.0), 1e6
_CACHED = 1 << 15  # numbers in an array that stays in the second cache along with a few like it


def graded(order, strip):
    """Rule for N(0, 1) and integrands with poles at about ±i·strip: trapezoid in t, x = 2·strip·sinh t.

    κ(z) and q(u) have such poles, which slow Gauss-Hermite quadrature down; in t they are half a unit away or more at
    every strip. The cut at t = T is where e^(-x²/2) is the rule's own error, e^(-π/step).
    """
    T = 2.0
    for _ in range(8):  # converges by a factor of about four each
        T = asinh(sqrt(pi * (order - 1) / T) / (2 * strip))
    t = np.linspace(-T, T, order)
    x = 2 * strip * np.sinh(t)
    w = np.exp(-(x**2) / 2) * np.cosh(t)
    return x, w / w.sum()


def gauss_hermite(order):
    """Gauss rule for N(0, 1)."""
    x, w = hermite_e.hermegauss(order)
    return x, w / w.sum()


def gauss(y, root, count):
    """Gauss rule of at most `count` nodes for weights root² at y, by Lanczos: nodes (k,), and a matrix (k, len(y)).

    The products of the matrix with root are the roots of the weights.
    """
    basis = root[None] / np.linalg.norm(root)
    for _ in range(count - 1):
        v = y * basis[-1]
        for _ in range(2):  # once more against rounding
            v = v - (basis @ v) @ basis
        if np.linalg.norm(v) < 1e-9 * np.linalg.norm(y * root):
            break
        basis = np.vstack([basis, v / np.linalg.norm(v)])
    nodes, vectors = np.linalg.eigh((basis * y) @ basis.T)
    return nodes, vectors.T @ basis


def length(d, count):
    """Gauss rule for χ = ‖x‖/√d, x ~ N(0, I_d), exact up to E χ^(4·count - 2); two arrays (count, *d.shape)."""
    d, k = np.asarray(d, float)[..., None], np.arange(1.0, count)
    jacobi = np.zeros((*d.shape[:-1], count, count))  # of χ² - 1, by the recursion of Laguerre polynomials
    jacobi[..., range(count), range(count)] = 4 * np.arange(count) / d
    jacobi[..., range(1, count), range(count - 1)] = 2 * np.sqrt(k * (k + d / 2 - 1)) / d
    excess, vectors = np.linalg.eigh(jacobi)
    return np.moveaxis(np.sqrt(1 + excess), -1, 0), np.moveaxis(vectors[..., 0, :] ** 2, -1, 0)


@lru_cache(maxsize=64)
def coordinate(d, count):
    """Gauss rule for √d·(one coordinate of a direction uniform on the unit sphere in d >= 3 dimensions)."""
    d, k = float(d), np.arange(1.0, count)  # the recursion of Gegenbauer polynomials
    off = np.sqrt(d * k * (k + d - 3) / ((2 * k + d - 2) * (2 * k + d - 4)))
    nodes, vectors = eigh_tridiagonal(np.zeros(count), off)
    return frozen(nodes, vectors[0] ** 2)


def zonal(d):
    """Coefficients of the zonal harmonics P_k, k = 0..3, in powers of s = √d·(a coordinate on the unit sphere); (4, 4).

    They are orthonormal for s of the law of `expand`, whose moments are E s² = 1, E s⁴ = 3d/(d + 2), ….
    """
    four, six = 3 * d / (d + 2), 15 * d**2 / ((d + 2) * (d + 4))
    two, three = 1 / sqrt(four - 1), 1 / sqrt(six - four**2)
    return np.array([[1, 0, 0, 0], [0, 1, 0, 0], [-two, 0, two, 0], [0, -four * three, 0, three]])


def dimensions(d):
    """Numbers D_k of independent harmonics of degree k = 0..3 on the sphere in d dimensions; (4,)."""
    return np.array([1.0, d, d * (d + 1) / 2 - 1, d * (d - 1) * (d + 4) / 6])


def expand(f, mean, std, d):
    """E f P_k (4, *shape), k = 0..3, of f(mean + std·s), and the second moment of the rest; P_k and s as for `zonal`.

    f : a `hermite.Function`.  mean, std : arrays of one shape.  d : inputs.
    """
    d = float(d)
    smooth, panel, reach = _FINE if d > _LARGE else _USUAL
    if f.kinks:
        count, harmonics = panel * (len(f.kinks) + 1), zonal(d)
    else:
        count, (s, weight) = smooth, coordinate(d, smooth)
        harmonics = weight * (zonal(d) @ s ** np.arange(DEGREES)[:, None])

    def integrals(mean, std):  # E f P_k, k = 0..3, and E f², (5, points)
        if not f.kinks:
            values = f(mean[:, None] + std[:, None] * s)
            return np.vstack([harmonics @ values.T, values**2 @ weight])
        at, law = _panels(f.kinks, mean, std, d, panel, reach)
        values, every = f(mean[:, None] + std[:, None] * at), np.ones(count)
        law *= values
        square, moments = np.einsum("ps,ps->p", law, values), []
        for _ in range(DEGREES):
            moments.append(law @ every)
            law *= at
        return np.vstack([harmonics @ moments, square])

    found = _in_blocks(integrals, mean, std, count)
    return found[:-1], np.maximum(found[-1] - (found[:-1] ** 2).sum(0), 0.0)


def _in_blocks(integrals, mean, std, count):
    """integrals(mean, std), (·, points), for so few points at a time that arrays (points, count) stay in the cache."""
    step = max(1, _CACHED // count)
    starts, flat = range(0, mean.size, step), (mean.ravel(), std.ravel())
    parts = [integrals(*(part[i : i + step] for part in flat)) for i in starts]
    return np.concatenate(parts, axis=1).reshape(-1, *mean.shape)


def _panels(kinks, mean, std, d, count, reach):
    """Nodes and weights for s as in `zonal`, of density ∝ (1 - s²/d)^((d - 3)/2); each (*mean.shape, M).

    Gauss-Legendre rules of `count` nodes each, from -reach to reach, split at the kinks of f(mean + std·s).
    """
    reach = min(reach, sqrt(d))
    at = np.stack([np.clip((kink - mean) / std, -reach, reach) for kink in kinks], -1)
    ends = np.full((*mean.shape, 1), reach)
    edges = np.concatenate([-ends, np.sort(at, -1), ends], -1)
    x, weight = gauss_legendre(count)
    width = np.diff(edges, axis=-1)[..., None]
    s = width * ((x + 1) / 2)
    s += edges[..., :-1, None]
    density = s * (s / -d)  # in place from here on, as arrays are large
    np.maximum(density, 1e-12 - 1, out=density)
    np.log1p(density, out=density)
    density *= (d - 3) / 2
    np.exp(density, out=density)
    density *= width
    density *= weight
    s, density = (part.reshape(*mean.shape, -1) for part in (s, density))
    density /= (density @ np.ones(s.shape[-1]))[..., None]
    return s, density
