"""A step-size sweep against the straightforward implementation, and against the machine's own matrix product.

The straightforward implementation forms a new W, new train and test features and `np.linalg.inv` at each step. Of
either the better of two times counts.
"""

from functools import partial

import numpy as np
from timing import dgemm_rate, row, timed

from onestep import Problem, simulate

PROBLEM = Problem(n=4000, d=1200, N=2000, noise=1.0)


def straightforward(p, eta, printed):
    """(2, len(eta)) training losses and test errors of the first replicate, each step from scratch.

    printed : invert FFᵀ + λnI (n × n) as in the slides' formula for the training loss; otherwise FᵀF + λnI (N × N).
    """
    rng = simulate.key(0, 0)
    now = simulate.draw(p, rng)
    G = simulate.gradient(p, now)
    X3, y3 = simulate.sample(p, now.beta_star, rng)
    out = np.empty((2, len(eta)))
    for j, step in enumerate(eta):
        W = now.W0 + step * G
        F = p.student(now.X2 @ W.T)
        if printed:
            dual = np.linalg.inv(F @ F.T + p.ridge * p.n * np.eye(p.n)) @ now.y2
            a, out[0, j] = F.T @ dual, p.ridge * now.y2 @ dual
        else:
            a = np.linalg.inv(F.T @ F + p.ridge * p.n * np.eye(p.N)) @ (F.T @ now.y2)
            out[0, j] = np.mean((now.y2 - F @ a) ** 2) + p.ridge * a @ a
        out[1, j] = np.mean((y3 - p.student(X3 @ W.T) @ a) ** 2)
    return out


def flops(p, steps):
    """Multiplications and additions of the minimal computation, counted as in `simulate.every_step`."""
    n, d, N, M = p.n, p.d, p.N, min(p.n, p.N)
    once = 2 * 2 * n * d * N + 2 * 2 * n * d * N + 4 * d * N**2
    return once + steps * (n * p.N * M + M**3 / 3)


def rows(p=PROBLEM, points=10):
    """Lines under `timing.HEAD`."""
    eta = np.r_[0.0, p.n ** np.linspace(0.05, 0.5, points)]
    rate = dgemm_rate(min(3000, p.n))
    pair, fast = timed(lambda: simulate.losses(p, eta, trials=2, jobs=2), 2)
    ours = pair / 2
    what = f"a replicate of the losses at {len(eta)} step sizes, n = {p.n}, d = {p.d}, N = {p.N}; two under way"
    lines = []
    ways = [(True, "n × n inverse at each step, as printed", "10 ×"), (False, "N × N inverse", "3 ×")]
    for printed, way, aim in ways:
        theirs, slow = timed(partial(straightforward, p, eta, printed), 2)
        np.testing.assert_allclose(fast.train[0], slow[0], rtol=1e-8)
        lines.append(row(what, way, theirs, ours, aim))
    least = flops(p, len(eta)) / rate
    share = f"{least / ours:.0%}".replace("%", " %")
    way = f"its least flops at the rate of a matrix product in double, {rate / 1e9:.0f} Gflop/s"
    return [*lines, [*row(what, way, least, ours)[:3], share, "80 %"]]
