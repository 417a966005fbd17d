"""Replicates: their random streams, the workers they run on, and the memory they need."""

from __future__ import annotations

from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial

import numpy as np
from threadpoolctl import threadpool_limits

from .. import checks
from ..checks import whole


def key(seed, *branch):
    """The random generator of one replicate: independent for every (seed, branch).

    seed : whole number >= 0, or a tuple of them: a root and the branch of an experiment, as in (7, 1, p.n).
    """
    root, *rest = (whole("seed", part, 0) for part in (seed if isinstance(seed, tuple) and seed else (seed,)))
    return np.random.default_rng(np.random.SeedSequence(root, spawn_key=(*rest, *branch)))


def repeat(replicate, trials, seed, jobs=2, gib=0.0, executor=None):
    """[replicate(rng_0), …, replicate(rng_{trials - 1})], each on one BLAS thread.

    Parameters
    ----------
    replicate : function of a random generator; one that can be pickled, where the executor's workers are processes.
    trials : replicates >= 1; number t draws from key(seed, t), so that results depend on nothing else.
    seed : as in `key`.
    jobs : replicates under way at once >= 1, each on one core of this machine; unused with an executor.
    gib : memory in GiB that one of them needs.
    executor : any `concurrent.futures.Executor` to run them on: processes, MPI's, a cluster's.

    Raises ValueError for a bad argument or when the memory needed is not there (checked before anything is drawn).
    """
    trials, jobs = whole("trials", trials, 1), whole("jobs", jobs, 1)
    key(seed)
    one = partial(_replicate, replicate, seed)
    if executor is not None:
        if not isinstance(executor, Executor):
            raise ValueError(f"executor = {executor!r}: must be a concurrent.futures.Executor")
        return list(executor.map(one, range(trials)))
    checks.memory(gib * min(jobs, trials))
    with threadpool_limits(1, "blas"), ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(lambda trial: replicate(key(seed, trial)), range(trials)))


def _replicate(replicate, seed, trial):
    with threadpool_limits(1, "blas"):
        return replicate(key(seed, trial))
