"""Three-stage training of both layers (Zhou & Ge, NeurIPS 2024, arXiv 2406.01766), on the population or on samples."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import optimize

from ..checks import choice, floats, number, whole
from .relu import polar

METHODS = ("quasi-newton", "gradient")
_MEMORY = 20  # pairs that L-BFGS keeps
_WINDOW = 40  # iterations over which a descent on samples must have stopped falling
_SETTLED = 1e-3  # by more than this share
_DIVERGED = 1e100  # a loss that no descent comes back from, far below overflow


class Empirical:
    """The loss on samples: mean squared residual after least squares on (1, x), after which ReLU(wᵀx) acts as |wᵀx|/2.

    X : (n, d), inputs.  y : (n,), labels.  teacher : what made them, if it is known.
    """

    smooth = False  # |wᵀx| has kinks, at which a minimum may lie

    def __init__(self, X, y, *, teacher=None):
        X, y = floats(X), floats(y)
        if X.ndim != 2 or y.shape != X.shape[:1] or not (np.all(np.isfinite(X)) and np.all(np.isfinite(y))):
            raise ValueError(f"X {X.shape} and y {y.shape}: must be (n, d) and (n,), finite")
        self.n, self.d = X.shape
        if self.n <= self.d + 1:
            raise ValueError(f"n = {self.n}: must exceed d + 1 = {self.d + 1}, the parameters of the affine term")
        self.X, self.labels, self.teacher = X, y, teacher
        self._affine = np.linalg.qr(np.column_stack([np.ones(self.n), X]))[0]
        self.y = self._off_affine(y)

    def loss(self, a, W):
        """Mean squared residual, (...)."""
        residual = self._residual(np.abs(W @ self.X.T), a)
        return np.vecdot(residual, residual) / self.n

    def gradient(self, a, W):
        """Loss (...), with its gradients in a, (..., m), and in W, (..., m, d)."""
        Z = W @ self.X.T
        features = np.abs(Z)
        residual = self._residual(features, a)
        by_second = (features @ residual[..., None])[..., 0] / self.n
        by_first = (np.sign(Z) * residual[..., None, :]) @ self.X * (a / self.n)[..., None]
        return np.vecdot(residual, residual) / self.n, by_second, by_first

    def normal_equations(self, W):
        """Gram matrix (m, m) and right-hand side (m,) of the least squares for the second layer."""
        F = self._off_affine(np.abs(W @ self.X.T) / 2)
        return F @ F.T / self.n, F @ self.y / self.n

    def _residual(self, features, a):
        return self._off_affine((a[..., None, :] @ features)[..., 0, :] / 2) - self.y

    def _off_affine(self, v):
        return v - v @ self._affine @ self._affine.T


def sample(teacher, n, rng, *, noise=0.0):
    """`Empirical` on n > d + 1 samples of a teacher with label noise of standard deviation `noise` >= 0."""
    number("noise", noise, least=0)
    X = rng.standard_normal((whole("n", n, 1), teacher.d))
    y = np.maximum(X @ teacher.directions.T, 0) @ teacher.weights
    return Empirical(X, y + noise * rng.standard_normal(n) if noise else y, teacher=teacher)


def initialise(d, m, rng, *, scale=1e-3, count=None):
    """A start of m >= 1 neurons: second layer of random signs, (m,), and first layer on a sphere, (m, d).

    scale : |a_i| and ‖w_i‖ of every neuron, > 0.  count : number of starts, along a first axis of both.
    """
    shape = _shape(whole("m", m, 1), count)
    scale = number("scale", scale, above=0)
    W = scale * polar(rng.standard_normal((*shape, whole("d", d, 1))))[1]
    return rng.choice([-scale, scale], shape), W


def planted(teacher, m, spread, rng, *, count=None):
    """A balanced start near the teacher, (m,) and (m, d): m >= r neurons given to its lines in turn, moved at random.

    spread : root mean square of the move, relative to the neuron.  count : as in `initialise`.
    """
    shape = _shape(whole("m", m, teacher.r), count)
    size = number("spread", spread, least=0) / np.sqrt(teacher.d)
    k = np.arange(m) % teacher.r
    move = size * rng.standard_normal((*shape, teacher.d))
    return balance(np.broadcast_to((teacher.weights / np.bincount(k))[k], shape), teacher.directions[k] + move)


def _shape(m, count):
    return (m,) if count is None else (whole("count", count, 1), m)


def first_step(system, a, W):
    """Stage 1: the first layer (..., m, d) after one gradient step of the size that makes its mean squared row norm 1.

    The step's weight decay cancels the initial weights (Damian et al. 2022; the constants are ours).
    """
    W = -system.gradient(a, W)[2]
    return W / np.sqrt(np.mean(np.vecdot(W, W), axis=-1))[..., None, None]


def fit_second_layer(system, W, ridge):
    """Stage 2: the second layer (..., m) that minimises L + (λ/2)‖a‖² at fixed W, λ = ridge > 0."""
    K, k = system.normal_equations(W)
    decay = number("ridge", ridge, above=0) / 2
    return np.linalg.solve(K + decay * np.eye(K.shape[-1]), k[..., None])[..., 0]


def balance(a, W):
    """(a, W) with |a_i| = ‖w_i‖ and the same output, which is that of a_i/t, t w_i."""
    norms = np.linalg.norm(W, axis=-1)
    root = np.sqrt(np.abs(a) * norms)
    return np.sign(a) * root, W * (root / np.where(norms, norms, 1.0))[..., None]


def fitted(system, m, rng, *, count=None, fit_ridge=1e-3):
    """(a, W) after stages 1 and 2 from small random weights of m neurons, balanced: (m,) and (m, d).

    count : as in `initialise`; on the population alone.  fit_ridge : λ of stage 2, > 0.
    """
    W = first_step(system, *initialise(system.d, m, rng, count=count))
    return balance(fit_second_layer(system, W, fit_ridge), W)


def objective(system, a, W, ridge):
    """L_λ = L + (λ/2)(‖a‖² + ‖W‖²), (...)."""
    return system.loss(a, W) + ridge / 2 * (np.vecdot(a, a) + np.sum(W**2, axis=(-2, -1)))


class Descent(NamedTuple):
    """Where a descent on L_λ ended.

    loss, converged : (...).

    Converged means that the largest gradient entry fell to the tolerance. On samples, whose loss has kinks, L-BFGS also
    counts as converged where it stalls: where the objective fell by less than 0.1 % over the last 40 iterations or
    since its memory was last cleared, which happens where a line search fails.
    """

    a: np.ndarray
    W: np.ndarray
    loss: np.ndarray
    converged: np.ndarray


def descend(system, a, W, ridge, *, method="quasi-newton", limit=2000, tolerance=None, step=1.0):
    """Stage 3 at one λ, from (a, W) on both layers at once: a `Descent`.

    ridge : λ, or a pair for a and W.  method : "quasi-newton" (L-BFGS, one network) or "gradient" (plain gradient
    descent of fixed `step` > 0; ArithmeticError where it diverges).  limit : most iterations, >= 1.
    tolerance : largest gradient entry at which a network stops, >= 0; by default 1e-4 λ, or 1e-10 for λ = 0.
    """
    choice("method", method, METHODS)
    a, W = floats(a), floats(W)
    if method == "quasi-newton" and W.ndim > 2:
        raise ValueError(f'W {W.shape}: "quasi-newton" takes one network, (m, {system.d}); "gradient" takes several')
    decay = np.array([number("ridge", part, least=0) for part in np.broadcast_to(ridge, 2).tolist()])
    whole("limit", limit, 1)
    step = number("step", step, above=0)
    if W.ndim < 2 or a.shape != W.shape[:-1] or W.shape[-1] != system.d:
        raise ValueError(f"a {a.shape}, W {W.shape}: must be (m,) and (m, {system.d})")
    if not (np.isfinite(a).all() and np.isfinite(W).all()):
        raise ValueError("a, W: must be finite real numbers")
    tolerance = (1e-4 * decay.min() or 1e-10) if tolerance is None else number("tolerance", tolerance, least=0)
    if method == "gradient":
        return _gradient_descent(system, a, W, decay, limit, tolerance, step)
    return _quasi_newton(system, a, W, decay, limit, tolerance)


def _decayed(system, a, W, decay):
    """Loss, and the gradients of L + (λ_a‖a‖² + λ_W‖W‖²)/2 in a and in W, for decay (λ_a, λ_W)."""
    loss, by_second, by_first = system.gradient(a, W)
    return loss, by_second + decay[0] * a, by_first + decay[1] * W


def _steepest(by_second, by_first):
    return np.maximum(np.abs(by_second).max(axis=-1), np.abs(by_first).max(axis=(-2, -1)))


def _gradient_descent(system, a, W, decay, limit, tolerance, step):
    """Networks that have converged are set aside while the others go on."""
    shape, lead = W.shape, W.shape[:-2]
    a, W = a.reshape(-1, shape[-2]), W.reshape(-1, *shape[-2:])
    end_a, end_W = np.empty_like(a), np.empty_like(W)
    end_loss, converged = np.empty(len(a)), np.empty(len(a), bool)
    moving = np.arange(len(a))
    for iteration in range(limit + 1):
        loss, by_second, by_first = _decayed(system, a, W, decay)
        if not np.all(loss < _DIVERGED):
            raise ArithmeticError(f"step = {step:g}: the descent diverges; take a smaller step")
        settled = _steepest(by_second, by_first) <= tolerance
        done = settled | (iteration == limit)
        if np.any(done):
            at, moving = moving[done], moving[~done]
            end_a[at], end_W[at], end_loss[at], converged[at] = a[done], W[done], loss[done], settled[done]
            if not moving.size:
                break
            a, W, by_second, by_first = (part[~done] for part in (a, W, by_second, by_first))
        a, W = a - step * by_second, W - step * by_first
    ends = end_loss.reshape(lead)[()], converged.reshape(lead)[()]
    return Descent(end_a.reshape(shape[:-1]), end_W.reshape(shape), *ends)


def _quasi_newton(system, a, W, decay, limit, tolerance):
    m, shape = len(a), W.shape
    scale = np.repeat(decay, (m, W.size))
    fell = []

    def split(x):
        return x[:m], x[m:].reshape(shape)

    def value_and_gradient(x):
        loss, by_second, by_first = system.gradient(*split(x))
        return loss + scale @ x**2 / 2, np.concatenate([by_second, by_first.ravel()]) + scale * x

    def settled():
        return len(fell) > _WINDOW and fell[-1 - _WINDOW] - fell[-1] <= _SETTLED * abs(fell[-1])

    def after(intermediate_result):
        fell.append(intermediate_result.fun)
        if not system.smooth and settled():
            raise StopIteration

    x = np.concatenate([a, W.ravel()])
    before = np.inf
    options = {"maxfun": 20 * limit, "gtol": tolerance, "ftol": 0.0, "maxcor": _MEMORY}
    while True:
        options["maxiter"] = limit - len(fell)
        end = optimize.minimize(value_and_gradient, x, jac=True, method="L-BFGS-B", callback=after, options=options)
        x = end.x
        rested = not system.smooth and (settled() or before - end.fun <= _SETTLED * abs(end.fun))
        if system.smooth or rested or len(fell) >= limit:
            break
        before = end.fun  # a line search that failed at a kink may go on without memory
    a, W = split(x)
    loss, by_second, by_first = _decayed(system, a, W, decay)
    converged = rested or _steepest(by_second, by_first) <= tolerance
    return Descent(a, W, loss, bool(converged))


def anneal(system, a, W, ridges, **options):
    """Stage 3 from (a, W): the `Descent`s at the λ of `ridges`, each from the end of the one before.

    options : of `descend`.
    """
    descents = []
    if np.ndim(ridges) not in (1, 2) or len(ridges) == 0:
        raise ValueError(f"ridges = {ridges!r:.40}: must be a list of λ >= 0, or of pairs for a and W")
    for ridge in ridges:
        descents.append(descend(system, a, W, ridge, **options))
        a, W = descents[-1].a, descents[-1].W
    return descents


def train(system, m, rng, ridges, **options):
    """All three stages from small random weights of m neurons: the `Descent`s of stage 3 at the λ of `ridges`.

    options : of `descend`.
    """
    return anneal(system, *fitted(system, m, rng), ridges, **options)


def angles(W, teacher):
    """Angle in degrees, [0, 90], from each neuron's line to the nearest teacher line: (..., m)."""
    units, V = polar(W)[1], teacher.directions
    off = units[..., None, :] - (units @ V.T)[..., None] * V  # an arcsine is exact where it is small
    return np.degrees(np.arcsin(np.minimum(np.linalg.norm(off, axis=-1).min(axis=-1), 1.0)))


def weighted_angle(a, W, teacher):
    """Mean of `angles` in degrees, each neuron counting by |a_i|‖w_i‖: (...)."""
    mass = np.abs(a) * np.linalg.norm(W, axis=-1)
    return np.sum(mass * angles(W, teacher), axis=-1) / np.sum(mass, axis=-1)


def subspace_energy(W, teacher):
    """Fraction of ‖W‖² inside the target subspace, in [0, 1]."""
    return float(np.sum((W @ teacher.basis.T) ** 2) / np.sum(W**2))
