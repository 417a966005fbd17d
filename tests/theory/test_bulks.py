from math import sqrt

import numpy as np
import pytest

from onestep import Problem, theory
from onestep.theory.bulks import SampledRows

SHAPES = [(120, 240), (200, 150)]  # d, N


def rows(mix, X, y, rng):
    """W of rows (a_i + b_i M) w_i + √(v_i/d) C^{1/2} g_i, with M and C of the sample: mix = (a², 2ab, b², v)."""
    n, d = X.shape
    start, slope, loud = np.sqrt(mix[0]), mix[1] / (2 * np.sqrt(mix[0])), np.sqrt(mix[3])
    w = rng.standard_normal((mix.shape[1], d)) / sqrt(d)
    moved = (w @ X.T * y) @ X / n
    noise = (rng.standard_normal((mix.shape[1], n)) * y) @ X / sqrt(n * d)
    return start[:, None] * w + slope[:, None] * moved + loud[:, None] * noise


def mixed(N, rng):
    b, v = 0.3 * rng.standard_normal(N), rng.uniform(0, 0.5, N)
    return np.array([np.ones(N), 2 * b, b**2, v])


@pytest.mark.parametrize(("d", "N"), SHAPES)
@pytest.mark.parametrize("n", [100, 600])
def test_the_largest_value_of_sampled_rows_is_that_of_random_matrices(d, N, n):
    rng = np.random.default_rng(d + n)
    y, mix = rng.permutation(np.linspace(-1.7, 1.7, n)), mixed(N, rng)
    law = SampledRows(mix, y, d / n, d)
    found = [np.linalg.norm(rows(mix, rng.standard_normal((n, d)), y, rng), 2) for _ in range(40)]
    error = np.std(found, ddof=1) / sqrt(len(found))
    assert abs(np.mean(found) - law.largest) < 4 * error + 0.01 * law.largest
    assert law.largest < law.edge
    assert law.edge > 1.05 * theory.spectra.weights(Problem(n, d, N)).edge


@pytest.mark.parametrize(("d", "N"), SHAPES)
def test_rows_that_nothing_moves_are_marchenko_pastur(d, N):
    mix = np.zeros((4, N))
    mix[0] = 1
    law, weights = SampledRows(mix, np.linspace(-1, 1, 50), 0.7, d), theory.spectra.weights(Problem(10, d, N))
    assert law.edge == pytest.approx(1 + sqrt(N / d), rel=1e-9)
    assert weights.edge == pytest.approx(law.edge, rel=1e-9)
    assert weights.largest == pytest.approx(law.largest, rel=1e-6)


def test_noise_of_constant_residuals_is_noise_of_a_wishart_covariance():
    # y = 1 makes M = C = XᵀX/n; with v alone the rows are Gaussian rows seen through X: singular values of G X/√(nd)
    n, d, N, v = 300, 200, 250, 0.4
    mix = np.zeros((4, N))
    mix[3] = v
    law, rng = SampledRows(mix, np.ones(n), d / n, d), np.random.default_rng(5)
    found = [
        np.linalg.norm(rng.standard_normal((N, n)) @ rng.standard_normal((n, d)), 2) * sqrt(v / n / d)
        for _ in range(40)
    ]
    assert np.mean(found) == pytest.approx(law.largest, rel=0.008)


def test_a_scale_passes_through():
    rng = np.random.default_rng(3)
    y, mix = rng.standard_normal(80), mixed(90, rng)
    one, four = SampledRows(mix, y, 0.5, 60), SampledRows(4 * mix, y, 0.5, 60)
    assert four.edge == pytest.approx(2 * one.edge, rel=1e-9)
    assert four.largest == pytest.approx(2 * one.largest, rel=1e-6)
    turned = SampledRows(mix * np.array([[1], [1 / 3], [1 / 9], [1 / 9]]), 3 * y, 0.5, 60)
    assert turned.edge == pytest.approx(one.edge, rel=1e-9)


@pytest.mark.parametrize(("d", "N"), SHAPES)
def test_the_largest_of_a_gaussian_matrix_has_johnstones_centre_and_scale(d, N):
    law, size, slope = theory.spectra.weights(Problem(10, d, N)), sqrt(N) + sqrt(d), 1 / sqrt(N) + 1 / sqrt(d)
    assert law.largest**2 * d == pytest.approx(size**2 - 1.2065335745820 * size * slope ** (1 / 3), rel=1e-9)


@pytest.mark.parametrize("ratio", [0.5, 2.0])
def test_the_largest_of_a_gaussian_matrix(ratio):
    d = 150
    N, rng = round(ratio * d), np.random.default_rng(7)
    law = theory.spectra.weights(Problem(10, d, N))
    found = [np.linalg.norm(rng.standard_normal((N, d)), 2) / sqrt(d) for _ in range(80)]
    assert abs(np.mean(found) - law.largest) < 4 * np.std(found) / sqrt(80) + 0.003
    assert law.largest < law.edge - 0.02


def test_the_largest_feature_tends_to_the_edge():
    p = Problem(400, 120, 200)
    inside = [1 - theory.spectra.features(p.scaled(n)).largest / theory.spectra.features(p).edge for n in (400, 3200)]
    assert inside[0] == pytest.approx(4 * inside[1], rel=0.1)  # n^{-2/3}
