"""Run the notebooks that are not current: `python tools/run.py [NB ...] [--preset quick|default|large]`.

The default preset writes executed notebooks back to notebooks/, figures and verdicts to figures/, and the tables of
README and docs/. `quick` and `large` take other sizes from notebooks/presets.toml, `--set n=400` any values, `--seeds
101 102` other root seeds; their results go to build/. What has finished is kept, whatever happens to the others.
"""

import argparse
import fcntl
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from run_notebook import ROOT, UserError, done, plan, write


def main():
    """The command; returns its exit status."""
    parser = argparse.ArgumentParser(prog="run.py", description=__doc__.partition("\n\n")[0], allow_abbrev=False)
    parser.add_argument("notebooks", nargs="*", metavar="NB", help="beginnings of names, such as 13; default: all")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="notebooks at a time (default: one a core)")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--preset", default="default", choices=("quick", "default", "large"))
    which.add_argument("--set", nargs="+", default=[], metavar="NAME=VALUE", help="other values of parameters")
    which.add_argument("--seeds", nargs="+", type=int, default=[], metavar="ROOT", help="run under each root")
    options = parser.parse_args()
    if options.jobs < 1:
        parser.error("--jobs takes a whole number >= 1")
    if min(options.seeds, default=0) < 0:
        parser.error("--seeds takes whole numbers >= 0")
    try:
        (ROOT / "build").mkdir(exist_ok=True)
        with open(ROOT / "build/lock", "w") as lock:  # which the processes started here inherit
            os.set_inheritable(lock.fileno(), True)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                print("waiting for another run in this folder to finish", flush=True)
                fcntl.flock(lock, fcntl.LOCK_EX)
            return run(options)
    except KeyboardInterrupt:
        print("interrupted; what had finished is kept, and the next run continues from there", file=sys.stderr)
        return 130
    except UserError as error:
        message = str(error)
    except ModuleNotFoundError as error:
        message = f"{error} in {sys.executable}, which needs what requirements.txt lists"
    except OSError as error:  # a full disk, or a folder that is read-only
        message = f"{error}; what had finished is kept"
    print(f"error: {message}", file=sys.stderr)
    return 2


def run(options):
    """Run what is asked for and say what came of it; returns the exit status."""
    every = sorted(path.stem for path in (ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))
    wanted = [Path(start).name.removesuffix(".ipynb") for start in options.notebooks]
    for start in wanted:
        if not any(name.startswith(start) for name in every):
            raise UserError(f"no notebook's name begins with {start!r}; there are {', '.join(every)}")
    if len({name[:2] for name in every}) < len(every):
        raise UserError(f"two notebooks have one number, by which their figures are known: {', '.join(every)}")
    names = [name for name in every if name.startswith(tuple(wanted or [""]))]
    options.seeds = list(dict.fromkeys(options.seeds))  # two runs under one root would write the same files
    labels = [f"seeds/{seed}" for seed in options.seeds] or ["custom" if options.set else options.preset]
    tasks = [plan(label, name, *options.set) for label in labels for name in names]
    stale = [task for task in tasks if not done(task)]
    said = execute(stale, options) if stale else {}

    import records
    import tables

    if not stale and labels == ["default"]:
        write(tables.pages())  # which an interrupted run leaves as they were
        print("nothing had to run: the results are those of the last run")  # a committed set holds no failing verdict
        return 0
    found = [(task, *tables.outcome(task, said.get(task.key))) for task in tasks]
    status = records.seeds(found, options.seeds) if options.seeds else tables.conclude(found)
    if labels == ["large"]:
        records.keep_large(found)
    if options.seeds or labels in (["large"], ["default"]):
        write(tables.pages())
    if labels == ["default"]:
        same = sum(done(task).get("differences") == [] for task in stale)
        some = f"{same} of the {len(stale)} notebooks that ran reproduce the committed figures"
        print(some if same < len(stale) else f"reproduces the committed figures: all {same} that ran")
    return status


def execute(tasks, options):
    """Run tasks, the longest first and so many at a time; {key: what `run_notebook` says of it}."""
    from tqdm import tqdm

    tasks = sorted(tasks, key=lambda task: -task.cost)
    total = sum(task.cost for task in tasks)
    line = "{percentage:3.0f} %|{bar}| {elapsed}, about {remaining} left"
    processes = []
    # threads that compete for the interpreter cost up to a fifth of the time: two only where cores are free
    two = 2 * min(options.jobs, len(tasks)) <= (os.cpu_count() or 1)
    os.environ.setdefault("ONESTEP_JOBS", "2" if two else "1")
    with tqdm(total=total, bar_format=line, smoothing=0, leave=False, disable=None) as bar:
        bar.write(f"{len(tasks)} to run: {', '.join(dict.fromkeys(task.name[:2] for task in tasks))}")
        with ThreadPoolExecutor(options.jobs) as pool:
            try:
                said = pool.map(partial(one, bar, processes, options), tasks)
                return {task.key: each for task, each in zip(tasks, said, strict=True)}
            except KeyboardInterrupt:
                for number in (signal.SIGINT, signal.SIGTERM):  # once is enough: ending the kernels takes a second
                    signal.signal(number, lambda *_: None)
                pool.shutdown(wait=False, cancel_futures=True)
                for process in processes:
                    process.terminate()
                raise


def one(bar, processes, options, task):
    """Run one task in a process of its own; returns what that says of it."""
    where = f"{task.name}, root {task.in_force['seed']}" if options.seeds else task.name
    bar.write(f"{where}: starts")
    command = [sys.executable, ROOT / "tools/run_notebook.py", task.label, task.name, *options.set]
    said = ""
    # in a process group of its own, so that an interruption reaches it once, from here
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, close_fds=False, process_group=0) as process:
        processes.append(process)
        for line in process.stdout:
            if line == ".\n":
                bar.update(task.cost / task.cells)
            else:
                said += line
    said = said.rstrip() or "its process ended early, perhaps as the memory ran out"
    bar.write(f"{where}: {'FAILED, ' * bool(process.returncode)}{said}")
    return said


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    sys.exit(main())
