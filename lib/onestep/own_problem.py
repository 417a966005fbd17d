"""Your own problem or inputs in one call: theory beside simulation, spikes, best step and best ridge.

    print(study(Problem(n=1000, d=500, N=400, activation="tanh", teacher=(0, 1, 0.5))))
    print(study(Problem(n=400, d=64, N=300), data=simulate.data.Rows(X, y)))

Theory and simulation meet here alone in the library. `python -m onestep` does the same from the command line.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from math import log, sqrt
from pathlib import Path

import numpy as np

from . import checks, estimates, report, simulate, theory
from .problem import Problem, as_problem

_RESOLUTION = 1e-4  # relative; quadrature resolves the losses to no less
ALPHAS = (0.1, 0.2, 0.3, 0.4, 0.5)  # exponents of the steps looked at where no others are asked for
_POINTS = 25  # of the predicted curves


@dataclass(frozen=True, repr=False)
class Study:
    """What `study` found; printed, it is a table with the best choices below it.

    p : the Problem.   eta : (k,) step sizes, increasing, the first 0.
    predicted : `theory.every_step.Losses` at eta.   curve_eta, curve : the same on a finer grid of steps > 0.
    spikes : for each eta the singular values of F's visible spikes over the bulk's edge, largest first.
    best_step : the predicted best step at the problem's ridge, a `theory.Best`.   best_ridge : the best ridge there.
    simulated : training loss and test error as `estimates.Estimate`s at eta, or None.   trials : replicates behind it.
    """

    p: Problem
    eta: np.ndarray
    predicted: theory.every_step.Losses
    curve_eta: np.ndarray
    curve: theory.every_step.Losses
    spikes: tuple[np.ndarray, ...]
    best_step: theory.Best
    best_ridge: theory.Best
    simulated: simulate.every_step.Losses | None
    trials: int

    def __str__(self):
        said = f"simulated: means of {self.trials} replicates ± standard error"
        head = [*self._subject(), *([said] if self.simulated else [])]
        return "\n\n".join("\n".join(part) for part in (head, [report.plain_table(self.table())], self.conclusions()))

    __repr__ = __str__

    def _subject(self):
        p = self.p
        names = [function.name or "your own" for function in (p.student, p.target)]
        sizes = f"n = {p.n}, d = {p.d}, N = {p.N}, ridge {p.ridge:g}"
        yield f"activation {names[0]}, teacher {names[1]}, noise {p.noise:g}"
        yield f"{sizes}; first layer {p.first_layer}, initial output {p.initial_output}"

    def table(self):
        """Lines of texts, the first of them the head: at each step the losses, and the spikes that can be seen."""
        measured = ["simulated"] if self.simulated else []
        lines = [["step η", "α", "training loss", *measured, "test error", *measured, "spikes", "over the bulk's edge"]]
        for j, eta in enumerate(self.eta):
            exponent = f"{log(eta) / log(self.p.n):.2f}" if eta else "no step"
            best = ", best" if eta == self.best_step.eta else ""
            line = [report.digits(eta, 3), exponent + best]
            for what in ("train", "test"):
                line.append(report.digits(getattr(self.predicted, what)[j]))
                line += [report.shown(getattr(self.simulated, what)[j])] if self.simulated else []
            lines.append([*line, str(len(self.spikes[j])), " ".join(report.digits(size, 3) for size in self.spikes[j])])
        return lines

    def conclusions(self):
        """Sentences: the best linear predictor, best step and ridge, and how good the theory is."""
        step, ridge = self.best_step, self.best_ridge
        beyond = " (the end of the search: beyond may be better)"
        said = [
            f"best linear predictor: test error {report.digits(theory.best_linear(self.p))}",
            f"best step: η = {report.digits(step.eta, 3)}, predicted test error {report.digits(step.test)}"
            + beyond * step.at_bound
            + " (no better than no step)" * bool(step.test > (1 - _RESOLUTION) * self.predicted.test[0]),
            f"best ridge at that step: {report.digits(ridge.ridge, 3)}, "
            f"predicted test error {report.digits(ridge.test)}" + beyond * ridge.at_bound,
            self._errors(),
        ]
        if outside := theory.every_step.uncalibrated(self.p):
            said.append(f"these errors were not calibrated for {'; '.join(outside)}")
        return said

    def _errors(self):
        worst = [float(np.max(part)) for part in (self.predicted.rel_std.train, self.predicted.rel_std.test)]
        if not np.all(np.isfinite(worst)):
            return "error to expect of the predictions: not known for this problem"
        train, test = (f"below {100 * _RESOLUTION:g} %" if x < _RESOLUTION else f"{100 * x:.2g} %" for x in worst)
        return f"error to expect of the predictions: training loss {train}, test error {test}"

    def figure(self):
        """Both losses against the step: lines predicted, points simulated with standard errors; a matplotlib Figure."""
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
        ax.plot(self._place(self.curve_eta), getattr(self.curve, what), color=report.COLORS[0], label="theory")
        ax.axhline(getattr(self.predicted, what)[0], color=report.COLORS[1], ls="--", label="theory, no step")
        if what == "test":
            best = self.best_step
            ax.axhline(theory.best_linear(self.p), color=report.COLORS[2], ls=":", label="best linear predictor")
            ax.axvline(self._place(best.eta), color=report.COLORS[4], lw=1.0, label="best step")
        if self.simulated:
            report.points(ax, self._place(self.eta), getattr(self.simulated, what), label="simulated")
        ticks = self._place(self.eta[self.eta != self.best_step.eta])
        ax.set_xticks(ticks, ["no step", *(f"{tick:.2g}" for tick in ticks[1:])])

    def _place(self, eta):
        """Exponents of steps; no step has a place of its own, left of the curve."""
        start = log(self.curve_eta[0]) / log(self.p.n)
        eta = np.asarray(eta, float)
        return np.where(eta > 0, np.log(np.where(eta > 0, eta, 1.0)) / log(self.p.n), start - 0.1)

    def save(self, folder):
        """Write study.txt, study.png and study.npz (the numbers) into a folder, made if need be.

        Raises ValueError when it cannot be written to.

        Parameters
        ----------
        folder : str or Path
            Where the files go.
        """
        numbers = {"eta": self.eta, "curve_eta": self.curve_eta, "best_eta": self.best_step.eta}
        numbers |= {"best_ridge": self.best_ridge.ridge, "spikes": [len(sizes) for sizes in self.spikes]}
        for what in ("train", "test"):
            numbers |= {f"{what}_predicted": getattr(self.predicted, what), f"{what}_curve": getattr(self.curve, what)}
            if self.simulated:
                found = getattr(self.simulated, what)
                numbers |= {f"{what}_simulated": found.value, f"{what}_se": found.se}
        _save(folder, str(self), numbers, self.figure())


@dataclass(frozen=True, repr=False)
class DataStudy:
    """What `study` found on own inputs; printed, it is a table.

    p : the Problem.   eta : (k,) step sizes, increasing, the first 0.   own_labels : whether the data brought labels.
    simulated : `simulate.every_step.Losses` at eta.
    predicted : for Gaussian inputs, `theory.every_step.Losses`; None with own labels, for which there is no theory.
    """

    p: Problem
    eta: np.ndarray
    own_labels: bool
    simulated: simulate.every_step.Losses
    predicted: theory.every_step.Losses | None

    def __str__(self):
        p, labels = self.p, "own labels" if self.own_labels else f"teacher {self.p.target.name or 'your own'}"
        head = [
            f"own inputs, {labels}; activation {p.student.name or 'your own'}",
            f"n = {p.n} rows for the step and {p.n} for the fit, d = {p.d}, N = {p.N}, ridge {p.ridge:g}",
            f"simulated: means of {len(self.simulated.test)} splits ± standard error",
        ]
        return "\n".join([*head, "", report.plain_table(self.table())])

    __repr__ = __str__

    def table(self):
        """Lines of texts, the first of them the head: at each step the losses, and the accuracy for labels ±1."""
        mean, accuracy = self.simulated.mean, self.simulated.accuracy
        lines = [["step η", "α", "training loss", "test error"]]
        lines[0] += ["test error, Gaussian inputs, predicted"] * (self.predicted is not None)
        lines[0] += ["accuracy"] * (accuracy is not None)
        for j, eta in enumerate(self.eta):
            exponent = f"{log(eta) / log(self.p.n):.2f}" if eta else "no step"
            line = [report.digits(eta, 3), exponent, report.shown(mean.train[j]), report.shown(mean.test[j])]
            line += [report.digits(self.predicted.test[j])] if self.predicted is not None else []
            line += [report.shown(estimates.mean(accuracy[:, j]))] if accuracy is not None else []
            lines.append(line)
        return lines

    def save(self, folder):
        """Write study.txt and study.npz (the numbers) into a folder, made if need be; ValueError if it cannot be."""
        found = self.simulated
        numbers = {"eta": self.eta, "train": found.train, "test": found.test}
        numbers |= {} if found.accuracy is None else {"accuracy": found.accuracy}
        _save(folder, str(self), numbers)


def study(p: Problem, eta=None, *, trials=32, seed=0, jobs=2, tell=None, data=None, test_size=None):
    """Everything this library says about a problem at a handful of steps.

    Parameters
    ----------
    p : Problem with d >= 8 inputs and c_1 != 0; without own data, with a Gaussian readout and no `step_samples`.
    eta : step sizes >= 0, scalar or 1-D; None takes n^0.1, n^0.2, …, n^0.5. No step and the best one are added.
    trials : replicates of the simulation, >= 2, or 0 for predictions alone, of up to 1e26 units; from 29 on control
        variates lower the standard errors.
    seed, jobs : as in `simulate.repeat`.
    tell : called with a line of text when a long part begins, such as print.
    data : own inputs, `simulate.data.Rows` or `Sampler` (see `simulate.data.prepared`), in place of Gaussian ones. Each
        replicate splits rows anew into n for the step, n for the fit and `test_size` to test on.
    test_size : rows to test on, with own data; None for those that are left, at most 1000.

    Returns
    -------
    Study, or DataStudy with own data.

    The best step is looked for up to √n, then up to 3√n. At n = 1000 all takes ten to forty seconds of one core;
    the simulation's part grows like n³ with the sizes.

    Raises ValueError for bad input, and for too little memory before anything is computed; ArithmeticError as
    `theory.losses`.
    """
    checks.whole("n", as_problem(p).n, 2)
    simulate.key(seed)
    if checks.whole("trials", trials, 0) == 1:
        raise ValueError("trials = 1: must be 0, or at least 2 for a standard error")
    if trials:
        checks.memory(simulate.every_step.memory(p) * min(checks.whole("jobs", jobs, 1), trials))
    asked = p.n ** np.array(ALPHAS) if eta is None else np.atleast_1d(checks.steps(eta))
    tell = tell or (lambda line: None)
    if data is not None:
        return _on_data(p, np.unique([0.0, *asked]), trials, seed, jobs, tell, data, test_size)
    if test_size is not None:
        raise ValueError(f"test_size = {test_size}: belongs to own data; without them test errors are exact averages")
    as_problem(p, standard=True)  # which the spikes require
    tell("predicting")
    best = theory.best_step(p, sqrt(p.n))
    best = theory.best_step(p) if best.at_bound else best
    eta = np.unique([0.0, *asked, best.eta])
    grid = np.geomspace(eta[eta > 0].min(initial=1.0) * p.n**-0.1, max(eta[-1], 1.0), _POINTS)
    curves = theory.losses(p, np.append(eta, grid))
    at, between = (_part(curves, part) for part in (slice(len(eta)), slice(len(eta), None)))
    found = {"best_step": best, "best_ridge": theory.best_ridge(p, best.eta), "trials": trials}
    simulated = _simulated(p, eta, trials, seed, jobs, tell) if trials else None
    return Study(p, eta, at, grid, between, _spike_heights(p, eta), simulated=simulated, **found)


def read_rows(path, how=None):
    """`simulate.data.Rows` from an .npz file with X (rows, d) and, optionally, y; X `prepared` unless how is None.

    Raises ValueError when the file holds no such arrays.
    """
    try:
        with np.load(path) as arrays:
            X, y = arrays["X"], arrays["y"] if "y" in arrays else None
    except OSError as error:
        raise ValueError(f"--data {path}: must be an .npz file with X (and y): {error}") from error
    except (EOFError, KeyError, TypeError, ValueError) as error:
        made = f"np.savez('{Path(path).stem}.npz', X=X, y=y)"
        raise ValueError(f"--data {path}: must be an .npz file with X (and y), as {made} makes it") from error
    return simulate.data.Rows(simulate.data.prepared(X, how) if how else X, y)


def _on_data(p, eta, trials, seed, jobs, tell, data, test_size):
    if not trials:
        raise ValueError("trials = 0: own data are simulated; take at least 2")
    if test_size is None:
        left = len(data.X) - p.first_samples - p.n if isinstance(data, simulate.data.Rows) else 1000
        if left < 1:
            raise ValueError(
                f"n = {p.n}: step and fit take {p.first_samples + p.n} of {len(data.X)} rows; none is left to test on"
                + (f"; take n <= {(len(data.X) - 1) // 2}" if p.step_samples is None else "")
            )
        test_size = min(left, 1000)
    tell(f"simulating {trials} splits")
    found = simulate.losses(p, eta, trials=trials, seed=seed, jobs=jobs, test_size=test_size, data=data)
    own = simulate.data.labelled(data)
    return DataStudy(p, eta, own, found, None if own else theory.losses(p, eta))


def _save(folder, text, numbers, picture=None):
    """Write all files of a study, or none."""
    folder = checks.folder("folder", folder)
    with tempfile.TemporaryDirectory(dir=folder) as staging:
        fresh = Path(staging)
        (fresh / "study.txt").write_text(f"{text}\n", encoding="utf-8")
        if picture:
            picture.savefig(fresh / "study.png", dpi=150)
        np.savez(fresh / "study.npz", **numbers)
        for file in fresh.iterdir():
            file.replace(folder / file.name)


def _part(losses, part):
    error = theory.every_step.Error(losses.rel_std.train[part], losses.rel_std.test[part])
    return theory.every_step.Losses(losses.train[part], losses.test[part], losses.residual[part], error)


def _spike_heights(p, eta):
    """Singular values of F's visible spikes over the bulk's edge, an array for each step."""
    values = theory.spectra.feature_spikes(p, eta, count=8).value
    counts, edges = theory.visible(p, eta), (theory.spectra.features(p, step).edge for step in eta)
    return tuple(value[:count] / edge for value, count, edge in zip(values, counts, edges, strict=True))


def _simulated(p, eta, trials, seed, jobs, tell):
    started = time.perf_counter()
    simulate.losses(p, eta, trials=1, seed=seed, jobs=1)
    seconds = (time.perf_counter() - started) * trials / min(jobs, trials)
    tell(f"simulating {trials} replicates, about {report.digits(max(seconds, 1.0), 1)} s")
    return simulate.losses(p, eta, trials=trials, seed=seed, jobs=jobs).mean
