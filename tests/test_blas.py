import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from onestep import Problem, theory
from onestep.blas import one_thread


def threads():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@one_thread()
def busy(seconds):
    time.sleep(seconds)
    return threads()


@pytest.mark.skipif(not threads(), reason="the threads of this BLAS are unknown to threadpoolctl")
def test_calls_have_one_thread_and_give_the_others_back():
    with threadpool_limits(2, "blas"):
        assert busy(0.0) == {1}
        with one_thread(), pytest.raises(ValueError):
            theory.losses(Problem(60, 12, 20), -1.0)
        theory.best_step(Problem(60, 12, 20), 2.0)  # whose calls call one another
        assert threads() == {2}
    before = threads()
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(busy, [0.1, 0.3, 0.2]))  # which overlap
    assert threads() == before
    with threadpool_limits(2, "blas"):
        assert busy(0.0) == {1}  # the lock is free again
