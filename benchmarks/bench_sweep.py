"""A step-size sweep against the straightforward implementation, and against the machine's own matrix product.

The straightforward implementation forms a new W, new train and test features and `np.linalg.inv` at each step.
"""

from functools import partial
from time import perf_counter

import numpy as np

from onestep import Problem, simulate


def straightforward(p, eta, rng, printed):
    """(2, len(eta)) training losses and test errors of one replicate, each step from scratch.

    printed : invert FFᵀ + λnI (n × n) as in the slides' formula for the training loss; otherwise FᵀF + λnI (N × N).
    """
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
    """Multiplications and additions of the minimal computation, counted as in the docstring of `simulate`."""
    n, d, N, M = p.n, p.d, p.N, min(p.n, p.N)
    once = 2 * 2 * n * d * N + 2 * 2 * n * d * N + 3 * 2 * d * N**2
    return once + steps * (n * p.N * M + M**3 / 3)


def timed(call):
    start = perf_counter()
    result = call()
    return perf_counter() - start, result


def dgemm_rate(size=3000):
    """Best flops per second of three square matrix products on all cores."""
    A = np.random.default_rng(0).standard_normal((size, size))
    return 2 * size**3 / min(timed(lambda: A @ A)[0] for _ in range(3))


def main():
    p = Problem(n=4000, d=1200, N=2000, noise=1.0)
    eta = np.r_[0.0, p.n ** np.linspace(0.05, 0.5, 10)]
    rate = dgemm_rate()
    ours, fast = timed(lambda: simulate.losses(p, eta, trials=2, jobs=2))
    theirs = {}
    for printed in (True, False):
        theirs[printed], slow = timed(partial(straightforward, p, eta, simulate.key(0, 0), printed))
        np.testing.assert_allclose(fast.train[0], slow[0], rtol=1e-8)
    share = flops(p, len(eta)) / (ours / 2) / rate
    print(f"step-size sweep, n={p.n} d={p.d} N={p.N}, {len(eta)} steps, one replicate (two under way, 2 cores)")
    print(f"  straightforward, n x n inverse as printed / onestep   {theirs[True] / (ours / 2):5.1f} x   (aim 4)")
    print(f"  straightforward, N x N inverse / onestep              {theirs[False] / (ours / 2):5.1f} x")
    print(f"  minimal flops {flops(p, len(eta)) / 1e9:.0f} G at {share:.0%} of the dgemm rate (aim 50%)")


if __name__ == "__main__":
    main()
