"""One notebook through papermill, in a process of its own: `run.py` starts one for each notebook that is not current.

It prints a point after each cell and, last, what came of it. A notebook that fails leaves its earlier results as they
were, and so does one of the committed set whose verdicts fail.
"""

import ast
import hashlib
import json
import os
import signal
import sys
import tempfile
import time
import tomllib
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from zipfile import BadZipFile

ROOT = Path(__file__).resolve().parents[1]
MOST = 6  # differences that are named


class UserError(Exception):
    """Something asked for that cannot be done; the message says what and why."""


def plan(label, name, *settings):
    """A notebook's run: label, name, values (other than its own), in_force (all), cells (of code), cost, made and key.

    label : "default" for the committed set; quick, large, seeds/101 and custom for results in build/<label>.
    settings : name=value, for custom.   made : digest of code and values, which an executed notebook keeps.
    key : digest of all that decides the results.   cost : about how many seconds it takes by default.
    book, figures : where the executed notebook and its figures go.   record : the file of what `done` tells.
    """
    path, own, values = ROOT / f"notebooks/{name}.ipynb", {}, dict(presets().get(label, {}).get(name, {}))
    try:
        cells = load(path)["cells"]
        code = [["".join(c["source"]), c["metadata"].get("tags", [])] for c in cells if c["cell_type"] == "code"]
        for line in (line for text, tags in code if "parameters" in tags for line in ast.parse(text).body):
            own[(line.target if isinstance(line, ast.AnnAssign) else line.targets[0]).id] = ast.literal_eval(line.value)
    except (ValueError, KeyError, TypeError, AttributeError, SyntaxError) as error:
        raise UserError(f"{path} is no notebook, or a parameter is no number, text or list: {error!r}") from error
    values |= dict(setting(text, own) for text in settings)
    values |= {"seed": int(label.partition("/")[2])} if label.startswith("seeds/") else {}
    if unknown := values.keys() - own:
        raise UserError(f"{name} has no parameter {', '.join(unknown)}; it has {', '.join(own) or 'none'}")
    made = digest(json.dumps([code, values]).encode())
    base = ROOT if label == "default" else ROOT / "build" / label
    return SimpleNamespace(
        label=label,
        name=name,
        values=values,
        in_force=own | values,
        cells=len(code),
        cost=presets().get("seconds", {}).get(name, 20),
        made=made,
        key=digest(made.encode(), library().encode()),
        book=base / f"notebooks/{name}.ipynb",
        figures=base / "figures",
        record=ROOT / f"build/{label}/{name}.done",
    )


def setting(text, own):
    """(name, value) of name=value: a number or list as Python writes it, or a text, whose quotes a shell may take."""
    name, equals, value = text.partition("=")
    try:
        found = ast.literal_eval(value)
        json.dumps(found)
    except (ValueError, SyntaxError, TypeError):
        found = value
    if not equals or isinstance(found, tuple) or (isinstance(found, str) and not isinstance(own.get(name, ""), str)):
        raise UserError(f"{text}: must be name=value without spaces, a number or a list where the notebook has one")
    return name, found


@cache
def presets():
    return load(ROOT / "notebooks/presets.toml", tomllib.loads)


def library():
    """Digest of the library, the lock and the interpreter."""
    files = [*sorted((ROOT / "lib").rglob("*.py")), ROOT / "requirements.txt"]
    return digest(sys.version.encode(), *(path.read_bytes() for path in files))


def digest(*parts):
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def results(task):
    """Digest of a notebook's results as they lie in their places."""
    files = [*sorted(task.figures.glob(f"{task.name[:3]}*")), task.book]
    return digest(*(path.name.encode() + path.read_bytes() for path in files if path.exists()))


def done(task):
    """Key, results, seconds and differences of the task's run if what it made is still there, else {}."""
    try:
        known = json.loads(task.record.read_text())
    except (OSError, ValueError):
        return {}
    return known if (known["key"], known["results"]) == (task.key, results(task)) else {}


def main(task):
    """Execute a notebook and put its results into place; returns what it cost and where they differ from those before.

    Raises UserError, with the earlier results as they were, where the run failed.
    """
    began, path, committed = time.monotonic(), ROOT / f"notebooks/{task.name}.ipynb", task.label == "default"
    before = library(), committed and path.read_bytes()
    task.record.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=task.record.parent, prefix=".") as staging:
        book, ledger = execute(path, task, Path(staging)), Path(staging, f"{task.name}.json")
        if not ledger.exists():
            raise UserError("it wrote no ledger: a notebook ends with Verdicts.conclude()")
        strange = sorted(path.name for path in ledger.parent.glob("*.*") if not path.name.startswith(task.name[:3]))
        if strange:
            raise UserError(f"it saved {', '.join(strange)}: the names of its figures begin with {task.name[:3]}")
        if before != (library(), committed and path.read_bytes()):
            raise UserError("it or the library was changed while it ran: run it again")
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # results are put into place as a whole
        found = install(task, book, Path(staging))
    seconds = time.monotonic() - began
    known = {"key": task.key, "results": results(task), "seconds": seconds, "differences": found}
    write({task.record: json.dumps(known)})
    said = f"{seconds:.0f} s" + ", as before" * (committed and not found)
    more = [f"and {len(found) - MOST} more"] * (len(found) > MOST)
    first = f"{said}, differs from the results that were there, and is written anew:"
    return "\n  ".join([first, *found[:MOST], *more]) if found else said


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
        "ONESTEP_PRESET": task.label,  # all but the default keep runs whose verdicts fail
        "ONESTEP_PARAMETERS": json.dumps(task.in_force),
    }
    if task.label == "large":  # hours of replicates: a run that is killed goes on where it was
        os.environ |= {"ONESTEP_KEEP": str(ROOT / "build/replicates"), "ONESTEP_KEEP_KEY": task.key}
    options = {"kernel_name": "python3", "language": "python", "cwd": path.parent, "progress_bar": False}
    options |= {"shutdown_kernel": "immediate", "coalesce_streams": True}  # where a stream is cut depends on timing
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
        for output in cell.get("outputs", []):
            if "metadata" in output:
                output.metadata = {}
    return json.loads(nbformat.writes(nbformat.from_dict(book)))


def install(task, book, staging):
    """Put a run's results into place; returns where those of the committed set differ from what was there, in words.

    If they agree, up to the last digits of another processor, and the code is the same, the old bytes stay.
    """
    there = {path.name: path for path in task.figures.glob(f"{task.name[:3]}*")}
    fresh = {path.name: path for path in staging.glob(f"{task.name[:3]}*")}
    found = []
    if task.label == "default":
        code, earlier = [cell for cell in book["cells"] if cell["cell_type"] == "code"], load(task.book)
        old = {cell["id"]: cell for cell in earlier["cells"]}
        found = differences(code, old, fresh, there)
        if not found and earlier["metadata"].get("made") == task.made:
            fresh = there
            for cell in code:
                cell["outputs"] = old[cell["id"]]["outputs"]
    text = json.dumps(book, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    write({task.figures / name: path.read_bytes() for name, path in fresh.items()} | {task.book: text})
    for gone in there.keys() - fresh.keys():
        there[gone].unlink()
    return found


def differences(code, old, fresh, there):
    """Where the results of a run differ from those that were there, in words. Verdicts are shown in a cell."""
    from same import arrays_differ, first_difference

    found = [] if there else ["nothing was there before"]
    for cell in code:
        if pair := first_difference(shown(cell), shown(old.get(cell["id"], {}))):
            found.append(f"cell {cell['id']}: {pair[0]} where {pair[1]} was found before")
    found += [f"{name}: {'new' if name in fresh else 'gone'}" for name in sorted(fresh.keys() ^ there.keys())]
    for name in sorted(fresh.keys() & there.keys()):
        try:
            if name.endswith(".npz"):
                found += [f"{name}: {array} differs" for array in arrays_differ(fresh[name], there[name])]
            if name.endswith(".json"):
                load(there[name])
        except (UserError, OSError, ValueError, EOFError, BadZipFile):
            found.append(f"{name}: was damaged")
    return found


def shown(cell):
    """The text of a cell's outputs; of a picture, that there is one."""
    data = [output.get("data", {}) | {"text": output.get("text", "")} for output in cell.get("outputs", [])]
    parts = [part for each in data for part in sorted(each.items())]
    return "\n".join(kind if kind.startswith("image") else "".join(text) for kind, text in parts)


def load(path, parse=json.loads):
    """What a file of the project holds; UserError names it where it is missing or damaged."""
    try:
        return parse(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{path} is missing or damaged; git has the committed one: {error}") from error


def write(files):
    """Write {path: text or bytes}, all or, on a full disk, none; a reader meets the old files or the new ones."""
    fresh = {path: data.encode() if isinstance(data, str) else data for path, data in files.items()}
    fresh = {path: data for path, data in fresh.items() if not path.exists() or path.read_bytes() != data}
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


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # by which run.py ends it
    try:
        print(main(plan(*sys.argv[1:])), flush=True)
    except (UserError, KeyboardInterrupt, OSError) as error:  # such as a full disk
        print(f"{str(error) or 'interrupted'}; its earlier results stand", flush=True)
        sys.exit(1)
