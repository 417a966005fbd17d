from math import log, sqrt

import numpy as np
import pytest

from onestep import Problem, estimates, hermite, simulate, theory

BASE = Problem(1000, 300, 500, noise=1.0)
UNSEEN = BASE.replace(activation=(0.0, 0.0, 1.0))
_MEAN = hermite.Function(lambda z: np.sin(1.5 * z + 0.8)).mean
WAVE = hermite.Function(lambda z: np.sin(1.5 * z + 0.8) - _MEAN, lambda z: 1.5 * np.cos(1.5 * z + 0.8), name="wave")
SHAPES = [(1000, 300, 500), (1000, 300, 200), (400, 800, 600), (500, 250, 1500)]


@pytest.mark.parametrize("shape", SHAPES)
def test_without_growth_the_law_of_weights_is_marchenko_pastur(shape):
    p = Problem(*shape)
    law, c = theory.spectra.weights(p), 1 / p.psi
    low, high = abs(sqrt(c) - 1), sqrt(c) + 1
    assert law.edge == pytest.approx(high, rel=1e-10)
    s = np.linspace(low + 0.05, high - 0.05, 20)
    density = np.sqrt((high**2 - s**2) * (s**2 - low**2)) / (np.pi * s) / min(1, c)
    np.testing.assert_allclose(law.density(s), density, rtol=1e-4)


@pytest.mark.parametrize("shape", SHAPES)
def test_laws_hold_for_random_matrices(shape):
    p = Problem(*shape, activation="tanh", noise=1.0)
    measured = simulate.spectra.feature_spectrum(p, [0.0], seed=1, trials=1).values[0, 0]
    law = theory.spectra.features(p)
    assert measured[0] == pytest.approx(law.edge, rel=0.03)
    grid = np.linspace(0.02, 1.1, 2500) * law.edge
    density = law.density(grid)
    share = np.cumsum(density) * (grid[1] - grid[0])
    assert share[-1] == pytest.approx(1, abs=0.02)
    for part in (0.2, 0.4, 0.8):
        assert grid[share.searchsorted(part)] == pytest.approx(np.quantile(measured, part), rel=0.05, abs=0.02)


def test_rows_of_unequal_length_widen_the_bulk():
    p = BASE.replace(d=600)
    measured = simulate.spectra.weight_spectrum(p, 16.0, trials=2, seed=2).values[:, 0, 1:]
    edge = theory.spectra.weights(p, 16.0).edge
    assert edge > theory.spectra.weights(p, 16.0, step_noise="absent").edge + 0.1
    second_moment = np.mean(np.sum(measured**2, axis=1)) / p.N
    assert second_moment == pytest.approx(1 + 16.0**2 / p.N * p.row_growth, rel=0.02)
    assert measured.max() > theory.spectra.weights(p).edge + 0.1


@pytest.mark.parametrize("psi", [0.3, 0.6, 2.0])
def test_spike_of_weights_in_closed_form(psi):
    p = Problem(1000, 300, round(300 / psi))
    c = 1 / p.psi
    eta = theory.spectra.weight_threshold(p) * np.array([0.5, 0.99, 1.01, 1.5, 4.0])
    theta = eta * p.student.linear * sqrt(p.D)
    found = theory.spectra.weight_spike(p, eta, step_noise="absent")
    assert np.isnan(found.value[:2]).all() and np.isnan(found.left[:2]).all()
    t = theta[2:]
    np.testing.assert_allclose(found.value[2:] ** 2, (1 + t**2) * (c + t**2) / t**2, rtol=1e-9)
    np.testing.assert_allclose(found.left[2:], (t**4 - c) / (t**2 * (t**2 + c)), rtol=1e-7)
    np.testing.assert_allclose(found.right[2:], (t**4 - c) / (t**2 * (t**2 + 1)), rtol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("output", ["negligible", "full"])
@pytest.mark.parametrize("layer", ["sphere", "gaussian"])
def test_spike_of_weights_against_simulation(output, layer):
    p = BASE.replace(initial_output=output, first_layer=layer)
    eta = np.array([3.0, 5.0, 12.0])
    measured, found = simulate.spectra.weights(p, eta, trials=8, seed=3), theory.spectra.weight_spike(p, eta)
    for name in ("first", "left", "right"):
        samples = getattr(measured, name)
        predicted = found.value if name == "first" else getattr(found, name)
        error = samples.std(0, ddof=1) / sqrt(8)
        assert np.all(np.abs(samples.mean(0) - predicted) < 4 * error + 0.01), name


def test_full_output_needs_a_larger_step():
    full = BASE.replace(initial_output="full")
    assert np.isnan(theory.spectra.weight_spike(full, 1.99 / full.D).value)
    assert theory.spectra.weight_threshold(full) > theory.spectra.weight_threshold(BASE)
    just = theory.spectra.weight_threshold(full) * np.array([0.999, 1.001])
    assert np.isnan(theory.spectra.weight_spike(full, just, step_noise="absent").value).tolist() == [True, False]


def test_gap_of_the_gradient_falls_a_little_slower_than_the_root_of_n():
    near, far = (theory.spectra.gradient_gap(BASE.scaled(n)) for n in (400, 1600))
    assert -0.5 < log(far / near) / log(4) < -0.4


@pytest.mark.slow
def test_gap_of_the_gradient_follows_its_prediction():
    sizes = [400, 1600]
    plain, predicted = (
        np.array([theory.spectra.gradient_gap(BASE.scaled(n), kind) for n in sizes])
        for kind in ("isotropic", "correlated")
    )
    runs = [
        simulate.spectra.gradients(BASE.scaled(n), trials=trials, seed=4)
        for n, trials in zip(sizes, (60, 20), strict=True)
    ]
    measured = np.array([estimates.controlled(run.gap, run.variates).value for run in runs])
    np.testing.assert_allclose(measured, predicted, rtol=0.03)
    assert np.all(measured > 1.1 * plain)
    assert -0.5 < log(plain[1] / plain[0]) / log(4) < -0.4


@pytest.mark.slow
@pytest.mark.parametrize("output", ["negligible", "full"])
def test_the_bulk_of_weights_ends_where_correlated_noise_says(output):
    p = Problem(600, 600, 300, noise=1.0, initial_output=output)
    eta = np.array([15.0, 30.0])
    run = simulate.spectra.weights(p, eta, trials=20, seed=8)
    measured = estimates.controlled(run.second, run.variates)
    predicted = np.array([theory.spectra.weights(p, step, step_noise="correlated").largest for step in eta])
    plain = np.array([theory.spectra.weights(p, step).largest for step in eta])
    assert np.all(np.abs(measured.value - predicted) < 4 * measured.se + 0.015 * predicted)
    assert np.all(measured.value - 4 * measured.se > 1.04 * plain)


def test_without_a_step_all_kinds_of_noise_agree():
    edges = [theory.spectra.weights(BASE, 0.0, step_noise=kind).edge for kind in ("isotropic", "correlated", "absent")]
    np.testing.assert_allclose(edges, edges[0], rtol=1e-9)
    assert theory.spectra.weights(BASE, 0.0, step_noise="correlated").largest == pytest.approx(
        theory.spectra.weights(BASE).largest, rel=1e-5
    )


@pytest.mark.parametrize("output", ["negligible", "full"])
def test_rows_under_correlated_noise_are_as_long_as_under_isotropic(output):
    p, eta = BASE.replace(activation="softplus", teacher=(0.0, 1.0, 0.5), initial_output=output), 20.0
    law = theory.spectra.weights(p, eta, step_noise="correlated")
    power = np.mean(law.y**2)
    assert power == pytest.approx(p.label_power + (output == "full") * p.student.second_moment)
    start, cross, square, noise = law.mix
    np.testing.assert_allclose(cross**2, 4 * start * square, rtol=1e-12)  # of (1 + tM)²
    assert np.mean(start + p.phi * power * square + power * noise) == pytest.approx(1 + eta**2 / p.N * p.row_growth)


def test_right_overlap_with_the_full_output_in_closed_form():
    """The spike's right vector θβ̂ + e, e = W0ᵀa of norm 1 and at cosine -ρ_0 to β̂, seen through the same bulk."""
    p = BASE.replace(initial_output="full")
    eta = theory.spectra.weight_threshold(p) * np.array([1.05, 1.5, 4.0])
    theta, rho0, c = eta * p.student.linear * sqrt(p.D), p.student.linear / sqrt(p.D), 1 / p.psi
    square = theta**2 - 2 * theta * rho0  # of the strength, in the place of θ²
    expected = (square**2 - c) / square**2 * (theta - rho0) ** 2 / (square + 1)
    np.testing.assert_allclose(theory.spectra.weight_spike(p, eta, step_noise="absent").right, expected, rtol=1e-7)


@pytest.mark.slow
def test_full_output_turns_the_right_vector():
    # W0 + θ a β̂ᵀ with β̂ at cosine -ρ_0 to W0ᵀa, all else random
    p = BASE.replace(initial_output="full")
    eta, rng, found = 1.1 * theory.spectra.weight_threshold(p), np.random.default_rng(11), []
    rho0, theta = p.student.linear / sqrt(p.D), eta * p.student.linear * sqrt(p.D)
    for _ in range(10):
        W0 = rng.standard_normal((1000, 600)) / sqrt(600)
        a = rng.standard_normal(1000) / sqrt(1000)
        e, other = W0.T @ a, rng.standard_normal(600)
        other -= e * (e @ other) / (e @ e)
        beta = sqrt(1 - rho0**2) * other / np.linalg.norm(other) - rho0 * e / np.linalg.norm(e)
        found.append((np.linalg.svd(W0 + theta * np.outer(a, beta), full_matrices=False)[2][0] @ beta) ** 2)
    expected = theory.spectra.weight_spike(p.scaled(10**4), eta, step_noise="absent").right
    assert abs(np.mean(found) - expected) < 4 * np.std(found) / sqrt(10)
    assert np.std(found) / sqrt(10) < 0.02


@pytest.mark.slow
@pytest.mark.parametrize("layer", ["sphere", "gaussian"])
def test_spikes_of_features_against_simulation(layer):
    p = Problem(1600, 480, 800, activation=WAVE, first_layer=layer)
    eta = p.n ** np.array([0.32, 0.4, 0.46])
    found = theory.spectra.feature_spikes(p, eta, 2)
    measured = simulate.spectra.features(p, eta, 2, order=2, trials=4, seed=5)
    mean, error = measured.values.mean(0), measured.values.std(0, ddof=1) / 2
    out = np.isfinite(found.value)
    assert out.sum() >= 4
    assert np.all(np.abs(mean - found.value)[out] < (4 * error + 0.06 * found.value)[out])
    last = measured.overlap[:, -1].mean(0)
    np.testing.assert_allclose(last, found.overlap[-1], atol=0.08)


@pytest.mark.slow
@pytest.mark.parametrize("layer", ["sphere", "gaussian"])
def test_spikes_of_features_with_the_full_output_against_simulation(layer):
    p = Problem(1200, 360, 300, activation=WAVE, first_layer=layer, initial_output="full")
    eta = p.n ** np.array([0.38, 0.44])
    found = theory.spectra.feature_spikes(p, eta, 2)
    plain = theory.spectra.feature_spikes(p.replace(initial_output="negligible"), eta, 2)
    run = simulate.spectra.features(p, eta, 1, order=2, trials=16, seed=12)
    value, overlap = estimates.controlled(run.values, run.variates), estimates.mean(run.overlap)
    assert np.all(np.abs(value.value - found.value[:, :1]) < 4 * value.se + 0.015 * found.value[:, :1])
    assert np.all(value.value - 4 * value.se > plain.value[:, :1])
    assert np.all(np.abs(overlap.value - found.overlap[:, :1]) < 4 * overlap.se + 0.02)


@pytest.mark.parametrize("output", ["negligible", "full"])
def test_the_sign_of_the_activation_does_not_matter(output):
    p = Problem(1000, 300, 400, activation=(0, 0.6, 0.3, 0.1), initial_output=output)
    flipped = p.replace(activation=(0, -0.6, 0.3, -0.1))
    one, other = (theory.spectra.feature_spikes(q, 12.0, 2) for q in (p, flipped))
    np.testing.assert_allclose(one.value, other.value, rtol=1e-9)
    np.testing.assert_allclose(one.overlap, other.overlap, rtol=1e-7, atol=1e-12)
    one, other = (theory.spectra.weight_spike(q, 12.0) for q in (p, flipped))
    assert one == other


def test_after_a_large_step_the_initial_output_does_not_matter():
    # the spike of W at equal strength θ² - 2θρ_0, and F built on it with the noise of the step left out
    p = Problem(10**6, 3 * 10**5, 10**6, activation=WAVE)
    full = p.replace(initial_output="full")
    rho0 = abs(full.student.linear) / sqrt(full.D)
    theta = 40.0
    short = sqrt(theta**2 - 2 * theta * rho0 + 1)
    one = theory.spectra.feature_spikes(p, short / (abs(p.student.linear) * sqrt(p.D)), 1, step_noise="absent")
    two = theory.spectra.feature_spikes(full, theta / (abs(p.student.linear) * sqrt(full.D)), 1, step_noise="absent")
    assert two.value == pytest.approx(one.value, rel=1e-3)
    assert two.overlap[0, 0, 0] == pytest.approx(((theta - rho0) / short) ** 2 * one.overlap[0, 0, 0], rel=1e-3)


def test_the_bulk_of_features_keeps_mean_squares():
    p, eta = BASE.replace(activation="tanh"), 20.0
    s, growth = eta * p.student.linear * sqrt(p.D / p.N), eta**2 / p.N * p.row_growth
    x, w = np.polynomial.hermite_e.hermegauss(40)
    w = w / w.sum()
    u, z, g = x[:, None, None], x[None, :, None], x[None, None, :]
    values = np.tanh(np.sqrt(1 + growth * u**2) * g + s * u * z)
    mean, linear, square = (values * w).sum(-1), (values * g * w).sum(-1), (values**2 * w).sum(-1)
    slope = w @ linear**2 @ w
    tail = w @ (square - mean**2 - linear**2) @ w
    assert theory.spectra.features(p, eta).top == pytest.approx(tail + slope * (1 + p.psi**-0.5) ** 2, rel=1e-3)


def test_overlaps_of_a_vector_sum_to_at_most_one():
    for output in ("negligible", "full"):
        p = Problem(2000, 600, 500, activation=WAVE, initial_output=output)
        overlap = theory.spectra.feature_spikes(p, p.n ** np.array([0.35, 0.42, 0.46]), 2).overlap
        assert np.nanmax(overlap.sum(-1)) < 1


def test_the_first_overlap_of_features_against_simulation_close_to_its_transition():
    p = Problem(800, 240, 400, activation=(0, 1.0))
    eta = theory.spectra.birth(p, 1) * np.array([2.0, 3.0])
    found = theory.spectra.feature_spikes(p, eta, 1).overlap[:, 0, 0]
    measured = simulate.spectra.features(p, eta, 1, order=1, trials=8, seed=12).overlap[:, :, 0, 0]
    error = measured.std(0, ddof=1) / sqrt(8)
    assert np.all(np.abs(measured.mean(0) - found) < 4 * error + 0.02)
    assert np.all(error < 0.02)


def test_growth_of_rows_changes_the_second_direction_at_every_size():
    p = Problem(10**14, 3 * 10**13, 5 * 10**13, activation=WAVE)
    q = theory.growth_ratio(p)  # the left vector is (X̃β)^{∘2}/D + q, as n → ∞
    cosine, share = (3 + q) ** 2 / (3 * (2 + (1 + q) ** 2)), 2 / (2 + (1 + q) ** 2)
    assert cosine < 0.9 and share < 0.4
    overlap = theory.spectra.feature_spikes(p, p.n**0.38, 2).overlap[0, 1]
    assert overlap[:2].sum() == pytest.approx(cosine, abs=0.01)
    assert overlap.sum() == pytest.approx(1, abs=0.01)
    # H_2/√2 = √(2/3)·z²/√3 - √(1/3)·(1 - z²/3)√(3/2), and the vector has positive parts along both
    assert (sqrt(2 / 3 * overlap[1]) - sqrt(1 / 3 * overlap[2])) ** 2 == pytest.approx(share, abs=0.01)
    without = theory.spectra.feature_spikes(p, p.n**0.38, 2, step_noise="absent").overlap[0, 1]
    assert without[:2].sum() == pytest.approx(1, abs=0.01)


def test_a_weak_spike_of_features_has_the_rank_one_closed_form():
    p = Problem(2000, 600, 1000, activation=(0, 1.0))
    eta = 1.5 * theory.spectra.birth(p, 1)
    strength = (eta * sqrt(p.D)) ** 2
    value = theory.spectra.feature_spikes(p, eta, 1).value[0, 0]
    # for a linear network F0 = X̃W0ᵀ: 1 = θ² · x · E[1/(x - F0F0ᵀ/n)] seen by X̃β and by a
    d = simulate.spectra.feature_spectrum(p, [0.0], seed=6, trials=1).values[0, 0] ** 2
    x = value**2
    b = (np.sum(1 / (x - d)) + (p.N - len(d)) / x) / p.N
    sigma = np.mean(d)
    assert strength * b > 0.3
    assert x > sigma
    assert np.isnan(theory.spectra.feature_spikes(p, 0.9 * theory.spectra.birth(p, 1), 1).value).all()


@pytest.mark.slow
def test_transitions_come_later_in_order_and_tend_to_the_thresholds():
    p = Problem(10**4, 3000, 5000, activation=WAVE)
    exponents = []
    for n in (10**4, 10**10, 10**20):
        q = p.scaled(n)
        exponents.append([log(theory.spectra.birth(q, k)) / log(n) for k in (1, 2, 3)])
    exponents = np.array(exponents)
    assert np.all(np.diff(exponents, axis=1) > 0)
    away = np.abs(exponents - [0, 1 / 4, 1 / 3])
    assert np.all(np.diff(away, axis=0) < 0)
    np.testing.assert_allclose(away[2] * 20 / (away[1] * 10), 1, atol=0.1)
    before, after = theory.spectra.feature_spikes(p, theory.spectra.birth(p, 2) * np.array([0.999, 1.001]), 2).value
    assert np.isfinite(before).sum() == 1 and np.isfinite(after).sum() == 2


def test_a_gaussian_first_layer_may_show_a_spike_before_any_step():
    even = Problem(4000, 400, 4000, activation=(0, 0.3, 1.0), first_layer="gaussian")
    found = theory.spectra.feature_spikes(even, [0.0], 1).value[0, 0]
    measured = simulate.spectra.feature_spectrum(even.scaled(1000), [0.0], seed=7, trials=1).values[0, 0]
    assert measured[0] == pytest.approx(found, rel=0.1)
    assert measured[0] > 1.1 * measured[1]
    assert np.isnan(theory.spectra.feature_spikes(even.replace(first_layer="sphere"), [0.0], 1).value[0, 0])


def test_visible_spikes_are_those_that_simulated_features_show():
    p = Problem(600, 180, 150, activation="tilted_sin")
    eta = p.n ** np.array([0.0, 0.25, 0.4])
    level, count = theory.spectra.visible_from(p, eta), theory.visible(p, eta)
    values = simulate.spectra.features(p, eta, 4, trials=8, seed=3).values
    assert count.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(np.median((values > level[:, None]).sum(-1), axis=0), count)
    assert level[0] == pytest.approx(theory.spectra.features(p, eta[0]).edge * (1 + 2 * 600 ** (-2 / 3)))
    assert theory.visible(p, eta, 1).tolist() == [0, 1, 1]
    assert theory.visible(p, eta[1]) == 1
    assert np.shape(theory.visible(p, eta[1])) == np.shape(theory.spectra.visible_from(p, eta[1])) == ()
    one_power = p.replace(activation=(0.0, 1.0))
    assert theory.visible(one_power, [0.0, 50.0]).tolist() == [0, 1]


def test_bad_arguments_are_named():
    for call, message in (
        (lambda: theory.spectra.weight_spike(BASE, -1.0), "eta"),
        (lambda: theory.spectra.feature_spikes(BASE, 1.0, count=0), "count"),
        (lambda: theory.spectra.feature_spikes(BASE, 1.0, count=9), "count = 9"),
        (lambda: theory.spectra.weights(BASE, 1.0, step_noise="colored"), "step_noise"),
        (lambda: theory.spectra.weight_spike(BASE, 1.0, step_noise="correlated"), "step_noise = 'correlated'"),
        (lambda: theory.spectra.gradient_gap(BASE, "absent"), "step_noise = 'absent'"),
        (lambda: theory.spectra.birth(BASE.replace(activation=(0, 1.0)), 2), "order = 2: c_2 = 0"),
        (lambda: theory.spectra.birth(UNSEEN, 1), "c_1 = 0"),
        (lambda: theory.spectra.features(UNSEEN), "c_1 = 0"),
        (lambda: theory.spectra.weight_threshold(UNSEEN), "c_1 = 0"),
        (lambda: theory.spectra.gradient_gap(UNSEEN), "c_1 = 0"),
        (lambda: theory.visible(BASE, 1.0, 9), "count = 9"),
        (lambda: theory.visible(BASE, -1.0), "eta"),
        (lambda: simulate.spectra.weights(BASE, [-1.0]), "eta"),
        (lambda: simulate.spectra.features(BASE, [1.0], 0), "count"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
