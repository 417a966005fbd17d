"""Three-stage training against the straightforward ways: samples and fixed steps."""

import numpy as np
from timing import row, timed

from onestep.simulate import key
from onestep.zhou_ge import relu, theory
from onestep.zhou_ge.simulate import threestage


def gradient(samples):
    """Closed-form gradient against that of samples, which is still off by tens of per cent."""
    rng = key(0, 0)
    teacher = relu.random_teacher(20, 4, rng)
    exact, sampled = relu.Population(teacher), threestage.sample(teacher, samples, rng)
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
    a, W = threestage.train(system, 80, rng, ()).fitted
    goal = (1 + share) * theory.threestage.minimum(system.teacher, 3e-3).loss

    def reach(method):
        limit = 1
        while (end := threestage.descend(system, a, W, 3e-3, method=method, limit=limit)).loss > goal:
            limit *= 2
        return end, timed(lambda: threestage.descend(system, a, W, 3e-3, method=method, limit=limit))[0]

    (fast, ours), (slow, theirs) = map(reach, threestage.METHODS)
    what = f"stage 3 at λ = 0.003 to within {100 * share:g} % of the least loss, {fast.evaluations} gradients"
    return row(what, f"fixed step, {slow.evaluations} gradients", theirs, ours)


def rows(samples=10_000, share=0.01):
    """Lines under `timing.HEAD`."""
    return [gradient(samples), descent(share)]
