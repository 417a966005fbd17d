"""One replicate by hand: draw everything, take the gradient step, form the features, fit the second layer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from .. import checks
from ..checks import whole
from ..problem import Problem, as_problem
from .data import as_data

_CHUNK = 1 << 16  # entries per block of elementwise work: a few blocks fit in cache


@dataclass(frozen=True)
class Draw:
    """One replicate: teacher direction, first layer, readout, first and fresh sample, and a test sample if asked for.

    beta_star (d,) of norm 1; W0 (N, d); a (N,); X, X2, X3 (n, d); y, y2, y3 (n,). Step and test may use other numbers
    of rows. With own labels beta_star has no part in them.
    """

    beta_star: np.ndarray
    W0: np.ndarray
    a: np.ndarray
    X: np.ndarray
    y: np.ndarray
    X2: np.ndarray
    y2: np.ndarray
    X3: np.ndarray | None = None
    y3: np.ndarray | None = None


def draw(p: Problem, rng, *, data=None, test_size=None) -> Draw:
    """A fresh replicate: β⋆ uniform on the unit sphere, x ~ N(0, I_d), W0, a and the sample sizes as p says.

    Parameters
    ----------
    p : Problem
    rng : numpy Generator
    data : own inputs, `data.Rows` or `data.Sampler`, with p.d columns and enough rows
    test_size : rows of a third sample, if any
    """
    sizes = [as_problem(p).first_samples, p.n]
    sizes += [] if test_size is None else [whole("test_size", test_size, 1)]
    gib = 8.0 * p.d * (p.N + sum(sizes)) / 2**30
    if gib > 1:  # asking the system takes longer than a small draw
        checks.memory(gib)
    if not isinstance(rng, np.random.Generator):
        raise ValueError(f"rng = {rng!r:.60}: must be a numpy Generator, such as simulate.key(0)")
    if data is not None and as_data(data).d != p.d:
        raise ValueError(f"data has {data.d} columns, but the problem has d = {p.d} inputs")
    beta_star = rng.standard_normal(p.d)
    beta_star /= np.linalg.norm(beta_star)
    W0 = rng.standard_normal((p.N, p.d))
    if p.first_layer == "sphere":
        W0 /= np.linalg.norm(W0, axis=1, keepdims=True)
    else:
        W0 /= np.sqrt(p.d)
    a = readout(p, rng)
    if data is None:
        samples = [sample(p, beta_star, rng, size=size) for size in sizes]
    else:
        parts = data.samples(rng, sizes)
        samples = [(X, _labels(p, beta_star, rng, X) if y is None else y) for X, y in parts]
    return Draw(beta_star, W0, a, *(part for pair in samples for part in pair))


def readout(p: Problem, rng):
    """The readout weights a (N,), of the law that p says."""
    values = p.readout_values
    return (rng.standard_normal(p.N) if values is None else rng.choice(values, p.N)) / np.sqrt(p.N)


def sample(p: Problem, beta_star, rng, *, size=None):
    """X (size, d) with standard normal entries and y = σ⋆(Xβ⋆) + ε (size,); size defaults to p.n."""
    X = rng.standard_normal((p.n if size is None else whole("size", size, 1), p.d))
    return X, _labels(p, beta_star, rng, X)


def _labels(p, beta_star, rng, X):
    return p.target(X @ beta_star) + p.noise * rng.standard_normal(len(X))


def residual(p: Problem, draw: Draw, *, pre=None):
    """The residual r in the gradient: y, or y - σ(XW0ᵀ)a when the initial output counts; (n,).  pre : XW0ᵀ if known."""
    if p.initial_output == "negligible":
        return draw.y
    pre = draw.X @ draw.W0.T if pre is None else pre
    return draw.y - np.concatenate([p.student(pre[rows]) @ draw.a for rows in blocks(pre.shape)])


def direction(p: Problem, draw: Draw):
    """β = Xᵀr/n (d,) with r the residual in the gradient."""
    return draw.X.T @ residual(p, draw) / len(draw.X)


def gradient(p: Problem, draw: Draw):
    """G = -∇_W (1/2n)‖y - f(X)‖² at (W0, a): rows a_i Xᵀ(r ∘ σ'(Xw_i))/n; shape (N, d). The step is W = W0 + ηG."""
    pre = draw.X @ draw.W0.T
    r = residual(p, draw, pre=pre)
    for rows in blocks(pre.shape):
        pre[rows] = p.student.derivative(pre[rows]) * r[rows, None]
    G = pre.T @ draw.X
    G *= draw.a[:, None] / len(pre)
    return G


def features(p: Problem, base, move, eta, *, out=None):
    """F = σ(X̃W0ᵀ + η X̃Gᵀ) (n, N) from base = X̃W0ᵀ and move = X̃Gᵀ, put into `out` if given."""
    out = np.empty_like(base) if out is None else out
    for rows in blocks(base.shape):
        pre = move[rows] * eta
        pre += base[rows]
        out[rows] = p.student(pre)
    return out


def ridge(F, y, penalty):
    """(â, L_tr): minimiser and minimum of ‖y - Fa‖²/n + penalty‖a‖²; primal or dual, whichever is smaller.

    y is (n,), or (n, k) for k label vectors at once: then â is (N, k) and L_tr (k,).
    """
    n, N = F.shape
    if N <= n:
        a = cho_solve(gram_factor(F, penalty * n), F.T @ y, check_finite=False)
    else:
        a = F.T @ cho_solve(gram_factor(F.T, penalty * n), y, check_finite=False)
    rest = y - F @ a
    return a, np.sum(rest**2, axis=0) / n + penalty * np.sum(a**2, axis=0)


def gram_factor(F, shift):
    """Cholesky factor of FᵀF + shift·I, F (n, N), as `scipy.linalg.cho_solve` takes it."""
    with np.errstate(over="ignore", invalid="ignore"):
        S = F.T @ F
    if not np.all(np.isfinite(S.diagonal())):
        finite = np.all(np.isfinite(F))
        raise ValueError("eta: the squares of the features overflow" if finite else "F: holds NaN or infinity")
    S[np.diag_indices_from(S)] += shift
    try:  # S.T is S in LAPACK's order of entries, so that nothing is copied
        return cho_factor(S.T, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        raise ValueError(f"ridge = {shift / len(F):.3g}: must exceed the rounding of the features") from None


def blocks(shape):
    """Slices of rows of an array of that shape, few enough for elementwise work in cache."""
    rows = max(1, _CHUNK // shape[1])
    return (slice(start, start + rows) for start in range(0, shape[0], rows))
