"""Replicates: their random streams, the workers they run on, and the memory they need."""

from __future__ import annotations

import logging
import os
from concurrent.futures import Executor, ThreadPoolExecutor, as_completed
from contextlib import closing
from functools import cache, partial

import numpy as np
from threadpoolctl import threadpool_limits

from .. import checks
from ..checks import whole
from . import checkpoint

PATIENCE = 10.0  # seconds that a scheduler may take to answer


def key(seed, *branch):
    """The random generator of one replicate: independent for every (seed, branch).

    seed : whole number >= 0, or a tuple of them: a root and the branch of an experiment, as in (7, 1, p.n).
    """
    root, *rest = (whole("seed", part, 0) for part in (seed if isinstance(seed, tuple) and seed else (seed,)))
    return np.random.default_rng(np.random.SeedSequence(root, spawn_key=(*rest, *branch)))


def repeat(replicate, trials, seed, *, jobs=2, gib=0.0, executor=None):
    """[replicate(rng_0), …, replicate(rng_{trials - 1})], each on one BLAS thread.

    Parameters
    ----------
    replicate : function of a random generator; one that can be pickled, where the executor's workers are processes.
    trials : replicates >= 1; number t draws from key(seed, t), so that results depend on nothing else.
    seed : as in `key`.
    jobs : replicates under way at once >= 1, each on one core of this machine; unused with an executor.
    gib : memory in GiB that one of them needs.
    executor : any `concurrent.futures.Executor` to run them on: processes, MPI's, a cluster's. Without one, and with
        $ONESTEP_SCHEDULER naming a dask scheduler, the workers of that cluster.

    Finished replicates are kept where ONESTEP_KEEP and ONESTEP_KEEP_KEY say so (`checkpoint`).

    Raises ValueError for a bad argument or when the memory needed is not there (checked before anything is drawn), and
    ConnectionError when the scheduler is lost on the way.
    """
    trials, jobs = whole("trials", trials, 1), whole("jobs", jobs, 1)
    key(seed)
    if not isinstance(executor, Executor | None):
        raise ValueError(f"executor = {executor!r}: must be a concurrent.futures.Executor")
    client = None if executor else cluster(os.environ.get("ONESTEP_SCHEDULER"))
    store = checkpoint.store()
    with threadpool_limits(1, "blas"):  # around all of them: a replicate that ends must not lift it from the others
        if client:
            return _collect(partial(_finished_on, client), partial(_elsewhere, replicate, seed), trials, store)
        if executor:
            return _collect(partial(_finished, executor), partial(_elsewhere, replicate, seed), trials, store)
        checks.memory(gib * min(jobs, trials))
        with ThreadPoolExecutor(jobs) as pool:
            return _collect(partial(_finished, pool), partial(_alone, replicate, seed), trials, store)


def _alone(replicate, seed, trial):
    return replicate(key(seed, trial))


def _elsewhere(replicate, seed, trial):
    with threadpool_limits(1, "blas"):  # a worker of somebody else's pool may use all its cores for BLAS
        return replicate(key(seed, trial))


def _collect(finished, one, trials, store):
    """Results of all replicates in their order; those that the store holds are not run, the others are kept at once."""
    found = {trial: store.load(trial) for trial in range(trials)} if store else {}
    with closing(finished(one, [trial for trial in range(trials) if found.get(trial) is None])) as pairs:
        for trial, result in pairs:
            found[trial] = result
            if store:
                store.save(trial, result)
    return [found[trial] for trial in range(trials)]


def _finished(executor, one, trials):
    """(trial, one(trial)) as they come; closed early, it calls off what has not begun."""
    futures = {executor.submit(one, trial): trial for trial in trials}
    try:
        for future in as_completed(futures):
            yield futures[future], future.result()
    finally:
        for future in futures:
            future.cancel()


def _finished_on(client, one, trials):
    """The same on a dask client's workers.

    Not by its get_executor(), which takes a result for an error if a worker is lost while its result travels.
    """
    from distributed import as_completed

    futures = dict(zip(client.map(one, trials, pure=False), trials, strict=True))
    try:
        for future, result in as_completed(futures, loop=client.loop, with_results=True):
            if future.cancelled():
                raise ConnectionError(f"scheduler {client.scheduler.address}: lost; start it and run again") from result
            yield futures[future], result
    finally:
        client.cancel(list(futures))


@cache
def cluster(address):
    """The client of the dask scheduler at `address`, one per session; None without an address."""
    if not address:
        return None
    try:
        from distributed import Client
    except ImportError:
        raise ValueError(f"scheduler {address}: needs dask.distributed; pip install 'onestep[cluster]'") from None
    # A result that is lost with its worker is drawn again; a notebook would keep the warning.
    logging.getLogger("distributed.client").setLevel(logging.ERROR)
    try:
        return Client(address, timeout=PATIENCE, set_as_default=False)
    except OSError as error:
        raise ValueError(f"scheduler {address}: does not answer ({error})") from error
