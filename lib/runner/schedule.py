"""Which notebooks run, in which order, how many at a time; and what becomes of their results."""

import os
import shutil
import signal
import sys
import tempfile
import threading
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path

from .notebook import UserError
from .project import Manifest, only_run, update_tables, write_atomically

PRESETS = ("quick", "default", "large")


def run(project, wanted=(), preset="default", settings=None, scheduler=None):
    """Execute what is not current, print the verdicts, and return 0 if all notebooks ran and all verdicts hold, else 1.

    scheduler : address of a dask scheduler whose workers compute the replicates.
    Raises UserError, before anything runs, for a notebook, preset, parameter or memory need that cannot be met, a
    scheduler that does not answer, or a folder that cannot be written.
    """
    settings = settings or {}
    label = "custom" if settings else preset
    notebooks, manifest, keys, failures = _current(project, wanted, preset, settings, label, scheduler)
    if label == "large":
        from . import precise

        precise.record(project, manifest)
    overrides = project.presets.get(preset, {})
    seeds = {
        book.name[:2]: (book.parameters | overrides.get(book.name, {}) | settings).get("seed") for book in notebooks
    }
    return _conclude(project, label, notebooks, manifest, keys, failures, seeds)


def run_seeds(project, roots, wanted=(), preset="default"):
    """Run the notebooks under each root; print, row by row, what failed; return 1 if anything did, else 0.

    Results go to `build/seeds/<root>`. What the ten `seeds.ROOTS` find at default sizes is recorded in
    `figures/seeds.md`.
    """
    from . import seeds
    from .tables import ledgers

    runs, failed = {}, {}
    for root in roots:
        print(f"root {root}", flush=True)
        label = f"seeds/{root}"
        notebooks, *_, failures = _current(project, wanted, preset, {"seed": root}, label)
        failed |= {(root, name): message for name, message in failures.items()}
        for book in ledgers(project.outputs(label)[1]):
            if book["notebook"] not in failures:
                runs.setdefault(book["notebook"], []).append(book)
    kept = {book.name: seeds.found(book.name, runs.get(book.name, []), failed, len(roots)) for book in notebooks}
    print(seeds.table(kept))
    if (tuple(roots), preset) == (seeds.ROOTS, "default"):
        seeds.record(project, notebooks, kept)
    return int(bool(failed))


def _current(project, wanted, preset, settings, label, scheduler=None):
    """Execute what is not current; the notebooks asked for, the manifest, their keys in it, and what went wrong."""
    if preset not in PRESETS:
        raise UserError(f"no preset {preset!r}: choose {', '.join(PRESETS)}")
    notebooks = project.notebooks(wanted)
    overrides = {}
    for notebook in notebooks:
        overrides[notebook.name] = project.presets.get(preset, {}).get(notebook.name, {}) | settings
        notebook.check(overrides[notebook.name])
    if scheduler:
        _answers(scheduler)
    with only_run(project.build):
        manifest = Manifest(project, label)
        keys = {book.name: book.key(overrides[book.name], project.environment) for book in notebooks}
        stale = [book for book in notebooks if not manifest.holds(book.name, keys[book.name])]
        first = project.presets.get("longest_first", [])
        stale.sort(key=lambda book: first.index(book.name) if book.name in first else len(first))
        stale.sort(key=lambda book: -manifest.entries.get(book.name, {}).get("seconds", 0))
        kernel = {"ONESTEP_SCHEDULER": scheduler} if scheduler else {}
        if preset == "large":  # hours of replicates: a run that is killed goes on where it was
            kernel["ONESTEP_KEEP"] = str(project.build / "replicates")
        failures = _execute(project, label, preset, stale, overrides, keys, manifest, kernel) if stale else {}
    return notebooks, manifest, keys, _kept_failures(project, label, notebooks, failures) | failures


def _answers(scheduler):
    from onestep.simulate.replicates import cluster

    try:
        cluster(scheduler)
    except ValueError as error:
        raise UserError(str(error)) from error


def _kept_failures(project, label, notebooks, failures):
    """What is wrong with the notebooks that did not run anew: rows that failed when they did."""
    from .tables import failing, ledgers

    names = {book.name for book in notebooks} - set(failures)
    books = [book for book in ledgers(project.outputs(label)[1]) if book["notebook"] in names]
    return {book["notebook"]: verdicts_fail(failing(book)) for book in books if failing(book)}


def verdicts_fail(rows):
    """The message for a notebook whose rows, in words, are not as they should be."""
    return "\n  ".join(["these verdicts fail:", *rows])


def _execute(project, label, preset, stale, overrides, keys, manifest, kernel):
    """Run the stale notebooks, as many at a time as cores and memory allow; return error messages by name."""
    from tqdm import tqdm

    from onestep.checks import available_gib

    from . import execution
    from .tables import failing, ledgers

    needs = {book.name: project.memory(preset, book.name) for book in stale}
    free = available_gib()
    for name, need in needs.items():
        if need > free:
            raise UserError(f"{name} needs about {need:.1f} GiB of memory at preset {preset}; {free:.1f} GiB are free")
    project.writable(label)
    jobs = min(2, os.cpu_count() or 1)
    if sum(sorted(needs.values())[-jobs:]) > free:
        jobs = 1
    weights = _forecast(project, preset, stale, manifest)
    if (minutes := max([sum(weights.values()) / jobs, *weights.values()]) / 60) >= 1:
        print(f"about {minutes:.0f} minutes, at most {sum(sorted(needs.values())[-jobs:]):.1f} GiB", flush=True)
    weights = weights or {book.name: book.code_cells for book in stale}
    staging_area = project.build / "staging"
    shutil.rmtree(staging_area, ignore_errors=True)  # what a run that was killed left behind
    staging_area.mkdir()
    stop, failures = threading.Event(), {}
    line = "{percentage:3.0f} %|{bar}| {elapsed}, about {remaining} left"
    progress = tqdm(total=sum(weights.values()), bar_format=line, smoothing=0, leave=False, disable=None)

    def one(book):
        values, before = overrides[book.name], book.path.read_bytes()
        with tempfile.TemporaryDirectory(dir=staging_area) as staging:
            try:
                known, cell = book.parameters | values, partial(progress.update, weights[book.name] / book.code_cells)
                done = execution.execute(book.path, values, known, staging, cell, stop, kernel)
            except execution.NotebookFailed as error:
                return None, [], str(error)
            found = ledgers(staging)
            if not found:
                return None, [], "it wrote no ledger: a notebook ends with Verdicts.conclude()"
            message = verdicts_fail(failing(found[0])) if failing(found[0]) else ""
            if message and label == "default":
                return None, [], message  # the committed set holds no failing verdict; elsewhere the run is kept
            if label == "default" and book.path.read_bytes() != before:
                return None, [], "it was changed while it ran: run it again"
            return done, _install(project, label, book, done.notebook, Path(staging)), message

    pool = ThreadPoolExecutor(jobs)
    running = {pool.submit(one, book): book for book in stale}
    try:
        while running:
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                book = running.pop(future)
                done, files, message = future.result()
                if message:
                    failures[book.name] = message
                if done is None:
                    progress.write(f"{book.name}  FAILED")
                else:
                    manifest.record(book.name, keys[book.name], done, files)
                    need = needs[book.name]
                    more = f" (notebooks/presets.toml states {need:g})" if done.peak_gib > need else ""
                    state = f", VERDICTS FAIL, kept in build/{label}" if message else ""
                    progress.write(f"{book.name}  {done.seconds:.0f} s, {done.peak_gib:.2f} GiB{more}{state}")
    except KeyboardInterrupt:
        for impatient in (signal.SIGINT, signal.SIGTERM):  # ending the kernels takes a second
            signal.signal(impatient, signal.SIG_IGN)
        raise
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)
        progress.close()
    return failures


def _forecast(project, preset, stale, manifest):
    """Seconds that each notebook took before, or is stated to take; empty if nothing tells for one of them."""
    took = {
        book.name: manifest.entries.get(book.name, {}).get("seconds") or 60 * project.minutes(preset, book.name)
        for book in stale
    }
    return took if all(took.values()) else {}


def _install(project, label, book, notebook, staging):
    """Move a finished run into place, remove figures it no longer makes, and return the files."""
    import nbformat

    notebooks, figures = project.outputs(label)
    fresh = {path.name: path for path in staging.iterdir()}
    files = [figures / name for name in sorted(fresh)]
    for old in figures.glob(f"{book.name[:3]}*"):
        if old.name not in fresh:
            old.unlink()
    same = {path.stem for path in files if path.suffix == ".png" and _unchanged(path, fresh[path.name])}
    for target in files:
        if target.suffix == ".pdf" and target.stem in same and target.exists():
            continue  # the same picture: only the last bits of coordinates may differ, from machine to machine
        write_atomically(target, fresh[target.name].read_bytes())
    target = notebooks / book.path.name
    write_atomically(target, (nbformat.writes(notebook).rstrip("\n") + "\n").encode())
    return [*files, target]


def _unchanged(old, new):
    return old.exists() and old.read_bytes() == new.read_bytes()


def _conclude(project, label, notebooks, manifest, keys, failures, seeds):
    """Print cost, seeds and verdicts of the notebooks; bring the README up to date; return the exit status."""
    from onestep.report import HEAD, cells, plain_table

    from .tables import ledgers

    books = {book["notebook"]: book for book in ledgers(project.outputs(label)[1])}
    shown = [books[book.name] for book in notebooks if manifest.holds(book.name, keys[book.name])]
    lines = [("notebook", *HEAD)]
    lines += [(book["notebook"][:2], *line) for book in shown for line in cells(book["rows"])]
    print(plain_table(lines))
    for name, message in failures.items():
        print(f"\n{name}: {message}", file=sys.stderr)
    if label == "default":
        update_tables(project)
    costs = [manifest.entries[book["notebook"]] for book in shown]
    peak = max((cost["peak_gib"] for cost in costs), default=0.0)
    state = f"{len(failures)} of {len(notebooks)} notebooks FAILED" if failures else "as they should be"
    print(f"\nroot seed by notebook: {', '.join(f'{number}: {seed}' for number, seed in seeds.items())}")
    print(f"{len(lines) - 1} verdicts, {state}; {sum(cost['seconds'] for cost in costs):.0f} s of notebooks, ", end="")
    print(f"at most {peak:.1f} GiB in one")
    return 1 if failures else 0
