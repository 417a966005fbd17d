"""Replicates: their random streams, the workers they run on, what is kept of them, and their results.

A measurement is written as one replicate, a function of a random generator that returns a dict of numbers and arrays.
`replicated` makes of it a function that runs many and returns a `Result`.
"""

from __future__ import annotations

import gzip
import itertools
import logging
import os
import pickle
import zlib
from concurrent.futures import CancelledError, Executor, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, partial, wraps
from inspect import signature
from pathlib import Path
from threading import Lock
from types import SimpleNamespace

import numpy as np

from .. import checks, estimates
from ..blas import one_thread
from ..checks import whole
from ..problem import as_problem

JOBS = int(os.environ.get("ONESTEP_JOBS", 2))  # by default; fewer where notebooks share the cores
PATIENCE = 10.0  # seconds that a scheduler may take to answer
_calls = itertools.count()
_drawing = Lock()


class Result(SimpleNamespace):
    """What was measured: arrays whose first axis is the replicate.

    variates : (trials, k) statistics of the draws less their known means, for `estimates.controlled`; None if none.
    """

    variates = None

    @property
    def mean(self):
        """The same result with an `Estimate` over replicates in place of every array.

        The variates are regressed out where there are more than four replicates for each of them.
        """
        enough = self.variates is not None and len(self.variates) > 4 * self.variates.shape[1]
        estimate = partial(estimates.controlled, controls=self.variates) if enough else estimates.mean
        return Result(**{name: estimate(x) for name, x in vars(self).items() if name != "variates"})

    @property
    def drops(self):
        """By how much the losses of the first step exceed those of all others, replicate by replicate."""
        if np.ndim(self.train) < 2:
            raise ValueError("drops: need losses at two steps or more")
        return Result(
            train=self.train[:, :1] - self.train[:, 1:],
            test=self.test[:, :1] - self.test[:, 1:],
            variates=self.variates,
        )


def memory(p, *_, test_size=None, growing_rows=False, **__):
    """GiB that one replicate of most measurements needs at its peak, in the gradient step or in the fit after it."""
    n, d, N, m = float(as_problem(p).n), float(p.d), float(p.N), float(p.first_samples)
    fit = 3.5 * n * N + min(n, N) * min(n, N) + (test_size * (3 * N + d) if test_size else 4 * N * N)
    return 8 * ((n + m) * d + 2 * N * d + max(fit, (2 + bool(growing_rows)) * m * N)) / 2**30


def replicated(gib=memory):
    """Makes of one replicate, f(p, …, *, rng) -> dict, a function f(p, …, *, trials, seed, jobs, executor) -> `Result`.

    gib : function of f's arguments, the memory in GiB that one replicate needs.
    """

    def many(replicate):
        @wraps(replicate)
        def run(*args, trials=20, seed=0, jobs=JOBS, executor=None, **options):
            need = gib(*args, **options)
            found = repeat(partial(_one, run, args, options), trials, seed, jobs=jobs, gib=need, executor=executor)
            return Result(**{name: np.array([one[name] for one in found]) for name in found[0]})

        own, more = signature(replicate).parameters, signature(run, follow_wrapped=False).parameters
        kept = [part for name, part in own.items() if name != "rng"]
        kept += [more[name] for name in ("trials", "seed", "jobs", "executor")]
        run.__signature__ = signature(replicate).replace(parameters=kept)
        return run

    return many


def _one(run, args, options, rng):
    return run.__wrapped__(*args, rng=rng, **options)


def key(seed, *branch):
    """The random generator of one replicate: independent for every (seed, branch) of whole numbers below 2³².

    seed may also be a root and the branch of an experiment, as in (7, 1, p.n). Larger numbers are taken as several.
    """
    root, *rest = (whole("seed", part, 0) for part in (seed if isinstance(seed, tuple) and seed else (seed,)))
    rest += [whole("branch", part, 0) for part in branch]
    return np.random.default_rng(np.random.SeedSequence(root, spawn_key=rest))


def repeat(replicate, trials, seed, *, jobs=JOBS, gib=0.0, executor=None):
    """[replicate(rng_0), …, replicate(rng_{trials - 1})], each on one BLAS thread.

    Where $ONESTEP_KEEP names a folder and $ONESTEP_KEEP_KEY what decides the results, a digest of code and parameters,
    finished replicates are kept there, and a run that was killed goes on from them: the same code makes the same calls
    in the same order, so that a replicate is known by that key, the number of the call and its own number. Calls made
    meanwhile, as by a replicate itself, keep nothing.

    Parameters
    ----------
    replicate : function of a random generator, to be pickled where the executor's workers are processes
    trials : replicates; number t draws from key(seed, t), so that results depend on nothing else
    seed : whole number >= 0, or a root and the branch of an experiment, as in (7, 1, p.n)
    jobs : replicates under way at once, each on one core of this machine, by default $ONESTEP_JOBS or 2; unused with an
        executor
    gib : memory in GiB that one replicate needs, for which ValueError is raised before anything is drawn
    executor : a concurrent.futures.Executor to run them: processes, MPI's, a cluster's. Without one, and with
        $ONESTEP_SCHEDULER naming a dask scheduler, the workers of that cluster; ConnectionError when it is lost
    """
    trials, jobs = whole("trials", trials, 1), whole("jobs", jobs, 1)
    key(seed)
    if not callable(replicate):
        raise ValueError(f"replicate = {replicate!r:.60}: must be a function of a random generator")
    if not isinstance(executor, Executor | None):
        raise ValueError(f"executor = {executor!r}: must be a concurrent.futures.Executor")
    client = None if executor else cluster(os.environ.get("ONESTEP_SCHEDULER"))
    # the limit is around all of them: a replicate that ends must not lift it from the others
    with _outermost() as outermost, one_thread():
        files = _files(trials) if outermost else []
        found = {trial: kept for trial, file in enumerate(files) if (kept := _kept(file)) is not None}
        missing = [trial for trial in range(trials) if trial not in found]
        for trial, result in zip(missing, _results(replicate, seed, missing, jobs, gib, executor, client), strict=True):
            found[trial] = result
            if files:
                _keep(files[trial], result)
    return [found[trial] for trial in range(trials)]


def _results(replicate, seed, trials, jobs, gib, executor, client):
    """The results of some trials, in their order."""
    if client:
        futures = client.map(partial(_on_a_worker, replicate, seed), trials, pure=False)
        try:
            yield from (future.result() for future in futures)
        except (CancelledError, OSError) as error:
            raise ConnectionError(f"scheduler {client.scheduler.address}: lost; start it and run again") from error
    elif executor:
        yield from executor.map(partial(_on_a_worker, replicate, seed), trials)
    else:
        checks.memory(gib * min(jobs, len(trials)))
        with ThreadPoolExecutor(jobs) as pool:
            yield from pool.map(lambda trial: replicate(key(seed, trial)), trials)


def _on_a_worker(replicate, seed, trial):
    with _outermost(), one_thread():  # somebody else's worker may use all its cores for BLAS
        return replicate(key(seed, trial))


@contextmanager
def _outermost():
    """Whether no other replicates are being drawn in this process."""
    mine = _drawing.acquire(blocking=False)
    try:
        yield mine
    finally:
        if mine:
            _drawing.release()


def _files(trials):
    """Where the replicates of this call are kept; empty if nowhere."""
    folder, name = os.environ.get("ONESTEP_KEEP"), os.environ.get("ONESTEP_KEEP_KEY")
    if not (folder and name):
        return []
    call = next(_calls)
    return [Path(folder) / f"{name}-{call}-{trial}" for trial in range(trials)]


def _keep(file, result):
    file.parent.mkdir(parents=True, exist_ok=True)
    checks.write(file, gzip.compress(pickle.dumps((file.name, result)), 1))


def _kept(file):
    """What a file holds; None for one that is missing, damaged (gzip keeps a checksum) or another's."""
    try:
        name, result = pickle.loads(gzip.decompress(file.read_bytes()))
    except (OSError, EOFError, zlib.error):
        return None
    return result if name == file.name else None


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
