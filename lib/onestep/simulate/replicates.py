"""Replicates: their random streams, the workers they run on, the memory they need, and their results."""

from __future__ import annotations

import logging
import os
from concurrent.futures import Executor, ThreadPoolExecutor, as_completed
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cache, partial

import numpy as np
from threadpoolctl import threadpool_limits

from .. import checks, estimates
from ..checks import whole
from . import checkpoint

PATIENCE = 10.0  # seconds that a scheduler may take to answer


@dataclass(frozen=True)
class Result:
    """What was measured: arrays whose first axis is the replicate.

    Attributes
    ----------
    variates : array, (trials, k), optional
        Control variates: statistics of the draws with known mean, which has been subtracted.
    """

    variates: np.ndarray | None = field(default=None, kw_only=True)

    @property
    def mean(self):
        """The same result with an `Estimate` over replicates in place of every array.

        The variates are regressed out where there are more than four replicates for each of them.
        """
        enough = self.variates is not None and len(self.variates) > 4 * self.variates.shape[1]
        estimate = partial(estimates.controlled, controls=self.variates) if enough else estimates.mean
        arrays = {name: x for name, x in vars(self).items() if isinstance(x, np.ndarray) and name != "variates"}
        return replace(self, **{name: estimate(x) for name, x in arrays.items()})


def collect(result, replicate, gib=0.0, *, trials=20, seed=0, jobs=2, executor=None):
    """Run a replicate many times and stack what it returns, a dict of numbers or arrays, into the fields of `result`.

    Their first axis is the replicate. `gib` and the options are those of `repeat`.
    """
    found = repeat(replicate, trials, seed, jobs=jobs, gib=gib, executor=executor)
    return result(**{name: np.array([one[name] for one in found]) for name in found[0]})


def key(seed, *branch):
    """The random generator of one replicate: independent for every (seed, branch).

    Parameters
    ----------
    seed : int or tuple of int
        Root >= 0, or a root and the branch of an experiment, as in (7, 1, p.n).
    *branch : int
        Further numbers >= 0 that tell replicates apart.

    Returns
    -------
    numpy.random.Generator

    Raises
    ------
    ValueError
        If a part of the seed is not a whole number >= 0.
    """
    root, *rest = (whole("seed", part, 0) for part in (seed if isinstance(seed, tuple) and seed else (seed,)))
    return np.random.default_rng(np.random.SeedSequence(root, spawn_key=(*rest, *branch)))


def repeat(replicate, trials, seed, *, jobs=2, gib=0.0, executor=None):
    """[replicate(rng_0), …, replicate(rng_{trials - 1})], each on one BLAS thread.

    Finished replicates are kept where ONESTEP_KEEP and ONESTEP_KEEP_KEY say so (`checkpoint`).

    Parameters
    ----------
    replicate : callable
        Function of a random generator; one that can be pickled, where the executor's workers are processes.
    trials : int
        Number of replicates, >= 1; replicate t draws from key(seed, t), so that results depend on nothing else.
    seed : int or tuple of int
        As in `key`.
    jobs : int
        Replicates under way at once, >= 1, each on one core of this machine; unused with an executor.
    gib : float
        Memory in GiB that one replicate needs.
    executor : concurrent.futures.Executor, optional
        Where they run: processes, MPI's, a cluster's. Without one, and with $ONESTEP_SCHEDULER naming a dask
        scheduler, on the workers of that cluster.

    Returns
    -------
    list
        The replicates' results in their order.

    Raises
    ------
    ValueError
        For a bad argument, or when the memory needed is not there, which is checked before anything is drawn.
    ConnectionError
        When the scheduler is lost on the way.
    """
    trials, jobs = whole("trials", trials, 1), whole("jobs", jobs, 1)
    key(seed)
    if not isinstance(executor, Executor | None):
        raise ValueError(f"executor = {executor!r}: must be a concurrent.futures.Executor")
    client = None if executor else cluster(os.environ.get("ONESTEP_SCHEDULER"))
    store = checkpoint.store()
    with threadpool_limits(1, "blas"):  # around all of them: a replicate that ends must not lift it from the others
        if client:
            return _in_order(partial(_from_cluster, client), partial(_on_a_worker, replicate, seed), trials, store)
        if executor:
            return _in_order(partial(_from_executor, executor), partial(_on_a_worker, replicate, seed), trials, store)
        checks.memory(gib * min(jobs, trials))
        with ThreadPoolExecutor(jobs) as pool:
            return _in_order(partial(_from_executor, pool), lambda trial: replicate(key(seed, trial)), trials, store)


def _on_a_worker(replicate, seed, trial):
    with threadpool_limits(1, "blas"):  # a worker of somebody else's pool may use all its cores for BLAS
        return replicate(key(seed, trial))


def _in_order(finished, one, trials, store):
    """Results of all replicates in their order; those that the store holds are not run, the others are kept at once."""
    found = {trial: store.load(trial) for trial in range(trials)} if store else {}
    with closing(finished(one, [trial for trial in range(trials) if found.get(trial) is None])) as pairs:
        for trial, result in pairs:
            found[trial] = result
            if store:
                store.save(trial, result)
    return [found[trial] for trial in range(trials)]


def _from_executor(executor, one, trials):
    """(trial, one(trial)) as they come; closed early, it calls off what has not begun."""
    futures = {executor.submit(one, trial): trial for trial in trials}
    try:
        for future in as_completed(futures):
            yield futures[future], future.result()
    finally:
        for future in futures:
            future.cancel()


def _from_cluster(client, one, trials):
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
