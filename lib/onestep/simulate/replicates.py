"""Replicates: their random streams, the workers they run on, and the memory they need."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from threadpoolctl import threadpool_limits

from ..checks import whole


def key(seed, *branch):
    """The random generator of one replicate: independent for every (seed, branch).

    seed : whole number >= 0, or a tuple of them: a root and the branch of an experiment, as in (7, 1, p.n).
    """
    root, *rest = (whole("seed", part, 0) for part in (seed if isinstance(seed, tuple) and seed else (seed,)))
    return np.random.default_rng(np.random.SeedSequence(root, spawn_key=(*rest, *branch)))


def replicates(replicate, trials, jobs=2):
    """[replicate(0), …, replicate(trials - 1)], `jobs` at a time on one BLAS thread each: same numbers for any jobs."""
    with threadpool_limits(1, "blas"), ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(replicate, range(trials)))


def require_memory(needed):
    """Raise ValueError, before anything is drawn, when `needed` GiB are not available on this machine."""
    available = _available()
    if needed > available:
        raise ValueError(
            f"not enough memory: this size needs {needed:.3g} GiB and {available:.3g} GiB are free; "
            "take a smaller n or fewer jobs (theory.losses has no such limit)"
        )


def _available():
    try:
        with open("/proc/meminfo") as info:
            kib = next(int(line.split()[1]) for line in info if line.startswith("MemAvailable"))
        return kib / 2**20
    except (OSError, StopIteration):
        return float("inf")
