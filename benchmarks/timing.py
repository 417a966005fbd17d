"""Times, and the machine they hold for."""

import os
import platform
from datetime import date
from pathlib import Path
from time import perf_counter

import numpy as np
import psutil
import scipy
from threadpoolctl import threadpool_info

HEAD = ["what", "straightforward way", "onestep", "ratio", "aim"]


def timed(call, repeats=1):
    """(seconds, result) of a call; the least seconds of so many."""
    took = []
    for _ in range(repeats):
        start = perf_counter()
        result = call()
        took.append(perf_counter() - start)
    return min(took), result


def dgemm_rate(size=3000):
    """Best flops per second of three square matrix products on all cores."""
    A = np.random.default_rng(0).standard_normal((size, size))
    return 2 * size**3 / timed(lambda: A @ A, 3)[0]


def row(what, way, theirs, ours, aim=""):
    """One line under `HEAD`: seconds of the straightforward way and of the library's, and their ratio."""
    return [what, f"{way}: {seconds(theirs)}", seconds(ours), f"{theirs / ours:.1f} ×", aim]


def seconds(value):
    """Three digits and a unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if value >= size:
            return f"{value / size:#.3g}".rstrip(".") + f" {unit}"
    return f"{value * 1e6:.0f} µs"


def machine():
    """One sentence: cores, processor, memory, BLAS, versions, date."""
    blas = sorted({f"{lib['internal_api']} {lib['version']}" for lib in threadpool_info() if lib["user_api"] == "blas"})
    cores, gib = len(os.sched_getaffinity(0)), psutil.virtual_memory().total / 2**30
    return (
        f"Measured on {date.today().isoformat()}: {cores} cores ({_processor()}), {gib:.0f} GiB, {', '.join(blas)}, "
        f"Python {platform.python_version()}, numpy {np.__version__}, scipy {scipy.__version__}."
    )


def _processor():
    path = Path("/proc/cpuinfo")
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
