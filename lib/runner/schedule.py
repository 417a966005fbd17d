"""Which notebooks run, in which order, how many at a time; and what becomes of their results."""

import os
import shutil
import signal
import sys
import tempfile
import threading
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from . import tables
from .files import write_atomically
from .notebook import UserError, digest
from .project import Manifest, only_run
from .reproduction import settle

PRESETS = ("quick", "default", "large")
SHOWN = 6  # differences named for one notebook


@dataclass(frozen=True)
class Plan:
    """What a run was asked for and what it has to do.

    Attributes
    ----------
    project, preset
    label : str
        Folder of the results: "default" for the committed set, else below `build`.
    notebooks : list of Notebook
        All that were asked for.
    values : dict
        Parameters other than the notebook's own, by its name.
    keys : dict
        Digest of all that decides a notebook's results, by its name.
    stale : list of Notebook
        Those that have to run, the longest first.
    manifest : Manifest
    kernel : dict
        Environment variables of the kernels.
    """

    project: object
    preset: str
    label: str
    notebooks: list
    values: dict
    keys: dict
    stale: list
    manifest: Manifest
    kernel: dict

    def needs(self):
        """Peak memory in GiB of each notebook that runs, by its name."""
        return {book.name: self.project.memory(self.preset, book.name) for book in self.stale}

    def keep_key(self, notebook):
        """Digest of a notebook's code and parameters, the library and the lock: the replicates' key."""
        return digest((notebook.code(self.values[notebook.name]) + self.project.environment).encode())

    def seconds(self):
        """CPU seconds that each notebook that runs will take, by its name; empty if one of them is not known."""
        found = {book.name: self._seconds(book.name) for book in self.stale}
        return found if all(found.values()) else {}

    def _seconds(self, name):
        earlier = self.manifest.entries.get(name, {}).get("cpu")
        return earlier or self.project.seconds(self.preset, name)


@dataclass(frozen=True)
class RunResult:
    """What became of one notebook.

    Attributes
    ----------
    run : execution.Run or None
        None if nothing of it is kept.
    files : list of Path
        Its results.
    differences : list of str
        Where its results differ from those that were there; only of the committed set.
    message : str
        What is wrong, or empty.
    """

    run: object = None
    files: list = field(default_factory=list)
    differences: list = field(default_factory=list)
    message: str = ""


def run(project, wanted=(), preset="default", settings=None, scheduler=None):
    """Execute what is not current and print the verdicts.

    Parameters
    ----------
    project : Project
    wanted : beginnings of notebooks' names; all if empty
    preset : one of `PRESETS`
    settings : dict, optional
        Parameters other than the preset's.
    scheduler : str, optional
        Address of a dask scheduler whose workers compute the replicates.

    Returns
    -------
    int
        0 if all notebooks ran and all verdicts hold, else 1.

    Raises
    ------
    UserError
        Before anything runs: a notebook, preset, parameter or memory need that cannot be met, a scheduler that does
        not answer, or a folder that cannot be written.
    """
    settings = settings or {}
    label = "custom" if settings else preset
    if label != "default":
        what = f"--set {' '.join(settings)}" if settings else f"preset {preset}"
        print(f"{what}: results go to build/{label}; the committed notebooks and figures stay as they are", flush=True)
    with only_run(project.build):
        todo = plan(project, wanted, preset, settings, label, scheduler)
        results = execute(todo)
    if label == "large":
        tables.record_large(project, todo.manifest)
    return _conclude(todo, results)


def run_seeds(project, roots, wanted=(), preset="default"):
    """Run the notebooks under each root and print, row by row, what failed; return 1 if anything did, else 0.

    Results go to `build/seeds/<root>`. What the ten `tables.ROOTS` find at default sizes is recorded in
    `figures/seeds.md`.
    """
    runs, failed = {}, {}
    for root in roots:
        print(f"root {root}", flush=True)
        with only_run(project.build):
            todo = plan(project, wanted, preset, {"seed": root}, f"seeds/{root}")
            failures = _failures(todo, execute(todo))
        failed |= {(root, name): message for name, message in failures.items()}
        for book in tables.ledgers(project.outputs(todo.label)[1]):
            if book["notebook"] not in failures:
                runs.setdefault(book["notebook"], []).append(book)
    kept = {
        book.name: tables.seeds_found(book.name, runs.get(book.name, []), failed, len(roots)) for book in todo.notebooks
    }
    print(tables.seeds_table(kept))
    if (tuple(roots), preset) == (tables.ROOTS, "default"):
        tables.record_seeds(project, todo.notebooks, kept)
    return int(bool(failed))


def plan(project, wanted, preset, settings, label, scheduler=None):
    """The `Plan` of a run; raises UserError as `run` does."""
    if preset not in PRESETS:
        raise UserError(f"no preset {preset!r}: choose {', '.join(PRESETS)}")
    notebooks = project.notebooks(wanted)
    values = {book.name: project.presets.get(preset, {}).get(book.name, {}) | settings for book in notebooks}
    for book in notebooks:
        book.check(values[book.name])
    if scheduler:
        _answers(scheduler)
    kernel = {"ONESTEP_SCHEDULER": scheduler} if scheduler else {}
    if preset == "large":  # hours of replicates: a run that is killed goes on where it was
        kernel["ONESTEP_KEEP"] = str(project.build / "replicates")
    manifest = Manifest(project, label)
    keys = {book.name: book.key(values[book.name], project.environment) for book in notebooks}
    stale = [book for book in notebooks if not manifest.holds(book.name, keys[book.name])]
    todo = Plan(project, preset, label, notebooks, values, keys, stale, manifest, kernel)
    stale.sort(key=lambda book: -todo._seconds(book.name))
    return todo


def execute(todo):
    """Run the stale notebooks, as many at a time as cores and memory allow; {name: RunResult}."""
    if not todo.stale:
        return {}
    from tqdm import tqdm

    jobs = _places(todo)
    todo.project.writable(todo.label)
    staging = todo.project.build / "staging"
    shutil.rmtree(staging, ignore_errors=True)  # what a run that was killed left behind
    staging.mkdir()
    seconds = todo.seconds()
    print(_announcement(todo, jobs, seconds), flush=True)
    weights = seconds or {book.name: book.code_cells for book in todo.stale}
    stop, results = threading.Event(), {}
    line = "{percentage:3.0f} %|{bar}| {elapsed}, about {remaining} left"
    progress = tqdm(total=sum(weights.values()), bar_format=line, smoothing=0, leave=False, disable=None)

    def one(book):
        progress.write(f"{book.name}: starts")
        return run_one(todo, book, stop, partial(progress.update, weights[book.name] / book.code_cells))

    pool = ThreadPoolExecutor(jobs)
    running = {pool.submit(one, book): book for book in todo.stale}
    try:
        while running:
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                book = running.pop(future)
                results[book.name] = result = future.result()
                if result.run:
                    todo.manifest.record(book.name, todo.keys[book.name], result.run, result.files)
                progress.write(f"{book.name}: {_outcome(todo, book.name, result)}")
    except KeyboardInterrupt:
        for impatient in (signal.SIGINT, signal.SIGTERM):  # ending the kernels takes a second
            signal.signal(impatient, signal.SIG_IGN)
        raise
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)
        progress.close()
    return results


def run_one(todo, notebook, stop, on_cell):
    """Execute one notebook in a folder of its own, and put what it made into place.

    Parameters
    ----------
    todo : Plan
    notebook : Notebook
    stop : threading.Event
        Ends the kernel once it is set.
    on_cell : callable
        Called after each cell.

    Returns
    -------
    RunResult
    """
    from . import execution

    values, before = todo.values[notebook.name], notebook.path.read_bytes()
    with tempfile.TemporaryDirectory(dir=todo.project.build / "staging") as staging:
        try:
            known = notebook.parameters | values
            kernel = todo.kernel | {"ONESTEP_KEEP_KEY": todo.keep_key(notebook)}
            done = execution.execute(notebook.path, values, known, staging, on_cell, stop, kernel)
        except execution.NotebookFailed as error:
            return RunResult(message=str(error))
        books = tables.ledgers(staging)
        if not books:
            return RunResult(message="it wrote no ledger: a notebook ends with Verdicts.conclude()")
        failing = tables.failing(books[0])
        message = _verdicts_fail(failing) if failing else ""
        if todo.label == "default":
            if failing:  # the committed set holds no failing verdict; elsewhere the run is kept
                return RunResult(message=message)
            if notebook.path.read_bytes() != before:
                return RunResult(message="it was changed while it ran: run it again")
        return RunResult(done, *install(todo, notebook, done.notebook, Path(staging)), message)


def install(todo, notebook, executed, staging):
    """Move a finished run into place, and remove figures that it no longer makes.

    In the committed set, results that agree with those that are there keep their bytes.

    Returns
    -------
    files : list of Path
    differences : list of str
        Where the results of the committed set differ from those that were there.
    """
    import nbformat

    notebooks, figures = todo.project.outputs(todo.label)
    fresh = {figures / path.name: path.read_bytes() for path in sorted(staging.iterdir())}
    fresh[notebooks / notebook.path.name] = (nbformat.writes(executed).rstrip("\n") + "\n").encode()
    differences = []
    for old in sorted(figures.glob(f"{notebook.name[:3]}*")):
        if old not in fresh:
            old.unlink()
            differences.append(f"figures/{old.name}: gone")
    for target, data in fresh.items():
        where = f"{target.parent.name}/{target.name}"
        old = target.read_bytes() if target.exists() else None
        if old is None:
            differences.append(f"{where}: new")
        elif todo.label == "default":
            data, found = settle(target.name, old, data)
            differences += [f"{where}, {each}" for each in found]
        if data != old:
            write_atomically(target, data)
    return list(fresh), differences if todo.label == "default" else []


def _answers(scheduler):
    from onestep.simulate.replicates import cluster

    try:
        cluster(scheduler)
    except ValueError as error:
        raise UserError(str(error)) from error


def _places(todo):
    """How many notebooks run at a time; raises UserError if one of them does not fit into the free memory."""
    from onestep.checks import available_gib

    needs, free = todo.needs(), available_gib()
    for name, need in needs.items():
        if need > free:
            preset = todo.preset
            raise UserError(f"{name} needs about {need:.1f} GiB of memory at preset {preset}; {free:.1f} GiB are free")
    jobs = min(2, os.cpu_count() or 1)
    return jobs if sum(sorted(needs.values())[-jobs:]) <= free else 1


def _announcement(todo, jobs, seconds):
    count = len(todo.stale)
    needs = sorted(todo.needs().values())
    parts = [f"{count} notebook{'s' * (count > 1)} to run", "two at a time" if jobs == 2 else "one at a time"]
    if seconds:
        expected = max(sum(seconds.values()) / jobs, *seconds.values())
        parts.append(f"about {expected / 60:.0f} min" if expected >= 90 else f"about {expected:.0f} s")
    parts.append(f"at most {sum(needs[-jobs:]):.1f} GiB")
    return f"{', '.join(parts)}: {', '.join(book.name[:2] for book in todo.stale)}"


def _outcome(todo, name, result):
    """One line on a notebook that has run."""
    if not result.run:
        return "FAILED"
    need = todo.project.memory(todo.preset, name)
    more = f" (notebooks/presets.toml states {need:g})" if result.run.peak_gib > need else ""
    parts = [f"{result.run.seconds:.0f} s", f"{result.run.peak_gib:.2f} GiB{more}"]
    if todo.label == "default":
        parts.append("differs from what was there" if result.differences else "as before")
    return ", ".join(parts + [f"VERDICTS FAIL, kept in build/{todo.label}"] * bool(result.message))


def _verdicts_fail(rows):
    """The message for a notebook whose rows, in words, are not as they should be."""
    return "\n  ".join(["these verdicts fail:", *rows])


def _failures(todo, results):
    """What is wrong with each notebook: with those that ran, and with rows of the others when they did."""
    found = {name: result.message for name, result in results.items() if result.message}
    names = {book.name for book in todo.notebooks} - set(results)
    books = [book for book in tables.ledgers(todo.project.outputs(todo.label)[1]) if book["notebook"] in names]
    return {book["notebook"]: _verdicts_fail(tables.failing(book)) for book in books if tables.failing(book)} | found


def _conclude(todo, results):
    """Print verdicts, failures, cost and where results lie; bring the tables up to date; return the exit status."""
    from onestep.report import HEAD, cells, plain_table

    failures = _failures(todo, results)
    books = {book["notebook"]: book for book in tables.ledgers(todo.project.outputs(todo.label)[1])}
    shown = [books[book.name] for book in todo.notebooks if todo.manifest.holds(book.name, todo.keys[book.name])]
    lines = [("notebook", *HEAD)]
    lines += [(book["notebook"][:2], *line) for book in shown for line in cells(book["rows"])]
    print(plain_table(lines))
    for name, message in failures.items():
        print(f"\n{name}: {message}", file=sys.stderr)
    if todo.label == "default":
        tables.update(todo.project)
    costs = [todo.manifest.entries[book["notebook"]] for book in shown]
    seeds = {book.name[:2]: (book.parameters | todo.values[book.name]).get("seed") for book in todo.notebooks}
    state = f"{len(failures)} of {len(todo.notebooks)} notebooks FAILED" if failures else "as they should be"
    print(f"\nroot seed by notebook: {', '.join(f'{number}: {seed}' for number, seed in seeds.items())}")
    print(f"{len(lines) - 1} verdicts, {state}; {sum(cost['cpu'] for cost in costs):.0f} CPU s of notebooks, ", end="")
    print(f"at most {max((cost['peak_gib'] for cost in costs), default=0.0):.1f} GiB in one")
    notebooks, figures = (path.relative_to(todo.project.root) for path in todo.project.outputs(todo.label))
    print(f"executed notebooks: {notebooks}/, figures and verdicts: {figures}/")
    if todo.label == "default":
        print(reproduction(results))
    return 1 if failures else 0


def reproduction(results):
    """What the committed set's notebooks that ran say of the results that were there, the sentence that counts last."""
    lines = []
    same = [name for name, result in results.items() if result.run and not result.differences]
    for name, result in results.items():
        if result.differences:
            lines += [f"{name} differs from the results that were there, and is written anew:"]
            lines += [f"  {each}" for each in result.differences[:SHOWN]]
            lines += [f"  and {len(result.differences) - SHOWN} more"] * (len(result.differences) > SHOWN)
    if same and len(same) == len(results):
        lines.append(f"reproduces the committed figures: all {len(same)} that ran")
    elif results:
        lines.append(f"{len(same)} of the {len(results)} notebooks that ran reproduce the committed figures")
    else:
        lines.append("nothing had to run: the results are those of the last run")
    return "\n".join(lines)
