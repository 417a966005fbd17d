"""Where the time goes: a notebook's cells in this process, its replicates one after the other, under a profiler."""

import contextlib
import cProfile
import io
import os
import pstats
import sys
import tempfile
from concurrent.futures import Executor, Future
from pathlib import Path
from unittest.mock import patch

from onestep import simulate
from runner.notebook import Notebook

HEAD = ["function", "calls", "own time", "share"]


class Inline(Executor):
    """Runs at once, in this thread, which is all that a profiler sees."""

    def __init__(self, jobs=1):
        pass

    def submit(self, function, /, *arguments, **options):
        future = Future()
        future.set_result(function(*arguments, **options))
        return future


def profile(path, settings):
    """`pstats.Stats` of a notebook run with these parameters changed; what it shows and saves is dropped."""
    space, profiler = {"__name__": "__main__"}, cProfile.Profile()
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        stack.enter_context(patch.dict(os.environ, {"ONESTEP_FIGURES": folder, "MPLBACKEND": "agg"}))
        stack.enter_context(patch.object(simulate.replicates, "ThreadPoolExecutor", Inline))
        stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
        for cell in Notebook(path).cells:
            if cell["cell_type"] == "code":
                code = compile("".join(cell["source"]), path.stem, "exec")
                profiler.runctx(code, space, space)
            if "parameters" in cell["metadata"].get("tags", []):
                space.update(settings)
    return pstats.Stats(profiler)


def table(path, settings=(), count=12):
    """(seconds in all, head, body): the functions with most time of their own, products of matrices included."""
    stats = profile(path, dict(settings))
    most = sorted(stats.stats.items(), key=lambda item: -item[1][2])[:count]
    body = [
        [f"`{_name(*place)}`", str(calls), f"{own:.1f} s", f"{100 * own / stats.total_tt:.0f} %"]
        for place, (_, calls, own, *_) in most
    ]
    return stats.total_tt, HEAD, body


def _name(file, _, function):
    """A function with the place of its file: that in the library, or in the packages installed."""
    if file == "~":
        return function.strip("<>")
    roots = sorted((Path(root) for root in sys.path if root), key=lambda root: -len(str(root)))
    inside = next((Path(file).relative_to(root) for root in roots if Path(file).is_relative_to(root)), Path(file).name)
    return f"{inside}: {function}"
