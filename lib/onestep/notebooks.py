"""Run the notebooks: `python -m onestep.notebooks [--preset quick|default|large] [--set name=value] [07 ...]`.

The default preset writes the executed notebooks back to `notebooks/`, their figures and verdicts to `figures/`, and the
results table into the README. Other presets and values given by `--set` go to `build/`, so that they never disturb the
committed set. Only notebooks whose code, parameters, library or lock changed run again; each one that finishes is kept,
whatever happens to the others; one that fails leaves its earlier results as they were.

Parameters are those of the cell tagged `parameters`, one assignment of a literal to a line. A comment beside a number
may end in its range, as in `n = 1000  # samples, ≥ 50, ≤ 20000`; every number of a list must lie in it.
"""

import argparse
import ast
import fcntl
import hashlib
import json
import operator
import os
import re
import shutil
import signal
import sys
import tempfile
import threading
import tomllib
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PRESETS = ("quick", "default", "large")
TABLE = re.compile(r"(?s)(<!-- results:begin -->).*?(<!-- results:end -->)")
_RANGE = re.compile(r"(≥|≤|>=|<=|>|<)\s*([-+]?[\d.]+(?:e[-+]?\d+)?)(?=\s*(?:,|$|≥|≤|>|<))")
_COMPARE = {
    "≥": operator.ge,
    ">=": operator.ge,
    "≤": operator.le,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}


class UserError(Exception):
    """Something asked for that cannot be done; the message says what and why."""


@dataclass(frozen=True)
class Notebook:
    """A notebook file, read without the notebook libraries: they take longer to import than a run with no change."""

    path: Path

    @property
    def name(self):
        return self.path.stem

    @cached_property
    def cells(self):
        return json.loads(self.path.read_text(encoding="utf-8"))["cells"]

    @cached_property
    def parameters(self):
        """Default values by name, from the cell tagged `parameters`."""
        return {name: value for name, (value, _) in self._assignments.items()}

    def check(self, overrides):
        """Raise UserError for an unknown name, a type other than the default's, or a number outside its range."""
        for name, value in overrides.items():
            if name not in self._assignments:
                raise UserError(f"{self.name} has no parameter {name!r}; it has {', '.join(self.parameters)}")
            default, comment = self._assignments[name]
            if not _same_type(value, default):
                wanted = f"{_type_name(default)} like its default {default!r}"
                raise UserError(f"{self.name}: parameter {name} must be {wanted}, not {value!r}")
            for sign, bound in _RANGE.findall(comment):
                for number in value if isinstance(value, list | tuple) else [value]:
                    if not _COMPARE[sign](number, float(bound)):
                        raise UserError(f"{self.name}: parameter {name} must be {sign} {bound}, not {value!r}")

    def key(self, overrides, environment):
        """Digest of all that decides the results: the cells' text, the parameters, and the library's `environment`."""
        text = [[cell["cell_type"], cell["source"], cell["metadata"].get("tags")] for cell in self.cells]
        return _digest(json.dumps([text, overrides, environment], sort_keys=True, ensure_ascii=False).encode())

    @cached_property
    def _assignments(self):
        tagged = [cell for cell in self.cells if "parameters" in cell["metadata"].get("tags", [])]
        if len(tagged) != 1:
            raise UserError(f"{self.name} must have one cell tagged parameters, not {len(tagged)}")
        source = "".join(tagged[0]["source"])
        lines = source.splitlines()
        found = {}
        for statement in ast.parse(source).body:
            target = statement.targets[0] if isinstance(statement, ast.Assign) else getattr(statement, "target", None)
            if not isinstance(target, ast.Name):
                raise UserError(f"{self.name}: {ast.unparse(statement)!r} among the parameters is not `name = value`")
            try:
                value = ast.literal_eval(statement.value)
            except ValueError:
                message = f"{self.name}: parameter {target.id} must be a literal: a number, a text or a list"
                raise UserError(message) from None
            comment = lines[statement.end_lineno - 1][statement.end_col_offset :]
            found[target.id] = value, comment
        return found


@dataclass(frozen=True)
class Project:
    """Where things lie under one root, and what is known of earlier runs."""

    root: Path

    @property
    def build(self):
        return self.root / "build"

    @cached_property
    def presets(self):
        """`notebooks/presets.toml`: parameters by preset and notebook, peak memory in GiB, and what takes longest."""
        path = self.root / "notebooks" / "presets.toml"
        return tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}

    @cached_property
    def environment(self):
        """Digest of the library and the lock: results made under another one are stale."""
        files = [*sorted(Path(__file__).parent.glob("*.py")), self.root / "requirements.txt"]
        parts = [path.name.encode() + b"\0" + path.read_bytes() for path in files if path.exists()]
        return _digest(b"\0".join([*parts, sys.version.encode()]))

    def notebooks(self, wanted=()):
        """The notebooks whose names begin with one of `wanted`; all if it is empty."""
        every = [Notebook(path) for path in sorted((self.root / "notebooks").glob("[0-9][0-9]_*.ipynb"))]
        wanted = [start.zfill(2) if start.isdigit() else start for start in wanted]
        for start in wanted:
            if not any(notebook.name.startswith(start) for notebook in every):
                have = ", ".join(notebook.name for notebook in every)
                raise UserError(f"no notebook's name begins with {start!r}; there are {have}")
        return [notebook for notebook in every if not wanted or notebook.name.startswith(tuple(wanted))]

    def outputs(self, label):
        """Folders for executed notebooks and for figures."""
        base = self.root if label == "default" else self.build / label
        return base / "notebooks", base / "figures"

    def memory(self, preset, name):
        """Peak memory in GiB that `notebooks/presets.toml` states."""
        stated = self.presets.get("memory_gib", {})
        return stated.get(preset, {}).get(name) or stated.get("default", {}).get(name, 1.0)


class Manifest:
    """What ran with which key and wrote which bytes, so that a second run has nothing to do."""

    def __init__(self, project, label):
        self._path = project.build / "manifest" / f"{label}.json"
        self._root = project.root
        self.entries = json.loads(self._path.read_text()) if self._path.exists() else {}

    def holds(self, name, key):
        entry = self.entries.get(name)
        return bool(entry) and entry["key"] == key and entry["files"] == self._hashes(map(Path, entry["files"]))

    def record(self, name, key, run, files):
        files = self._hashes(path.relative_to(self._root) for path in files)
        self.entries[name] = {"key": key, "files": files, "seconds": run.seconds, "peak_gib": run.peak_gib}
        write_atomically(self._path, json.dumps(self.entries, indent=1, sort_keys=True).encode())

    def _hashes(self, paths):
        return {
            path.as_posix(): _digest((self._root / path).read_bytes()) if (self._root / path).exists() else None
            for path in paths
        }


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
    with _only_run(project.build):
        manifest = Manifest(project, label)
        keys = {book.name: book.key(overrides[book.name], project.environment) for book in notebooks}
        stale = [book for book in notebooks if not manifest.holds(book.name, keys[book.name])]
        first = project.presets.get("longest_first", [])
        stale.sort(key=lambda book: first.index(book.name) if book.name in first else len(first))
        stale.sort(key=lambda book: -manifest.entries.get(book.name, {}).get("seconds", 0))
        failures = _execute(project, label, preset, stale, overrides, keys, manifest) if stale else {}
        return _conclude(project, label, notebooks, manifest, failures)


def _execute(project, label, preset, stale, overrides, keys, manifest):
    """Run the stale notebooks, as many at a time as cores and memory allow; return error messages by name."""
    from . import execution

    needs = {book.name: project.memory(preset, book.name) for book in stale}
    free = execution.available_gib()
    for name, need in needs.items():
        if need > free:
            raise UserError(f"{name} needs about {need:.1f} GiB of memory at preset {preset}; {free:.1f} GiB are free")
    jobs = min(2, os.cpu_count() or 1)
    if sum(sorted(needs.values())[-jobs:]) > free:
        jobs = 1
    staging_area = project.build / "staging"
    shutil.rmtree(staging_area, ignore_errors=True)  # what a run that was killed left behind
    staging_area.mkdir()
    progress, stop, failures = _Progress(stale), threading.Event(), {}

    def one(book):
        values = overrides[book.name]
        with tempfile.TemporaryDirectory(dir=staging_area) as staging:
            try:
                done = execution.execute(
                    book.path, values, book.parameters | values, staging, lambda count: progress.cell(book, count), stop
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
                    progress.line(f"{book.name}  FAILED")
                else:
                    manifest.record(book.name, keys[book.name], done, result)
                    need = needs[book.name]
                    more = f" (notebooks/presets.toml states {need:g})" if done.peak_gib > need else ""
                    progress.line(f"{book.name}  {done.seconds:.0f} s, {done.peak_gib:.2f} GiB{more}")
    except KeyboardInterrupt:
        for impatient in (signal.SIGINT, signal.SIGTERM):  # ending the kernels takes a second
            signal.signal(impatient, signal.SIG_IGN)
        raise
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)
        progress.clear()
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
    from .report import describe, ledgers

    rows = [describe(row) for book in ledgers(staging) for row in book["rows"] if not row["passed"]]
    return "\n  ".join(["these verdicts fail:", *rows]) if rows else str(error)


def _conclude(project, label, notebooks, manifest, failures):
    """Print cost and verdicts of each notebook; bring the README up to date; return the exit status."""
    from .report import ledgers

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
    print(f"\n{state}; {sum(cost['seconds'] for cost in costs):.0f} s of notebooks, at most {peak:.1f} GiB in one")
    return 1 if failures else 0


def update_tables(project):
    """Bring the README's results table and the full one in `figures/` up to date with the ledgers."""
    from .report import full_table, ledgers, results_table

    existing = {notebook.name for notebook in project.notebooks()}
    books = [book for book in ledgers(project.root / "figures") if book["notebook"] in existing]
    write_if_changed(project.root / "figures" / "README.md", f"# All verdicts\n\n{full_table(books)}\n")
    readme = project.root / "README.md"
    if readme.exists():
        text = readme.read_text(encoding="utf-8")
        table = results_table(books)
        write_if_changed(readme, TABLE.sub(lambda match: f"{match[1]}\n\n{table}\n\n{match[2]}", text))


def write_if_changed(path, text):
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        write_atomically(path, text.encode())


def write_atomically(path, data):
    """Write bytes so that a reader, or an interruption, meets the old file or the new one and nothing between."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_bytes(data)
    temporary.replace(path)


class _Progress:
    """A live line on a terminal; elsewhere one plain line per finished notebook."""

    def __init__(self, notebooks):
        self._cells = {book.name: 0 for book in notebooks}
        self._last = {book.name: len(book.cells) for book in notebooks}
        self._live = sys.stderr.isatty()
        self._left = len(notebooks)

    def cell(self, book, count):
        self._cells[book.name] = count
        if self._live:
            states = ((name[:2], at, self._last[name]) for name, at in self._cells.items())
            busy = [f"{number} {at}/{last}" for number, at, last in states if 0 < at < last]
            text = f"{self._left} to go; cells: {', '.join(busy)}"
            print(f"\r\033[K{text[: shutil.get_terminal_size().columns - 1]}", end="", file=sys.stderr, flush=True)

    def line(self, text):
        self._left -= 1
        self.clear()
        print(text, flush=True)

    def clear(self):
        if self._live:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


@contextmanager
def _only_run(build):
    """Keep a second run of the same clone waiting until this one is done."""
    build.mkdir(parents=True, exist_ok=True)
    with open(build / "lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("waiting for another run in this folder to finish", file=sys.stderr)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _same_type(value, default):
    if isinstance(default, bool) or isinstance(value, bool):
        return isinstance(value, bool) and isinstance(default, bool)
    if isinstance(default, float):
        return isinstance(value, int | float)
    if isinstance(default, list | tuple):
        return isinstance(value, list | tuple) and all(not default or _same_type(item, default[0]) for item in value)
    return isinstance(value, type(default))


def _type_name(default):
    if isinstance(default, list | tuple):
        return f"a list of {type(default[0]).__name__}" if default else "a list"
    return {"int": "a whole number", "float": "a number", "str": "a text"}.get(type(default).__name__, "True or False")


def _setting(text):
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not name=value")
    try:
        return name, ast.literal_eval(value)
    except (SyntaxError, ValueError):
        return name, value


def _aligned(lines):
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    padded = ([cell.ljust(width) for cell, width in zip(line, widths, strict=True)] for line in lines)
    return "\n".join("  ".join(line).rstrip() for line in padded)


def _digest(data):
    return hashlib.sha256(data).hexdigest()


def main(arguments=None, root=ROOT):
    """The command; returns its exit status."""
    parser = argparse.ArgumentParser(prog="python -m onestep.notebooks", description="Execute what changed.")
    parser.add_argument("notebooks", nargs="*", metavar="NB", help="beginnings of names, such as 07; default: all")
    parser.add_argument("--preset", default="default", help="sizes: quick, default or large")
    parser.add_argument("--set", action="append", default=[], type=_setting, metavar="NAME=VALUE", dest="settings")
    parser.add_argument("--tables", action="store_true", help="execute nothing; bring the tables of results up to date")
    options = parser.parse_args(arguments)
    if options.tables:
        update_tables(Project(Path(root)))
        return 0
    try:
        return run(Project(Path(root)), options.notebooks, options.preset, dict(options.settings))
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted; what had finished is kept, and the next run continues from there", file=sys.stderr)
        return 130


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
