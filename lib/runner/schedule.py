"""Which notebooks run, in which order, how many at a time; and what becomes of their results."""

import os
import shutil
import signal
import sys
import tempfile
import threading
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from pathlib import Path

from .notebook import UserError
from .project import Manifest, only_run, update_tables, write_atomically

PRESETS = ("quick", "default", "large")


def run(project, wanted=(), preset="default", settings=None):
    """Execute what is not current, print the verdicts, and return 0 if all notebooks ran and all verdicts hold, else 1.

    Raises UserError, before anything runs, for a notebook, preset, parameter or memory need that cannot be met.
    """
    if preset not in PRESETS:
        raise UserError(f"no preset {preset!r}: choose {', '.join(PRESETS)}")
    settings = settings or {}
    label = "custom" if settings else preset
    notebooks = project.notebooks(wanted)
    overrides = {}
    for notebook in notebooks:
        overrides[notebook.name] = project.presets.get(preset, {}).get(notebook.name, {}) | settings
        notebook.check(overrides[notebook.name])
    with only_run(project.build):
        manifest = Manifest(project, label)
        keys = {book.name: book.key(overrides[book.name], project.environment) for book in notebooks}
        stale = [book for book in notebooks if not manifest.holds(book.name, keys[book.name])]
        first = project.presets.get("longest_first", [])
        stale.sort(key=lambda book: first.index(book.name) if book.name in first else len(first))
        stale.sort(key=lambda book: -manifest.entries.get(book.name, {}).get("seconds", 0))
        failures = _execute(project, label, preset, stale, overrides, keys, manifest) if stale else {}
        seeds = {book.name[:2]: (book.parameters | overrides[book.name]).get("seed") for book in notebooks}
        return _conclude(project, label, notebooks, manifest, failures, seeds)


def _execute(project, label, preset, stale, overrides, keys, manifest):
    """Run the stale notebooks, as many at a time as cores and memory allow; return error messages by name."""
    from tqdm import tqdm

    from onestep.checks import available_gib

    from . import execution

    needs = {book.name: project.memory(preset, book.name) for book in stale}
    free = available_gib()
    for name, need in needs.items():
        if need > free:
            raise UserError(f"{name} needs about {need:.1f} GiB of memory at preset {preset}; {free:.1f} GiB are free")
    jobs = min(2, os.cpu_count() or 1)
    if sum(sorted(needs.values())[-jobs:]) > free:
        jobs = 1
    staging_area = project.build / "staging"
    shutil.rmtree(staging_area, ignore_errors=True)  # what a run that was killed left behind
    staging_area.mkdir()
    stop, failures = threading.Event(), {}
    progress = tqdm(total=sum(book.code_cells for book in stale), unit="cell", leave=False, disable=None)

    def one(book):
        values = overrides[book.name]
        with tempfile.TemporaryDirectory(dir=staging_area) as staging:
            try:
                done = execution.execute(
                    book.path, values, book.parameters | values, staging, lambda: progress.update(1), stop
                )
            except execution.NotebookFailed as error:
                return None, _failure(error, Path(staging))
            return done, _install(project, label, book, done.notebook, Path(staging))

    pool = ThreadPoolExecutor(jobs)
    running = {pool.submit(one, book): book for book in stale}
    try:
        while running:
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                book = running.pop(future)
                done, result = future.result()
                if done is None:
                    failures[book.name] = result
                    progress.write(f"{book.name}  FAILED")
                else:
                    manifest.record(book.name, keys[book.name], done, result)
                    need = needs[book.name]
                    more = f" (notebooks/presets.toml states {need:g})" if done.peak_gib > need else ""
                    progress.write(f"{book.name}  {done.seconds:.0f} s, {done.peak_gib:.2f} GiB{more}")
    except KeyboardInterrupt:
        for impatient in (signal.SIGINT, signal.SIGTERM):  # ending the kernels takes a second
            signal.signal(impatient, signal.SIG_IGN)
        raise
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)
        progress.close()
    return failures


def _install(project, label, book, notebook, staging):
    """Move a finished run into place, remove figures it no longer makes, and return the files."""
    import nbformat

    notebooks, figures = project.outputs(label)
    fresh = {path.name: path for path in staging.iterdir()}
    files = [figures / name for name in sorted(fresh)]
    for old in figures.glob(f"{book.name[:3]}*"):
        if old.name not in fresh:
            old.unlink()
    for target in files:
        write_atomically(target, fresh[target.name].read_bytes())
    target = notebooks / book.path.name
    write_atomically(target, (nbformat.writes(notebook).rstrip("\n") + "\n").encode())
    return [*files, target]


def _failure(error, staging):
    """The error, and the verdict rows that failed if it got that far."""
    from onestep.report import describe

    from .tables import ledgers

    rows = [describe(row) for book in ledgers(staging) for row in book["rows"] if not row["passed"]]
    return "\n  ".join(["these verdicts fail:", *rows]) if rows else str(error)


def _conclude(project, label, notebooks, manifest, failures, seeds):
    """Print cost, seeds and verdicts of the notebooks; bring the README up to date; return the exit status."""
    from .tables import ledgers

    books = {book["notebook"]: book for book in ledgers(project.outputs(label)[1])}
    lines = [("notebook", "quantity", "claimed", "measured ± s.e.", "verdict")]
    for notebook in notebooks:
        for row in books.get(notebook.name, {"rows": []})["rows"] if notebook.name not in failures else []:
            what = "control: " * row["control"] + row["quantity"]
            lines.append((notebook.name[:2], what, row["claimed"], row["measured"], row["verdict"]))
    print(_aligned(lines))
    rows = len(lines) - 1
    costs = [manifest.entries[book.name] for book in notebooks if book.name not in failures]
    for name, message in failures.items():
        print(f"\n{name}: {message}", file=sys.stderr)
    if label == "default":
        update_tables(project)
    peak = max((cost["peak_gib"] for cost in costs), default=0.0)
    state = f"all {rows} verdicts as they should be"
    if failures:
        state = f"{len(failures)} of {len(notebooks)} notebooks FAILED"
    print(f"\nroot seed by notebook: {', '.join(f'{number}: {seed}' for number, seed in seeds.items())}")
    print(f"{state}; {sum(cost['seconds'] for cost in costs):.0f} s of notebooks, at most {peak:.1f} GiB in one")
    return 1 if failures else 0


def _aligned(lines):
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    padded = ([cell.ljust(width) for cell, width in zip(line, widths, strict=True)] for line in lines)
    return "\n".join("  ".join(line).rstrip() for line in padded)
