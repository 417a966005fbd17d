"""Random problems, their simulated and predicted losses, and the error that `theory.losses` states for them.

    stated_errors.py            what multiple of the stated error the problems of stated_errors.csv need, and shares
    stated_errors.py predict    compute the columns of the theory anew
    stated_errors.py simulate   add the problems that the table lacks

The law is that of `theory.every_step.Error`. The number of replicates depends on the machine, so that a problem
simulated anew agrees with the table within standard errors, not digit for digit.
"""

import csv
import sys
import warnings
from itertools import groupby
from math import exp, log
from pathlib import Path
from time import process_time

import numpy as np

from onestep import Problem, simulate, theory

TABLE = Path(__file__).with_suffix(".csv")
PROBLEMS, EXPONENTS = 600, (0.35, 0.5)  # steps: none, n^.35 and √n
# numbers from which problems have all defaults; were drawn after a first fit, with all defaults in every third; have
# c_3 != 0; have the full initial output; were drawn after the law was settled; have equal readout weights; are corners
FIRST, NEW, BENT, FULL, LAST, EQUAL, CORNERS = 180, 240, 300, 340, 380, 440, 480
SECONDS = 12  # of one core for each problem
ACTIVATIONS = ("shifted_relu", "shifted_relu", "softplus", "tanh", "erf", "tilted_sin", "gelu", "quadratic")
NAMED_TEACHERS = ("shifted_relu", "tanh", "softplus", "erf")
FIELDS = ("n", "d", "N", "ridge", "activation", "teacher", "noise")
FIELDS += ("first_layer", "initial_output", "readout", "step_samples")
LOSSES = ("train", "test")
SHARES = {1: 0.65, 2: 0.92}  # of the deviations within so many stated standard deviations, at least
FEWEST = 15  # problems of a stratum that is judged
MEASURED, PREDICTED = ("train", "train_se", "test", "test_se"), ("predicted_train", "predicted_test")
COLUMNS = ("problem", *FIELDS, "eta", "trials", *MEASURED, *PREDICTED)


def draw(number):
    """The fields of the random problem of this number: a third without noise, a third with a linear teacher.

    In a corner most fields lie at an end of the range in which an error is stated, with probability .7.
    """
    rng = np.random.default_rng([40, number])

    def uniform(low, high):
        share = rng.random()
        return low + (high - low) * (round(share) if number >= CORNERS and rng.random() < 0.7 else share)

    def between(low, high):
        return float(f"{exp(uniform(log(low), log(high))):.3g}")

    n = round(between(100, 150) if rng.random() < 0.25 else between(150, 1000))
    d, N = max(10, round(n * between(0.05, 1.5))), round(n * between(0.2, min(3, 1500 / n)))
    ridge = between(1e-3, 4e-3) if rng.random() < 0.25 else between(4e-3, 1)
    activation = ACTIVATIONS[rng.integers(len(ACTIVATIONS))]
    if activation == "quadratic":
        activation = f"0 1 {uniform(-0.5, 0.5):.2f}"
    kind = rng.integers(3)
    bent = f"0 1 {uniform(-0.75, 0.75):.2f} {rng.choice([0, uniform(-0.5, 0.5)]):.2f}"
    teacher = ("0 1", bent, NAMED_TEACHERS[rng.integers(4)])[kind]
    noise = 0.0 if rng.random() < 1 / 3 else round(uniform(0, 1), 2)
    layer = ("sphere", "gaussian")[rng.integers(2)]
    output = ("negligible", "full")[rng.random() < 0.25]
    readout = "1 -1" if rng.random() < 0.15 else "gaussian"
    step_samples = round(n * between(0.5, 4)) if rng.random() < 0.15 else ""
    if BENT <= number < FULL:
        activation = ("tanh", "erf", "tilted_sin")[number % 3]
        output = ("negligible", "full")[rng.random() < 0.5]
    if FULL <= number < LAST:
        d, output = max(d, round(n * between((n / 0.03) ** 0.5 / n, 1.5))), "full"
    if EQUAL <= number < CORNERS:
        activation, readout = ("tanh", "erf")[number % 2], "1"
    if number >= CORNERS:
        d = max(d, 15)
        words = (n, d, N, 1.0, activation, teacher, 0.0, layer, output, readout, "")
        p = problem(dict(zip(FIELDS, map(str, words), strict=True)))
        ridge = float(f"{p.student.second_moment * between(0.00252, 2.97):.3g}")
        noise = noise and float(f"{p.target.second_moment**0.5 * uniform(0, 1.69):.3g}")
        step_samples = step_samples and round(n * between(0.5, 10))
    if FIRST <= number < NEW or (NEW <= number < BENT and number % 3 == 0):
        return n, d, N, ridge, "shifted_relu", "0 1", 0.0, "sphere", "negligible", "gaussian", ""
    return n, d, N, ridge, activation, teacher, noise, layer, output, readout, step_samples


def problem(fields):
    """The `Problem` of fields in the words of the table."""

    def law(word):
        return tuple(map(float, word.split())) if word[0].isdigit() else word

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
    with TABLE.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(rows, key=lambda row: int(row["problem"])))


def predicted(p, eta):
    """Columns of the theory for one problem, one dictionary a step."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = theory.losses(p, eta)
    values = np.transpose([found.train, found.test])
    return [{k: f"{x:.5g}" for k, x in zip(PREDICTED, row, strict=True)} for row in values]


def simulated(number):
    """Rows of the problem of this number, one a step."""
    fields = {name: str(value) for name, value in zip(FIELDS, draw(number), strict=True)}
    p = problem(fields)
    if number >= CORNERS and theory.uncalibrated(p):
        return []  # large problems, of which nothing is judged
    last = 0.999 * longest(p) if number >= CORNERS else p.n ** EXPONENTS[1]
    eta = np.array([0.0, *(float(f"{step:.4g}") for step in (p.n ** EXPONENTS[0], last))])
    started = process_time()
    simulate.losses(p, eta, trials=8, seed=0, redraws=8, jobs=1)
    trials = int(np.clip(8 * SECONDS / (process_time() - started), 24, 6000))
    found = simulate.losses(p, eta, trials=trials, seed=(40, number), redraws=8, jobs=1).mean
    values = np.transpose([found.train.value, found.train.se, found.test.value, found.test.se])
    measured = [{k: f"{x:.5g}" for k, x in zip(MEASURED, row, strict=True)} for row in values]
    both = zip(eta, measured, predicted(p, eta), strict=True)
    return [{"problem": number, **fields, "eta": step, "trials": trials, **a, **b} for step, a, b in both]


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
    if argument == "simulate":
        for number in sorted(set(range(PROBLEMS)) - {int(row["problem"]) for row in rows}):
            rows += simulated(number)
            write(rows)
    elif argument == "predict":
        for _, each in groupby(rows, key=lambda row: row["problem"]):
            mine = list(each)
            for row, new in zip(mine, predicted(mine[0]["p"], [row["step"] for row in mine]), strict=True):
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
