"""What the explorer needs of the library: activations as tables, and what its formulas cannot tell, computed once."""

import hashlib
import json
import os
from math import log, sqrt
from pathlib import Path

import matplotlib
import numpy as np
from numpy.polynomial import chebyshev

import onestep
from onestep import Problem, report, theory
from onestep.hermite import NAMED
from onestep.report import markdown_table

CACHE = Path("build/explorer.json")
DEGREES, SERIES, LARGEST = 40, 56, 9.0  # Hermite degrees kept of σ(R·), Chebyshev degree in 1/R, largest R
ACTIVATIONS = sorted(set(NAMED) - {"relu"})  # which is another name of shifted_relu
NODES = 48  # Gauss-Hermite nodes for hidden units, as in theory.spectra
EXPONENTS = [k / 20 for k in range(11)]
SIZES, SAMPLE, SEED = (10**3, 10**4, 10**6), 12, 12  # random settings on which the page's formulas are tried

# What the page suggests to try, and starts with.
SUGGESTIONS = {
    "stairs": {
        "activation": "tilted_sin",
        **{"inputs": 0.1, "hidden": 0.2, "ridge": 0.1, "noise": 0.0},
        **{"teacher": [1.0, 0.4, 0.2], "digits": 3.0, "alpha": 0.2},
    },
    "pays": {
        "activation": "shifted_relu",
        **{"inputs": 0.125, "hidden": 0.5, "ridge": 0.1, "noise": 0.3},
        **{"teacher": [1.0, 0.6, 0.2], "digits": 4.0, "alpha": 0.3},
    },
    "line": {
        "activation": "shifted_relu",
        **{"inputs": 0.3, "hidden": 0.5, "ridge": 0.01, "noise": 1.0},
        **{"teacher": [1.0, 0.0, 0.0], "digits": 3.0, "alpha": 0.3},
    },
}


def problem(setting):
    """The `Problem` of a setting of the page's controls; d/n, N/n and log10 n become whole numbers."""
    n = round(10 ** setting["digits"])
    d, N = (max(1, round(setting[ratio] * n)) for ratio in ("inputs", "hidden"))
    teacher = (0.0, *setting["teacher"])
    return Problem(n, d, N, setting["ridge"], setting["activation"], teacher, setting["noise"])


def activation(name):
    """What the page's formulas use of an activation."""
    f = NAMED[name]
    at = np.cos(np.pi * (np.arange(SERIES + 1) + 0.5) / (SERIES + 1))
    R = 2 / (1 + 1 / LARGEST + (1 - 1 / LARGEST) * at)
    scaled = np.column_stack([f.normalized(DEGREES, R) / R[:, None], f.moments(0.0, R)[2] / R**2])
    u, mass = np.polynomial.hermite_e.hermegauss(NODES)
    half = (u > 0) & (mass > 1e-20)
    return {
        "label": f.name,
        "coefficients": f.coefficients(theory.staircase.ORDER).tolist(),
        "tail": f.tail,
        "slope": f.slope_second_moment,
        "series": [_short(column) for column in chebyshev.chebfit(at, scaled, SERIES).T],
        "largest": LARGEST,
        "nodes": u[half].tolist(),
        "weights": (2 * mass / mass.sum())[half].tolist(),
    }


def _short(series):
    """A series without what is below rounding."""
    kept = np.flatnonzero(np.abs(series) > 1e-13)
    return [float(f"{c:.14g}") for c in series[: kept[-1] + 1 if kept.size else 0]]


def reach(p):
    """The largest α at which the formulas of spikes hold."""
    return log(0.25 * sqrt(p.N / p.D) / abs(p.student.linear)) / log(p.n)


def every_step(setting):
    """The theory of every step at a suggestion: both losses, and its best step."""
    p = problem(setting)
    steps = np.append(0.0, float(p.n) ** np.array(EXPONENTS))
    found, best = theory.losses(p, steps), theory.best_step(p, largest=sqrt(p.n))
    return {
        "alpha": EXPONENTS,
        "untrained": {"train": float(found.train[0]), "test": float(found.test[0])},
        "train": found.train[1:].tolist(),
        "test": found.test[1:].tolist(),
        "best": {"alpha": log(best.eta) / log(p.n), "test": best.test},
    }


def departures():
    """By how much the page's test errors lie off the theory of every step: a table, from random settings."""
    rng = np.random.default_rng(SEED)
    rows = []
    for n in SIZES:
        off = np.array([_departure(n, rng) for _ in range(SAMPLE)])
        rows.append([f"n = {n:,}", *(f"{100 * np.median(x):.1f} % ({100 * x.max():.1f} %)" for x in off.T)])
    head = ["", "test error, half way", "at the end", "training loss, half way", "at the end"]
    return markdown_table(head, rows)


def _departure(n, rng):
    inputs, hidden, ridge = np.exp(rng.uniform(np.log([0.1, 0.1, 1e-3]), np.log([1.0, 4.0, 1.0])))
    teacher = (0.0, 1.0, *rng.uniform([-0.7, -0.3], [0.7, 0.3]))
    name = ACTIVATIONS[rng.integers(len(ACTIVATIONS))]
    p = Problem(n, round(inputs * n), round(hidden * n), float(ridge), name, teacher, float(rng.uniform(0, 1)))
    steps = float(n) ** (reach(p) * np.array([0.5, 1 - 1e-12]))
    shown, right = theory.losses(p, steps, method="spiked", growing_rows=True), theory.losses(p, steps)
    return np.abs(np.concatenate([shown.test / right.test, shown.train / right.train]) - 1)


def contour(setting):
    """Where, by the theory of every step, the test error is the best linear predictor's: pairs of α and n/d."""
    exponents, per_input = np.linspace(0, 0.5, 6), np.geomspace(2, 32, 7)
    found = []
    for ratio in per_input:
        p = problem(setting | {"inputs": 1 / ratio})
        found.append(theory.losses(p, float(p.n) ** exponents).test / theory.best_linear(p))
    log_ratio = np.log(np.array(found))
    return [
        [float(x), float(np.exp(np.interp(0, -column, np.log(per_input))))]
        for x, column in zip(exponents, log_ratio.T, strict=True)
        if column[-1] < 0 < column[0]
    ]


def data():
    """{"page": what its JavaScript reads, as JSON; "departures": the table}, made anew when what makes them changes."""
    sources = [Path(__file__), *sorted(Path(onestep.__file__).parent.rglob("*.py"))]
    key = hashlib.sha256(b"\0".join(path.read_bytes() for path in sources)).hexdigest()
    if CACHE.exists() and (known := json.loads(CACHE.read_text(encoding="utf-8")))["key"] == key:
        return known
    suggestions = {name: {"setting": setting, "every": every_step(setting)} for name, setting in SUGGESTIONS.items()}
    suggestions["pays"]["contour"] = contour(SUGGESTIONS["pays"])
    page = {
        "colors": report.COLORS,
        "shades": [matplotlib.colors.to_hex(matplotlib.colormaps["cividis_r"](x)) for x in np.linspace(0, 1, 16)],
        "activations": {name: activation(name) for name in ACTIVATIONS},
        "suggestions": suggestions,
    }
    found = {"key": key, "page": json.dumps(page, separators=(",", ":")), "departures": departures()}
    CACHE.parent.mkdir(exist_ok=True)
    written = CACHE.with_suffix(f".{os.getpid()}.tmp")  # whole, should two processes write it
    written.write_text(json.dumps(found), encoding="utf-8")
    written.replace(CACHE)
    return found
