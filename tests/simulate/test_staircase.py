from functools import partial

import numpy as np
import pytest

from onestep import Problem, estimates, simulate

P = Problem(120, 40, 70, teacher=(0.0, 1.0, 0.5), noise=0.2, activation="tilted_sin")


def strong(p, now, left):
    """F0 and, one by one, strong spikes with the left vectors given: training loss and leave-one-out error of each."""
    F, out = p.student(now.X2 @ now.W0.T), []
    for k in range(len(left) + 1):
        if k:
            F = F + 3e3 * np.outer(left[k - 1] / np.std(left[k - 1]), now.a**k / np.std(now.a**k))
        H = F @ np.linalg.solve(F.T @ F + p.n * p.ridge * np.eye(p.N), F.T)
        left_out = (now.y2 - H @ now.y2) / (1 - np.diag(H))
        out.append([simulate.ridge(F, now.y2, p.ridge)[1], np.mean(left_out**2)])
    return np.transpose(out)


@pytest.mark.parametrize("layer", ["sphere", "gaussian"])
@pytest.mark.parametrize("output", ["negligible", "full"])
def test_plateaus_by_explicit_strong_spikes(layer, output):
    p = P.replace(first_layer=layer, initial_output=output)
    now = simulate.draw(p, simulate.key(3, 0))
    z = now.X2 @ simulate.direction(p, now)
    got = simulate.plateaus(p, [0, 1, 2, 3], trials=1, seed=3)
    np.testing.assert_allclose([got.train[0], got.test[0]], strong(p, now, [z, z**2, z**3]), rtol=2e-5)
    assert got.train[0, 0] == pytest.approx(simulate.losses(p, 0.0, trials=1, seed=3).train[0], rel=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("output", ["negligible", "full"])
def test_spikes_of_growing_rows_keep_the_whole_gradient(output):
    p = P.replace(initial_output=output)
    now = simulate.draw(p, simulate.key(3, 0))
    move = now.X2 @ simulate.gradient(p, now).T * np.sign(now.a)
    got = simulate.plateaus(p, [0, 1, 2], trials=1, seed=3, growing_rows=True)
    expected = strong(p, now, [np.mean(move**k, axis=1) for k in (1, 2)])
    np.testing.assert_allclose([got.train[0], got.test[0]], expected, rtol=2e-5)


@pytest.mark.parametrize("grows", [False, True])
@pytest.mark.parametrize("output", ["negligible", "full"])
def test_spikes_of_given_strength_by_explicit_features(output, grows):
    p, at, etas = P.replace(initial_output=output), 10**6, np.array([0.0, 0.3, 10.0, 500.0])
    now, c = simulate.draw(p, simulate.key(3, 0)), p.student.coefficients(3)
    moves, a = now.X2 @ simulate.gradient(p, now).T, np.abs(now.a)
    expected = []
    for eta in etas:
        F = p.student(now.X2 @ now.W0.T)
        for k in (1, 2, 3):
            whole = np.mean((moves * np.sign(now.a)) ** k, axis=1) / np.mean(a**k)
            left = whole if grows else (c[1] * now.X2 @ simulate.direction(p, now)) ** k
            F = F + c[k] * eta**k * (at / p.n) ** ((1 - k) / 2) * np.outer(left, now.a**k)
        H = F @ np.linalg.solve(F.T @ F + p.n * p.ridge * np.eye(p.N), F.T)
        left_out = (now.y2 - H @ now.y2) / (1 - np.diag(H))
        expected.append([simulate.ridge(F, now.y2, p.ridge)[1], np.mean(left_out**2)])
    got = simulate.spiked(p, etas, 3, at=at, trials=1, seed=3, growing_rows=grows)
    np.testing.assert_allclose([got.train[0], got.test[0]], np.transpose(expected), rtol=1e-9)


def test_a_spike_whose_coefficient_is_zero_changes_nothing():
    p = P.replace(activation="shifted_relu")  # c_3 = 0
    two, three = (simulate.spiked(p, [1.0, 30.0], order, trials=2, seed=3) for order in (2, 3))
    np.testing.assert_allclose(two.train, three.train, rtol=1e-10)


def test_very_strong_spikes_reach_the_plateau():
    got, limit = simulate.spiked(P, 1e9, 2, at=1, trials=2, seed=3), simulate.plateaus(P, [2], trials=2, seed=3)
    np.testing.assert_allclose(got.train, limit.train[:, 0], rtol=1e-6)


def test_with_a_gradient_of_rank_one_both_kinds_of_spikes_are_the_same():
    p = P.replace(activation=(0.0, 1.0, 1e-9))  # σ' is constant
    both = [simulate.plateaus(p, [0, 1, 2], trials=3, seed=2, growing_rows=grows) for grows in (False, True)]
    np.testing.assert_allclose(both[0].train, both[1].train, rtol=1e-5)
    np.testing.assert_allclose(both[0].test, both[1].test, rtol=1e-5)


def test_more_units_than_samples():
    p = P.replace(N=200)
    now = simulate.draw(p, simulate.key(1, 0))
    got = simulate.plateaus(p, [0, 1], trials=1, seed=1)
    expected = strong(p, now, [now.X2 @ simulate.direction(p, now)])
    np.testing.assert_allclose([got.train[0], got.test[0]], expected, rtol=2e-5)


@pytest.mark.parametrize("draw", [partial(simulate.plateaus, P, [0, 2]), partial(simulate.spiked, P, [1.0, 9.0], 2)])
def test_training_losses_alone_are_the_same(draw):
    both, alone = (draw(trials=2, seed=3, test=test) for test in (True, False))
    np.testing.assert_array_equal(alone.train, both.train)
    assert not hasattr(alone, "test")


def test_the_left_out_error_is_the_test_error_on_average():
    p = P.replace(n=300, d=30, N=60, ridge=0.1)
    exact = simulate.losses(p, 0.0, trials=120, seed=4).test
    left_out = simulate.plateaus(p, [0], trials=120, seed=5, redraws=8).test[:, 0]
    gap, error = exact.mean() - left_out.mean(), np.sqrt(exact.var() / 120 + left_out.var() / 120)
    assert abs(gap) < 4 * error < 0.05 * exact.mean()


@pytest.mark.parametrize("output", ["negligible", "full"])
def test_variates_have_mean_zero_and_explain_the_stairs(output):
    p = P.replace(n=60, d=20, N=20, ridge=0.5, initial_output=output)
    run = simulate.plateaus(p, [0, 1, 2], trials=600, seed=4)
    assert run.variates.shape == (600, 3 * 2)
    assert np.all(np.abs(run.variates.mean(0)) < 4.5 * run.variates.std(0) / np.sqrt(600))
    np.testing.assert_allclose(np.var(run.variates[:, :3], axis=0), 1 / p.n, rtol=0.4)
    stair = run.train[:, 1] - run.train[:, 2]
    assert estimates.controlled(stair, run.variates).se < 0.7 * estimates.mean(stair).se


def test_redraws_share_the_first_layer_and_both_samples_of_inputs():
    once, many = (simulate.plateaus(P, [0, 1, 2], trials=40, seed=5, redraws=redraws) for redraws in (1, 8))
    assert np.all(many.train.std(0) < 0.7 * once.train.std(0))
    for name in ("train", "test"):
        gap = getattr(once, name).mean(0) - getattr(many, name).mean(0)
        assert np.all(np.abs(gap) < 4 * getattr(once, name).std(0) / np.sqrt(40))


def test_redraws_keep_the_law_of_the_readout_and_the_size_of_the_first_sample():
    values = [0.6, 1.64**0.5]
    p = P.replace(readout=values, step_samples=30)
    first = simulate.draw(p, simulate.key(7, 0))
    now = simulate.staircase._redrawn(p, first, 4, np.random.default_rng(1))
    np.testing.assert_allclose(np.unique((now.a * np.sqrt(p.N)).round(12)), values)
    for name in ("a", "beta_star", "y", "y2"):
        np.testing.assert_array_equal(getattr(now, name)[:, 0], getattr(first, name))
        assert np.ptp(getattr(now, name)[0]) > 0
    assert now.y.shape == (30, 4)
    np.testing.assert_allclose(np.linalg.norm(now.beta_star, axis=0), 1)


def test_growing_rows_without_a_spike_are_untrained_features():
    one, other = (simulate.plateaus(P, [0], trials=2, growing_rows=grown).train for grown in (False, True))
    np.testing.assert_allclose(one, other)


@pytest.mark.parametrize(
    ("orders", "options", "message"),
    [
        ([0], {"redraws": 0}, "redraws = 0"),
        ([0], {"test": 2}, "test = 2"),
        (2, {}, "orders = 2: must be a list"),
        ([], {}, r"orders = \[\]: must be a list"),
        ([0, 1.2], {}, "orders = 1.2"),
        ([0, 3], {}, "c_3 = 0, so that no step bears spike 3"),
    ],
)
def test_bad_input_is_named(orders, options, message):
    with pytest.raises(ValueError, match=message):
        simulate.plateaus(P.replace(activation="shifted_relu"), orders, trials=1, **options)


@pytest.mark.parametrize(
    ("eta", "order", "options", "message"),
    [
        (1.0, 0, {}, "order = 0"),
        (1.0, 7, {}, "order = 7: must be a whole number >= 1 and <= 6"),
        (-1.0, 2, {}, "eta = -1.0"),
        (1.0, 2, {"at": 0}, "at = 0"),
        (1.0, 2, {"growing_rows": 1}, "growing_rows = 1"),
    ],
)
def test_bad_strengths_are_named(eta, order, options, message):
    with pytest.raises(ValueError, match=message):
        simulate.spiked(P, eta, order, trials=1, **options)
