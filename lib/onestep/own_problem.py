"""Your own problem or inputs in one call: theory beside simulation, spikes, best step and best ridge.

    print(study(Problem(n=1000, d=500, N=400, activation="tanh", teacher=(0, 1, 0.5))))
    print(study(Problem(n=400, d=64, N=300), data=simulate.data.Rows(X, y)))

Theory and simulation meet here alone in the library. `python -m onestep` does the same from the command line.
"""

from __future__ import annotations

import tempfile
import time
import warnings
import zipfile
import zlib
from dataclasses import dataclass, replace
from math import log, sqrt
from pathlib import Path

import numpy as np

from . import checks, report, simulate, theory
from .blas import one_thread
from .problem import Problem, as_problem

_RESOLUTION = theory.every_step.QUADRATURE  # relative; the losses are resolved to no less
ALPHAS = (0.1, 0.2, 0.3, 0.4, 0.5)  # exponents of the steps looked at where no others are asked for
_POINTS = 25  # of the predicted curves
_FRESH = 10_000  # samples to test on where the average over all inputs has no exact form


@dataclass(frozen=True, repr=False)
class Study:
    """What `study` found; printed, it is a table with the best choices below it.

    p : the Problem.   eta : (k,) step sizes, increasing, the first 0.   trials : replicates behind `simulated`.
    simulated : `simulate.Result` with Estimates of train, test and, for rows with labels ±1, accuracy at eta; or None.
    predicted : `theory.every_step.Losses` at eta; None with own labels, for which there is no theory.
    labels : None for Gaussian inputs; with own inputs where their labels are from.

    Without own inputs also
    curve_eta, curve : the predicted losses on a finer grid of steps > 0.
    spikes : for each eta the singular values of F's visible spikes over the bulk's edge, largest first.
    best_step, best_ridge : the predicted best step and the best ridge there, each a `theory.Best`.
    """

    p: Problem
    eta: np.ndarray
    trials: int
    simulated: simulate.Result | None = None
    predicted: theory.every_step.Losses | None = None
    labels: str | None = None
    curve_eta: np.ndarray | None = None
    curve: theory.every_step.Losses | None = None
    spikes: tuple[np.ndarray, ...] = ()
    best_step: theory.Best | None = None
    best_ridge: theory.Best | None = None

    def __str__(self):
        head = self._subject()
        if self.simulated:
            head.append(
                f"simulated: means of {self.trials} {'splits' if self.labels else 'replicates'} ± standard error"
            )
        parts = [head, [report.plain_table(self.table())], [] if self.labels else self.conclusions()]
        return "\n\n".join("\n".join(part) for part in parts if part)

    __repr__ = __str__

    def _subject(self):
        p = self.p
        student, teacher = (function.name or "your own" for function in (p.student, p.target))
        kinds = f"first layer {p.first_layer}, initial output {p.initial_output}"
        if self.labels:
            rows = f"{p.first_samples} rows for the step and {p.n} for the fit"
            return [
                f"own inputs, {self.labels}; activation {student}, {kinds}",
                f"{rows}, d = {p.d}, N = {p.N}, ridge {p.ridge:g}",
            ]
        sizes = f"n = {p.n}, d = {p.d}, N = {p.N}, ridge {p.ridge:g}"
        return [f"activation {student}, teacher {teacher}, noise {p.noise:g}", f"{sizes}; {kinds}"]

    def table(self):
        """Lines of texts, the first of them the head: at each step losses, visible spikes, accuracy."""
        best = self.best_step.eta if self.best_step else None
        places = [f"{log(eta) / log(self.p.n):.2f}" if eta else "no step" for eta in self.eta]
        places = [place + ", best" * bool(eta == best) for place, eta in zip(places, self.eta, strict=True)]
        columns = [("step η", [report.digits(eta, 3) for eta in self.eta]), ("α", places)]
        for what, name in (("train", "training loss"), ("test", "test error")):
            predicted = [report.digits(x) for x in getattr(self.predicted, what)] if self.predicted else []
            simulated = [report.shown(x) for x in getattr(self.simulated, what)] if self.simulated else []
            columns += [(name, simulated)] if self.labels else [(name, predicted), ("simulated", simulated)]
        if self.labels:
            columns.append(("test error, Gaussian inputs, predicted", predicted))
            columns.append(("accuracy", [report.shown(x) for x in getattr(self.simulated, "accuracy", ())]))
        columns.append(("spikes", [str(len(sizes)) for sizes in self.spikes]))
        columns.append(
            ("over the bulk's edge", [" ".join(report.digits(x, 3) for x in sizes) for sizes in self.spikes])
        )
        columns = [(head, column) for head, column in columns if column]
        return [[head for head, _ in columns], *map(list, zip(*(column for _, column in columns), strict=True))]

    def conclusions(self):
        """Sentences: the best linear predictor, best step and ridge, and how good the theory is."""
        step, ridge = self.best_step, self.best_ridge
        beyond = " (the end of the search: beyond may be better)"
        idle = step.test > (1 - _RESOLUTION) * self.predicted.test[0]
        said = [
            f"best linear predictor: test error {report.digits(theory.best_linear(self.p))}",
            f"best step: η = {report.digits(step.eta, 3)}, predicted test error {report.digits(step.test)}"
            + beyond * step.at_bound
            + " (no better than no step)" * bool(idle),
            f"best ridge at that step: {report.digits(ridge.ridge, 3)}, "
            f"predicted test error {report.digits(ridge.test)}" + beyond * ridge.at_bound,
        ]
        stated, known = self.predicted.rel_std, np.isfinite(self.predicted.rel_std.test)
        text = "not known for this problem"
        if known.any():
            worst = [float(np.max(error[known])) for error in (stated.train, stated.test)]
            train, test = (f"below {100 * _RESOLUTION:g} %" if x < _RESOLUTION else f"{100 * x:.2g} %" for x in worst)
            text = f"training loss {train}, test error {test}"
            text += "" if known.all() else f" up to η = {report.digits(self.eta[known][-1], 3)}, not known beyond"
        said.append(f"error to expect of the predictions: {text}")
        if outside := theory.uncalibrated(self.p):
            said.append(f"these errors were not calibrated for {'; '.join(outside)}")
        return said

    def figure(self):
        """Both losses against the step: lines predicted, points simulated with standard errors; a matplotlib Figure."""
        if self.labels:
            raise ValueError("figure: draws predicted curves, which there are without own inputs alone")
        import matplotlib
        from matplotlib.figure import Figure

        with matplotlib.rc_context(report.settings()):
            fig = Figure(figsize=(9, 4.2))
            axes = fig.subplots(1, 2)
            for ax, what, title in zip(axes, ("train", "test"), ("training loss", "test error"), strict=True):
                self._draw(ax, what)
                ax.set(title=title, xlabel=r"step exponent $\alpha$  ($\eta=n^\alpha$)")
            axes[0].set_ylabel("loss")
            fig.suptitle("\n".join(self._subject()), fontsize=9)
            axes[1].legend(fontsize=8)
        return fig

    def _draw(self, ax, what):
        grid = np.log(self.curve_eta) / log(self.p.n)
        places = np.append(grid[0] - 0.1, np.log(self.eta[1:]) / log(self.p.n))  # no step has a place left of the curve
        ax.plot(grid, getattr(self.curve, what), color=report.COLORS[0], label="theory")
        ax.axhline(getattr(self.predicted, what)[0], color=report.COLORS[1], ls="--", label="theory, no step")
        best = self.eta == self.best_step.eta
        if what == "test":
            ax.axhline(theory.best_linear(self.p), color=report.COLORS[2], ls=":", label="best linear predictor")
            ax.axvline(places[best][0], color=report.COLORS[4], lw=1.0, label="best step")
        if self.simulated:
            report.points(ax, places, getattr(self.simulated, what), label="simulated")
        named = places[~best | (self.eta == 0)]
        ax.set_xticks(named, ["no step", *(f"{tick:.2g}" for tick in named[1:])])

    def save(self, folder):
        """Write study.txt, study.png (without own inputs) and study.npz, the numbers, into a folder, all or none.

        The folder is made if need be; ValueError if it cannot be written to.
        """
        numbers = {"eta": self.eta}
        if not self.labels:
            numbers |= {
                "curve_eta": self.curve_eta,
                "best_eta": self.best_step.eta,
                "best_ridge": self.best_ridge.ridge,
            }
            numbers |= {"spikes": [len(sizes) for sizes in self.spikes]}
        for name, found in (("predicted", self.predicted), ("curve", self.curve)):
            numbers |= {f"{what}_{name}": getattr(found, what) for what in ("train", "test") if found}
        for what, found in (vars(self.simulated) if self.simulated else {}).items():
            numbers |= {f"{what}_simulated": found.value, f"{what}_se": found.se}
        folder = checks.folder("folder", folder)
        with tempfile.TemporaryDirectory(dir=folder) as staging:
            fresh = Path(staging)
            (fresh / "study.txt").write_text(f"{self}\n", encoding="utf-8")
            np.savez(fresh / "study.npz", **numbers)
            if not self.labels:
                self.figure().savefig(fresh / "study.png", dpi=150)
            for file in fresh.iterdir():
                file.replace(folder / file.name)
            if self.labels:  # that of an earlier problem
                (folder / "study.png").unlink(missing_ok=True)


@one_thread()
def study(p: Problem, eta=None, *, trials=32, seed=0, jobs=2, tell=None, data=None):
    """Everything this library says about a problem at a handful of steps: a `Study`.

    Parameters
    ----------
    p : Problem with d >= 8 inputs and c_1 != 0; without own data, with a Gaussian readout and no `step_samples`
    eta : step sizes >= 0; None takes n^0.1, n^0.2, … up to n^0.5 or what theory reaches. No step and the best are added
    trials : replicates of the simulation, >= 2, from 29 on with control variates; or 0 for predictions alone, also at
        sizes that cannot be simulated, until rounding spoils them (ArithmeticError, seen from n = 1e15 on)
    seed, jobs : as in `simulate.repeat`
    tell : such as print; called with a line when a long part begins, and with the predictions if simulation breaks off
    data : own inputs, `simulate.data.Rows` or `Sampler` (see `simulate.data.prepared`), in place of Gaussian ones. Each
        replicate splits rows anew into n for the step, n for the fit and the rest, at most 1000, to test on

    The best step is looked for up to √n, then up to 3√n. At n = 1000 all takes ten to forty seconds of one core;
    the simulation's part grows like n³ with the sizes. ArithmeticError as `theory.losses`.
    """
    checks.whole("n", as_problem(p).n, 2)
    simulate.key(seed)
    if checks.whole("trials", trials, 0) == 1:
        raise ValueError("trials = 1: must be 0, or at least 2 for a standard error")
    if checks.whole("jobs", jobs, 1) and trials:
        checks.memory(simulate.memory(p) * min(jobs, trials))
    tell = tell or (lambda line: None)
    asked = p.n ** np.array(ALPHAS) if eta is None else np.atleast_1d(checks.steps(eta))
    options = {"trials": trials, "seed": seed, "jobs": jobs}
    if data is not None:
        return _on_data(p, np.unique([0.0, *asked]), options, tell, data)
    as_problem(p, standard=True)  # which the spikes require
    family = theory.fixed_point.family(p)
    if eta is None:
        asked = asked[asked <= family.largest]
    family.features(float(asked.max(initial=0.0)))  # refuses a step beyond the theory now, not after a search
    tell("predicting")
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # `losses` below says the same
        best = theory.best_step(p, sqrt(p.n))
        best = theory.best_step(p) if best.at_bound else best
        ridge = theory.best_ridge(p, best.eta)
    eta = np.unique([0.0, *asked, best.eta])
    grid = np.geomspace(eta[eta > 0].min(initial=1.0) * p.n**-0.1, max(eta[-1], 1.0), _POINTS)
    found = {"predicted": theory.losses(p, eta), "curve_eta": grid, "curve": theory.losses(p, grid)}
    spikes = theory.spectra.feature_spikes(p, eta, count=8).value
    edges = [theory.spectra.features(p, step).edge for step in eta]
    found |= {"best_step": best, "best_ridge": ridge}
    visible = zip(spikes, theory.visible(p, eta), edges, strict=True)
    found["spikes"] = tuple(value[:count] / edge for value, count, edge in visible)
    predicted = Study(p, eta, 0, **found)
    if not trials:
        return predicted
    try:
        return replace(predicted, trials=trials, simulated=_simulated(p, eta, options, tell))
    except BaseException:  # such as an interruption
        tell(f"the simulation did not finish; the predictions:\n\n{predicted}\n")
        raise


def read_rows(path, how=None):
    """`simulate.data.Rows` from an .npz file with X (rows, d) and, optionally, y; X `prepared` unless how is None."""
    try:
        with open(path, "rb") as file, np.load(file) as arrays:
            X, y = arrays["X"], arrays["y"] if "y" in arrays else None
            others = ", ".join(sorted(set(arrays) - {"X", "y"})) if y is None else ""
    except (OSError, EOFError, KeyError, TypeError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        why = f": {error}" if isinstance(error, OSError | KeyError) else ""
        made = f"np.savez('{Path(path).stem}.npz', X=X, y=y)"
        raise ValueError(f"--data {path}: must be an .npz file with X (and y), as {made} makes it{why}") from error
    if others:
        raise ValueError(f"--data {path}: holds {others} and no y; labels must be named y")
    return simulate.data.Rows(simulate.data.prepared(X, how) if how else X, y)


def _on_data(p, eta, options, tell, data):
    if not options["trials"]:
        raise ValueError("trials = 0: own data are simulated; take at least 2")
    own = simulate.data.labelled(data)
    left = len(data.X) - p.first_samples - p.n if isinstance(data, simulate.data.Rows) else 1000
    if left < 1:
        taken = f"step and fit take {p.first_samples + p.n} of {len(data.X)} rows"
        most = (len(data.X) - 1) // 2 if p.step_samples is None else len(data.X) - 1 - p.step_samples
        advice = f"take n <= {most}" if most > 0 else "take fewer step_samples"
        raise ValueError(f"n = {p.n}: {taken}; none is left to test on; {advice}")
    teacher = f"teacher {p.target.name or 'your own'}, noise {p.noise:g}"
    labels = "own labels (teacher and noise play no part)" if own else teacher
    predicted = None if own else theory.losses(p, eta)
    tell(f"simulating {options['trials']} splits")
    options["test_size"] = min(left, 1000)
    found = simulate.losses(p, eta, data=data, **options)
    return Study(p, eta, options["trials"], found.mean, predicted, labels)


def _simulated(p, eta, options, tell):
    started, rounds = time.perf_counter(), options["trials"] / min(options["jobs"], options["trials"])
    try:
        simulate.losses(p, eta, **options | {"trials": 1, "jobs": 1})
    except simulate.averages.Unresolved:
        tell(f"test errors on {_FRESH} fresh samples, as the activation's expansion is too long for exact averages")
        options = options | {"test_size": _FRESH}
        simulate.losses(p, eta, **options | {"trials": 1, "jobs": 1})
    seconds = max((time.perf_counter() - started) * rounds, 1.0)
    tell(f"simulating {options['trials']} replicates, about {report.digits(seconds, 1)} s")
    return simulate.losses(p, eta, **options).mean
