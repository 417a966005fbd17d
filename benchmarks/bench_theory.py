"""What each call of the theory costs, with nothing kept from earlier calls."""

from types import ModuleType

import numpy as np
from timing import seconds, timed

from onestep import Problem, multiindex, simulate, theory
from onestep.zhou_ge import relu
from onestep.zhou_ge import theory as zhou_ge

HEAD = ["call", "first", "again"]
PROBLEM = Problem(n=1000, d=300, N=500, teacher=(0.0, 1.0, 2**-0.5), noise=0.5)


def calls(p):
    """Functions without arguments, by what a reader would write."""
    eta, small = (p.n ** np.linspace(0.0, largest, 50) for largest in (0.5, 0.2))
    teacher = relu.random_teacher(20, 4, simulate.key(0))
    target = multiindex.Target({(1, 0): 1.0, (0, 2): 0.5})
    return {
        "traces(p)": lambda: theory.traces(p),
        "untrained_limit(p)": lambda: theory.untrained_limit(p),
        "gains(p, 2)": lambda: theory.gains(p, 2),
        "boundary(p, 2)": lambda: theory.boundary(p, 2),
        'losses(p, 50 steps, method="spiked")': lambda: theory.losses(p, small, method="spiked"),
        "losses(p, 1 step)": lambda: theory.losses(p, eta[25]),
        "losses(p, 50 steps)": lambda: theory.losses(p, eta),
        "learned(p, 1 step, 3)": lambda: theory.learned(p, eta[25], 3),
        "best_step(p)": lambda: theory.best_step(p),
        "best_ridge(p, 1 step)": lambda: theory.best_ridge(p, eta[25]),
        "spectra.weight_spike(p, η)": lambda: theory.spectra.weight_spike(p, eta[25]),
        "spectra.feature_spikes(p, η)": lambda: theory.spectra.feature_spikes(p, eta[25]),
        "spectra.birth(p, 2)": lambda: theory.spectra.birth(p, 2),
        "directions.energy(g, d, n)": lambda: theory.directions.energy(target, 300, [90_000]),
        "zhou_ge.theory.minimum(teacher, λ)": lambda: zhou_ge.minimum(teacher, 3e-3),
        "zhou_ge.theory.global_minimum(teacher, λ)": lambda: zhou_ge.global_minimum(teacher, 3e-3),
    }


def forget(package=theory):
    """Empty every cache of the package's modules."""
    for module in [value for value in vars(package).values() if isinstance(value, ModuleType)]:
        for value in vars(module).values():
            if hasattr(value, "cache_clear"):
                value.cache_clear()


def table(p=PROBLEM):
    """(head, body): a line for each call."""
    body = []
    for name, call in calls(p).items():
        forget()
        body.append([f"`{name}`", *(seconds(timed(call)[0]) for _ in range(2))])
    return HEAD, body
