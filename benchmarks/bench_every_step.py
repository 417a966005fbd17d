"""The curve over all step sizes: against plain damping of the same map, and against simulating one replicate."""

from dataclasses import replace

import numpy as np
from timing import row, timed

from onestep import Problem, simulate, theory

PROBLEM = Problem(n=1000, d=300, N=500, teacher=(0.0, 1.0, 2**-0.5))


def damped(family, eta, tolerance=1e-9):
    """The training loss at one step by plain damping of the fixed-point map from a cold start."""
    features = family.features(eta)
    state = features.start()
    while True:
        step = theory.fixed_point.update(features, state, 1.0) - state
        if np.max(np.abs(step)) < tolerance:
            return theory.fixed_point.training_loss(features, state, 1.0)
        state = state + step / 2


def straight(p, eta):
    """Training losses at every step, each the mean over two first batches."""
    family = theory.fixed_point.family(p, order=18)
    both = [replace(family, batch=batch) for batch in theory.fixed_point.first_batch.spread(family.batch, p.d)]
    return np.array([np.mean([damped(one, step) for one in both]) for step in eta])


def rows(p=PROBLEM, points=49):
    """Lines under `timing.HEAD`."""
    eta = np.concatenate([[0.0], p.n ** np.linspace(0.0, 0.5, points)])
    ours, curve = timed(lambda: theory.every_step.fixed_point(p, eta))
    theirs, plain = timed(lambda: straight(p, eta))
    np.testing.assert_allclose(curve.train, plain, rtol=3e-4)  # quadrature and interpolation
    simulated, _ = timed(lambda: simulate.losses(p, eta, trials=1, jobs=1))
    what = f"theory of the losses at {eta.size} step sizes, n = {p.n}, d = {p.d}, N = {p.N}"
    return [
        row(what, "plain damping, training loss only", theirs, ours),
        row(what, "simulating one replicate", simulated, ours),
    ]
