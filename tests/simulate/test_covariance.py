import numpy as np
import pytest

from onestep import Problem, simulate, theory

P = Problem(120, 36, 60, 0.1, teacher=(0.0, 1.0, 0.5), noise=0.5)
SPECTRUM = 1 / (np.arange(36) + 2.0)
SPECTRUM /= SPECTRUM.mean()


def sgd(now):
    return now.X.T @ now.y / len(now.y)


def test_inputs_have_the_covariance_and_labels_the_teacher():
    draws = []
    simulate.covariance.first_stair(
        P, SPECTRUM, [lambda now: draws.append(now) or sgd(now)], trials=12, redraws=4, jobs=1
    )
    ratio = np.mean([np.mean(now.X**2, axis=0) for now in draws], axis=0) / SPECTRUM
    assert len(draws) == 48 and np.abs(ratio - 1).max() < 0.1
    for now in draws[:4]:
        assert np.sum(SPECTRUM * now.beta_star**2) == pytest.approx(1)
        assert np.std(now.y - P.target(now.X @ now.beta_star)) == pytest.approx(P.noise, rel=0.3)


def test_first_sample_and_readout_are_the_problem_s():
    p, draws = P.replace(step_samples=50, readout=[1.0, -1.0]), []
    simulate.covariance.first_stair(p, SPECTRUM, [lambda now: draws.append(now) or sgd(now)], trials=1, jobs=1)
    assert draws[0].X.shape == (50, p.d)
    np.testing.assert_allclose(np.abs(draws[0].a), p.N**-0.5)


def test_a_flat_spectrum_is_the_first_plateau():
    run = simulate.covariance.first_stair(P, np.ones(36), [sgd], trials=60, seed=3, redraws=4)
    isotropic = simulate.plateaus(P, [0, 1], trials=60, seed=4, redraws=4)
    for one, other in ((run.train, isotropic.train), (run.test, isotropic.test)):
        spread = np.hypot(one.std(0), other.std(0)) / np.sqrt(59)
        assert np.all(np.abs(one.mean(0) - other.mean(0)) < 5 * spread)
    assert run.cosine.mean() == pytest.approx(P.rho, abs=0.03)


def test_the_test_error_is_that_of_fresh_samples():
    """One replicate with the fit written out, and its error on a large sample."""
    p, kept = P.scaled(80), {}
    s = np.ones(p.d)
    s[: p.d // 2], s[p.d // 2 :] = 1.5, 0.5
    run = simulate.covariance.first_stair(
        p, s, [lambda now: kept.setdefault("now", now) and sgd(now)], trials=1, jobs=1
    )
    now, rng = kept["now"], np.random.default_rng(0)
    unit, b = now.a / np.linalg.norm(now.a), sgd(now)
    X = rng.standard_normal((200_000, p.d)) * np.sqrt(s)
    y = p.target(X @ now.beta_star)

    def spiked(X):
        F = p.student(X @ now.W0.T)
        return np.column_stack([F - np.outer(F @ unit, unit), 1e5 * X @ b])

    fitted = spiked(X) @ simulate.ridge(spiked(now.X2), now.y2, p.ridge)[0]
    assert run.test[0, 1] == pytest.approx(np.mean((y - fitted) ** 2) + p.noise**2, rel=0.02)


def test_each_direction_is_scale_free():
    run = simulate.covariance.first_stair(P, SPECTRUM, [sgd, lambda now: -7 * sgd(now)], trials=2)
    assert run.test[:, 1] == pytest.approx(run.test[:, 2], rel=1e-9)
    assert run.cosine[:, 0] == pytest.approx(-run.cosine[:, 1], rel=1e-12)


def test_gain_of_an_own_covariance():
    p, damping = P, theory.covariance.best_damping(P).sample
    run = simulate.covariance.first_stair(
        p,
        SPECTRUM,
        [lambda now: np.linalg.solve(now.X.T @ now.X / p.n + damping * np.eye(p.d), sgd(now))],
        trials=60,
        redraws=4,
    )
    drop = run.test[:, 0] - run.test[:, 1]
    moments = theory.covariance.sample_covariance(p, SPECTRUM, damping)
    predicted = theory.covariance.first_gain(p, SPECTRUM, moments).test
    assert abs(drop.mean() - predicted) < 0.04 * predicted + 4 * drop.std() / np.sqrt(60)


@pytest.mark.parametrize("spectrum", [np.ones(3), np.zeros(36), -np.ones(36), np.full(36, np.inf)])
def test_bad_spectra_are_named(spectrum):
    with pytest.raises(ValueError, match="spectrum of shape"):
        simulate.covariance.first_stair(P, spectrum, [sgd], trials=1)
