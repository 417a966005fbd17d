"""What error the every-step theory leaves on random problems, and the law of it that `theory.losses` states.

    range_map.py            fit the law to the even covered problems of range_map.csv, judge it on the odd ones
    range_map.py predict    compute the columns of the theory anew
    range_map.py simulate   add the problems that the table lacks

The law: the standard deviation of simulated/predicted - 1 is a constant times the fluctuation that the theory computes
(`nodes.fluctuation`), one constant for each loss. A problem depends on its number alone. The table's first WIDE
were simulated for a minute each and the others for up to half a minute, so that a row simulated anew agrees with it
within standard errors, not digit for digit.
"""

import csv
import sys
from itertools import pairwise, product
from pathlib import Path

import numpy as np
from scipy import optimize, stats

from onestep import Problem, simulate, theory

TABLE = Path(__file__).with_suffix(".csv")
WIDE, SMALL, PROBLEMS = 60, 126, 151  # numbers below WIDE are `wide`, below SMALL `small`, the others `dense`
INPUTS, SAMPLES = (10, 20, 50, 150, np.inf), (0.0, 0.01, 0.1, 0.25, 10.0)  # edges of the map's regions, in d and n/d²
FEWEST, LEAST = 6, 2e-4  # deviations in a region, and the least standard deviation called one
FIELDS = ("n", "d", "N", "ridge", "activation", "teacher", "noise", "first_layer", "initial_output")
MEASURED = ("train", "train_se", "test", "test_se")
PREDICTED = ("predicted_train", "predicted_test", "fluctuation_train", "fluctuation_test")
CONSTANT = {"train": theory.every_step.TRAIN_ERROR, "test": theory.every_step.TEST_ERROR}
COLUMNS = ("problem", *FIELDS, "eta", "trials", *MEASURED, *PREDICTED)
NAMES = ("shifted_relu", "tanh", "erf", "softplus", "tilted_sin")
LAYERS, OUTPUTS = ("sphere", "gaussian"), ("negligible", "negligible", "full")


def problem(number):
    """The random problem of this number and its three steps: no one, n^.05 to n^.25, and n^.25 to n^.5."""
    if number < WIDE:
        return wide(np.random.default_rng([101, number]))
    if number < SMALL:
        return small(np.random.default_rng([1717, number - WIDE]))
    return dense(np.random.default_rng([2828, number - SMALL]))


def wide(rng):
    """n from 200 to 2,000, d/n from .05 to 1.5, N/n from .2 to 3, λ from .001 to 1; one activation in nine a cubic."""
    n = round(200 * 10 ** rng.uniform(0, 1))
    d = max(10, round(n * 10 ** rng.uniform(np.log10(0.05), np.log10(1.5))))
    N = round(n * 10 ** rng.uniform(np.log10(0.2), np.log10(3)))
    ridge = 10 ** rng.uniform(-3, 0)
    activation = (*NAMES, "cubic", "shifted_relu", "tanh", "softplus")[rng.integers(9)]
    if activation == "cubic":
        activation = (0.0, 1.0, rng.uniform(-0.7, 0.7), rng.uniform(-0.35, 0.35))
    teacher = ("cubic", "cubic", "cubic", "tanh", "softplus", "shifted_relu", "erf")[rng.integers(7)]
    higher = rng.uniform(-0.7, 0.7, 2)
    teacher = (0.0, 1.0, *higher) if teacher == "cubic" else teacher
    noise = rng.uniform(0, 1)
    layer, output = LAYERS[rng.integers(2)], OUTPUTS[rng.integers(3)]
    steps = np.array([0.0, n ** rng.uniform(0.05, 0.25), n ** rng.uniform(0.25, 0.5)])
    return Problem(n, d, N, ridge, activation, teacher, noise, layer, output), steps


def small(rng):
    """The same box at n from 100 to 600, where errors are large; two activations in five are cubics."""

    def log_uniform(low, high):
        return float(np.exp(rng.uniform(np.log(low), np.log(high))))

    def cubic(bend):
        return (0.0, 1.0, round(rng.uniform(-0.7, 0.7), 3), round(rng.uniform(-bend, bend), 3))

    n = round(log_uniform(100, 600))
    d, N = max(10, round(n * log_uniform(0.05, 1.5))), round(n * log_uniform(0.2, 3))
    ridge = float(f"{log_uniform(1e-3, 1):.3g}")
    activation = cubic(0.35) if rng.random() < 0.4 else NAMES[rng.integers(5)]
    teacher = cubic(0.7) if rng.random() < 0.5 else NAMES[rng.integers(4)]
    noise = round(rng.uniform(0, 1), 2)
    layer, output = LAYERS[rng.integers(2)], OUTPUTS[rng.integers(3)]
    steps = np.array([0.0, round(n ** rng.uniform(0.05, 0.25), 3), round(n ** rng.uniform(0.25, 0.5), 3)])
    return Problem(n, d, N, ridge, activation, teacher, noise, layer, output), steps


def dense(rng):
    """n/d² from .1 to 1.5 at d from 15 to 36, named activations with c_2 ≠ 0, c⋆2 up to 1, noise up to .3."""
    d = int(rng.integers(15, 37))
    n = max(100, round(d**2 * 10 ** rng.uniform(-1, np.log10(1.5))))
    N = round(n * 10 ** rng.uniform(np.log10(0.2), np.log10(min(3.0, 1500 / n))))
    ridge = float(f"{10 ** rng.uniform(-3, 0):.3g}")
    activation = ("shifted_relu", "softplus", "tilted_sin")[rng.integers(3)]
    teacher = (0.0, 1.0, round(rng.uniform(-1, 1), 2))
    noise = round(rng.uniform(0, 0.3), 2)
    layer, output = LAYERS[rng.integers(2)], OUTPUTS[rng.integers(3)]
    steps = np.array([0.0, round(n ** rng.uniform(0.05, 0.25), 3), round(n ** rng.uniform(0.25, 0.5), 3)])
    return Problem(n, d, N, ridge, activation, teacher, noise, layer, output), steps


def table():
    """Rows of the table, each a dictionary of strings."""
    if not TABLE.exists():
        return []
    with TABLE.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def write(rows):
    with TABLE.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def described(number):
    """Rows of one problem without results."""
    p, eta = problem(number)
    fields = {field: getattr(p, field) for field in FIELDS}
    fields = {name: " ".join(f"{x:.4g}" for x in v) if isinstance(v, tuple) else v for name, v in fields.items()}
    return [{"problem": number, **fields, "eta": float(step)} for step in eta]


def predicted(number):
    """Columns of the theory for one problem."""
    found = theory.every_step.fixed_point(*problem(number))  # which warns of no activation
    values = np.transpose([found.train, found.test, *theory.every_step.fluctuations(*problem(number))])
    return [{name: f"{x:.5g}" for name, x in zip(PREDICTED, row, strict=True)} for row in values]


def simulated(number):
    """Columns of the simulation for one problem: as many replicates as fit in a few seconds."""
    p, eta = problem(number)
    cost = 6 * p.n * p.d * p.N + 10 * p.d * p.N**2 + 3 * min(p.n, p.N) ** 2 * max(p.n, p.N) + 40 * (p.n + p.N) * p.N
    trials = int(np.clip((3e9 if number < SMALL else 4e10) / cost, 40, 400))
    found = simulate.losses(p, eta, trials=trials, seed=(1717, number), redraws=8, jobs=1).mean
    values = np.transpose([found.train.value, found.train.se, found.test.value, found.test.se])
    return [{"trials": trials, **{name: f"{x:.5g}" for name, x in zip(MEASURED, row, strict=True)}} for row in values]


def deviations(rows, loss):
    """Number, relative error, its standard error and fluctuation of one loss: (4, len(rows))."""
    columns = ("problem", loss, f"{loss}_se", f"predicted_{loss}", f"fluctuation_{loss}")
    number, measured, noise, level, fluctuation = np.array([[float(row[c]) for c in columns] for row in rows]).T
    return np.array([number, measured / level - 1, noise / level, fluctuation])


def covered(rows):
    """Rows of problems for which `theory.losses` states an error."""
    return [row for row in rows if not theory.every_step.uncalibrated(problem(int(row["problem"]))[0])]


STRATA = {
    "rows on the sphere": lambda p: p.first_layer == "sphere",
    "Gaussian rows": lambda p: p.first_layer == "gaussian",
    "$c_2$ zero": lambda p: abs(p.student.coefficients(2)[2]) < 1e-6,
    "$c_2$ not zero": lambda p: abs(p.student.coefficients(2)[2]) > 1e-6,
    "$\\vert c_{\\star2}\\vert$ at least .3": lambda p: abs(p.target.coefficients(2)[2]) >= 0.3,
    "noise at most .3": lambda p: p.noise <= 0.3,
    "$n/d^2$ at least .05": lambda p: p.n >= 0.05 * p.d**2,
    "$n/d^2$ at least .25": lambda p: p.n >= 0.25 * p.d**2,
    "full initial output": lambda p: p.initial_output == "full",
    "$N>n$": lambda p: p.N > p.n,
}


def law(error, noise, fluctuation):
    """Most likely b for error ~ N(0, (b·fluctuation)² + noise²)."""

    def surprise(log_b):
        variance = (np.exp(log_b) * fluctuation) ** 2 + noise**2
        return np.sum(np.log(variance) + error**2 / variance)

    return float(np.exp(optimize.minimize_scalar(surprise, bounds=(-9, 2), method="bounded").x))


def calibration(b, error, noise, fluctuation):
    """Shares of errors within one and two standard deviations, their rms in standard deviations, rank correlation.

    The correlation is over rows whose simulation is sharper than the expected error.
    """
    score = np.abs(error) / np.hypot(b * fluctuation, noise)
    sharp = noise < b * fluctuation
    rank = stats.spearmanr(fluctuation[sharp], np.abs(error[sharp]))[0]
    return np.mean(score < 1), np.mean(score < 2), np.sqrt(np.mean(score**2)), rank


def regions(rows):
    """Lines of the map: region in d and n/d², and of named and of cubic activations the deviations and cells of it.

    A cell: standard deviation of a loss over that predicted beside the simulation's noise.
    """
    d, n = np.array([[float(row[name]) for name in ("d", "n")] for row in rows]).T
    cubic = np.array([" " in row["activation"] for row in rows])
    for (few, many), (low, high) in product(pairwise(INPUTS), pairwise(SAMPLES)):
        inside = (d >= few) & (d < many) & (n / d**2 >= low) & (n / d**2 < high)
        line = [f"{few} to {many}" if many < np.inf else f"from {few}", f"{low:g} to {high:g}"]
        for part in (inside & ~cubic, inside & cubic):
            line += [f"{part.sum()}", *(_cell([rows[j] for j in np.flatnonzero(part)], loss) for loss in CONSTANT)]
        if inside.sum() >= FEWEST:
            yield line


def _cell(rows, loss):
    if len(rows) < FEWEST:
        return ""
    _, error, noise, _ = deviations(rows, loss)
    found = law(error, noise, 1.0)
    return f"{100 * found:.2f} %" if found > LEAST else "none"


def shares(every):
    """Lines of the held-out deviations: stratum, their number, and of each loss the shares within one and two."""
    rows = [row for row in covered(every) if int(row["problem"]) % 2]
    problems = {number: problem(number)[0] for number in {int(row["problem"]) for row in rows}}
    for name, inside in {"all": lambda p: True, **STRATA}.items():
        part = [row for row in rows if inside(problems[int(row["problem"])])]
        cells = [calibration(constant, *deviations(part, loss)[1:]) for loss, constant in CONSTANT.items()]
        yield [name, f"{len(part)}", *(f"{100 * one:.0f} %, {100 * two:.0f} %" for one, two, *_ in cells)]


def report(every):
    rows = covered(every)
    print(f"{len(rows)} of {len(every)} deviations are of problems for which an error is stated")
    for loss, constant in CONSTANT.items():
        number, *data = deviations(rows, loss)
        b = law(*(x[number % 2 == 0] for x in data))
        print(f"{loss}: expected error {b:.3f} · fluctuation, fitted to the even problems  (library: {constant})")
        _, _, rms, rank = calibration(b, *(x[number % 2 == 1] for x in data))
        print(f"  held out: rms {rms:.2f} standard deviations, rank correlation {rank:.2f}")
    for line in (*shares(every), *regions(every)):
        print(f"| {' | '.join(line)} |")


def main(argument=""):
    rows = table()
    if argument == "simulate":
        done = {int(row["problem"]) for row in rows}
        for number in sorted(set(range(PROBLEMS)) - done):
            new = zip(described(number), simulated(number), predicted(number), strict=True)
            rows += [{**a, **b, **c} for a, b, c in new]
            write(rows)
    elif argument == "predict":
        found = {number: predicted(number) for number in {int(row["problem"]) for row in rows}}
        write([{**row, **found[int(row["problem"])][j % 3]} for j, row in enumerate(rows)])
    else:
        report(rows)


if __name__ == "__main__":
    main(*sys.argv[1:])
