"""One notebook through papermill, in a process of its own: `run.py` starts one for each notebook that is not current.

It prints a point after each cell and, last, a line of JSON: what is wrong, or where results differ from those that were
there and what the run cost. A notebook that fails leaves its earlier results as they were, and so does one of the
committed set whose verdicts fail.
"""

import ast
import hashlib
import json
import os
import re
import resource
import signal
import sys
import tempfile
import time
import tomllib
from functools import cache
from pathlib import Path
from types import SimpleNamespace

ROOT = Path(__file__).resolve().parents[1]
_BARE = re.compile(r"(\w+)=((?!(?:true|false|inf|nan)$)[A-Za-z_]+)$")


class UserError(Exception):
    """Something asked for that cannot be done; the message says what and why."""


def plan(label, name, *settings):
    """The run of a notebook: label, name, values (other than its own), in_force (all), cells (of code), made and key.

    label : "default" for the committed set; quick, large, seeds/101 and custom for results in build/<label>.
    settings : name=value in the notation of TOML, for custom.   made : digest of code and values, which an executed
        notebook keeps.   key : digest of all that decides the results.
    """
    path, own, preset = ROOT / f"notebooks/{name}.ipynb", {}, presets().get(label, {}).get(name, {})
    settings = [_BARE.sub(r'\1="\2"', setting) for setting in settings]  # a shell takes the quotes of a text
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        code = [["".join(c["source"]), c["metadata"].get("tags", [])] for c in cells if c["cell_type"] == "code"]
        for line in (line for text, tags in code if "parameters" in tags for line in ast.parse(text).body):
            own[(line.target if isinstance(line, ast.AnnAssign) else line.targets[0]).id] = ast.literal_eval(line.value)
        values = preset | tomllib.loads("\n".join(settings))
        json.dumps([own, values])
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{' '.join(settings)}: must be name=value, a text in quotes: {error}") from error
    except (ValueError, KeyError, TypeError, AttributeError, SyntaxError) as error:
        what = f"{path} is no notebook, or a parameter is no number, text or list"
        raise UserError(f"{what}: {error!r}") from error
    values |= {"seed": int(label.partition("/")[2])} if label.startswith("seeds/") else {}
    if unknown := values.keys() - own:
        raise UserError(f"{name} has no parameter {', '.join(unknown)}; it has {', '.join(own) or 'none'}")
    made = digest(json.dumps([code, values]).encode())
    facts = {"values": values, "in_force": own | values, "cells": len(code), "made": made}
    return SimpleNamespace(label=label, name=name, key=digest(made.encode(), library().encode()), **facts)


@cache
def presets():
    return load(ROOT / "notebooks/presets.toml", tomllib.loads)


@cache
def library():
    """Digest of the library, the lock and the interpreter."""
    files = [*sorted((ROOT / "lib").rglob("*.py")), ROOT / "requirements.txt"]
    return digest(sys.version.encode(), *(path.read_bytes() for path in files))


def digest(*parts):
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def outputs(label):
    """Folders for executed notebooks and for figures."""
    base = ROOT if label == "default" else ROOT / "build" / label
    return base / "notebooks", base / "figures"


def results(label, name):
    """Digest of a notebook's results as they lie in their places."""
    notebooks, figures = outputs(label)
    files = [*sorted(figures.glob(f"{name[:3]}*")), notebooks / f"{name}.ipynb"]
    return digest(*(path.name.encode() + path.read_bytes() for path in files if path.exists()))


def done(task):
    """What is known of the task's run (key, results, CPU seconds, seconds) if what it made is still there, else {}."""
    path = ROOT / f"build/{task.label}/{task.name}.done"
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    if not isinstance(found, dict) or found.get("key") != task.key:
        return {}
    return found if found.get("results") == results(task.label, task.name) else {}


def main(task):
    """Execute a notebook and put its results into place; where they differ from what was there, and what it cost.

    Raises UserError, with the earlier results as they were, where the run failed.
    """
    began, path = time.monotonic(), ROOT / f"notebooks/{task.name}.ipynb"
    before, stamp = path.read_bytes(), ROOT / f"build/{task.label}/{task.name}.done"
    stamp.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=stamp.parent, prefix=".") as staging:
        book, written = execute(path, task, Path(staging)), Path(staging, f"{task.name}.json")
        if not written.exists():
            raise UserError("it wrote no ledger: a notebook ends with Verdicts.conclude()")
        saved = sorted(path.name for path in written.parent.iterdir() if path.is_file())
        strange = [name for name in saved if not name.startswith(task.name[:3])]
        if strange:
            raise UserError(f"it saved {', '.join(strange)}: the names of its figures begin with {task.name[:3]}")
        rows = [row for row in json.loads(written.read_text(encoding="utf-8"))["rows"] if not row["passed"]]
        if rows and task.label == "default":  # the committed set holds no failing verdict; elsewhere the run is kept
            failing = [f"{row['quantity']}: claimed {row['claimed']}, measured {row['measured']}" for row in rows]
            raise UserError("\n  ".join(["these verdicts fail:", *failing]))
        if path.read_bytes() != before and task.label == "default":
            raise UserError("it was changed while it ran: run it again")
        deaf()  # results are put into place as a whole
        differences = install(task, book, Path(staging))
    used, seconds = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic() - began
    known = {"key": task.key, "results": results(task.label, task.name), "seconds": seconds}
    write({stamp: json.dumps(known | {"cpu": used.ru_utime + used.ru_stime}).encode()})
    return {"differences": differences, "cost": f"{seconds:.0f} s, {used.ru_utime + used.ru_stime:.0f} CPU s"}


def execute(path, task, staging):
    """The executed notebook without what differs between equal runs; UserError says what went wrong."""
    import logging

    from nbclient.exceptions import DeadKernelError
    from papermill import PapermillExecutionError, execute_notebook
    from traitlets.config import Config

    logging.getLogger("papermill").setLevel(logging.ERROR)  # a comment that holds an "=" confuses its reader
    os.environ |= {
        "IPYTHONDIR": str(staging / "ipython"),  # nobody's own start-up files
        "JUPYTER_PREFER_ENV_PATH": "1",  # this interpreter's kernel
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "ONESTEP_FIGURES": str(staging),
        "ONESTEP_LEDGER_ONLY": "1",
        "ONESTEP_PRESET": task.label,
        "ONESTEP_PARAMETERS": json.dumps(task.in_force),
    }
    if task.label == "large":  # hours of replicates: a run that is killed goes on where it was
        os.environ |= {"ONESTEP_KEEP": str(ROOT / "build/replicates"), "ONESTEP_KEEP_KEY": task.key}
    options = {
        "kernel_name": "python3",
        "language": "python",
        "progress_bar": False,
        "cwd": path.parent,
        "shutdown_kernel": "immediate",
    }
    options["coalesce_streams"] = True  # where a stream is cut depends on timing
    options["on_cell_executed"] = lambda **_: print(".", flush=True)
    with tempfile.TemporaryDirectory(prefix="onestep-", dir="/tmp") as sockets:  # over TCP kernels can race for a port
        ipc = {"transport": "ipc", "ip": f"{sockets}/k", "connection_file": f"{sockets}/k.json"}
        try:
            book = execute_notebook(path, None, task.values, config=Config({"KernelManager": ipc}), **options)
        except PapermillExecutionError as error:
            where = f"cell {error.exec_count}, which begins {error.source.strip().splitlines()[0]!r}"
            raise UserError(f"{where}, raised {error.ename}: {error.evalue}") from error
        except (DeadKernelError, RuntimeError) as error:
            raise UserError(f"its kernel was ended from outside, perhaps as the memory ran out: {error}") from error
    return scrubbed(book, task.made)


def scrubbed(book, made):
    """An executed notebook without timings, versions, paths and chance ids."""
    import nbformat

    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    book.metadata = {"kernelspec": kernel, "language_info": {"name": "python"}, "made": made}
    for cell in book.cells:
        tags = cell.metadata.get("tags", [])
        cell.metadata = {"tags": tags} if tags else {}
        cell.id = "injected-parameters" if "injected-parameters" in tags else cell.id
        for output in cell.get("outputs", []):
            if "metadata" in output:
                output.metadata = {}
    return json.loads(nbformat.writes(nbformat.from_dict(book)))


def install(task, book, staging):
    """Put a run's results into place; returns where those of the committed set differ from what was there, in words.

    If they agree, up to the last digits of another processor, and the code is the same, the old bytes stay.
    """
    notebooks, figures = outputs(task.label)
    target = notebooks / f"{task.name}.ipynb"
    committed = {path.name: path for path in figures.glob(f"{task.name[:3]}*")}
    fresh = {path.name: path for path in staging.iterdir() if path.is_file()}
    found = []
    if task.label == "default":
        code = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
        there = json.loads(target.read_text(encoding="utf-8"))
        old = {cell["id"]: cell for cell in there["cells"]}
        found = differences(code, old, fresh, committed)
        if not found and there["metadata"].get("made") == task.made:
            fresh = committed
            for cell in code:
                cell["outputs"] = old[cell["id"]]["outputs"]
    text = json.dumps(book, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    write({figures / name: path.read_bytes() for name, path in fresh.items()} | {target: text.encode()})
    for gone in committed.keys() - fresh.keys():
        committed[gone].unlink()
    return found


def differences(code, old, fresh, committed):
    """Where the results of a run differ from those that were there, in words. Verdicts are shown in a cell."""
    from same import arrays_differ, first_difference

    found = []
    for cell in code:
        if pair := first_difference(shown(cell), shown(old.get(cell["id"], {}))):
            found.append(f"cell {cell['id']}: {pair[0]} where {pair[1]} was found before")
    for name in sorted(fresh.keys() | committed.keys()):
        if name not in committed or name not in fresh:
            found.append(f"{name}: {'new' if name in fresh else 'gone'}")
        elif name.endswith(".npz"):
            found += [f"{name}: {array} differs" for array in arrays_differ(fresh[name], committed[name])]
        elif name.endswith(".json") and marks(fresh[name]) != marks(committed[name]):
            found.append(f"{name}: rows are marked otherwise")
    return found


def load(path, parse=json.loads):
    """What a file of the project holds; UserError names it where it is missing or damaged."""
    try:
        return parse(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{path} is missing or damaged; git has the committed one: {error}") from error


def marks(path):
    """What a ledger says that no cell shows: its claim, and which rows are headlines and the front; None if damaged."""
    try:
        book = json.loads(path.read_text(encoding="utf-8"))
        return book.get("claim"), [(row["quantity"], row.get("headline"), row.get("front")) for row in book["rows"]]
    except (ValueError, AttributeError, KeyError, TypeError):
        return None


def shown(cell):
    """The text of a cell's outputs; of a picture, that there is one."""
    data = [output.get("data", {}) | {"text": output.get("text", "")} for output in cell.get("outputs", [])]
    parts = [part for each in data for part in sorted(each.items())]
    return "\n".join(kind if kind.startswith("image") else "".join(text) for kind, text in parts)


def write(files):
    """Write {path: bytes}, all of them or, on a full disk, none; a reader meets the old files or the new ones."""
    fresh = {path: data for path, data in files.items() if not path.exists() or path.read_bytes() != data}
    temporary = {path: path.with_name(f".{path.name}.tmp") for path in fresh}
    try:
        for path, data in fresh.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary[path].write_bytes(data)
        for path in fresh:
            temporary[path].replace(path)
    finally:
        for left in temporary.values():
            left.unlink(missing_ok=True)


def interrupt(*_):
    """Raise KeyboardInterrupt once: ending the kernel takes a second."""
    deaf()
    raise KeyboardInterrupt


def deaf():
    """Let later signals pass; SIG_IGN would make Python complain of one that has come already."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, interrupt)
    signal.signal(signal.SIGTERM, interrupt)
    try:
        outcome = main(plan(*sys.argv[1:]))
    except UserError as error:
        outcome = {"message": str(error)}
    except (KeyboardInterrupt, OSError) as error:  # such as a full disk
        outcome = {"message": f"{str(error) or 'interrupted'}; its earlier results stand"}
    print(json.dumps(outcome), flush=True)
