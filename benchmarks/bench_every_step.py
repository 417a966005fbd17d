"""The curve over all step sizes: against plain damping of the same map, and against simulating one replicate."""

import numpy as np
from bench_sweep import timed

from onestep import Problem, simulate, theory


def damped(family, eta, tolerance=1e-9):
    """The training loss at one step by plain damping of the fixed-point map from a cold start."""
    features = family.features(eta)
    state = features.start()
    while True:
        step = theory.equivalent.update(features, state, 1.0) - state
        if np.max(np.abs(step)) < tolerance:
            return theory.equivalent.training_loss(features, state, 1.0)
        state = state + step / 2


def main():
    p = Problem(n=1000, d=300, N=500, teacher=(0.0, 1.0, 2**-0.5))
    eta = np.concatenate([[0.0], p.n ** np.linspace(0.0, 0.5, 49)])
    ours, curve = timed(lambda: theory.every_step.uniform(p, eta))
    cold, _ = timed(lambda: theory.every_step.family(p).evaluate(eta[-1]))
    theirs, plain = timed(lambda: np.array([damped(theory.every_step.family(p), step) for step in eta]))
    np.testing.assert_allclose(curve.train, plain, rtol=1e-4)
    simulated, _ = timed(lambda: simulate.losses(p, eta, trials=1, jobs=1))
    print(f"theory at every step size, {eta.size} steps, train and test, n={p.n} d={p.d} N={p.N}: {ours:.2f} s")
    print(f"  one step size from nothing                             {1e3 * cold:5.0f} ms")
    print(f"  plain damping, training loss only / onestep            {theirs / ours:5.1f} x")
    print(f"  one simulated replicate of the curve / onestep         {simulated / ours:5.1f} x")


if __name__ == "__main__":
    main()
