"""The folder that a run works in: its notebooks, presets and outputs, and what is known of earlier runs."""

import fcntl
import json
import sys
import tomllib
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from .files import write_atomically
from .notebook import Notebook, UserError, digest

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "lib"


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
        """Digest of the library, the lock and the interpreter: results made under others are stale."""
        sources = {path.relative_to(LIBRARY).as_posix(): path.read_bytes() for path in sorted(LIBRARY.rglob("*.py"))}
        lock = self.root / "requirements.txt"
        parts = [f"{name}\0".encode() + source for name, source in sources.items()]
        parts.append(lock.read_bytes() if lock.exists() else b"")
        return digest(b"\0".join([*parts, sys.version.encode()]))

    def notebooks(self, wanted=()):
        """The notebooks whose names begin with one of `wanted`; all if it is empty."""
        every = [Notebook(path) for path in sorted((self.root / "notebooks").glob("[0-9][0-9]_*.ipynb"))]
        if not every:
            raise UserError(f"no notebooks in {self.root / 'notebooks'}: run this from a clone of the repository")
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

    def writable(self, label):
        """Raise UserError, before anything runs, if results cannot be put where they belong."""
        from onestep import checks

        for folder in self.outputs(label):
            try:
                checks.folder("results", folder)
            except ValueError as error:
                raise UserError(str(error)) from error

    def values(self, preset, name):
        """Parameters other than a notebook's own that a preset states, by name."""
        return self.presets.get(preset, {}).get(name, {})

    def seconds(self, preset, name):
        """CPU seconds that `notebooks/presets.toml` allows a notebook; 0 where it states none."""
        minutes = self.presets.get("minutes", {}).get(preset, {}).get(name, 0)
        return self.presets.get("seconds", {}).get(preset, {}).get(name, 60 * minutes)

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
        cost = {"seconds": run.seconds, "cpu": run.cpu, "peak_gib": run.peak_gib}
        self.entries[name] = {"key": key, "files": files} | cost
        write_atomically(self._path, json.dumps(self.entries, indent=1, sort_keys=True).encode())

    def _hashes(self, paths):
        return {
            path.as_posix(): digest((self._root / path).read_bytes()) if (self._root / path).exists() else None
            for path in paths
        }


@contextmanager
def only_run(build):
    """Keep a second run of the same clone waiting until this one is done."""
    build.mkdir(parents=True, exist_ok=True)
    with open(build / "lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("waiting for another run in this folder to finish", file=sys.stderr)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
