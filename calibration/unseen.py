"""Fourteen problems that no constant of the theory was fitted to: predicted and simulated losses, and the error stated.

    unseen.py            print the table of docs/theory.md, a few minutes of one core
    unseen.py 11 12      these problems alone

Nine have few samples for their inputs, most of them with activations that are not among those of the calibration; in
the last four and in number 9 n is of order d².
"""

import sys

import numpy as np
from scipy.special import erf

from onestep import Problem, hermite, simulate, theory

EXPONENTS = (None, 0.25, 0.45)  # no step, and steps n^.25 and n^.45
OTHERS = {  # activations without a name in the library, less their means below
    "erf(1.5 z)": hermite.Function(lambda z: erf(1.5 * z)),
    "sin(z + .7)": hermite.Function(lambda z: np.sin(z + 0.7)),
    "softplus(3 z)": hermite.Function(lambda z: np.logaddexp(0, 3 * z)),
    "elu": hermite.Function(lambda z: np.where(z > 0, z, np.expm1(np.minimum(z, 0))), kinks=(0.0,)),
}

PROBLEMS = (  # n, d, N, λ; teacher from c⋆1 on; noise
    ("gelu", (600, 240, 480, 0.02), (1, 0.4, 0.25), 0.3),
    ("softplus", (300, 330, 150, 0.1), (0.8, 0.5), 0.5),
    ("erf(1.5 z)", (1200, 180, 600, 0.005), (1, 0, 0.4), 0.2),
    ("silu", (500, 60, 1250, 0.05), (1, 0.3, 0.3), 0.1),
    ("gelu", (1000, 100, 300, 0.001), (0.6, 0.6, 0.2), 0.4),
    ("sin(z + .7)", (400, 200, 400, 0.003), (1, 0.5, 0.3), 0.3),
    ("softplus(3 z)", (800, 960, 560, 0.5), (1, 0.3, -0.2), 0.0),
    ("elu", (300, 36, 90, 0.01), (1, 0.4, 0.2), 0.2),
    ("shifted_relu", (900, 30, 450, 0.01), (1, 0.5), 0.3),
    ("silu", (300, 360, 750, 0.005), (1, 0.3, 0.2), 0.2),
    ("shifted_relu", (400, 20, 200, 0.01), (1, 0.6), 0.1),
    ("softplus", (300, 20, 300, 0.01), (1, 0.6), 0.1),
    ("shifted_relu", (400, 24, 600, 0.05), (1, 0.8), 0.2),
    ("gelu", (440, 22, 220, 0.1), (0.5, 1), 0.2),
)


def problem(number):
    """The name of the activation and the `Problem` of this number, from 1 on."""
    name, sizes, teacher, noise = PROBLEMS[number - 1]
    activation = hermite.centred(OTHERS[name]) if name in OTHERS else name
    return name, Problem(*sizes, activation, (0.0, *teacher), noise)


def lines(number):
    """Lines of the table, one a step."""
    name, p = problem(number)
    eta = [0.0 if exponent is None else p.n**exponent for exponent in EXPONENTS]
    trials = round(np.clip(6e7 / (p.n * p.N), 60, 400))
    predicted = theory.losses(p, eta)
    found = simulate.losses(p, eta, trials=trials, seed=(14, number), redraws=8, jobs=1).mean
    for j, exponent in enumerate(EXPONENTS):
        cells = [f"{number}: {name}, {p.n}, {p.d}, {p.N}", "none" if exponent is None else f"$n^{{{exponent:g}}}$"]
        for loss in ("train", "test"):
            level, measured = getattr(predicted, loss)[j], getattr(found, loss)
            ratio, error = measured.value[j] / level, measured.se[j] / level
            stated = 100 * getattr(predicted.rel_std, loss)[j]
            cells += [f"{level:.4g}", f"{ratio:.3f} ± {error:.3f}", "none" if np.isnan(stated) else f"{stated:.2f} %"]
        yield f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    for chosen in [int(word) for word in sys.argv[1:]] or range(1, len(PROBLEMS) + 1):
        for line in lines(chosen):
            print(line, flush=True)
