"""Rules against exact moments, and the expansion on a sphere against integrals and draws."""

import numpy as np
import pytest
from scipy import integrate

from onestep import hermite, theory

rules = theory.quadrature


@pytest.mark.parametrize("strip", [0.1, 0.3, 1.0])
def test_graded_rule_resolves_poles_that_gauss_hermite_misses(strip):
    def f(z):
        return strip / np.hypot(strip, z) + z**2 / (strip**2 + z**2)

    exact = integrate.quad(lambda z: f(z) * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi), -12, 12, points=[0.0])[0]
    graded, gauss = (abs(w @ f(z) - exact) for z, w in (rules.graded(18, strip), rules.gauss_hermite(18)))
    assert graded < 1e-4 * exact and graded < gauss / 3


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("d", [5, 30, 10**6, 10**20])
def test_length_has_the_moments_of_chi_square(d, count):
    chi, weight = rules.length(float(d), count)
    excess = chi**2 - 1
    assert weight.sum() == pytest.approx(1.0)
    exact = (0.0, 2 / d, 8 / d**2, 12 / d**2 + 48 / d**3, 160 / d**3 + 384 / d**4)
    for power, moment in enumerate(exact[: 2 * count - 1], 1):
        assert weight @ excess**power == pytest.approx(moment, rel=1e-5, abs=1e-15)
    several = rules.length(np.array([7.0, float(d)]), count)
    np.testing.assert_allclose(np.array(several)[:, :, 1], (chi, weight))


@pytest.mark.parametrize("d", [8, 40, 10**20])
@pytest.mark.parametrize("f", [(0.3, 1.0, 0.5, -0.2), "tanh", "shifted_relu"])
def test_expansion_on_the_sphere_against_integrals(f, d):
    f = hermite.function(f)
    mean, std = 0.4, 1.3
    found, rest = rules.expand(f, np.array([mean]), np.array([std]), d)
    edge = min(np.sqrt(float(d)), 12.0)
    kinks = [(k - mean) / std for k in f.kinks] or None

    def average(g):
        def density(s):
            return np.exp(-(s**2) / 2) if d > 1e9 else (1 - s**2 / d) ** ((d - 3) / 2)

        return integrate.quad(lambda s: g(s) * density(s), -edge, edge, points=kinks, epsabs=1e-13, limit=400)[0]

    def value(s):
        return float(f(np.array(mean + std * s)))

    whole = average(lambda s: 1.0)
    harmonics = [np.polynomial.Polynomial(row) for row in rules.zonal(float(d))]
    for k, P in enumerate(harmonics):
        assert found[k, 0] == pytest.approx(average(lambda s, P=P: P(s) * value(s)) / whole, abs=2e-7)
        for j, Q in enumerate(harmonics):
            assert average(lambda s, P=P, Q=Q: P(s) * Q(s)) / whole == pytest.approx(float(j == k), abs=1e-9)
    total = average(lambda s: value(s) ** 2) / whole
    assert rest[0] == pytest.approx(total - np.sum(found[:, 0] ** 2), abs=1e-6)


@pytest.mark.slow
def test_harmonics_of_random_directions_are_kernels_of_the_stated_dimension():
    d, count = 5, 1500
    x = np.random.default_rng(0).standard_normal((count, d))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    powers = (np.sqrt(d) * x @ x.T)[..., None] ** np.arange(4)
    for k, D in enumerate(rules.dimensions(d)):  # P_k/√D is a projector's kernel: D eigenvalues of count/D
        values = np.linalg.eigvalsh(powers @ rules.zonal(float(d))[k] / np.sqrt(D))[::-1] * D / count
        assert np.sum(values > 0.5) == D
        np.testing.assert_allclose(values[: int(D)], 1.0, atol=0.35)


def test_gauss_rule_integrates_powers_of_its_own_law():
    y, root = np.random.default_rng(1).standard_normal((2, 500))
    root = np.abs(root) / np.linalg.norm(root)
    nodes, lift = rules.gauss(y, root, 6)
    for k in range(11):
        assert (lift @ root) ** 2 @ nodes**k == pytest.approx(root**2 @ y**k, rel=1e-8, abs=1e-10)
