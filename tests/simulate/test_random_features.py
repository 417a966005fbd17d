import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermeval

from onestep import Problem, estimates, simulate, theory

NARROW = Problem(n=60, d=20, N=30, ridge=0.05, activation="tanh", teacher=(0, 1, 0.5), noise=0.3)
WIDE = NARROW.replace(N=90, activation="shifted_relu")


@pytest.mark.parametrize("p", [NARROW, WIDE])
def test_every_penalty_fits_like_ridge(p):
    now = simulate.draw(p, simulate.key(4, 0))
    F = p.student(now.X2 @ now.W0.T)
    ridges = np.array([1e-3, 0.05, 2.0])
    fits = simulate.random_features.fits(F, now.y2[:, None], ridges)[:, :, 0]
    for a, ridge in zip(fits, ridges, strict=True):
        np.testing.assert_allclose(a, simulate.ridge(F, now.y2, ridge)[0], rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("p", [NARROW, WIDE])
def test_no_penalty_is_the_least_norm_solution(p):
    now = simulate.draw(p, simulate.key(4, 1))
    F = p.student(now.X2 @ now.W0.T)
    expected = np.linalg.lstsq(F, now.y2, rcond=None)[0]
    np.testing.assert_allclose(
        simulate.random_features.fits(F, now.y2[:, None], np.zeros(1))[0, :, 0], expected, rtol=1e-6, atol=1e-8
    )


@pytest.mark.parametrize(
    "p", [NARROW, WIDE, NARROW.replace(first_layer="gaussian")], ids=["narrow", "wide", "gaussian"]
)
def test_path_agrees_with_the_simulated_losses_of_the_untrained_network(p):
    path = simulate.random_features.path(p, p.ridge, trials=3, seed=5)
    np.testing.assert_allclose(path.test[:, 0], simulate.losses(p, 0.0, trials=3, seed=5).test, rtol=1e-8)


@pytest.mark.parametrize("p", [NARROW, WIDE])
def test_learned_coefficients_and_spurious_part_are_those_of_a_large_sample(p):
    path = simulate.random_features.path(p, [0.05], degree=3, trials=1, seed=6)
    rng = simulate.key(6, 0)
    now = simulate.draw(p, rng)
    a = simulate.ridge(p.student(now.X2 @ now.W0.T), now.y2, 0.05)[0]
    X = rng.standard_normal((200_000, p.d))
    fitted, z = p.student(X @ now.W0.T) @ a, X @ now.beta_star
    rest = fitted.copy()
    for k, size in enumerate((1, 1, 2, 6)):
        H = hermeval(z, np.eye(4)[k])
        samples = fitted * H / size
        assert abs(samples.mean() - path.learned[0, 0, k]) < 4 * samples.std() / np.sqrt(len(samples))
        rest -= path.learned[0, 0, k] * H
    assert abs((rest**2).mean() - path.spurious[0, 0]) < 4 * (rest**2).std() / np.sqrt(len(X))


def test_teacher_beyond_the_reported_degree_counts_as_not_learned():
    cubic = NARROW.replace(teacher=(0, 1, 0.5, 0.4))
    short = simulate.random_features.path(cubic, [0.05], degree=1, trials=1, seed=6)
    full = simulate.random_features.path(cubic, [0.05], degree=3, trials=1, seed=6)
    b = full.learned[0, 0]
    folded = 2 * b[2] * (b[2] - 2 * 0.5) + 6 * b[3] * (b[3] - 2 * 0.4)
    assert short.spurious[0, 0] == pytest.approx(full.spurious[0, 0] + folded, rel=1e-9)


def test_untrained_limit_without_a_penalty_has_its_closed_form():
    p = Problem(n=1000, d=300, N=500, ridge=1e-12, teacher=(0, 1, 0.5), noise=0.4)
    expected = (theory.traces(p).T + theory.best_linear(p)) / (1 - p.N / p.n)
    assert theory.untrained_limit(p).test == pytest.approx(expected, rel=1e-9)


def test_redraws_average_over_teachers_and_their_noise():
    one = simulate.random_features.path(NARROW, [0.05, 1.0], trials=200, seed=9)
    many = simulate.random_features.path(NARROW, [0.05, 1.0], trials=200, seed=9, redraws=12)
    for name in ("test", "learned", "spurious"):
        a, b = (estimates.mean(getattr(run, name)) for run in (one, many))
        assert np.all(np.abs(a.value - b.value) < 4.5 * np.hypot(a.se, b.se)), name
    assert np.all(estimates.mean(many.test).se < 0.6 * estimates.mean(one.test).se)


def test_equal_seeds_give_equal_features_whatever_the_noise():
    quiet, loud = (
        simulate.random_features.path(NARROW.replace(noise=noise), [0.05], trials=2, seed=9, redraws=500)
        for noise in (1e-9, 0.3)
    )
    # same features and teachers: the noise adds its power times a factor that is the same for all noises
    louder = simulate.random_features.path(NARROW.replace(noise=0.6), [0.05], trials=2, seed=9, redraws=500)
    np.testing.assert_allclose((louder.test - quiet.test) / (loud.test - quiet.test), 4, rtol=0.1)


@pytest.mark.slow
def test_control_variates_have_mean_zero_and_explain_the_test_error():
    run = simulate.random_features.path(NARROW, [0.05], trials=600, seed=10, redraws=3)
    variates = estimates.mean(run.variates)
    assert np.all(np.abs(variates.value) < 4.5 * variates.se)
    assert estimates.controlled(run.test, run.variates).se[0] < 0.95 * estimates.mean(run.test).se[0]


def test_results_depend_on_the_seed_and_not_on_the_jobs():
    one = simulate.random_features.path(NARROW, [0.0, 0.1], trials=4, seed=7, jobs=1)
    two = simulate.random_features.path(NARROW, [0.0, 0.1], trials=4, seed=7, jobs=2)
    np.testing.assert_array_equal(one.test, two.test)
    assert not np.allclose(one.test, simulate.random_features.path(NARROW, [0.0, 0.1], trials=4, seed=8).test)


@pytest.mark.parametrize(
    ("argument", "value"),
    [("ridges", [-0.1]), ("ridges", [np.nan]), ("degree", -1), ("trials", 0), ("seed", -1), ("redraws", 0)],
)
def test_bad_arguments_are_named(argument, value):
    with pytest.raises(ValueError, match=argument):
        simulate.random_features.path(NARROW, **{"ridges": [0.1], argument: value})
