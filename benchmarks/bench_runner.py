"""What the runner adds to the notebooks' own work, and how busy it keeps its two places."""

import json
import tempfile
import threading
from pathlib import Path

import nbformat

from runner import execution
from runner.project import Project

PLACES = 2


def idle(repeats=3):
    """Seconds, at best, that a notebook takes whose one cell does nothing: a kernel that starts and ends."""
    cells = [nbformat.v4.new_code_cell("pass", id="nothing")]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "00_idle.ipynb")
        nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
        runs = [execution.execute(path, {}, {}, folder, lambda: None, threading.Event()) for _ in range(repeats)]
    return min(run.seconds for run in runs)


def together(times, places=PLACES):
    """Seconds until all have run that take these times, the longest first, so many at once."""
    ends = [0.0] * places
    for time in sorted(times, reverse=True):
        ends[ends.index(min(ends))] += time
    return max(ends)


def text(root, repeats=3):
    """A paragraph; what the notebooks took is read from the notes of the last `make figures`."""
    start = idle(repeats)
    said = f"A notebook that does nothing takes {start:.1f} s: its kernel starts and ends."
    path = Project(root).build / "manifest" / "default.json"
    if not path.exists():
        return f"{said} What the others take is not on record here: `make figures` keeps it."
    took = [entry["seconds"] for entry in json.loads(path.read_text(encoding="utf-8")).values()]
    whole = together(took)
    return (
        f"{said} The {len(took)} of the default set took {sum(took):.0f} s at their last run, start of the kernel "
        f"included, the longest {max(took):.0f} s; the starts are {percent(len(took) * start / sum(took))} of that. "
        f"{PLACES} at a time, the longest first, such times end after {whole:.0f} s, with "
        f"{percent(sum(took) / (PLACES * whole))} of the places taken."
    )


def percent(share):
    return f"{100 * share:.0f} %"
