"""Which problems the fixed point covers: those for which an error is stated, and those that it is known not to predict.

The bounds are those of the problems of calibration/stated_errors.csv, in units that do not change with those of labels
and features; trials beyond them set some (calibration/README.md).
"""

from __future__ import annotations

import warnings
from math import sqrt

import numpy as np

from ..hermite import Polynomial
from ..problem import as_problem

CALIBRATED = {
    "n": (100, 1000),
    "d": (15, np.inf),
    "d/n": (0.05, 1.5),
    "n/d²": (0, 1.5),
    "N/n": (0.2, 3.0),
    "ridge/E σ²": (0.0025, 3.0),
    "noise/√(E σ⋆²)": (0.0, 1.7),
    "|c⋆2/c⋆1|": (0.0, 0.75),
    "|c⋆3/c⋆1|": (0.0, 0.5),
    "|c⋆3/c⋆1| n/d² where c_3 ≠ 0": (0.0, 0.02),
    "share of E σ⋆² above degree 3": (0.0, 0.035),
    "|c_2/c_1|": (0.0, 0.5),
    "|c_3/c_1|": (0.0, 0.17),
    "step_samples/n": (0.5, np.inf),
}
SPREAD = 1.1  # the stated error over √(E y²/√(L_tr L_te))/n
LONGEST = 1.1  # η√(E σ² E y²/n), the step in units that do not change with those of labels and features
# n/d² above which |c⋆2/c⋆1| is covered to .4, for quadratic activations to .1 |c_1/c_2|: without the initial output,
# and with the full one, which is not covered at all above the former
_DENSE, _DENSE_FULL, _QUADRATIC, _BOTH = 0.03, 0.005, 0.4, 0.1
_AT_8 = (1.0, 8.0, 63.0, 488.0)  # H_0 to H_3 at 8
_OUTPUT = (0.1, 5.0)  # E σ²/E y² with the full initial output, the power of that output over the labels'


def uncalibrated(p):
    """What of p lies outside of the problems on which `Error` was calibrated, in words; [] if nothing does."""
    found, box = _measures(as_problem(p)), dict(CALIBRATED)
    full, dense = ' (initial_output = "full")' * (p.initial_output == "full"), _DENSE
    if full:
        box |= {"n/d²": (0.0, _DENSE), "E σ²/E y²": _OUTPUT}
        dense = _DENSE_FULL
    if found["n/d²"] > dense:
        bent = isinstance(p.student, Polynomial) * found["|c_2/c_1|"]
        box["|c⋆2/c⋆1|"] = (0.0, min(_QUADRATIC, _BOTH / bent if bent else np.inf))
    where = dict.fromkeys(("n/d²", "E σ²/E y²"), full)
    where["|c⋆2/c⋆1|"] = (f" (n/d² above {dense:g})" + full) * (found["n/d²"] > dense)
    said = [
        f"{name} = {found[name]:.3g}, not {low:g} {'or more' if high == np.inf else f'to {high:g}'}"
        + where.get(name, "")
        for name, (low, high) in box.items()
        if not low <= found[name] <= high
    ]
    said += ["activation = a polynomial of degree 3 or more"] * _cubic(p)
    for name, f in (("activation", p.student), ("teacher", p.target)):
        if np.max(np.abs(f(np.array([-8.0, 8.0])))) > 2 * np.abs(f.coefficients(3)) @ _AT_8:
            said.append(f"{name} = a function that outgrows its Hermite series to degree 3")
    if (values := p.readout_values) is not None:
        c_2, c_3, even = found["|c_2/c_1|"], found["|c_3/c_1|"], abs(values.mean()) < 1e-9
        if not np.allclose(np.abs(values), 1) or (c_2 and (c_3 or not even)):
            said.append(f'readout = {p.readout}, not "gaussian", ±1 with c_2 = 0, or as often -1 as 1 with c_3 = 0')
    return said


def _measures(p):
    """What `CALIBRATED` bounds."""
    (_, c1, *c), (_, b1, b2, b3) = np.abs(p.student.coefficients(3)), np.abs(p.target.coefficients(3))
    power = p.target.second_moment
    resolved = np.sum(p.target.normalized(3) ** 2) / power
    ratios = {"d/n": p.d / p.n, "n/d²": p.n / p.d**2, "N/n": p.N / p.n, "step_samples/n": p.first_samples / p.n}
    ratios |= {f"|c⋆{k}/c⋆1|": b / b1 if b1 else np.inf for k, b in ((2, b2), (3, b3))}
    ratios["share of E σ⋆² above degree 3"] = round(1 - min(resolved, 1.0), 9)
    ratios |= {f"|c_{k}/c_1|": round(x / c1, 9) if c1 else np.inf for k, x in zip((2, 3), c, strict=True)}
    dense_cubic = ratios["|c⋆3/c⋆1|"] * ratios["n/d²"] if ratios["|c_3/c_1|"] else 0.0
    ratios["|c⋆3/c⋆1| n/d² where c_3 ≠ 0"] = dense_cubic
    ratios |= {"noise/√(E σ⋆²)": p.noise / sqrt(power), "E σ²/E y²": p.student.second_moment / p.label_power}
    return {"n": p.n, "d": p.d, **ratios, "ridge/E σ²": p.ridge / p.student.second_moment}


def _cubic(p):
    """Whether the activation is a polynomial of degree 3 or more."""
    return isinstance(p.student, Polynomial) and bool(np.any(p.student.series[3:]))


def warn(p, stepped=True):
    """Warn of what of p the fixed point is known not to predict; after a step, if one was taken."""
    found, (_, most), reasons = _measures(as_problem(p)), CALIBRATED["|c⋆2/c⋆1|"], []
    if _cubic(p):
        reasons.append(
            f"activation = {p.activation!r}: the fixed point covers no polynomials of degree 3 or more; errors of 5 % "
            "are usual and of 40 % were found"
        )
    if stepped and found["n/d²"] > _DENSE and found["|c⋆2/c⋆1|"] > most:
        reasons.append(
            f"|c⋆2/c⋆1| = {found['|c⋆2/c⋆1|']:.3g} at n/d² = {found['n/d²']:.2g}: the fixed point covers no teachers "
            f"above {most:g} where n/d² exceeds {_DENSE:g}; errors of 5 % were found at 2, of 20 % and more at 5"
        )
    for reason in reasons:
        warnings.warn(f"{reason}. Simulate the problem (simulate.losses) or take another one", stacklevel=3)
