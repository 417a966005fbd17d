"""A dask cluster on this machine's loopback, for real: a scheduler and two workers in processes of their own."""

import logging
import os
import re
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest

from onestep import Problem, simulate

pytestmark = pytest.mark.slow
P = Problem(200, 60, 100, teacher=(0.0, 1.0, 0.5), noise=0.2)


def number(rng):
    return rng.normal()


def divide(rng):
    return 1 / 0


def start(log, *arguments):
    with open(log, "w") as file:
        return subprocess.Popen([sys.executable, "-m", *arguments], stdout=file, stderr=file, env={**os.environ})


def address_in(log):
    deadline = time.monotonic() + 120
    while not (found := re.search(r"tcp://127\.0\.0\.1:\d+", log.read_text())):
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.05)
    return found[0]


@contextmanager
def running(logs, workers):
    """(address of a scheduler, its process, its workers' processes)."""
    options = ("--host", "127.0.0.1", "--port", "0", "--no-dashboard")
    processes = [start(logs / "scheduler", "distributed.cli.dask_scheduler", *options)]
    try:
        address = address_in(logs / "scheduler")
        options = (address, "--nthreads", "1", "--no-dashboard", "--no-nanny")
        processes += [start(logs / f"worker{k}", "distributed.cli.dask_worker", *options) for k in range(workers)]
        yield address, processes[0], processes[1:]
    finally:
        simulate.replicates.cluster.cache_clear()
        for process in processes:
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with running(tmp_path_factory.mktemp("cluster"), 2) as (address, _, workers):
        yield address, workers


@pytest.mark.filterwarnings("ignore")  # of the cluster's own, among them that a worker was lost
def test_a_cluster_gives_the_same_numbers_even_if_a_worker_is_killed(cluster, monkeypatch):
    address, workers = cluster
    here = simulate.losses(P, [0.0, 3.0], trials=300, seed=1)
    monkeypatch.setenv("ONESTEP_SCHEDULER", address)
    first = simulate.losses(P, [0.0, 3.0], trials=10, seed=1)
    np.testing.assert_array_equal(first.train, here.train[:10])
    killer = threading.Timer(0.3, workers[0].kill)
    killer.start()
    started = time.monotonic()
    there = simulate.losses(P, [0.0, 3.0], trials=300, seed=1)
    assert time.monotonic() - started > 0.3  # it was killed in mid-sweep
    np.testing.assert_array_equal(there.train, here.train)
    np.testing.assert_array_equal(there.test, here.test)
    assert workers[0].wait(60) == -9
    assert not logging.getLogger("distributed.client").isEnabledFor(logging.WARNING)  # of results lost on the way


def test_an_error_on_a_worker_is_raised_here(cluster, monkeypatch):
    monkeypatch.setenv("ONESTEP_SCHEDULER", cluster[0])
    with pytest.raises(ZeroDivisionError):
        simulate.repeat(divide, trials=3, seed=1)


@pytest.mark.filterwarnings("ignore")  # of the cluster's own, among them that the scheduler was lost
def test_a_scheduler_that_is_lost_is_named(tmp_path, monkeypatch):
    with running(tmp_path, 1) as (address, scheduler, _):
        monkeypatch.setenv("ONESTEP_SCHEDULER", address)
        simulate.repeat(number, trials=1, seed=1)
        killer = threading.Timer(0.3, scheduler.kill)
        killer.start()
        with pytest.raises(ConnectionError, match=f"scheduler {address}: lost"):
            simulate.losses(P, [0.0, 3.0], trials=3000, seed=1)


def test_a_scheduler_that_does_not_answer_is_named(monkeypatch):
    monkeypatch.setattr(simulate.replicates, "PATIENCE", 0.2)
    monkeypatch.setenv("ONESTEP_SCHEDULER", "tcp://127.0.0.1:9")
    with pytest.raises(ValueError, match=r"scheduler tcp://127\.0\.0\.1:9: does not answer"):
        simulate.losses(P, 1.0, trials=1)
