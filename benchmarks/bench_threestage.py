"""Three-stage training and the giant step against the straightforward ways: samples, fixed steps, all coordinates."""

import numpy as np
from timing import row, timed

from onestep import hermite, multiindex
from onestep.simulate import directions, key
from onestep.zhou_ge import relu, simulate, theory


def gradient(samples):
    """Closed-form gradient against that of samples, which is still off by tens of per cent."""
    rng = key(0, 0)
    teacher = relu.random_teacher(20, 4, rng)
    exact, sampled = relu.Population(teacher), simulate.sample(teacher, samples, rng)
    a, W = rng.standard_normal(80), rng.standard_normal((80, 20))
    ours, fast = timed(lambda: [exact.gradient(a, W)[2] for _ in range(20)])
    theirs, slow = timed(lambda: [sampled.gradient(a, W)[2] for _ in range(20)])
    miss = f"{np.linalg.norm(slow[0] - fast[0]) / np.linalg.norm(fast[0]):.0%}".replace("%", " %")
    what = "20 gradients of the loss of both layers, d = 20, r = 4, m = 80"
    return row(what, f"{samples} samples, off by {miss}", theirs, ours)


def descent(share):
    """Stage 3 at its first λ to the same loss: L-BFGS against gradient descent with fixed step."""
    rng = key(0, 1)
    system = relu.Population(relu.random_teacher(20, 4, rng))
    a, W = simulate.fitted(system, 80, rng)
    goal = (1 + share) * theory.minimum(system.teacher, 3e-3).loss

    def reach(method):
        limit = 1
        while (end := simulate.descend(system, a, W, 3e-3, method=method, limit=limit)).loss > goal:
            limit *= 2
        return end, timed(lambda: simulate.descend(system, a, W, 3e-3, method=method, limit=limit))[0]

    (fast, ours), (slow, theirs) = map(reach, simulate.METHODS)
    what = f"stage 3 at λ = 0.003 to within {100 * share:g} % of the least loss, {fast.evaluations} gradients"
    return row(what, f"fixed step, {slow.evaluations} gradients", theirs, ours)


def step(d):
    """One giant step in the coordinates that matter against all of them."""
    n, N = d**2, 12
    target = multiindex.Target({(1, 0): 1.0, (0, 2): 0.5})
    slope = hermite.function("shifted_relu").derivative

    def everything():
        rng = key(0, 3)
        W = rng.standard_normal((N, d))
        W /= np.linalg.norm(W, axis=1, keepdims=True)
        X = rng.standard_normal((n, d))
        G = (target(X[:, :2])[:, None] * slope(X @ W.T)).T @ X
        return G[:, :2] / np.linalg.norm(G, axis=1, keepdims=True)

    ours, _ = timed(lambda: directions.one_step(target, d, n, N, key(0, 2)))
    theirs, _ = timed(everything)
    return row(f"one giant step, d = {d}, N = {N}, n = d²", "all coordinates", theirs, ours)


def rows(samples=10_000, share=0.01, d=300):
    """Lines under `timing.HEAD`."""
    return [gradient(samples), descent(share), step(d)]
