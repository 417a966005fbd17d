from math import log, sqrt

import numpy as np
import pytest

from onestep import Problem, hermite, simulate, theory

BASE = Problem(1000, 300, 500, noise=1.0)
UNSEEN = BASE.replace(activation=(0.0, 0.0, 1.0))
_MEAN = hermite.Function(lambda z: np.sin(1.5 * z + 0.8)).mean
WAVE = hermite.Function(lambda z: np.sin(1.5 * z + 0.8) - _MEAN, lambda z: 1.5 * np.cos(1.5 * z + 0.8), name="wave")
SHAPES = [(1000, 300, 500), (1000, 300, 200), (400, 800, 600), (500, 250, 1500)]


def first_layer(p, eta, seed):
    """W, a and β of one replicate."""
    now = simulate.draw(p, simulate.key(seed))
    return now.W0 + eta * simulate.gradient(p, now), now.a, simulate.direction(p, now)


def spectrum(p, eta, count, seed):
    """The leading singular values of F/√n, and squared cosines of left vectors with z, …, z^count and 1."""
    now = simulate.draw(p, simulate.key(seed))
    F = simulate.features(p, now.X2 @ now.W0.T, now.X2 @ simulate.gradient(p, now).T, eta)
    z = now.X2 @ simulate.direction(p, now)
    basis = np.linalg.qr((z / np.std(z))[:, None] ** [*range(1, count + 1), 0])[0]
    left, values, _ = np.linalg.svd(F, full_matrices=False)
    return values[:count] / sqrt(p.n), (left[:, :count].T @ basis) ** 2


def mean(samples):
    return np.mean(samples, axis=0), np.std(samples, axis=0, ddof=1) / sqrt(len(samples))


@pytest.mark.parametrize("shape", SHAPES)
def test_bulks_end_where_those_of_random_matrices_do(shape):
    p = Problem(*shape, activation="tanh")
    assert theory.spectra.features(p).edge == pytest.approx(spectrum(p, 0.0, 1, seed=1)[0][0], rel=0.03)


def test_the_turn_is_the_minimum_of_x():
    law = theory.spectra.features(BASE, 12.0)
    x = [law.at(law.turn * (1 + h))[0] for h in (-1e-3, 0.0, 1e-3)]
    assert law.turn > law.top
    assert x[1] < min(x[0], x[2])
    assert law.at(law.turn)[1] == pytest.approx(0, abs=1e-9)
    slope = (law.at(1.5 * law.turn * (1 + 1e-6))[0] - law.at(1.5 * law.turn * (1 - 1e-6))[0]) / 3e-6 / law.turn
    assert law.at(1.5 * law.turn)[1] == pytest.approx(slope, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("output", ["negligible", "full"])
@pytest.mark.parametrize("layer", ["sphere", "gaussian"])
def test_spikes_of_features_against_simulation(layer, output):
    p = Problem(1200, 360, 300, activation=WAVE, first_layer=layer, initial_output=output)
    for alpha in (0.38, 0.44):
        found = theory.spectra.feature_spikes(p, p.n**alpha, 2)
        values, overlap = zip(*(spectrum(p, p.n**alpha, 2, seed) for seed in range(10)), strict=True)
        measured, error = mean(values)
        assert np.all(np.abs(measured - found.value[0]) < 4 * error + 0.02 * measured)
        measured, error = mean(overlap)
        assert np.all(np.abs(measured - found.overlap[0]) < 4 * error + 0.02)


@pytest.mark.parametrize("output", ["negligible", "full"])
def test_the_sign_of_the_activation_does_not_matter(output):
    p = Problem(1000, 300, 400, activation=(0, 0.6, 0.3, 0.1), initial_output=output)
    flipped = p.replace(activation=(0, -0.6, 0.3, -0.1))
    one, other = (theory.spectra.feature_spikes(q, 12.0, 2) for q in (p, flipped))
    np.testing.assert_allclose(one.value, other.value, rtol=1e-9)
    np.testing.assert_allclose(one.overlap, other.overlap, rtol=1e-7, atol=1e-12)


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


@pytest.mark.slow
def test_a_linear_network_close_to_its_transition():
    p, eta = Problem(800, 240, 400, activation=(0, 1.0)), 1.6
    found, samples = theory.spectra.feature_spikes(p, eta, 1), []
    for seed in range(32):
        values, overlap = spectrum(p, eta, 1, seed)
        samples.append([values[0], overlap[0, 0]])
    measured, error = mean(samples)
    assert found.value[0, 0] < 1.1 * theory.spectra.features(p, eta).edge
    assert np.all(np.abs(measured - [found.value[0, 0], found.overlap[0, 0, 0]]) < 4 * error + 0.02)
    assert np.all(error < 0.04)
    assert np.isnan(theory.spectra.feature_spikes(p, 0.5 * eta, 1).value).all()


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


@pytest.mark.slow
def test_spikes_emerge_in_order_and_their_exponents_tend_to_the_thresholds():
    """Theorem: spike k emerges at (k - 1)/2k; at finite n later, by about a constant over log n."""
    p, exponents = Problem(10**4, 3000, 5000, activation=WAVE), []
    for n in (10**4, 10**10, 10**20):
        alpha = np.linspace(0, 0.49, 50)
        counts = theory.visible(p.scaled(n), float(n) ** alpha, 3)
        exponents.append([alpha[np.argmax(counts >= k)] for k in (1, 2, 3)])
    exponents = np.array(exponents)
    assert np.all(np.diff(exponents, axis=1) > 0)
    away = exponents - [0, 1 / 4, 1 / 3]
    assert np.all(away > 0) and np.all(np.diff(away, axis=0) < 0)
    np.testing.assert_allclose(away[2] * log(1e20), away[1] * log(1e10), atol=0.25)


@pytest.mark.slow
@pytest.mark.parametrize(("layer", "number"), [("sphere", 1), ("gaussian", 2)])
def test_lengths_of_inputs_and_of_gaussian_rows_each_show_a_spike_before_any_step(layer, number):
    even = Problem(1000, 100, 1000, activation=(0, 0.3, 1.0), first_layer=layer)
    found = theory.spectra.feature_spikes(even, 0.0, 3).value[0]
    measured = np.mean([spectrum(even, 0.0, 4, seed)[0] for seed in range(4)], axis=0)
    assert np.isnan(found).tolist() == [False] * number + [True] * (3 - number)
    assert np.mean(measured[:number]) == pytest.approx(found[0], rel=0.03)
    assert measured[number - 1] > 1.3 * measured[number]


def test_a_spike_exactly_at_its_threshold_is_not_out_of_the_bulk():
    p = Problem(4000, 400, 800, activation=(0, 1, 1.0), first_layer="gaussian")
    assert np.isnan(theory.spectra.feature_spikes(p, 0.0, 1).value[0, 0])


def test_visible_spikes_are_counted_with_a_margin():
    p = Problem(600, 180, 150, activation="tilted_sin")
    eta = p.n ** np.array([0.0, 0.25, 0.4])
    sizes = theory.spectra.feature_spikes(p, eta).value
    edges = np.array([theory.spectra.features(p, step).edge for step in eta])
    count = (sizes > (1 + 2 * 600 ** (-2 / 3)) * edges[:, None]).sum(1)
    assert theory.visible(p, eta).tolist() == count.tolist() == [0, 1, 2]
    assert theory.visible(p, eta, 1).tolist() == [0, 1, 1]
    assert theory.visible(p, eta[1]) == 1
    assert np.shape(theory.visible(p, eta[1])) == ()
    assert theory.visible(p.replace(activation=(0.0, 1.0)), [0.0, 50.0]).tolist() == [0, 1]
    assert theory.visible(p.scaled(10**30), 1e12, 3).tolist() == 3


@pytest.mark.parametrize("activation", ["tanh", "tilted_sin"])
def test_spikes_after_steps_beyond_the_root_of_n_do_not_hang_on_the_nodes(activation, monkeypatch):
    p = BASE.replace(activation=activation, teacher=(0, 1, 0.5))
    few = theory.spectra.feature_spikes(p, 200.0, 2).value
    monkeypatch.setattr(theory.spectra, "_NODES", 96)
    assert few == pytest.approx(theory.spectra.feature_spikes(p, 200.0, 2).value, rel=1e-4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: theory.spectra.feature_spikes(BASE, 1.0, count=0), "count"),
        (lambda: theory.spectra.feature_spikes(BASE, 1.0, count=9), "count = 9"),
        (lambda: theory.spectra.feature_spikes(BASE, 1.0, step_noise="colored"), "step_noise"),
        (lambda: theory.spectra.features(UNSEEN), "c_1 = 0"),
        (lambda: theory.visible(BASE, 1.0, 9), "count = 9"),
        (lambda: theory.visible(BASE, -1.0), "eta"),
        (lambda: theory.visible(BASE.scaled(10**33), 1e12), "N = 5e.32: must be at most 1e.30"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
