"""Kill runs at random: `python tools/faults [times] [root]`, a quarter of an hour for the usual 50 on two idle cores.

In a temporary copy one small notebook runs as the default set does, but for its sizes. In turn the runner, its kernel
or one of two workers of a dask cluster is killed, with no warning, at a time drawn uniformly from the length of an
undisturbed run. A runner that lives on must end with the bytes of that run, or exit 1 and say why without a traceback;
every file it leaves must be the old one or the new one, and no kernel may stay. The run after it must end with the same
bytes. Prints one line for each, and exits 1 if any is otherwise.
"""

import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOK = "00_start_here"
SIZES = "trials = 80\nshare_trials = 4\nalphas = [0.4]\n"
VICTIMS = ("runner", "kernel", "worker")
PATIENCE = 1200  # seconds for what takes a few
EXCLUDED = ("build", "lib")
CLUSTER = ("--host", "127.0.0.1", "--port", "0", "--no-dashboard")


def main(times=50, root=0):
    """Kill so many runs, at times of which `root` is the seed; 1 if any ended badly, else 0."""
    rng = random.Random(root)
    outcomes = Counter()
    with tempfile.TemporaryDirectory(prefix="faults-") as folder, Cluster(Path(folder)) as cluster:
        copy = Copy(Path(folder, "copy"))
        started = time.monotonic()
        code, error = finish(copy.start())
        if code:
            raise RuntimeError(f"the undisturbed run fails: {error}")
        length, whole = time.monotonic() - started, copy.snapshot()
        for number in range(times):
            victim, delay = VICTIMS[number % len(VICTIMS)], rng.uniform(0.0, length)
            found = one(copy, whole, cluster, victim, delay)
            outcomes[victim, found] += 1
            print(f"{number + 1:3d}  {victim} killed after {delay:4.1f} s: {found}", flush=True)
    for (victim, found), count in sorted(outcomes.items()):
        print(f"{count:3d} × {victim}: {found}")
    return int(any(found.startswith("BAD") for _, found in outcomes))


def one(copy, whole, cluster, victim, delay):
    """What became of one run whose victim is killed, in words; BAD with the reason if that must not be."""
    old = copy.restore()
    cluster.complete()
    process = copy.start("--scheduler", cluster.address)
    time.sleep(delay)
    family = relatives(process)
    kernels = [each for each in family if is_kernel(each)]
    targets = {"runner": [process], "kernel": kernels, "worker": cluster.workers}[victim][:1]
    targets = [target for target in targets if process.poll() is None]
    for target in targets:
        target.kill()
    code, error = finish(process)
    left = copy.snapshot()
    torn = [name for name, data in left.items() if data not in (old.get(name), whole.get(name)) and not spare(name)]
    if torn:
        return f"BAD: {torn} is neither old nor new"
    if code == 0 and left != whole:
        return "BAD: it ends well with other bytes"
    if code > 0 and ("Traceback" in error or not re.search("error: |kernel was ended", error)):
        return f"BAD: exit {code} without a clear error: {error[-2000:]}"
    _, alive = psutil.wait_procs(family, timeout=PATIENCE)
    if alive:
        return f"BAD: {alive} stays"
    if (again := finish(copy.start())) != (0, "") or copy.snapshot() != whole:
        return f"BAD: the next run ends otherwise: {again}"
    if not targets:
        return f"there was no {victim} to kill"
    said = {0: "the same bytes", 1: "a clear error, then the same bytes", 2: "a clear error, then the same bytes"}
    return said.get(code, "the next run ends with the same bytes")


class Copy:
    """A copy of the project with one small notebook."""

    def __init__(self, path):
        self.path = path
        kept = (Path("lib"), Path("README.md"), Path("requirements.txt"), Path("notebooks", f"{NOTEBOOK}.ipynb"))
        for name in kept:
            target = path / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(ROOT / name, target)
        (path / "notebooks" / "presets.toml").write_text(f"[default.{NOTEBOOK}]\n{SIZES}")
        code, error = finish(self.start("--tables"))  # of no results yet, as a run that fails leaves them
        if code:
            raise RuntimeError(f"the tables cannot be written: {error}")
        self._start = self.snapshot()

    def start(self, *arguments):
        """The runner, started."""
        environment = {**os.environ, "PYTHONPATH": str(self.path / "lib"), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-m", "runner", *arguments]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, cwd=self.path, env=environment, stdout=pipe, stderr=pipe, text=True)

    def snapshot(self):
        """The bytes of every file that a run may write, by name, but for its own notes in `build`."""
        files = {path.relative_to(self.path): path for path in self.path.rglob("*") if path.is_file()}
        return {name.as_posix(): path.read_bytes() for name, path in files.items() if name.parts[0] not in EXCLUDED}

    def restore(self):
        """As it was before anything ran; returns that snapshot."""
        shutil.rmtree(self.path / "build", ignore_errors=True)
        for name in self.snapshot():
            if name not in self._start:
                (self.path / name).unlink()
        for name, data in self._start.items():
            (self.path / name).write_bytes(data)
        return self._start


class Cluster:
    """A dask scheduler and two workers on the loopback."""

    def __init__(self, folder):
        self._folder, self._started, self.workers = folder, 0, []

    def __enter__(self):
        self._scheduler = self._start("distributed.cli.dask_scheduler", *CLUSTER)
        log, deadline = self._folder / "log1", time.monotonic() + PATIENCE
        while not (found := re.search(r"tcp://127\.0\.0\.1:\d+", log.read_text())):
            if time.monotonic() > deadline:
                raise RuntimeError(log.read_text())
            time.sleep(0.1)
        self.address = found[0]
        return self

    def __exit__(self, *_):
        for process in (*self.workers, self._scheduler):
            process.kill()

    def complete(self):
        """Start workers until there are two."""
        self.workers = [worker for worker in self.workers if worker.poll() is None]
        options = ("--nthreads", "1", "--no-dashboard", "--no-nanny", "--local-directory", str(self._folder))
        while len(self.workers) < 2:
            self.workers.append(self._start("distributed.cli.dask_worker", self.address, *options))

    def _start(self, *arguments):
        self._started += 1
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "lib")}
        with open(self._folder / f"log{self._started}", "w") as log:
            return subprocess.Popen([sys.executable, "-m", *arguments], stdout=log, stderr=log, env=environment)


def finish(process):
    """(exit status, standard error) of a run."""
    try:
        error = process.communicate(timeout=PATIENCE)[1]
    except subprocess.TimeoutExpired:
        process.terminate()  # the runner ends its kernels
        raise
    return process.returncode, error


def relatives(process):
    try:
        return psutil.Process(process.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def is_kernel(process):
    try:
        return "ipykernel_launcher" in process.cmdline()
    except psutil.NoSuchProcess:
        return False


def spare(name):
    """Whether a file is the unfinished one beside the file proper, which the next run writes anew."""
    return name.endswith(".tmp")


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
