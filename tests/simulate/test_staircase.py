import numpy as np
import pytest

from onestep import Problem, estimates, simulate

P = Problem(120, 40, 70, teacher=(0.0, 1.0, 0.5), noise=0.2)


def test_plateaus_by_explicit_limit_features():
    """Order 0 is the untrained network; a strong rank-one spike in F itself gives the same ridge fit as order 1."""
    p = P.replace(initial_output="full")
    got = simulate.plateaus(p, [0, 1], trials=2, seed=3)
    np.testing.assert_allclose(got.train[:, 0], simulate.losses(p, 0.0, trials=2, seed=3).train, rtol=1e-10)
    np.testing.assert_allclose(got.test[:, 0], simulate.losses(p, 0.0, trials=2, seed=3).test, rtol=1e-8)
    now = simulate.draw(p, simulate.key(3, 0))
    beta = now.X.T @ simulate.residual(p, now) / p.n
    F = p.student(now.X2 @ now.W0.T) + 1e4 * np.outer(now.X2 @ beta, now.a)
    a, train = simulate.ridge(F, now.y2, p.ridge)
    assert got.train[0, 1] == pytest.approx(train, rel=1e-5)
    X, y = simulate.sample(p, now.beta_star, np.random.default_rng(8), size=60_000)
    errors = (y - (p.student(X @ now.W0.T) + 1e4 * np.outer(X @ beta, now.a)) @ a) ** 2
    assert abs(got.test[0, 1] - errors.mean()) < 4 * errors.std() / np.sqrt(errors.size)


def test_plateau_test_error_of_higher_orders_over_a_fresh_sample():
    p = P.replace(activation="tilted_sin")
    got = simulate.plateaus(p, [3], trials=1, seed=6)
    now = simulate.draw(p, simulate.key(6, 0))
    direction = now.X.T @ now.y
    direction /= np.linalg.norm(direction)
    Q = np.linalg.qr(now.a[:, None] ** [1, 2, 3])[0]

    def limit_features(X):
        F0 = p.student(X @ now.W0.T)
        return np.column_stack([F0 - F0 @ Q @ Q.T, 1e5 * (X @ direction)[:, None] ** [1, 2, 3]])

    a, train = simulate.ridge(limit_features(now.X2), now.y2, p.ridge)
    X, y = simulate.sample(p, now.beta_star, np.random.default_rng(8), size=60_000)
    errors = (y - limit_features(X) @ a) ** 2
    assert got.train[0, 0] == pytest.approx(train, rel=1e-8)
    assert abs(got.test[0, 0] - errors.mean()) < 4 * errors.std() / np.sqrt(errors.size)


@pytest.mark.slow
@pytest.mark.parametrize("output", ["negligible", "full"])
def test_moments_of_z_are_variates_of_mean_zero_and_explain_the_stairs(output):
    p = P.replace(n=60, d=20, N=20, ridge=0.5, activation="tilted_sin", initial_output=output)
    more = simulate.plateaus(p, [0, 1, 1.5, 2], trials=600, seed=4, moments=True)
    plain = simulate.plateaus(p, [0, 1, 1.5, 2], trials=10, seed=4)
    np.testing.assert_array_equal(more.train[:10], plain.train)
    np.testing.assert_array_equal(more.variates[:10, :7], plain.variates)
    assert more.variates.shape == (600, 7 + 3 * 2)
    found = more.variates[:, 7:]
    assert np.all(np.abs(found.mean(0)) < 4.5 * found.std(0) / np.sqrt(600))
    np.testing.assert_allclose(np.var(found[:, :3], axis=0), 1 / p.n, rtol=0.4)
    stair = more.train[:, 1] - more.train[:, 3]
    assert estimates.controlled(stair, more.variates).se < 0.9 * estimates.controlled(stair, more.variates[:, :7]).se


def test_a_spike_at_its_threshold_has_the_predicted_strength():
    got = simulate.plateaus(P.replace(activation="tilted_sin"), [1.5], trials=1, seed=6)
    p = P.replace(activation="tilted_sin")
    now = simulate.draw(p, simulate.key(6, 0))
    beta = now.X.T @ now.y / p.n
    q = now.a / np.linalg.norm(now.a)
    F0, z = p.student(now.X2 @ now.W0.T), now.X2 @ beta
    born = p.student.coefficients(2)[2] * (p.student.linear * p.n**0.25) ** 2 * now.a**2
    F = np.column_stack([F0 - np.outer(F0 @ q, q) + np.outer(z**2, born - q * (q @ born)), 1e5 * z])
    assert got.train[0, 0] == pytest.approx(simulate.ridge(F, now.y2, p.ridge)[1], rel=1e-8)


def test_plateau_at_a_threshold_by_explicit_features():
    p = P.replace(activation=(0.0, 1.0, 0.4))
    got = simulate.plateaus(p, [1.5], trials=1, seed=4)
    now = simulate.draw(p, simulate.key(4, 0))
    beta = now.X.T @ now.y / p.n
    length, q = np.linalg.norm(beta), now.a / np.linalg.norm(now.a)
    hidden = 0.4 * (p.n**0.25 * length) ** 2 * now.a**2
    hidden -= q * (q @ hidden)

    def limit_features(X):
        F0, z = p.student(X @ now.W0.T), X @ beta / length
        return np.column_stack([F0 - np.outer(F0 @ q, q) + np.outer(z**2, hidden), 1e5 * z])

    a, train = simulate.ridge(limit_features(now.X2), now.y2, p.ridge)
    assert got.train[0, 0] == pytest.approx(train, rel=1e-8)
    X, y = simulate.sample(p, now.beta_star, np.random.default_rng(8), size=60_000)
    errors = (y - limit_features(X) @ a) ** 2
    assert abs(got.test[0, 0] - errors.mean()) < 4 * errors.std() / np.sqrt(errors.size)


def test_a_spike_without_strength_changes_nothing_at_its_threshold():
    got = simulate.plateaus(P, [2, 2.5], trials=1, seed=4)  # c_3 of the shifted ReLU is 0
    assert got.test[0, 1] == pytest.approx(got.test[0, 0], rel=1e-9)
    assert got.train[0, 1] == pytest.approx(got.train[0, 0], rel=1e-9)


def test_redraws_average_replicates_that_share_the_first_layer_and_the_second_inputs():
    rng = simulate.key(5, 0)
    draws = [simulate.draw(P, rng)]
    draws += [simulate.redraw(P, draws[0], rng) for _ in range(2)]
    assert all(now.W0 is draws[0].W0 and now.X2 is draws[0].X2 for now in draws)
    assert len({now.a[0] for now in draws}) == len({now.X[0, 0] for now in draws}) == 3
    got = simulate.plateaus(P, [0, 1], trials=1, seed=5, redraws=3)
    losses = []
    for now in draws:
        F0, q = P.student(now.X2 @ now.W0.T), now.a / np.linalg.norm(now.a)
        F1 = np.column_stack([F0 - np.outer(F0 @ q, q), 1e5 * now.X2 @ (now.X.T @ now.y / P.n)])
        losses.append([simulate.ridge(F, now.y2, P.ridge)[1] for F in (F0, F1)])
        assert np.linalg.norm(now.beta_star) == pytest.approx(1)
    np.testing.assert_allclose(got.train[0], np.mean(losses, axis=0), rtol=1e-8)
    variates = [simulate.control_variates.variates(P, now, now.y2[:, None]) for now in draws]
    np.testing.assert_allclose(got.variates[0], np.mean(variates, axis=0))


def test_redraws_keep_the_law_of_the_readout_and_the_size_of_the_first_sample():
    p, rng = P.replace(readout=[0.6, 1.64**0.5], step_samples=30), simulate.key(7, 0)
    first = simulate.draw(p, rng)
    for now in (first, simulate.redraw(p, first, rng)):
        np.testing.assert_allclose(np.unique(now.a) * np.sqrt(p.N), p.readout)
        assert now.X.shape == (30, p.d) and now.y.shape == (30,)


@pytest.mark.parametrize(
    ("orders", "options", "message"),
    [
        ([0], {"redraws": 0}, "redraws = 0"),
        (2, {}, "orders = 2: must be a list"),
        ([], {}, r"orders = \[\]: must be a list"),
        ([0, 1.2], {}, "orders = 1.2"),
        ([0, 3], {}, "c_3 = 0, so that no step bears spike 3"),
    ],
)
def test_bad_input_is_named(orders, options, message):
    with pytest.raises(ValueError, match=message):
        simulate.plateaus(P, orders, trials=1, **options)
