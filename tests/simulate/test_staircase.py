import numpy as np
import pytest

from onestep import Problem, simulate

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
    X, y = simulate.sample(p, now.beta_star, np.random.default_rng(8), 200_000)
    errors = (y - (p.student(X @ now.W0.T) + 1e4 * np.outer(X @ beta, now.a)) @ a) ** 2
    assert abs(got.test[0, 1] - errors.mean()) < 4 * errors.std() / np.sqrt(errors.size)


def test_plateau_test_error_of_higher_orders_over_a_fresh_sample():
    got = simulate.plateaus(P, [3], trials=1, seed=6)
    now = simulate.draw(P, simulate.key(6, 0))
    direction = now.X.T @ now.y
    direction /= np.linalg.norm(direction)
    Q = np.linalg.qr(now.a[:, None] ** [1, 2, 3])[0]

    def limit_features(X):
        F0 = P.student(X @ now.W0.T)
        return np.column_stack([F0 - F0 @ Q @ Q.T, 1e3 * (X @ direction)[:, None] ** [1, 2, 3]])

    a, train = simulate.ridge(limit_features(now.X2), now.y2, P.ridge)
    X, y = simulate.sample(P, now.beta_star, np.random.default_rng(8), 200_000)
    errors = (y - limit_features(X) @ a) ** 2
    assert got.train[0, 0] == pytest.approx(train, rel=1e-8)
    assert abs(got.test[0, 0] - errors.mean()) < 4 * errors.std() / np.sqrt(errors.size)
