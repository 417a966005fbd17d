"""`make bench`: the library against the straightforward way, on all cores both.

Each ratio is of two times of this run. Run it on an idle machine, or the times mean nothing.
"""

import os
import platform
from time import perf_counter

import numpy as np

from onestep import Problem, simulate, theory
from onestep.report import digits, markdown_table

SWEEP = Problem(n=4000, d=1200, N=2000, noise=1.0)
CURVE = Problem(n=1000, d=300, N=500, teacher=(0.0, 1.0, 2**-0.5))


def timed(call):
    """(seconds, result) of a call, the better of two times."""
    took = []
    for _ in range(2):
        start = perf_counter()
        result = call()
        took.append(perf_counter() - start)
    return min(took), result


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


def rows(sweep=SWEEP, curve=CURVE):
    """Lines of the table: what, the straightforward way, its seconds, the library's, their ratio."""
    eta = np.r_[0.0, sweep.n ** np.linspace(0.05, 0.5, 10)]
    pair, fast = timed(lambda: simulate.losses(sweep, eta, trials=2, jobs=2))
    what = f"a replicate of both losses at {len(eta)} step sizes, n = {sweep.n}, d = {sweep.d}, N = {sweep.N}"
    lines = []
    for printed, way in ((True, "n × n inverse at each step, as printed"), (False, "N × N inverse at each step")):
        slow, plain = timed(lambda printed=printed: straightforward(sweep, eta, printed))
        np.testing.assert_allclose(fast.train[0], plain[0], rtol=1e-8)
        lines.append([what, way, slow, pair / 2])
    eta = np.r_[0.0, curve.n ** np.linspace(0.0, 0.5, 49)]
    slow, _ = timed(lambda: simulate.losses(curve, eta, trials=1, jobs=1))
    ours, _ = timed(lambda: theory.losses(curve, eta))
    what = f"both losses at {len(eta)} step sizes, n = {curve.n}, d = {curve.d}, N = {curve.N}"
    lines.append([what, "simulating one replicate, in place of theory", slow, ours])
    return [
        [what, way, *(f"{digits(x, 3)} s" for x in (slow, ours)), f"{slow / ours:.1f} ×"]
        for what, way, slow, ours in lines
    ]


def main():
    print(f"{os.cpu_count()} cores, Python {platform.python_version()}, numpy {np.__version__}\n")
    print(markdown_table(["what", "straightforward way", "takes", "onestep", "ratio"], rows()))


if __name__ == "__main__":
    main()
