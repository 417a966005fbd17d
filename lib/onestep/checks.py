"""Argument checks shared by the public calls: each names the argument, its value and what is allowed; whole files."""

import os
import tempfile
from math import inf
from numbers import Real
from pathlib import Path
from sys import float_info

import numpy as np
import psutil


def whole(argument, value, least, most=10**300):
    """value as an int, a whole number >= least and <= most."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= value <= most:
        above = isinstance(value, int | np.integer) and value > most
        bound = f" and <= {most if most < 10**300 else '1e300'}" * above
        raise ValueError(f"{argument} = {value!r:.40}: must be a whole number >= {least}{bound}")
    return int(value)


def number(argument, value, above=None, least=-inf):
    """value as a finite float, > above (if given) and >= least."""
    allowed = f"> {above:g}" if above is not None else f">= {least:g}" if least > -inf else ""
    value = float(value) if isinstance(value, np.floating) else value
    bad = isinstance(value, bool) or not isinstance(value, Real) or not abs(value) <= float_info.max
    if bad or value < least or (above is not None and value <= above):
        raise ValueError(f"{argument} = {value!r:.40}: must be a finite number {allowed}".rstrip())
    return float(value)


def choice(argument, value, allowed):
    """value, one of allowed."""
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{argument} = {value!r}: must be one of {', '.join(allowed)}")
    return value


def flag(argument, value):
    """value, True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{argument} = {value!r:.40}: must be True or False")
    return bool(value)


def floats(values):
    """values as a float array; one NaN where they are no real numbers, or some are masked."""
    try:
        array = np.asarray(values)
        if np.iscomplexobj(array) or np.ma.is_masked(values):
            return np.full(1, np.nan)
        return np.asarray(array, float)
    except (TypeError, ValueError, OverflowError):
        return np.full(1, np.nan)


def steps(eta):
    """Step sizes as a float array of 0 or 1 dimensions, finite and >= 0."""
    out = floats(np.nan if isinstance(eta, bool | np.bool_ | str) else eta)
    if out.ndim > 1 or out.size == 0 or not np.all(np.isfinite(out)) or np.any(out < 0):
        raise ValueError(f"eta = {eta!r}: must be a number or a 1-D array of finite numbers >= 0")
    return out


def frozen(*arrays):
    """The arrays, which can no longer be changed: for results that are kept and handed out again."""
    for array in arrays:
        array.setflags(write=False)
    return arrays


def folder(argument, path):
    """path as a Path to a folder that can be written to, made if need be."""
    if path == "":
        raise ValueError(f"{argument} = '': must name a folder")
    path = Path(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=path).close()
    except OSError as error:
        raise ValueError(f"{argument} = {str(path)!r}: cannot be written: {error.strerror}") from error
    return path


def write(path, data):
    """Write bytes to a file, all or none: a reader meets the old file or the new one."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        part.write_bytes(data)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def available_gib():
    """Memory in GiB that new arrays and processes can have: what the machine has left, within a container's limit."""
    free = psutil.virtual_memory().available
    limit = Path("/sys/fs/cgroup/memory.max")
    if limit.exists() and (text := limit.read_text().strip()).isdigit():
        free = min(free, int(text) - int(limit.with_name("memory.current").read_text()))
    return free / 2**30


def memory(needed):
    """Raise ValueError, before anything is drawn, when `needed` GiB are not available."""
    available = available_gib()
    if needed > available:
        raise ValueError(
            f"not enough memory: this size needs {needed:.3g} GiB and {available:.3g} GiB are free; "
            "take a smaller n or fewer jobs (theory.losses has no such limit)"
        )
