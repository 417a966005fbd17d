"""The curve over all step sizes: against plain damping of the same map, and against simulating one replicate."""

import numpy as np
from bench_sweep import timed

from onestep import Problem, simulate, theory


def damped(family, eta, tolerance=1e-9):
    """The fixed point at one step by plain damping from a cold start; returns the packed state."""
    model = family._model(eta)
    state = model.start(None)
    while True:
        step = model.update(state, 1.0) - state
        if np.max(np.abs(step)) < tolerance:
            return model.train(state, 1.0)
        state = state + step / 2


def main():
    p = Problem(n=1000, d=300, N=500, teacher=(0.0, 1.0, 2**-0.5))
    eta = np.concatenate([[0.0], p.n ** np.linspace(0.0, 0.5, 49)])
    ours, curve = timed(lambda: theory.every_step.losses(p, eta))
    family = theory.every_step._resolved(p, eta.max())[0]
    theirs, plain = timed(lambda: np.array([damped(family, step) for step in eta]))
    np.testing.assert_allclose(curve.train, plain, rtol=1e-6)
    simulated, _ = timed(lambda: simulate.losses(p, eta, trials=1, jobs=1))
    print(f"theory at every step size, {eta.size} steps, train and test, n={p.n} d={p.d} N={p.N}")
    print(f"  plain damping, training loss only / onestep            {theirs / ours:5.1f} x")
    print(f"  one simulated replicate of the curve / onestep         {simulated / ours:5.1f} x")


if __name__ == "__main__":
    main()
