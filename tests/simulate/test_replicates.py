from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context

import numpy as np
import pytest

from onestep import Problem, simulate
from onestep.zhou_ge import relu
from onestep.zhou_ge import simulate as second

P = Problem(120, 40, 70, teacher=(0.0, 1.0, 0.5), noise=0.2)


def trained(system, rng):
    return second.fitted(system, 4, rng)


def numbers(result):
    return vars(result) if isinstance(result, simulate.Result) else result


def test_same_numbers_with_one_and_two_workers():
    one, two = (simulate.losses(P, [0.0, 3.0], trials=5, seed=1, jobs=jobs) for jobs in (1, 2))
    np.testing.assert_array_equal(one.train, two.train)
    np.testing.assert_array_equal(one.test, two.test)


def test_replicates_differ_and_more_trials_keep_the_first_ones():
    few, many = simulate.losses(P, 1.0, trials=2), simulate.losses(P, 1.0, trials=3)
    np.testing.assert_array_equal(few.train, many.train[:2])
    assert len(np.unique(many.train)) == 3
    assert not np.any(simulate.losses(P, 1.0, trials=2, seed=1).train == few.train)


def test_a_seed_may_name_an_experiment():
    one, two = (simulate.losses(P, 1.0, trials=1, seed=(3, branch)).train for branch in (0, 1))
    assert one != two
    assert simulate.key((3, 1), 5).random() == simulate.key(3, 1, 5).random()


@pytest.fixture(scope="module", params=["threads", "processes"])
def pool(request):
    with ThreadPoolExecutor(2) if request.param == "threads" else ProcessPoolExecutor(2, get_context("spawn")) as pool:
        yield pool


SYSTEM = relu.Population(relu.random_teacher(4, 2, simulate.key(0)))
DRAWS = {
    "losses": partial(simulate.losses, P, [0.0, 3.0]),
    "plateaus": partial(simulate.plateaus, P, [0, 1]),
    "spiked": partial(simulate.spiked, P, [0.0, 3.0], 1),
    "train": partial(simulate.repeat, partial(trained, SYSTEM)),
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_any_executor_gives_the_same_numbers(draw, pool):
    np.testing.assert_equal(numbers(draw(trials=3, seed=1, executor=pool)), numbers(draw(trials=3, seed=1)))


def test_what_is_no_executor_is_refused():
    with pytest.raises(ValueError, match="executor = 3: must be a concurrent"):
        simulate.losses(P, 1.0, trials=1, executor=3)
