"""Runs notebooks, as many at a time as fit, and puts their results into place."""

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
from .plan import announcement, places, plan
from .project import only_run
from .reproduction import settle
from .summary import conclude, failures, outcome, verdicts_fail


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
        planned = plan(project, wanted, preset, settings, label, scheduler)
        results = execute(planned)
    if label == "large":
        tables.record_large(project, planned.manifest)
    return conclude(planned, results)


def run_seeds(project, roots, wanted=(), preset="default"):
    """Run the notebooks under each root and print, row by row, what failed; return 1 if anything did, else 0.

    Results go to `build/seeds/<root>`. What the first ten or more of the `tables.ROOTS` find at default sizes is
    recorded in `figures/seeds.md`, unless the record of the same rows is of more roots.
    """
    runs, failed = {}, {}
    for root in roots:
        print(f"root {root}", flush=True)
        with only_run(project.build):
            planned = plan(project, wanted, preset, {"seed": root}, f"seeds/{root}")
            wrong = failures(planned, execute(planned))
        failed |= {(root, name): message for name, message in wrong.items()}
        ran = {notebook.name for notebook in planned.current()}
        for ledger in tables.read_ledgers(project.outputs(planned.label)[1]):
            if ledger["notebook"] in ran:
                runs.setdefault(ledger["notebook"], []).append(ledger)
    names = [notebook.name for notebook in planned.notebooks]
    found = {name: tables.seeds_found(name, runs.get(name, []), failed, len(roots)) for name in names}
    print(tables.seeds_table(found))
    first = tuple(roots) == tables.ROOTS[: len(roots)]
    if first and len(roots) >= tables.FEWEST and preset == "default":
        reasons = tables.not_to_record(project, runs, found)
        for name, reason in reasons.items():
            print(f"{name}: not recorded, {reason}", file=sys.stderr)
        tables.record_seeds(project, {name: found[name] for name in names if name not in reasons})
    return int(bool(failed))


def execute(planned):
    """Run the stale notebooks, as many at a time as cores and memory allow; {name: RunResult}."""
    if not planned.stale:
        return {}
    from tqdm import tqdm

    jobs = places(planned)
    planned.project.writable(planned.label)
    staging = planned.project.build / "staging"
    shutil.rmtree(staging, ignore_errors=True)  # what a run that was killed left behind
    staging.mkdir()
    seconds = planned.seconds()
    print(announcement(planned, jobs, seconds), flush=True)
    weights = seconds or {notebook.name: notebook.code_cells for notebook in planned.stale}
    stop, results = threading.Event(), {}
    line = "{percentage:3.0f} %|{bar}| {elapsed}, about {remaining} left"
    progress = tqdm(total=sum(weights.values()), bar_format=line, smoothing=0, leave=False, disable=None)

    def one(notebook):
        progress.write(f"{notebook.name}: starts")
        return run_one(planned, notebook, stop, partial(progress.update, weights[notebook.name] / notebook.code_cells))

    pool = ThreadPoolExecutor(jobs)
    running = {pool.submit(one, notebook): notebook for notebook in planned.stale}
    try:
        while running:
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                notebook = running.pop(future)
                results[notebook.name] = result = future.result()
                if result.run:
                    planned.manifest.record(notebook.name, planned.keys[notebook.name], result.run, result.files)
                progress.write(f"{notebook.name}: {outcome(planned, notebook.name, result)}")
    except KeyboardInterrupt:
        for impatient in (signal.SIGINT, signal.SIGTERM):  # ending the kernels takes a second
            signal.signal(impatient, signal.SIG_IGN)
        raise
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)
        progress.close()
    return results


def run_one(planned, notebook, stop, on_cell):
    """Execute one notebook in a folder of its own, and put what it made into place.

    Parameters
    ----------
    planned : Plan
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

    values, before = planned.values[notebook.name], notebook.path.read_bytes()
    with tempfile.TemporaryDirectory(dir=planned.project.build / "staging") as staging:
        try:
            in_force = notebook.parameters | values
            kernel = planned.kernel | {"ONESTEP_KEEP_KEY": planned.keep_key(notebook)}
            done = execution.execute(notebook.path, values, in_force, staging, on_cell, stop, kernel)
        except execution.NotebookFailed as error:
            return RunResult(message=str(error))
        ledgers = tables.read_ledgers(staging)
        if not ledgers:
            return RunResult(message="it wrote no ledger: a notebook ends with Verdicts.conclude()")
        failing = tables.failing(ledgers[0])
        message = verdicts_fail(failing) if failing else ""
        if planned.label == "default":
            if failing:  # the committed set holds no failing verdict; elsewhere the run is kept
                return RunResult(message=message)
            if notebook.path.read_bytes() != before:
                return RunResult(message="it was changed while it ran: run it again")
        return RunResult(done, *install(planned, notebook, done.notebook, Path(staging)), message)


def install(planned, notebook, executed, staging):
    """Move a finished run into place, and remove figures that it no longer makes.

    In the committed set, results that agree with those that are there keep their bytes.

    Returns
    -------
    files : list of Path
    differences : list of str
        Where the results of the committed set differ from those that were there.
    """
    import nbformat

    notebooks, figures = planned.project.outputs(planned.label)
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
        elif planned.label == "default":
            data, found = settle(target.name, old, data)
            differences += [f"{where}, {each}" for each in found]
        if data != old:
            write_atomically(target, data)
    return list(fresh), differences if planned.label == "default" else []
