"""Run the notebooks: `python -m runner [--preset quick|default|large] [--set name=value] [07 ...]`.

The default preset writes the executed notebooks back to `notebooks/`, their figures and verdicts to `figures/`, and the
results table into the README. Other presets and values given by `--set` go to `build/`, so that they never disturb the
committed set. Only notebooks whose code, parameters, library or lock changed run again; each one that finishes is kept,
whatever happens to the others; one that fails leaves its earlier results as they were.

Parameters are those of the cell tagged `parameters`, one assignment of a literal to a line. A comment beside a number
may end in its range, as in `n = 1000  # samples, ≥ 50, ≤ 20000`; every number of a list must lie in it.
"""

import argparse
import ast
import signal
import sys
from pathlib import Path

from . import tables
from .notebook import UserError
from .project import ROOT, Project
from .schedule import run, run_seeds


def main(arguments=None, root=ROOT):
    """The command; returns its exit status."""
    parser = argparse.ArgumentParser(prog="python -m runner", description="Execute what changed.")
    parser.add_argument("notebooks", nargs="*", metavar="NB", help="beginnings of names, such as 07; default: all")
    parser.add_argument("--preset", default="default", help="sizes: quick, default or large")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        type=_setting,
        metavar="NAME=VALUE",
        dest="settings",
        help="another value for a parameter; results go to build/custom",
    )
    parser.add_argument("--tables", action="store_true", help="execute nothing; bring the tables of results up to date")
    parser.add_argument("--seeds", nargs="+", type=int, metavar="ROOT", help="run under each root; say what failed")
    parser.add_argument("--scheduler", metavar="tcp://…", help="a dask scheduler whose workers compute replicates")
    options = parser.parse_args(arguments)
    if options.seeds and (options.settings or options.scheduler):
        parser.error("--seeds takes no --set and no --scheduler")
    if options.tables and (options.seeds or options.settings or options.scheduler or options.notebooks):
        parser.error("--tables goes alone")
    try:
        if options.tables:
            tables.update(Project(Path(root)))
            return 0
        if options.seeds:
            return run_seeds(Project(Path(root)), options.seeds, options.notebooks, options.preset)
        settings = dict(options.settings)
        return run(Project(Path(root)), options.notebooks, options.preset, settings, options.scheduler)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except OSError as error:  # a full disk, or a folder that may not be written
        print(f"error: {error}; what had finished is kept", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted; what had finished is kept, and the next run continues from there", file=sys.stderr)
        return 130


def _setting(text):
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not name=value")
    try:
        return name, ast.literal_eval(value)
    except (SyntaxError, ValueError):
        return name, value


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
