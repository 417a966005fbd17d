import numpy as np
import pytest

from onestep.simulate import key
from onestep.zhou_ge import relu
from onestep.zhou_ge.simulate import landscape, threestage

TEACHER = relu.random_teacher(5, 3, key(0), correlation=0.2)
SYSTEM = threestage.Population(TEACHER)
RIDGE = 3e-3


def starts(count, m=6, branch=1):
    return threestage.planted(TEACHER, m, 0.4, key(branch), count=count)


def test_evaluation_is_the_objective_and_its_gradient_by_differences():
    a, W = starts(3)
    objective, slope, loss = landscape.evaluate(SYSTEM, a, W, RIDGE)
    for t in range(3):
        assert loss[t] == pytest.approx(SYSTEM.loss(a[t], W[t]))
        decay = RIDGE / 2 * (np.sum(a[t] ** 2) + np.sum(W[t] ** 2))
        assert objective[t] == pytest.approx(loss[t] + decay)
        x, h, total = np.append(a[t], W[t]), 1e-6, 0.0
        for i in range(x.size):
            up, down = x.copy(), x.copy()
            up[i], down[i] = up[i] + h, down[i] - h
            values = [landscape.evaluate(SYSTEM, y[:6], y[6:].reshape(6, 5), RIDGE)[0] for y in (up, down)]
            total += ((values[0] - values[1]) / (2 * h)) ** 2
        assert slope[t] == pytest.approx(total, rel=1e-5)


def test_following_is_gradient_descent():
    a, W = starts(2)
    path = landscape.follow(SYSTEM, a, W, RIDGE, [0, 1, 4])
    assert path.objective.shape == path.slope.shape == path.loss.shape == (3, 2)
    for _ in range(4):
        _, by_a, by_W = SYSTEM.gradient(a, W)
        a, W = a - (by_a + RIDGE * a), W - (by_W + RIDGE * W)
    np.testing.assert_allclose(path.a[-1], a, rtol=1e-12)
    np.testing.assert_allclose(path.W[-1], W, rtol=1e-12)
    np.testing.assert_array_equal(path.W[0], starts(2)[1])
    assert np.all(np.diff(path.objective, axis=0) < 0)
    one = landscape.follow(SYSTEM, *(part[0] for part in starts(2)), RIDGE, [4])
    np.testing.assert_allclose(one.W[-1], path.W[-1, 0], rtol=1e-10)


def test_rate_is_that_of_the_gradients_decay():
    path = landscape.follow(SYSTEM, *starts(2), RIDGE, [300, 400])
    rate = landscape.rate(SYSTEM, *starts(2), RIDGE, [300, 400])
    np.testing.assert_allclose(np.exp(-200 * rate), path.slope[1] / path.slope[0], rtol=1e-10)


def test_exponent_of_a_trajectory():
    path = landscape.follow(SYSTEM, *starts(2), 0.0, [100, 200, 400, 800])
    for t, found in enumerate(path.exponent(200, 800)):
        assert found == pytest.approx(np.polyfit(np.log(path.loss[1:, t]), np.log(path.slope[1:, t]), 1)[0])


def test_annealed_descent_leaves_each_ridge_at_its_level():
    a, W = starts(4)
    ridges = np.array([3e-2, 1e-2, 3e-3])
    ends = threestage.anneal(SYSTEM, a[0], W[0], ridges)
    reached = [landscape.evaluate(SYSTEM, end.a, end.W, ridge) for end, ridge in zip(ends, ridges, strict=True)]
    levels = [1.02 * objective for objective, _, _ in reached]
    steps, losses = landscape.annealed_descent(SYSTEM, a, W, ridges, levels, limit=5000)
    assert steps.shape == losses.shape == (4, 3)
    assert np.all(np.diff(steps, axis=1) > 0) and np.all(np.diff(losses, axis=1) < 0)
    first = landscape.follow(SYSTEM, a, W, ridges[0], [int(steps[0, 0]) - 1, int(steps[0, 0])])
    assert first.objective[0, 0] > levels[0] >= first.objective[1, 0]
    unreached, _ = landscape.annealed_descent(SYSTEM, a, W, ridges, levels, limit=1)
    assert np.all(np.isnan(unreached))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: landscape.follow(SYSTEM, *starts(1), RIDGE, [3, 3]), "marks"),
        (lambda: landscape.follow(SYSTEM, *starts(1), RIDGE, []), "marks"),
        (lambda: landscape.annealed_descent(SYSTEM, *starts(1), [1e-2], [1.0, 2.0], limit=5), "one length"),
        (lambda: landscape.annealed_descent(SYSTEM, *starts(1), [1e-2], [1.0], limit=0), "limit"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
