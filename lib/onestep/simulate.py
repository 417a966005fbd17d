"""Simulation: draw everything, take the gradient step, fit the second layer, measure the losses.

Cost of one replicate of `losses` with m steps, M = min(n, N):
2ndN·2 (gradient) + 2ndN·2 (pre-activations X̃W0ᵀ, X̃Gᵀ) + 3·2dN² (inner products of the rows of W) once, then
nN·M + M³/3 flops per step: the Gram matrix and its Cholesky factor.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import ceil

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from threadpoolctl import threadpool_limits

from . import population
from .checks import choice, steps, whole
from .hermite import Polynomial, monomials
from .problem import Problem

_CHUNK = 1 << 16  # entries per block of elementwise work: a few blocks fit in cache
_STRONG = 1e3  # weight of a limit spike: the penalty then costs it 1e-6 of what it costs a feature


@dataclass(frozen=True)
class Draw:
    """One replicate: teacher direction, first layer, readout, first and fresh sample.

    beta_star (d,) of norm 1; W0 (N, d); a (N,); X, X2 (n, d); y, y2 (n,). The step may use another number of rows of X.
    """

    beta_star: np.ndarray
    W0: np.ndarray
    a: np.ndarray
    X: np.ndarray
    y: np.ndarray
    X2: np.ndarray
    y2: np.ndarray


@dataclass(frozen=True)
class Losses:
    """Training loss (penalty included) and test error (label noise included), each (trials, *eta.shape)."""

    train: np.ndarray
    test: np.ndarray


def key(seed, *branch):
    """The random generator of one replicate: independent for every (seed, branch).

    seed : whole number >= 0, or a tuple of them: a root and the branch of an experiment, as in (7, 1, p.n).
    """
    root, *rest = (whole("seed", part, 0) for part in (seed if isinstance(seed, tuple) and seed else (seed,)))
    return np.random.default_rng(np.random.SeedSequence(root, spawn_key=(*rest, *branch)))


def draw(p: Problem, rng, readout="gaussian", step_samples=None) -> Draw:
    """A fresh replicate: β⋆ uniform on the unit sphere, x ~ N(0, I_d), W0 as `p.first_layer` says.

    readout : √N a_i is N(0, 1) for "gaussian", else one of these equally likely values.
    step_samples : size of the sample (X, y) that the gradient step uses; p.n when None.
    """
    beta_star = rng.standard_normal(p.d)
    beta_star /= np.linalg.norm(beta_star)
    W0 = rng.standard_normal((p.N, p.d))
    if p.first_layer == "sphere":
        W0 /= np.linalg.norm(W0, axis=1, keepdims=True)
    else:
        W0 /= np.sqrt(p.d)
    a = (rng.standard_normal(p.N) if isinstance(readout, str) else rng.choice(readout, p.N)) / np.sqrt(p.N)
    X, y = sample(p, beta_star, rng, step_samples)
    X2, y2 = sample(p, beta_star, rng)
    return Draw(beta_star, W0, a, X, y, X2, y2)


def sample(p: Problem, beta_star, rng, size=None):
    """X (size, d) with standard normal entries and y = σ⋆(Xβ⋆) + ε (size,); size defaults to p.n."""
    X = rng.standard_normal((p.n if size is None else whole("size", size, 1), p.d))
    return X, p.target(X @ beta_star) + p.noise * rng.standard_normal(len(X))


def residual(p: Problem, draw: Draw):
    """The residual r the gradient sees: y, or y - σ(XW0ᵀ)a when the initial output counts; shape (n,)."""
    if p.initial_output == "negligible":
        return draw.y
    return _residual(p, draw, draw.X @ draw.W0.T)


def _residual(p, draw, pre):
    if p.initial_output == "negligible":
        return draw.y
    return draw.y - np.concatenate([p.student(pre[rows]) @ draw.a for rows in _blocks(pre.shape)])


def gradient(p: Problem, draw: Draw):
    """G = -∇_W (1/2n)‖y - f(X)‖² at (W0, a): rows a_i Xᵀ(r ∘ σ'(Xw_i))/n; shape (N, d). The step is W = W0 + ηG."""
    pre = draw.X @ draw.W0.T
    r = _residual(p, draw, pre)
    for rows in _blocks(pre.shape):
        pre[rows] = p.student.derivative(pre[rows]) * r[rows, None]
    G = pre.T @ draw.X
    G *= draw.a[:, None] / len(pre)
    return G


def features(p: Problem, base, move, eta, out=None):
    """F = σ(X̃W0ᵀ + η X̃Gᵀ) from base = X̃W0ᵀ and move = X̃Gᵀ, both (n, N)."""
    out = np.empty_like(base) if out is None else out
    for rows in _blocks(base.shape):
        pre = move[rows] * eta
        pre += base[rows]
        out[rows] = p.student(pre)
    return out


def ridge(F, y, penalty):
    """(â, L_tr): minimiser and minimum of ‖y - Fa‖²/n + penalty‖a‖²; primal or dual, whichever is smaller.

    F : (n, N).  y : (n,).  penalty : λ > 0.
    """
    n, N = F.shape
    S = F.T @ F if N <= n else F @ F.T
    S[np.diag_indices_from(S)] += penalty * n
    factor = cho_factor(S, lower=True, overwrite_a=True, check_finite=False)
    right = F.T @ y if N <= n else y
    a = cho_solve(factor, right, check_finite=False)
    if N > n:
        a = F.T @ a
    rest = y - F @ a
    return a, rest @ rest / n + penalty * (a @ a)


def memory(p: Problem, jobs=1, test_size=None):
    """GiB that `losses` needs at its peak with `jobs` replicates under way."""
    n, d, N = float(p.n), float(p.d), float(p.N)
    replicate = 2 * n * d + 2 * N * d + 3 * n * N + min(n, N) ** 2
    replicate += 3 * test_size * N + test_size * d if test_size else 4 * N * N
    return 8 * replicate * jobs / 2**30


def require_memory(needed):
    """Raise ValueError, before anything is drawn, when `needed` GiB are not available on this machine."""
    available = _available()
    if needed > available:
        raise ValueError(
            f"not enough memory: this size needs {needed:.3g} GiB and {available:.3g} GiB are free; "
            "take a smaller n or fewer jobs (theory.losses has no such limit)"
        )


def losses(p: Problem, eta, trials=20, seed=0, jobs=2, test_size=None, readout="gaussian", step_samples=None) -> Losses:
    """Simulated losses after a step of each size, all steps on the same draws; η = 0 is the untrained network.

    Parameters
    ----------
    eta : step size(s) >= 0, scalar or 1-D.
    trials : replicates >= 1; each redraws everything.
    seed : as in `key`; replicate t draws from key(seed, t), so results do not depend on jobs.
    jobs : replicates under way at once, each on one core.
    test_size : None for the exact population test error, or the size of a fresh test sample.
    readout, step_samples : as for `draw`.

    Raises
    ------
    ValueError for a bad argument or when the memory needed is not there (checked before anything is drawn).
    """
    eta = steps(eta)
    trials, jobs = whole("trials", trials, 1), whole("jobs", jobs, 1)
    key(seed)
    if test_size is not None:
        test_size = whole("test_size", test_size, 1)
    if isinstance(readout, str):
        choice("readout", readout, ("gaussian",))
    if step_samples is not None:
        step_samples = whole("step_samples", step_samples, 1)
    require_memory(memory(p, min(jobs, trials), test_size))

    def replicate(trial):
        return sweep(p, np.atleast_1d(eta), key(seed, trial), test_size, readout, step_samples)

    results = np.array(replicates(replicate, trials, jobs)).reshape(trials, 2, *eta.shape)
    return Losses(results[:, 0], results[:, 1])


def plateaus(p: Problem, orders, trials=20, seed=0, jobs=2) -> Losses:
    """Simulated losses of the limit features [F0 Q, s·z, …, s·z^{∘ℓ}], s → ∞, for every ℓ in orders (0 is F0 itself).

    z = X̃β/‖β‖ with β = Xᵀr/n of the replicate; Q projects off a, …, a^{∘ℓ}, the hidden directions that the spikes fill.
    These are the features that a step n^α, (ℓ-1)/2ℓ < α < ℓ/(2ℓ+2), ends in when n → ∞: spikes so strong that the ridge
    penalty does not see them. Test errors are population averages.

    orders : whole numbers ℓ >= 0; or ℓ - 1/2 with ℓ >= 2, exactly at the threshold α = (ℓ-1)/2ℓ, where spike ℓ keeps
        the strength c_ℓ (c_1 n^α ‖β‖)^ℓ on z^{∘ℓ}(a^{∘ℓ})ᵀ.
    Returns arrays (trials, len(orders)).  Errors as in `losses`.
    """
    orders = [_order(order) for order in orders]
    trials, jobs = whole("trials", trials, 1), whole("jobs", jobs, 1)
    key(seed)
    require_memory(memory(p, min(jobs, trials)))
    results = np.array(replicates(lambda trial: _plateaus(p, orders, key(seed, trial)), trials, jobs))
    return Losses(results[:, 0], results[:, 1])


def _order(order):
    return order if isinstance(order, float) and order > 1 and order % 1 == 0.5 else whole("orders", order, 0)


def _plateaus(p, orders, rng):
    now = draw(p, rng)
    beta = now.X.T @ residual(p, now) / p.n
    direction = beta / np.linalg.norm(beta)
    z, K = now.X2 @ direction, ceil(max(orders))
    F0 = p.student(now.X2 @ now.W0.T)
    spikes = _STRONG * z[:, None] ** np.arange(1, K + 1)

    # Second moments of all features and their products with y, exact over x ~ N(0, I).
    norms = np.linalg.norm(now.W0, axis=1)
    powers = [Polynomial(row) for row in monomials(K)[1:]]
    nodes, weights = Polynomial(np.ones(K + 1)).nodes()
    H = np.empty((p.N + K, p.N + K))
    h = np.empty(p.N + K)
    H[: p.N, : p.N] = population.gram(p.student, now.W0 @ now.W0.T)
    h[: p.N] = population.cross(p.student, p.target, norms, now.W0 @ now.beta_star / norms)
    one, overlap, toward = np.ones(1), now.beta_star @ direction, now.W0 @ direction / norms
    for k, power in enumerate(powers):
        at = p.N + k
        H[at, : p.N] = H[: p.N, at] = _STRONG * population.cross(p.student, power, norms, toward)
        h[at] = _STRONG * population.cross(power, p.target, one, overlap * one)[0]
        H[at, p.N :] = [_STRONG**2 * weights @ (power(nodes) * other(nodes)) for other in powers]

    out = np.empty((2, len(orders)))
    for j, order in enumerate(orders):
        full, born = int(order), ceil(order)
        filled = np.linalg.qr(now.a[:, None] ** np.arange(1, full + 1))[0]
        F = np.column_stack([F0 - (F0 @ filled) @ filled.T, spikes[:, :full]])
        hidden = np.zeros(p.N)
        if born > full:
            strength = p.student.linear * p.n ** (full / (2 * born)) * np.linalg.norm(beta)
            hidden = p.student.coefficients(born)[born] * strength**born * now.a**born
            hidden -= filled @ (filled.T @ hidden)
            F[:, : p.N] += np.outer(z**born, hidden)
        a, out[0, j] = ridge(F, now.y2, p.ridge)
        readout = np.zeros(p.N + K)
        readout[: p.N + full] = a
        readout[p.N + born - 1] += hidden @ a[: p.N] / _STRONG
        out[1, j] = readout @ (H @ readout) - 2 * (readout @ h) + p.label_power
    return out


def leave_one_out(F, y, penalty):
    """Exact leave-one-out residuals y_i - f̂_{-i}(x_i) = (y - Fâ)_i/(1 - h_ii) of the ridge fit; shape (n,).

    h = diag F(FᵀF + penalty·nI)⁻¹Fᵀ. Arguments as in `ridge`.
    """
    n = len(y)
    S = F.T @ F
    S[np.diag_indices_from(S)] += penalty * n
    factor = cho_factor(S, lower=True, overwrite_a=True, check_finite=False)
    hat = np.einsum("ij,ji->i", F, cho_solve(factor, F.T, check_finite=False))
    return (y - F @ cho_solve(factor, F.T @ y, check_finite=False)) / (1 - hat)


def replicates(replicate, trials, jobs=2):
    """[replicate(0), …, replicate(trials - 1)], `jobs` at a time on one BLAS thread each: same numbers for any jobs."""
    with threadpool_limits(1, "blas"), ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(replicate, range(trials)))


def sweep(p: Problem, eta, rng, test_size=None, readout="gaussian", step_samples=None):
    """One replicate of `losses`: (2, len(eta)), training losses and test errors at every step."""
    now = draw(p, rng, readout, step_samples)
    G = gradient(p, now)
    base, move = now.X2 @ now.W0.T, now.X2 @ G.T
    measure = _population_error(p, now, G) if test_size is None else _sample_error(p, now, G, rng, test_size)
    F = np.empty_like(base)
    out = np.empty((2, len(eta)))
    for j, step in enumerate(eta):
        a, out[0, j] = ridge(features(p, base, move, step, out=F), now.y2, p.ridge)
        out[1, j] = measure(step, a)
    return out


def _population_error(p, now, G):
    inner, mixed, outer = now.W0 @ now.W0.T, now.W0 @ G.T, G @ G.T
    mixed += mixed.T.copy()
    start, shift = now.W0 @ now.beta_star, G @ now.beta_star

    def measure(step, a):
        products = inner + step * mixed
        products += step**2 * outer
        norms = np.sqrt(np.diagonal(products).copy())
        h = population.cross(p.student, p.target, norms, (start + step * shift) / norms)
        K = population.gram(p.student, products)
        return a @ (K @ a) - 2 * (a @ h) + p.label_power

    return measure


def _sample_error(p, now, G, rng, size):
    X, y = sample(p, now.beta_star, rng, size)
    base, move = X @ now.W0.T, X @ G.T

    def measure(step, a):
        return np.mean((y - features(p, base, move, step) @ a) ** 2)

    return measure


def _blocks(shape):
    rows = max(1, _CHUNK // shape[1])
    return (slice(start, start + rows) for start in range(0, shape[0], rows))


def _available():
    try:
        with open("/proc/meminfo") as info:
            kib = next(int(line.split()[1]) for line in info if line.startswith("MemAvailable"))
        return kib / 2**20
    except (OSError, StopIteration):
        return float("inf")
