"""Finished replicates kept on disk, so that a long run that is killed loses only those under way.

ONESTEP_KEEP names the folder, and ONESTEP_KEEP_KEY whatever decides the results of the run: a digest of its code, its
parameters and the sources of the library. The same code makes the same calls in the same order, so that a replicate is
known by that key, the number of the call and its own number. A damaged or foreign file is computed anew.
"""

import itertools
import json
import os
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

_calls = itertools.count()


def store():
    """The `Store` for the replicates of this call, or None where nothing is to be kept."""
    folder, key = os.environ.get("ONESTEP_KEEP"), os.environ.get("ONESTEP_KEEP_KEY")
    return Store(Path(folder), f"{key}-{next(_calls)}") if folder and key else None


@dataclass(frozen=True)
class Store:
    """Replicates of one call: files `<key>-<trial>.npz` in folder."""

    folder: Path
    key: str

    def load(self, trial):
        """What `save` was given for this replicate, or None."""
        try:
            with open(self._path(trial), "rb") as raw, np.load(raw, allow_pickle=False) as file:
                if str(file["key"]) != self._path(trial).stem:
                    return None
                return _join(json.loads(str(file["form"])), file)
        except (OSError, ValueError, KeyError, zipfile.BadZipFile, EOFError):
            return None

    def save(self, trial, result):
        """Keep a result of numbers, arrays or tuples and dicts of them. A reader meets the whole file or none."""
        arrays = {}
        form = _split(result, arrays)
        if any(array.dtype.hasobject for array in arrays.values()):
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self._path(trial)
        temporary = path.with_name(f".{path.stem}.{os.getpid()}.tmp")
        try:
            with open(temporary, "wb") as file:
                np.savez(file, key=path.stem, form=json.dumps(form), **arrays)
            temporary.replace(path)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise

    def _path(self, trial):
        return self.folder / f"{self.key}-{trial}.npz"


def _split(value, arrays):
    """The nesting of tuples and dicts in value, with the names under which its arrays are put."""
    if isinstance(value, dict):
        return {name: _split(item, arrays) for name, item in value.items()}
    if isinstance(value, tuple | list):
        return [_split(item, arrays) for item in value]
    arrays[name := f"a{len(arrays)}"] = np.asarray(value)
    return name


def _join(form, file):
    if isinstance(form, dict):
        return {name: _join(item, file) for name, item in form.items()}
    return tuple(_join(item, file) for item in form) if isinstance(form, list) else file[form]
