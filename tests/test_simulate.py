import numpy as np
import pytest

from onestep import Problem, hermite, population, simulate

P = Problem(120, 40, 70, teacher=(0.0, 1.0, 0.5), noise=0.2)


@pytest.mark.parametrize("output", ["negligible", "full"])
@pytest.mark.parametrize("activation", ["tanh", "softplus"])
def test_gradient_against_differences_of_the_loss(output, activation):
    p = P.replace(initial_output=output, activation=activation)
    now = simulate.draw(p, simulate.key(0))

    def loss(W):
        f = p.student(now.X @ W.T) @ now.a
        if output == "negligible":  # the part of the loss that is linear in the output
            return -now.y @ f / p.n
        return np.sum((now.y - f) ** 2) / (2 * p.n)

    G = simulate.gradient(p, now)
    rng = np.random.default_rng(1)
    for _ in range(3):
        V = rng.standard_normal(G.shape)
        slope = (loss(now.W0 + 1e-5 * V) - loss(now.W0 - 1e-5 * V)) / 2e-5
        assert -np.sum(G * V) == pytest.approx(slope, rel=1e-6)


@pytest.mark.parametrize("layer", ["sphere", "gaussian"])
def test_draw_follows_the_problem(layer):
    p = P.replace(first_layer=layer, n=2000, d=100, N=400)
    now = simulate.draw(p, simulate.key(5))
    assert np.linalg.norm(now.beta_star) == pytest.approx(1)
    norms = np.linalg.norm(now.W0, axis=1)
    assert norms.mean() == pytest.approx(1, abs=0.02)
    assert (norms.std() < 1e-12) == (layer == "sphere")
    assert now.y2.shape == (2000,)
    assert np.var(now.y) == pytest.approx(p.label_power, rel=0.2)
    assert not np.allclose(now.X, now.X2)
    assert np.linalg.norm(now.a) == pytest.approx(1, abs=0.2)


@pytest.mark.parametrize("N", [30, 120, 300])
def test_ridge_in_primal_and_dual_is_the_minimiser(N):
    rng = np.random.default_rng(N)
    F, y = rng.standard_normal((120, N)), rng.standard_normal(120)
    a, train = simulate.ridge(F, y, 0.05)
    np.testing.assert_allclose(F.T @ (F @ a - y) / 120 + 0.05 * a, 0, atol=1e-12)
    resolvent = np.linalg.inv(F @ F.T + 0.05 * 120 * np.eye(120))
    assert train == pytest.approx(0.05 * y @ resolvent @ y, rel=1e-10)


def test_losses_by_the_definition():
    """One replicate written out: new W, new features, explicit inverse."""
    eta = [0.0, 1.5, 6.0]
    got = simulate.losses(P, eta, trials=1, seed=4)
    now = simulate.draw(P, simulate.key(4, 0))
    G = simulate.gradient(P, now)
    for j, step in enumerate(eta):
        F = P.student(now.X2 @ (now.W0 + step * G).T)
        a = np.linalg.inv(F.T @ F / P.n + P.ridge * np.eye(P.N)) @ F.T @ now.y2 / P.n
        train = np.mean((now.y2 - F @ a) ** 2) + P.ridge * a @ a
        assert got.train[0, j] == pytest.approx(train, rel=1e-9)
        rng = np.random.default_rng(9)
        X, y = simulate.sample(P, now.beta_star, rng, 200_000)
        errors = (y - P.student(X @ (now.W0 + step * G).T) @ a) ** 2
        assert abs(got.test[0, j] - errors.mean()) < 4 * errors.std() / np.sqrt(errors.size)


@pytest.mark.parametrize("activation", ["shifted_relu", "tanh", "erf", "tilted_sin", (0.0, 1.0, 0.3, -0.2)])
@pytest.mark.parametrize("teacher", [(0.0, 1.0, 0.5), "tanh", "shifted_relu"])
def test_population_error_is_the_mean_over_fresh_samples(activation, teacher):
    p = P.replace(activation=activation, teacher=teacher, first_layer="gaussian")
    eta = [0.0, 4.0]
    exact = simulate.losses(p, eta, trials=1, seed=2).test[0]
    samples = np.array([_fresh_error(p, eta, 2, k) for k in range(8)])
    assert np.all(np.abs(samples.mean(0) - exact) < 4.5 * samples.std(0, ddof=1) / np.sqrt(8) + 1e-12)


def _fresh_error(p, eta, seed, stream):
    now = simulate.draw(p, simulate.key(seed, 0))
    G = simulate.gradient(p, now)
    X, y = simulate.sample(p, now.beta_star, simulate.key(99, stream), 20_000)
    out = []
    for step in eta:
        a, _ = simulate.ridge(p.student(now.X2 @ (now.W0 + step * G).T), now.y2, p.ridge)
        out.append(np.mean((y - p.student(X @ (now.W0 + step * G).T) @ a) ** 2))
    return out


@pytest.mark.parametrize("name", sorted(hermite.NAMED))
def test_gram_against_two_dimensional_quadrature(name):
    f = hermite.NAMED[name]
    products = np.array([[1.0, 0.4, -0.9], [0.4, 2.0, 0.3], [-0.9, 0.3, 1.5]])
    K = population.gram(f, products.copy())
    for i, j in [(0, 1), (0, 2), (1, 2)]:
        r, s = np.sqrt(products[i, i]), np.sqrt(products[j, j])
        c = products[i, j] / (r * s)
        x, w = np.polynomial.hermite_e.hermegauss(120)
        w = w / w.sum()
        inner = f.moments(s * c * x, s * np.sqrt(1 - c**2))[0]
        g, weight = f.nodes(0.0, 1.0)
        inner_at = f.moments(s * c * g, s * np.sqrt(1 - c**2))[0]
        assert K[i, j] == pytest.approx((weight * f(r * g) * inner_at).sum(), abs=1e-8)
        assert inner.shape == x.shape
    np.testing.assert_allclose(K, K.T, atol=1e-12)


def test_unresolved_series_asks_for_a_test_sample():
    jump = hermite.Function(np.sign, derivative=np.zeros_like, kinks=(0.0,))
    products = np.array([[1.0, 0.999], [0.999, 1.0]])
    with pytest.raises(ValueError, match="test_size"):
        population.gram(jump, products)


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


def test_shapes():
    assert simulate.losses(P, 1.0, trials=3).train.shape == (3,)
    assert simulate.losses(P, [0.0, 1.0], trials=3).test.shape == (3, 2)
    assert simulate.losses(P, [0.0, 1.0], trials=2, test_size=50).test.shape == (2, 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: simulate.losses(P, -1.0), "eta = -1.0"),
        (lambda: simulate.losses(P, 1.0, trials=0), "trials = 0"),
        (lambda: simulate.losses(P, 1.0, seed=-1), "seed = -1"),
        (lambda: simulate.losses(P, 1.0, seed=(1, 0.5)), "seed = 0.5"),
        (lambda: simulate.plateaus(P, [1], seed="a"), "seed = 'a'"),
        (lambda: simulate.plateaus(P, ["a"]), "orders = 'a'"),
        (lambda: simulate.plateaus(P, [0.5]), "orders = 0.5"),
        (lambda: simulate.plateaus(P, [1.3]), "orders = 1.3"),
        (lambda: simulate.losses(P, 1.0, jobs=0.5), "jobs = 0.5"),
        (lambda: simulate.losses(P, 1.0, test_size=0), "test_size = 0"),
        (lambda: simulate.losses(P.scaled(10**9), 1.0), r"not enough memory: this size needs .* GiB"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


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


def test_leave_one_out_by_leaving_one_out():
    rng = np.random.default_rng(0)
    F, y = rng.standard_normal((25, 8)), rng.standard_normal(25)
    expected = []
    for i in range(25):
        keep = np.arange(25) != i
        a = np.linalg.solve(F[keep].T @ F[keep] + 0.1 * 25 * np.eye(8), F[keep].T @ y[keep])
        expected.append(y[i] - F[i] @ a)
    np.testing.assert_allclose(simulate.leave_one_out(F, y, 0.1), expected, rtol=1e-10)
