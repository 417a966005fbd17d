"""A dask cluster on this machine's loopback, for real: a scheduler and two workers in processes of their own."""

import logging
import os
import re
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from onestep import Problem, simulate

P = Problem(200, 60, 100, teacher=(0.0, 1.0, 0.5), noise=0.2)


def start(log, *arguments):
    with open(log, "w") as file:
        return subprocess.Popen([sys.executable, "-m", *arguments], stdout=file, stderr=file, env={**os.environ})


def address_in(log):
    deadline = time.monotonic() + 30
    while not (found := re.search(r"tcp://127\.0\.0\.1:\d+", log.read_text())):
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.05)
    return found[0]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """(address of the scheduler, its two workers)."""
    logs = tmp_path_factory.mktemp("cluster")
    options = ("--host", "127.0.0.1", "--port", "0", "--no-dashboard")
    processes = [start(logs / "scheduler", "distributed.cli.dask_scheduler", *options)]
    try:
        address = address_in(logs / "scheduler")
        options = (address, "--nthreads", "1", "--no-dashboard", "--no-nanny")
        processes += [start(logs / f"worker{k}", "distributed.cli.dask_worker", *options) for k in range(2)]
        yield address, processes[1:]
    finally:
        simulate.replicates.cluster.cache_clear()
        for process in processes:
            process.kill()
            process.wait()


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
    assert workers[0].wait(10) == -9
    assert not logging.getLogger("distributed.client").isEnabledFor(logging.WARNING)  # of results lost on the way


def test_a_scheduler_that_does_not_answer_is_named(monkeypatch):
    monkeypatch.setattr(simulate.replicates, "PATIENCE", 0.2)
    monkeypatch.setenv("ONESTEP_SCHEDULER", "tcp://127.0.0.1:9")
    with pytest.raises(ValueError, match=r"scheduler tcp://127\.0\.0\.1:9: does not answer"):
        simulate.losses(P, 1.0, trials=1)
