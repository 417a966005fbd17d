"""Replicates kept on disk, so that a long run that is killed loses only those under way.

A file holds one replicate under a key of everything that made it: the function and its arguments, the seed, the number
of the replicate and the source of the simulation; of a function written in a notebook its text, all it refers to and
the source of the whole library. A changed formula therefore never meets old results; a damaged or foreign file is
computed anew. Kept where $ONESTEP_KEEP names a folder.
"""

from __future__ import annotations

import dataclasses
import dis
import hashlib
import inspect
import json
import os
import zipfile
from functools import cache, partial
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

import numpy as np

_LIBRARY = f"{__name__.partition('.')[0]}."  # other modules' source is not in the key: nothing of theirs may be named
_GROUND = ("checks.py", "hermite.py", "multiindex.py", "problem.py")


def store(replicate, seed):
    """The `Store` for replicates of this function under this seed, or None: not asked for, or not to be named."""
    folder = os.environ.get("ONESTEP_KEEP")
    if not folder:
        return None
    try:
        named = _name(replicate)
    except (TypeError, OSError, RecursionError):
        return None  # of another module, without a text, or referring to itself
    return Store(Path(folder), _digest([_source(), named, _name(seed)]))


@dataclasses.dataclass(frozen=True)
class Store:
    """Replicates of one function under one seed: files `<key>.npz` in folder, one for each."""

    folder: Path
    key: str

    def load(self, trial):
        """What `save` was given for this replicate, or None."""
        try:
            with open(self._path(trial), "rb") as raw, np.load(raw, allow_pickle=False) as file:
                if str(file["key"]) != self._key(trial):
                    return None
                return _join(json.loads(str(file["form"])), file)
        except (OSError, ValueError, KeyError, zipfile.BadZipFile, EOFError):
            return None

    def save(self, trial, result):
        """Keep a result, if it is of numbers, arrays or tuples of them. A reader meets the whole file or none."""
        arrays = {}
        form = _split(result, arrays)
        if any(array.dtype.hasobject for array in arrays.values()):
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self._path(trial)
        temporary = path.with_name(f".{path.stem}.{os.getpid()}.tmp")
        try:
            with open(temporary, "wb") as file:
                np.savez(file, key=self._key(trial), form=json.dumps(form), **arrays)
            temporary.replace(path)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise

    def _key(self, trial):
        return _digest([self.key, trial])

    def _path(self, trial):
        return self.folder / f"{self._key(trial)}.npz"


def _split(value, arrays):
    """The nesting of tuples in value, with the names under which its arrays are put."""
    if isinstance(value, tuple | list):
        return [_split(item, arrays) for item in value]
    arrays[name := f"a{len(arrays)}"] = np.asarray(value)
    return name


def _join(form, file):
    return tuple(_join(item, file) for item in form) if isinstance(form, list) else file[form]


def _name(value):
    """Nested lists and texts that name a value in every session; TypeError for what has no such name."""
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    if isinstance(value, partial):
        return ["partial", _name(value.func), _name(value.args), _name(value.keywords)]
    if isinstance(value, tuple | list):
        return [_name(item) for item in value]
    if isinstance(value, dict):
        return [[key, _name(item)] for key, item in sorted(value.items())]
    if isinstance(value, np.ndarray | np.generic):
        return [str(value.dtype), list(np.shape(value)), hashlib.sha256(np.ascontiguousarray(value)).hexdigest()]
    if isinstance(value, ModuleType):
        return value.__name__
    if isinstance(value, FunctionType) and value.__module__ == "__main__":
        return _written(value)
    if isinstance(value, FunctionType | type) and value.__module__.startswith(_LIBRARY):
        if "<" not in value.__qualname__:
            return [value.__module__, value.__qualname__]
    if dataclasses.is_dataclass(value) and type(value).__module__.startswith(_LIBRARY):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return [type(value).__module__, type(value).__qualname__, _name(fields)]
    raise TypeError(f"{value!r} has no name that another session would understand")


def _written(function):
    """The name of a function of this session: its text and what its globals, free variables and defaults stand for."""
    if function.__name__ == "<lambda>":
        raise TypeError("two of them on one line have the same text")
    codes, used = [function.__code__], set()
    for code in codes:
        used |= {step.argval for step in dis.get_instructions(code) if step.opname == "LOAD_GLOBAL"}
        codes += [part for part in code.co_consts if isinstance(part, CodeType)]
    found = {name: function.__globals__[name] for name in used if name in function.__globals__}
    inner = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    found |= {name: cell.cell_contents for name, cell in inner}
    defaults = [function.__defaults__, function.__kwdefaults__]
    return ["written", inspect.getsource(function), _name(found), _name(defaults), _source("**/*.py")]


@cache
def _source(others=""):
    """Digest of all files that decide what a replicate is, and of those of the library that match `others`."""
    here = Path(__file__).parent
    files = [*sorted(here.rglob("*.py")), *(here.parent / name for name in _GROUND)]
    files += sorted(here.parent.glob("zhou_ge/**/*.py"))
    files += sorted(here.parent.glob(others)) if others else []
    return _digest([[file.name, file.read_text(encoding="utf-8")] for file in files] + [np.__version__])


def _digest(value):
    return hashlib.sha256(json.dumps(value, ensure_ascii=False).encode()).hexdigest()
