"""Three-stage training and the giant step against the straightforward ways: samples, fixed steps, all coordinates."""

import numpy as np
from bench_sweep import timed

from onestep import hermite, multiindex, relu, simulate, theory
from onestep.simulate import key, threestage


def gradient():
    """Closed-form gradient against that of 10 000 samples, which is still off by tens of per cent."""
    rng = key(0, 0)
    teacher = relu.random_teacher(20, 4, rng)
    exact, sampled = threestage.Population(teacher), threestage.Empirical(teacher, 10_000, rng)
    a, W = rng.standard_normal(80), rng.standard_normal((80, 20))
    ours, fast = timed(lambda: [exact.gradient(a, W)[2] for _ in range(20)])
    theirs, slow = timed(lambda: [sampled.gradient(a, W)[2] for _ in range(20)])
    miss = np.linalg.norm(slow[0] - fast[0]) / np.linalg.norm(fast[0])
    print("gradient of the loss, d=20 r=4 m=80")
    print(f"  10 000 samples (off by {miss:.0%}) / closed form              {theirs / ours:5.1f} x")


def descent():
    """Stage 3 at its first λ to the same loss: L-BFGS against gradient descent with fixed step."""
    rng = key(0, 1)
    system = threestage.Population(relu.random_teacher(20, 4, rng))
    a, W = threestage.train(system, 80, rng, ()).fitted
    goal = 1.01 * theory.threestage.minimum(system.teacher, 3e-3).loss

    def reach(method):
        limit = 1
        while (end := threestage.descend(system, a, W, 3e-3, method, limit)).loss > goal:
            limit *= 2
        return end, timed(lambda: threestage.descend(system, a, W, 3e-3, method, limit))[0]

    (fast, ours), (slow, theirs) = map(reach, threestage.METHODS)
    print("stage 3 at λ = 3e-3 to within 1 % of the least loss (limits are powers of two)")
    counts = f"{slow.evaluations} / {fast.evaluations} evaluations"
    print(f"  gradient descent / quasi-Newton ({counts}) {theirs / ours:5.1f} x")


def step():
    """One giant step in the coordinates that matter against all of them."""
    d, N = 300, 12
    n = d**2
    target = multiindex.Target({(1, 0): 1.0, (0, 2): 0.5})
    slope = hermite.function("shifted_relu").derivative

    def everything():
        rng = key(0, 3)
        W = rng.standard_normal((N, d))
        W /= np.linalg.norm(W, axis=1, keepdims=True)
        X = rng.standard_normal((n, d))
        G = (target(X[:, :2])[:, None] * slope(X @ W.T)).T @ X
        return G[:, :2] / np.linalg.norm(G, axis=1, keepdims=True)

    ours, _ = timed(lambda: simulate.directions.one_step(target, d, n, N, key(0, 2)))
    theirs, _ = timed(everything)
    print(f"one giant step, d={d} N={N} n=d²")
    print(f"  all coordinates / those that matter                   {theirs / ours:5.1f} x")


def main():
    gradient()
    descent()
    step()


if __name__ == "__main__":
    main()
