"""Rows after the step of a teacher whose quadratic part is no small part of its linear part, eq. (45) and (46).

The rows grow along β⋆, by 1 + 2c⋆2 t_i at leading order, so that degrees up to 3 of the teacher's direction are no
longer independent. Four directions are followed: β̂, ζ, and o_1, o_2, an orthonormal basis of what M adds to them.

Shapes: A readout weights, U nodes of units, K = len(DEGREE) harmonics of a row.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from ...problem import Problem
from .. import quadrature

QUADRATIC_RATIO = 0.75  # |c⋆2/c⋆1| from which on the four directions are followed
DEGREE = (0, 1, 2, 3, 1, 1, 2, 2, 2, 2, 2)  # of 1, ζ, ζ², ζ³, o_1, o_2, ζo_1, ζo_2, o_1o_2, o_1² - o_2², o_1² + o_2²
_NODES = 4  # of a row's coordinates along β̂ and ζ; three are blind to harmonics of degree 3
_NONE = 1e-12


def needed(p: Problem):
    """Whether the loss of p, after a step with all its noise, is that of this module."""
    linear, square = np.abs(p.target.coefficients(2)[1:])
    return bool(square > QUADRATIC_RATIO * linear) and p.initial_output == "negligible"


def remainder(x):
    """1 - x, continued smoothly from x = 1/2 on so that it stays positive, as few inputs after a large step need."""
    return np.where(x < 0.5, 1 - x, 0.25 / np.maximum(x, 0.5))


def krylov(batch):
    """M and C in the basis (β̂, ζ, o_1, o_2), eq. (45); both (4, 4)."""
    y, phi, m2 = batch.y, batch.phi, batch.moment(2)
    hat = batch.hat
    axes = np.array([hat, np.array([1 - batch.cosine[0] * hat[0], -batch.cosine[0] * hat[1]]) / batch.away])
    own = sqrt(phi / m2) * y  # of a sample along its own part of β
    pair = np.array([[batch.pair[0, 0], batch.along[0] * own], [batch.along[0] * own, batch.weight * (1 + own**2)]])
    single = np.array([batch.along[0], batch.weight * own])
    mean = single @ y**2 / m2  # what lies along Σ y_j x_j is in the plane already

    def centred(k):  # E y^k (x - mean)(x - mean)ᵀ
        cross = np.outer(single @ y**k, mean)
        return axes @ (pair @ y**k - cross - cross.T + batch.moment(k) * np.outer(mean, mean)) @ axes.T

    size, vectors = np.linalg.eigh(phi * centred(2))
    root = np.sqrt(np.maximum(size, _NONE))
    r, r_inverse = (vectors * root) @ vectors.T, (vectors / root) @ vectors.T
    M = np.block([[batch.plane[1], r], [r, r_inverse @ (phi**2 * centred(3)) @ r_inverse]])
    C = m2 * np.eye(4)
    C[:2, :2] = batch.plane[3]
    return M, C


def covariance(law, batch):
    """d times the covariance of a row's coordinates along the four directions, given its readout weight; (A, 4, 4)."""
    M, C = krylov(batch)
    t, v = law.mix[1, :, None, None] * law.square[:, None, None] / 2, (law.mix[3] * law.square)[:, None, None]
    out = np.diag([0.0, 0.0, 1.0, 1.0]) * batch.phi * batch.moment(2)  # of M², to further directions
    return np.eye(4) + 2 * t * M + t**2 * (M @ M + out) + v * C


def split(p: Problem, eta, law, batch):
    """Fields of `Units` on nodes of a row's coordinates along β̂ and ζ, its length, and the harmonics of eq. (46).

    Parameters
    ----------
    p : Problem
    eta : float
        Step size.
    law : Rows
        Rows given their readout weight.
    batch : FirstBatch
    """
    d, S = p.d, covariance(law, batch)
    e, chance_e = quadrature.coordinate(d, _NODES)
    f, chance_f = quadrature.coordinate(d - 1, _NODES)
    e, f = np.repeat(e, f.size), np.tile(f, e.size)
    f, chance_e = f * np.sqrt((1 - e**2 / d) * d / (d - 1)), np.outer(chance_e, chance_f).ravel()
    L, chance_L = quadrature.length(d * law.square**2 / np.maximum(law.variance, _NONE), quadrature.lengths(d))
    root = np.linalg.cholesky(S[:, :2, :2])
    pair = np.array([e, f])
    onto = np.einsum("apq,qe->pea", root, pair)[:, :, None] * L  # (2, E, H, A), √d times the coordinates
    across, shape = _outside(p, eta, law, batch, root, pair)
    s, zeta = onto / sqrt(d)
    length = np.sqrt(L**2 * (across * shape / (chance_e @ shape))[:, None] + zeta**2)
    every = np.tile(np.arange(law.a.size), len(L) * e.size)
    regression = S[:, 2:, :2] @ np.linalg.inv(S[:, :2, :2])  # of the coordinates along o_1, o_2 on those in the plane
    mean = np.einsum("aop,peha->oeha", regression, onto) * (sqrt(1 - 1 / d) / length)
    residual = np.linalg.cholesky(S[:, 2:, 2:] - regression @ S[:, :2, 2:])
    # what a direction with the coordinates e and f has left for o_1 and o_2
    narrowed = np.sqrt((d - e**2 - f**2) / (d - 2))[:, None, None]
    residual = np.moveaxis(residual, 0, -1)[:, :, None, None] * (narrowed * L * sqrt(1 - 1 / d) / length)
    xi = (sqrt(d - 1) * zeta / length).ravel()
    return dict(
        chance=(chance_e[:, None, None] * chance_L * law.chance).ravel(),
        spike=(law.spike * (1 + law.spike_slope * (L**2 - 1)) + s).ravel(),
        length=length.ravel(),
        overlap=(law.a / np.sqrt(law.square))[every],
        mix=law.mix[:, every],
        plane=np.moveaxis(S / law.square[:, None, None], 0, -1)[:, :, every],
        readouts=law.a.size,
        harmonics=harmonics(xi, mean.reshape(2, -1), residual.reshape(2, 2, -1), d - 1),
    )


def _outside(p, eta, law, batch, root, pair):
    """Mean square of a row's part outside the plane of β̂ and ζ, (A,), and its factor given coordinates there, (E, A).

    That factor is the numerator of eq. (18), for two coordinates.   pair : (2, E), both.   root : (A, 2, 2), Cholesky
    factors of the plane's Σ.
    """
    d, plane = p.d, np.einsum("apq,arq->apr", root, root)
    across = law.square * remainder(np.trace(plane, axis1=1, axis2=2) / law.square / d)
    M = batch.plane[1]
    correlation = np.linalg.solve(root, np.eye(2) + (law.mix[1] * law.square / 2)[:, None, None] * M)
    curvature = 24 * p.student.coefficients(4)[4] * eta * law.a[:, None, None] * M
    slopes = correlation @ (np.eye(2) * (p.first_layer == "sphere") - curvature) @ np.swapaxes(correlation, 1, 2)
    lost = np.einsum("pe,apq,qe->ea", pair, slopes, pair) - np.trace(slopes, axis1=1, axis2=2)
    lost = lost / across / d + (law.variance / law.square**2 / (d - 2)) * (np.sum(pair**2, axis=0) - 2)[:, None]
    return across, remainder(lost) * np.exp(law.covariance / law.square * pair[0][:, None] / sqrt(d))


def harmonics(xi, mean, left, d):
    """E h hᵀ, (K, K, U), of the harmonics h of a row on the sphere in d dimensions, over √D_k, given its node.

    Parameters
    ----------
    xi : (U,), √d times the cosine between the row and ζ.
    mean, left : (2, U) and (2, 2, U), mean of those along o_1, o_2, and Cholesky factor of their covariance.
    d : int
        Dimension.
    """
    d = float(d)
    zonal, fourth = quadrature.zonal(d) @ xi ** np.arange(4)[:, None], d / (d + 2)  # E o_1² o_2²
    scale = np.sqrt(quadrature.dimensions(d)[list(DEGREE)])[:, None]
    around = sqrt(4 * fourth * (d - 3) / (d - 1))
    out = np.zeros((len(DEGREE), len(DEGREE), xi.size))
    for first, chance in zip(*quadrature.coordinate(d - 1, 3), strict=True):
        for other, chance_other in zip(*quadrature.coordinate(d - 2, 3), strict=True):
            second = other * sqrt((d - 1 - first**2) / (d - 2))
            o_1, o_2 = mean + left[:, 0] * first + left[:, 1] * second
            product = np.array([xi * o_1, xi * o_2, o_1 * o_2, (o_1**2 - o_2**2) / 2]) / sqrt(fourth)
            rest = (o_1**2 + o_2**2 - 2 * (d - xi**2) / (d - 1)) / around
            h = np.array([*zonal, o_1, o_2, *product, rest]) / scale  # in the order of `DEGREE`
            out += chance * chance_other * h[:, None] * h
    return out
