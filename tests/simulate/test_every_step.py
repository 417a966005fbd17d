import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermeval

from onestep import Problem, estimates, simulate

P = Problem(120, 40, 70, teacher=(0.0, 1.0, 0.5), noise=0.2)


def _fresh_error(p, eta, seed, stream):
    now = simulate.draw(p, simulate.key(seed, 0))
    G = simulate.gradient(p, now)
    X, y = simulate.sample(p, now.beta_star, simulate.key(99, stream), size=20_000)
    out = []
    for step in eta:
        a, _ = simulate.ridge(p.student(now.X2 @ (now.W0 + step * G).T), now.y2, p.ridge)
        out.append(np.mean((y - p.student(X @ (now.W0 + step * G).T) @ a) ** 2))
    return out


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
        X, y = simulate.sample(P, now.beta_star, rng, size=60_000)
        errors = (y - P.student(X @ (now.W0 + step * G).T) @ a) ** 2
        assert abs(got.test[0, j] - errors.mean()) < 4 * errors.std() / np.sqrt(errors.size)


@pytest.mark.parametrize(
    ("activation", "teacher"),
    [
        ("shifted_relu", "shifted_relu"),
        ("shifted_relu", (0.0, 1.0, 0.5)),
        ("tanh", "shifted_relu"),
        ("tanh", "tanh"),
        ("erf", "tanh"),
        ("tilted_sin", "shifted_relu"),
        ((0.0, 1.0, 0.3, -0.2), (0.0, 1.0, 0.5)),
    ],
)
def test_population_error_is_the_mean_over_fresh_samples(activation, teacher):
    p = P.replace(activation=activation, teacher=teacher, first_layer="gaussian")
    eta = [0.0, 4.0]
    exact = simulate.losses(p, eta, trials=1, seed=2).test[0]
    samples = np.array([_fresh_error(p, eta, 2, k) for k in range(8)])
    assert np.all(np.abs(samples.mean(0) - exact) < 4.5 * samples.std(0, ddof=1) / np.sqrt(8) + 1e-12)


@pytest.mark.slow
def test_redrawn_label_noise_leaves_the_mean_and_shrinks_the_spread():
    p = P.replace(noise=1.5)
    one, many = (simulate.losses(p, [0.0, 3.0], trials=200, seed=6, redraws=k) for k in (1, 12))
    for kind in ("train", "test"):
        a, b = getattr(one, kind), getattr(many, kind)
        assert np.all(np.abs((a - b).mean(0)) < 4 * (a - b).std(0) / np.sqrt(200))
        assert np.all(b.std(0) < 0.8 * a.std(0))
    without = p.replace(noise=0.0)
    np.testing.assert_array_equal(*(simulate.losses(without, 3.0, trials=2, redraws=k).train for k in (1, 5)))


@pytest.mark.slow
def test_means_with_variates_are_the_means_with_smaller_errors():
    p = P.replace(activation="tilted_sin", ridge=0.1, noise=0.0)
    drops = simulate.losses(p, [0.0, 2.0, 5.0], trials=400, seed=7).drops
    few = simulate.losses(p, [0.0, 2.0], trials=6, seed=7)
    for kind, share in (("train", 0.9), ("test", 0.97)):
        samples = getattr(drops, kind)
        assert samples.shape == (400, 2)
        plain, found = estimates.mean(samples), getattr(drops.mean, kind)
        assert np.all(np.abs(plain.value - found.value) < 4 * plain.se)
        assert np.all(found.se < share * plain.se)
        assert getattr(few.mean, kind).dof[0] == 5


@pytest.mark.slow
def test_learned_coefficients_are_those_of_a_large_sample():
    p, eta = P.replace(activation="tanh", teacher="shifted_relu"), [0.0, 8.0]
    got = simulate.losses(p, eta, trials=1, seed=3, degree=3)
    now = simulate.draw(p, simulate.key(3, 0))
    G = simulate.gradient(p, now)
    X = simulate.key(98, 0).standard_normal((200_000, p.d))
    z = X @ now.beta_star
    for j, step in enumerate(eta):
        a, _ = simulate.ridge(p.student(now.X2 @ (now.W0 + step * G).T), now.y2, p.ridge)
        fitted = p.student(X @ (now.W0 + step * G).T) @ a
        for k, size in enumerate((1, 1, 2, 6)):
            samples = fitted * hermeval(z, np.eye(4)[k]) / size
            assert abs(samples.mean() - got.learned[0, j, k]) < 4 * samples.std() / np.sqrt(samples.size)
    np.testing.assert_array_equal(got.test, simulate.losses(p, eta, trials=1, seed=3).test)


def test_shapes():
    assert simulate.losses(P, 1.0, trials=3, degree=2).learned.shape == (3, 3)
    assert simulate.losses(P, [0.0, 1.0], trials=3, degree=2, redraws=2).learned.shape == (3, 2, 3)
    assert not hasattr(simulate.losses(P, 1.0, trials=2), "learned")
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
        (lambda: simulate.losses(P, 1.0, degree=-1), "degree = -1"),
        (lambda: simulate.losses(P, 1.0, degree=1, test_size=10), "without a test_size"),
        (lambda: simulate.losses(P, 1e160, trials=2, test_size=9), "eta: the squares of the features overflow"),
        (lambda: simulate.losses(P.scaled(10**9), 1.0), r"not enough memory: this size needs .* GiB"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
