from math import log, sqrt

import numpy as np
import pytest

from onestep import Problem, hermite, simulate, theory

BASE = Problem(1000, 300, 500, noise=1.0)
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
    measured = simulate.spectra.feature_spectrum(p, [0.0], seed=1)[0]
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
    measured = simulate.spectra.weight_spectrum(p, 16.0, 2, seed=2)[:, 1:]
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


@pytest.mark.parametrize("output", ["negligible", "full"])
@pytest.mark.parametrize("layer", ["sphere", "gaussian"])
def test_spike_of_weights_against_simulation(output, layer):
    p = BASE.replace(initial_output=output, first_layer=layer)
    eta = np.array([3.0, 5.0, 12.0])
    measured, found = simulate.spectra.weights(p, eta, 8, seed=3), theory.spectra.weight_spike(p, eta)
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


def test_gap_of_the_gradient_follows_its_prediction():
    sizes = [400, 1600]
    predicted = [theory.spectra.gradient_gap(BASE.scaled(n)) for n in sizes]
    measured = [simulate.spectra.gradients(BASE.scaled(n), 4, seed=4).gap.mean() for n in sizes]
    assert measured[0] / predicted[0] == pytest.approx(measured[1] / predicted[1], rel=0.08)
    assert 1 < measured[1] / predicted[1] < 1.3
    assert -0.5 < log(predicted[1] / predicted[0]) / log(4) < -0.4


@pytest.mark.parametrize("layer", ["sphere", "gaussian"])
def test_spikes_of_features_against_simulation(layer):
    p = Problem(1600, 480, 800, activation=WAVE, first_layer=layer)
    eta = p.n ** np.array([0.32, 0.4, 0.46])
    found = theory.spectra.feature_spikes(p, eta, 2)
    measured = simulate.spectra.features(p, eta, 2, 2, trials=4, seed=5)
    mean, error = measured.values.mean(0), measured.values.std(0, ddof=1) / 2
    out = np.isfinite(found.value)
    assert out.sum() >= 4
    assert np.all(np.abs(mean - found.value)[out] < (4 * error + 0.06 * found.value)[out])
    last = measured.overlap[:, -1].mean(0)
    np.testing.assert_allclose(last, found.overlap[-1], atol=0.08)


def test_growth_of_rows_bends_the_second_direction_at_every_size():
    p = Problem(10**14, 3 * 10**13, 5 * 10**13, activation=WAVE)
    cosine, share = theory.spectra.second_spike(p)
    assert cosine < 0.9 and share < 0.4
    overlap = theory.spectra.feature_spikes(p, p.n**0.38, 2).overlap[0, 1]
    assert overlap[:2].sum() == pytest.approx(cosine, abs=0.01)
    assert overlap.sum() == pytest.approx(1, abs=0.01)
    without = theory.spectra.feature_spikes(p, p.n**0.38, 2, step_noise="absent").overlap[0, 1]
    assert without[:2].sum() == pytest.approx(1, abs=0.01)


def test_a_weak_spike_of_features_has_the_rank_one_closed_form():
    p = Problem(2000, 600, 1000, activation=(0, 1.0))
    eta = 1.5 * theory.spectra.birth(p, 1)
    strength = (eta * sqrt(p.D)) ** 2
    value = theory.spectra.feature_spikes(p, eta, 1).value[0, 0]
    # for a linear network F0 = X̃W0ᵀ: 1 = θ² · x · E[1/(x - F0F0ᵀ/n)] seen by X̃β and by a
    d = simulate.spectra.feature_spectrum(p, [0.0], seed=6)[0] ** 2
    x = value**2
    b = (np.sum(1 / (x - d)) + (p.N - len(d)) / x) / p.N
    sigma = np.mean(d)
    assert strength * b > 0.3
    assert x > sigma
    assert np.isnan(theory.spectra.feature_spikes(p, 0.9 * theory.spectra.birth(p, 1), 1).value).all()


def test_births_come_later_in_order_and_tend_to_the_thresholds():
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
    measured = simulate.spectra.feature_spectrum(even.scaled(1000), [0.0], seed=7)[0]
    assert np.isfinite(found) == (measured[0] > 1.1 * measured[1])
    assert np.isnan(theory.spectra.feature_spikes(even.replace(first_layer="sphere"), [0.0], 1).value[0, 0])


def test_bad_arguments_are_named():
    for call, message in (
        (lambda: theory.spectra.weight_spike(BASE, -1.0), "eta"),
        (lambda: theory.spectra.feature_spikes(BASE, 1.0, count=0), "count"),
        (lambda: theory.spectra.feature_spikes(BASE, 1.0, count=9), "count = 9"),
        (lambda: theory.spectra.feature_spikes(BASE.replace(initial_output="full"), 1.0), "initial_output"),
        (lambda: theory.spectra.birth(BASE.replace(activation=(0, 1.0)), 2), "order = 2"),
        (lambda: simulate.spectra.weights(BASE, [-1.0]), "eta"),
        (lambda: simulate.spectra.features(BASE, [1.0], 0), "count"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
