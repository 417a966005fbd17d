"""Three-stage training of both layers (Zhou & Ge, NeurIPS 2024, arXiv 2406.01766): a system without randomness.

Teacher f⋆(x) = Σ_k a⋆_k ReLU(w⋆_kᵀx), student f(x) = Σ_i a_i ReLU(w_iᵀx), x ~ N(0, I_d). Preprocessing takes the 0th
and 1st Hermite parts out of the target; with an affine term α + βᵀx beside the student, fitted at every moment, they
leave the student as well, and the population loss is a finite sum of arc-cosine kernels (Cho & Saul 2009):

    L(a, W) = E(f - f⋆)² = Σ_ij u_i u_j ‖p_i‖ ‖p_j‖ h(cos(p_i, p_j)),   h(c) = (√(1 - c²) + c asin c - 1) / 2π,

over all neurons p = (w, w⋆) with weights u = (a, -a⋆). h is even: a direction is recovered up to its sign.
Training descends L + (λ/2)(‖a‖² + ‖W‖²).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import linalg, optimize

from ..checks import choice, number, whole
from ..relu import kernel, kernel_parts, polar

METHODS = ("quasi-newton", "gradient")
_MEMORY = 20  # pairs that L-BFGS keeps


class Population:
    """Loss, gradient and second-layer system of a teacher, in closed form.

    preprocess=False keeps the 0th and 1st Hermite parts in teacher and student (plain ReLU).
    """

    def __init__(self, teacher, preprocess=True):
        self.teacher, self.preprocess = teacher, preprocess
        b = teacher.weights
        self.start = float(b @ kernel(teacher.directions, teacher.directions, preprocess) @ b)

    def loss(self, a, W):
        """E(f - f⋆)² at second layer a (m,) and first layer W (m, d)."""
        return self.gradient(a, W)[0]

    def gradient(self, a, W):
        """Loss with its gradients in a, (m,), and in W, (m, d)."""
        m = len(a)
        P = np.concatenate([W, self.teacher.directions])
        u = np.concatenate([a, -self.teacher.weights])
        (norms, units), (others, _), h, slope, rest = kernel_parts(W, P, self.preprocess)
        h *= norms[:, None]
        h *= others
        field = h @ u
        loss = a @ field + a @ (h[:, m:] @ u[m:]) + self.start
        # ∂(‖w‖‖p‖h(c))/∂w = (h - c h')‖p‖ w/‖w‖ + h' p
        by_first = 2 * a[:, None] * (units * (rest @ (u * others))[:, None] + slope @ (u[:, None] * P))
        return float(loss), 2 * field, by_first

    def normal_equations(self, W):
        """Gram matrix (m, m) and right-hand side (m,) of the least squares for the second layer."""
        K = kernel(W, np.concatenate([W, self.teacher.directions]), self.preprocess)
        return K[:, : len(W)], K[:, len(W) :] @ self.teacher.weights


class Empirical:
    """The same system on n samples: mean squared residual after least squares on (1, x), without label noise.

    The projection off (1, x) does to samples what preprocessing does to the population: what is left of a ReLU
    feature is that of |wᵀx|/2. Raises ValueError for n <= d + 1, where the affine term fits anything.
    """

    def __init__(self, teacher, n, rng):
        d = teacher.d
        if whole("n", n, 1) <= d + 1:
            raise ValueError(f"n = {n}: must exceed d + 1 = {d + 1}, the parameters of the affine term")
        self.teacher, self.n = teacher, n
        self.X = rng.standard_normal((n, d))
        self._affine = np.linalg.qr(np.column_stack([np.ones(n), self.X]))[0]
        self.y = self._off_affine(np.abs(self.X @ teacher.directions.T) @ teacher.weights / 2)
        self.start = float(self.y @ self.y / n)

    def loss(self, a, W):
        """(1/n)‖f(X) - y‖² at second layer a (m,) and first layer W (m, d)."""
        return self.gradient(a, W)[0]

    def gradient(self, a, W):
        """Loss with its gradients in a, (m,), and in W, (m, d)."""
        Z = self.X @ W.T
        features = np.abs(Z)
        residual = self._off_affine(features @ (a / 2)) - self.y
        by_first = (np.sign(Z) * residual[:, None]).T @ self.X * (a / self.n)[:, None]
        return float(residual @ residual / self.n), residual @ features / self.n, by_first

    def normal_equations(self, W):
        """Gram matrix (m, m) and right-hand side (m,) of the least squares for the second layer."""
        F = self._off_affine(np.abs(self.X @ W.T) / 2)
        return F.T @ F / self.n, F.T @ self.y / self.n

    def _off_affine(self, v):
        return v - self._affine @ (self._affine.T @ v)


def initialise(d, m, rng, scale=1e-3):
    """Second layer a (m,) of random signs and first layer W (m, d) on a sphere, both of size `scale` per neuron."""
    whole("m", m, 1)
    number("scale", scale, above=0)
    W = rng.standard_normal((m, d))
    W *= scale / np.linalg.norm(W, axis=1, keepdims=True)
    return rng.choice([-scale, scale], m), W


def first_step(system, a, W):
    """Stage 1: one large gradient step on the first layer, W (m, d).

    The step size η is the one that makes the mean squared row norm 1, and the step's weight decay is 1/η, so that the
    initial weights are forgotten (Damian et al. 2022; the constants are ours).
    """
    W = -system.gradient(a, W)[2]
    return W / np.sqrt(np.mean(np.sum(W**2, axis=1)))


def fit_second_layer(system, W, ridge):
    """Stage 2: the second layer a (m,) that minimises L + (λ/2)‖a‖² at fixed W."""
    K, k = system.normal_equations(W)
    K[np.diag_indices_from(K)] += number("ridge", ridge, above=0) / 2
    return linalg.solve(K, k, assume_a="pos")


def balance(a, W):
    """(a, W) with |a_i| = ‖w_i‖ and the same network: the ReLU does not feel a_i/t, t w_i."""
    t = np.sqrt(np.abs(a) / np.linalg.norm(W, axis=1))
    return np.sign(a) * np.sqrt(np.abs(a) * np.linalg.norm(W, axis=1)), W * t[:, None]


@dataclass(frozen=True, eq=False)
class Descent:
    """Where descent on L + (λ/2)(‖a‖² + ‖W‖²) ended.

    converged says whether the largest gradient entry fell to the tolerance; evaluations counts gradients.
    """

    a: np.ndarray
    W: np.ndarray
    loss: float
    evaluations: int
    converged: bool


def descend(system, a, W, ridge, method="quasi-newton", limit=2000, tolerance=None, step=1.0, watch=None):
    """Stage 3 at one λ: descend on both layers at once.

    Parameters
    ----------
    system : Population or Empirical
    a, W : start, (m,) and (m, d)
    ridge : λ >= 0
    method : "quasi-newton" (L-BFGS) or "gradient" (plain gradient descent with fixed `step`)
    limit : most iterations
    tolerance : largest gradient entry at which to stop; default 1e-4 λ, or 1e-10 for λ = 0
    watch : called as watch(a, W) after every iteration
    """
    choice("method", method, METHODS)
    ridge, limit = number("ridge", ridge, least=0), whole("limit", limit, 1)
    if W.ndim != 2 or a.shape != W.shape[:1] or W.shape[1] != system.teacher.d:
        raise ValueError(f"a {a.shape}, W {W.shape}: must be (m,) and (m, {system.teacher.d})")
    tolerance = (1e-4 * ridge or 1e-10) if tolerance is None else number("tolerance", tolerance, least=0)
    m, shape = len(a), W.shape

    def split(x):
        return x[:m], x[m:].reshape(shape)

    def objective(x):
        loss, by_second, by_first = system.gradient(*split(x))
        return loss + ridge / 2 * (x @ x), np.concatenate([by_second, by_first.ravel()]) + ridge * x

    x = np.concatenate([a, W.ravel()])
    if method == "quasi-newton":
        x, evaluations = _quasi_newton(objective, x, limit, tolerance, watch and (lambda x: watch(*split(x))))
    else:
        number("step", step, above=0)
        evaluations = 0
        while np.abs(slope := objective(x)[1]).max() > tolerance and evaluations < limit:
            x = x - step * slope
            evaluations += 1
            if watch:
                watch(*split(x))
    converged = np.abs(objective(x)[1]).max() <= tolerance
    return Descent(*split(x), system.loss(*split(x)), evaluations, bool(converged))


@dataclass(frozen=True, eq=False)
class Training:
    """The weights (a, W) after every stage, and the descents of stage 3 in the order of their λ."""

    initial: tuple
    featured: tuple
    fitted: tuple
    ridges: np.ndarray
    descents: list

    @property
    def final(self):
        """(a, W) at the end."""
        return (self.descents[-1].a, self.descents[-1].W) if self.descents else self.fitted


def train(system, m, rng, ridges, fit_ridge=1e-3, method="quasi-newton", limit=2000, scale=1e-3):
    """All three stages from a small random start of m neurons.

    ridges : the λ of stage 3 one after the other, each descent starting where the one before ended; () for no stage 3.
    fit_ridge : λ of stage 2.   limit : most iterations at each λ.
    """
    a, W = initialise(system.teacher.d, m, rng, scale)
    stages = [(a, W)]
    W = first_step(system, a, W)
    stages.append((a, W))
    a, W = balance(fit_second_layer(system, W, fit_ridge), W)
    stages.append((a, W))
    return Training(*stages, np.array(ridges, float), anneal(system, a, W, ridges, method, limit))


def anneal(system, a, W, ridges, method="quasi-newton", limit=2000, watch=None):
    """Stage 3 from (a, W): the `Descent`s at the λ of `ridges`, each from the end of the one before."""
    descents = []
    for ridge in ridges:
        descents.append(descend(system, a, W, ridge, method, limit, watch=watch))
        a, W = descents[-1].a, descents[-1].W
    return descents


def planted(teacher, m, spread, rng):
    """A balanced start near the teacher: m neurons dealt to the r directions in turn, each moved by a Gaussian vector.

    spread : length (root mean square) of the move relative to the neuron. Every direction's neurons share its weight.
    """
    whole("m", m, teacher.r)
    number("spread", spread, least=0)
    k = np.arange(m) % teacher.r
    move = rng.standard_normal((m, teacher.d)) * spread / np.sqrt(teacher.d)
    return balance((teacher.weights / np.bincount(k))[k], teacher.directions[k] + move)


def angles(W, teacher):
    """Angle in degrees, [0, 90], from each neuron's line to the nearest teacher line, and which one that is: (m,)."""
    units = polar(W)[1]
    cosines = units @ teacher.directions.T
    nearest = np.abs(cosines).argmax(axis=1)
    signs = np.where(np.take_along_axis(cosines, nearest[:, None], 1) < 0, -1.0, 1.0)
    chords = np.linalg.norm(units - signs * teacher.directions[nearest], axis=1)  # acos loses half the digits near 0
    return np.degrees(2 * np.arcsin(chords / 2)), nearest


def weighted_angle(a, W, teacher):
    """Mean of `angles` in degrees, each neuron counting by |a_i|‖w_i‖."""
    return float(np.average(angles(W, teacher)[0], weights=masses(a, W)))


def masses(a, W):
    """|a_i|‖w_i‖, (m,). Weight decay on balanced layers is λ times their sum: a penalty that favours few neurons."""
    return np.abs(a) * np.linalg.norm(W, axis=1)


def imbalance(a, W):
    """Largest | |a_i| - ‖w_i‖ |, relative to the largest ‖w_i‖."""
    norms = np.linalg.norm(W, axis=1)
    return float(np.abs(np.abs(a) - norms).max() / norms.max())


def subspace_energy(W, teacher):
    """Fraction of ‖W‖² inside the target subspace, in [0, 1]."""
    return float(np.sum((W @ teacher.basis.T) ** 2) / np.sum(W**2))


def effective_directions(W):
    """Effective number of directions of the neurons' lines, in [1, d]: (tr C)²/tr C² for C = Σ_i ŵ_i ŵ_iᵀ."""
    units = polar(W)[1]
    C = units.T @ units
    return float(np.trace(C) ** 2 / np.sum(C**2))


class Measures(NamedTuple):
    """Loss of the system, weighted angle, subspace energy, effective directions, total weight Σ|a_i|‖w_i‖."""

    loss: float
    angle: float
    energy: float
    directions: float
    weight: float


def measures(system, a, W):
    """The `Measures` of a network with second layer a (m,) and first layer W (m, d)."""
    return Measures(
        system.loss(a, W),
        weighted_angle(a, W, system.teacher),
        subspace_energy(W, system.teacher),
        effective_directions(W),
        float(masses(a, W).sum()),
    )


def recovered(a, W, teacher, degrees=5.0):
    """Whether every teacher line has at least half its weight |a⋆_k| in neurons within `degrees` of it."""
    angle, nearest = angles(W, teacher)
    near = np.where(angle <= degrees, masses(a, W), 0.0)
    return bool(np.all(np.bincount(nearest, near, teacher.r) >= np.abs(teacher.weights) / 2))


def _quasi_newton(objective, x, limit, tolerance, watch):
    options = {"maxiter": limit, "maxfun": 20 * limit, "gtol": tolerance, "ftol": 0.0, "maxcor": _MEMORY}
    end = optimize.minimize(objective, x, jac=True, method="L-BFGS-B", callback=watch, options=options)
    return end.x, end.nfev
