"""Simulated and predicted losses of random problems, and the error that `theory.losses` states for them.

    stated_errors.py            what multiple of the stated error the problems of stated_errors.csv need, and shares
    stated_errors.py predict    compute the columns of the theory anew
    stated_errors.py simulate   fill in the columns of the simulation where a problem's "trials" is empty

The law is that of `theory.every_step.Error`. The number of replicates depends on the machine, so that a problem
simulated anew agrees with the table within standard errors, not digit for digit.
"""

import csv
import sys
import warnings
from io import StringIO
from itertools import groupby
from pathlib import Path
from time import process_time

import numpy as np

from onestep import Problem, checks, simulate, theory

TABLE = Path(__file__).with_suffix(".csv")
NEW, LAST, CORNERS = 240, 380, 480  # first numbers drawn after a first fit, after the law was settled, and in corners
SECONDS = 12  # of one core for each problem
LOSSES = ("train", "test")
SHARES = {1: 0.65, 2: 0.92}  # of the deviations within so many stated standard deviations, at least
FEWEST = 15  # problems of a stratum that is judged
MEASURED, PREDICTED = ("train", "train_se", "test", "test_se"), ("predicted_train", "predicted_test")


def law(word):
    """What a word says of an activation, a teacher or a readout."""
    return tuple(map(float, word.split())) if word[0].isdigit() else word


def problem(fields):
    """The `Problem` of fields in words."""
    numbers = {name: float(fields[name]) for name in ("ridge", "noise")}
    numbers |= {name: int(fields[name]) if fields[name] else None for name in ("n", "d", "N", "step_samples")}
    laws = {name: law(fields[name]) for name in ("activation", "teacher", "readout")}
    return Problem(**numbers, **laws, first_layer=fields["first_layer"], initial_output=fields["initial_output"])


def table():
    """Rows of the table, each a dictionary of strings, with its `Problem` as "p" and its step as "step"."""
    with TABLE.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    problems = {row["problem"]: problem(row) for row in rows}
    return [row | {"p": problems[row["problem"]], "step": float(row["eta"])} for row in rows]


def write(rows):
    """Put rows in the place of the table's, with its own columns, whole or not at all."""
    columns, file = [name for name in rows[0] if name not in ("p", "step")], StringIO()
    writer = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    checks.write(TABLE, file.getvalue().encode())


def predicted(p, eta):
    """Columns of the theory for one problem, one dictionary a step."""
    with warnings.catch_warnings(action="ignore"):
        found = theory.losses(p, eta)
    values = np.transpose([found.train, found.test])
    return [{k: f"{x:.5g}" for k, x in zip(PREDICTED, row, strict=True)} for row in values]


def simulated(p, eta, number):
    """Columns of the simulation for one problem, one dictionary a step."""
    started = process_time()
    simulate.losses(p, eta, trials=8, seed=0, redraws=8, jobs=1)
    trials = int(np.clip(8 * SECONDS / (process_time() - started), 24, 6000))
    found = simulate.losses(p, eta, trials=trials, seed=(40, number), redraws=8, jobs=1).mean
    values = np.transpose([found.train.value, found.train.se, found.test.value, found.test.se])
    return [{k: f"{x:.5g}" for k, x in zip(MEASURED, row, strict=True)} | {"trials": trials} for row in values]


def longest(p):
    """The longest step for which an error is stated."""
    return theory.coverage.LONGEST * np.sqrt(p.n / (p.student.second_moment * p.label_power))


def covered(rows):
    """Rows for which `theory.losses` states an error."""
    return [row for row in rows if not theory.uncalibrated(row["p"]) and row["step"] <= longest(row["p"])]


def deviations(rows, loss):
    """Relative error of one loss, its standard error, and the stated error; (3, len(rows))."""
    names = (loss, f"{loss}_se", f"predicted_{loss}")
    measured, noise, level = np.array([[float(row[name]) for name in names] for row in rows]).T
    train, test = np.array([[float(row[name]) for name in PREDICTED] for row in rows]).T
    power, n = np.array([[row["p"].label_power, row["p"].n] for row in rows]).T
    stated = theory.coverage.SPREAD * np.sqrt(power / np.sqrt(train * test)) / n
    return np.array([measured / level - 1, noise / level, stated])


def stratum(rows, name):
    """The rows of a stratum, and whether they are of so many problems that it is judged."""
    part = [row for row in rows if STRATA[name](row["p"], row["step"])]
    return part, len({row["problem"] for row in part}) >= FEWEST


def needed(rows):
    """The least multiple of the stated error with which every stratum that is judged keeps `SHARES` of both."""
    most = 0.0
    for part, judged in (stratum(rows, name) for name in STRATA):
        for error, noise, stated in (deviations(part, loss) for loss in LOSSES if judged):
            for times, share in SHARES.items():
                ratio = np.sqrt(np.maximum((error / times) ** 2 - noise**2, 0.0)) / stated
                most = max(most, np.quantile(ratio, share, method="inverted_cdf"))
    return most


def within(rows, loss):
    """Shares of deviations within one and two standard deviations, the simulation's own error included."""
    error, noise, stated = deviations(rows, loss)
    score = np.abs(error) / np.hypot(stated, noise)
    return np.mean(score < 1), np.mean(score < 2)


STRATA = {
    "all": lambda p, eta: True,
    "no step": lambda p, eta: eta == 0,
    "step $n^{.35}$": lambda p, eta: 0 < eta < 0.9 * p.n**0.5,
    "step $\\sqrt n$": lambda p, eta: eta > 0.9 * p.n**0.5,
    "no noise": lambda p, eta: p.noise == 0,
    "linear teacher": lambda p, eta: p.teacher == (0.0, 1.0),
    "$\\lambda<.004$": lambda p, eta: p.ridge < 0.004,
    "$n\\le150$": lambda p, eta: p.n <= 150,
    "default but for sizes and ridge": lambda p, eta: p == Problem(p.n, p.d, p.N, p.ridge),
    "Gaussian rows": lambda p, eta: p.first_layer == "gaussian",
    "full initial output": lambda p, eta: p.initial_output == "full",
    "$c_3$ not zero": lambda p, eta: abs(p.student.coefficients(3)[3]) > 1e-3,
    "$\\vert c_{\\star2}\\vert\\ge.3$": lambda p, eta: abs(p.target.coefficients(2)[2]) >= 0.3,
    "$n/d^2\\ge.03$": lambda p, eta: p.n >= 0.03 * p.d**2,
    "equal readout weights": lambda p, eta: p.readout == (1.0,),
    "$N>n$": lambda p, eta: p.N > p.n,
}


def parts(rows):
    """Even problems below `NEW`, which a first fit used; the others; of these the new ones, the last; the corners."""
    number = np.array([int(row["problem"]) for row in rows])
    fitted, corner = (number < NEW) & (number % 2 == 0), number >= CORNERS
    chosen = fitted, ~fitted & ~corner, (number >= NEW) & ~corner, (number >= LAST) & ~corner, corner
    return [[rows[j] for j in np.flatnonzero(part)] for part in chosen]


def shares(every):
    """Lines of a table for problems that the first fit did not use, corners aside: stratum, number, shares."""
    rows = parts(covered(every))[1]
    for name in STRATA:
        part, _ = stratum(rows, name)
        cells = ["{:.0f} %, {:.0f} %".format(*(100 * x for x in within(part, loss))) for loss in LOSSES]
        yield f"| {name} | {len(part)} | {' | '.join(cells)} |"


def main(argument=""):
    rows = table()
    if argument in ("predict", "simulate"):
        for number, each in groupby(rows, key=lambda row: row["problem"]):
            mine = list(each)
            p, eta = mine[0]["p"], [row["step"] for row in mine]
            if argument == "predict" or not mine[0]["trials"]:
                columns = predicted(p, eta) if argument == "predict" else simulated(p, eta, int(number))
                for row, new in zip(mine, columns, strict=True):
                    row |= new
                write(rows)
    else:
        inside = covered(rows)
        median = 100 * np.median(deviations(inside, "test")[2])
        print(f"median stated error {median:.2f} % of {len(inside)} predictions; multiples of it needed:")
        print(*(f"{needed(part):.3f} by {len(part)} predictions" for part in parts(inside)), sep="\n")
        print(*shares(rows), sep="\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
