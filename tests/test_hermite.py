import math
from itertools import pairwise

import numpy as np
import pytest
from numpy.polynomial import hermite_e
from scipy import integrate, special

from onestep import hermite


def brute(f, k, kinks=()):
    """E f(g) H_k(g) by adaptive quadrature."""
    H = hermite_e.HermiteE.basis(k)
    edges = [-12.0, *kinks, 12.0]
    return sum(
        integrate.quad(lambda z: f(z) * H(z) * np.exp(-z * z / 2) / np.sqrt(2 * np.pi), a, b, epsabs=1e-13)[0]
        for a, b in pairwise(edges)
    )


@pytest.mark.parametrize("name", sorted(hermite.NAMED))
def test_coefficients_against_adaptive_quadrature(name):
    f = hermite.NAMED[name]
    expected = [brute(f, k, f.kinks) / special.factorial(k) for k in range(7)]
    np.testing.assert_allclose(f.coefficients(6), expected, atol=1e-12)
    assert abs(f.mean) < 1e-14


@pytest.mark.parametrize("name", ["tanh", "erf", "softplus", "shifted_relu"])
def test_parseval(name):
    f = hermite.NAMED[name]
    partial = np.cumsum(f.normalized(200) ** 2)
    assert np.all(np.diff(partial) >= 0)
    assert 0 <= f.second_moment - partial[-1] < 3e-4 * f.second_moment
    assert f.tail == pytest.approx(f.second_moment - partial[1], rel=1e-12)


@pytest.mark.parametrize("name", sorted(hermite.NAMED))
def test_moments_at_a_shift_and_scale(name):
    f = hermite.NAMED[name]
    for mu, s in [(0.0, 1.0), (0.7, 0.3), (-1.5, 2.0), (3.0, 1.2), (0.4, 9.0)]:

        def shifted(g, mu=mu, s=s):
            return f(mu + s * g)

        kinks = [(k - mu) / s for k in f.kinks]
        expected = [
            brute(shifted, 0, kinks),
            brute(shifted, 1, kinks),
            brute(lambda g, h=shifted: h(g) ** 2, 0, kinks),
            brute(shifted, 2, kinks),
        ]
        np.testing.assert_allclose(f.moments(mu, s), expected, atol=2e-12)


def test_closed_relu_moments_equal_the_general_quadrature():
    relu = hermite.NAMED["shifted_relu"]
    mu, s = np.linspace(-3, 3, 7)[:, None], np.array([0.0, 0.5, 1.0, 2.5])
    general = hermite.Function.moments(relu, mu, s)
    np.testing.assert_allclose(relu.moments(mu, s), general, atol=1e-12)


def test_polynomials_are_exact():
    f = hermite.function([0.0, 1.0, 0.5, -0.2])
    np.testing.assert_allclose(f.coefficients(5), [0, 1, 0.5, -0.2, 0, 0], atol=0)
    assert f.second_moment == pytest.approx(1 + 2 * 0.25 + 6 * 0.04, rel=1e-14)
    z = np.linspace(-2, 2, 9)
    np.testing.assert_allclose(f(z), z + 0.5 * (z**2 - 1) - 0.2 * (z**3 - 3 * z), atol=1e-14)
    np.testing.assert_allclose(f.derivative(z), 1 + z - 0.2 * (3 * z**2 - 3), atol=1e-14)
    scaled = f.normalized(3, np.array([0.5, 2.0]))
    assert scaled[1, 3] == pytest.approx(-0.2 * 8 * np.sqrt(6), rel=1e-13)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: hermite.function("relu6"), "activation = 'relu6'.*known are"),
        (lambda: hermite.function(3.0, "teacher"), "teacher = 3.0"),
        (lambda: hermite.function([], "teacher"), r"teacher = \[\]: Hermite coefficients"),
        (lambda: hermite.function([0, np.nan], "teacher"), "teacher = .*Hermite coefficients"),
        (lambda: hermite.function(np.ones(898), "teacher"), "teacher = 898 values: .* 1 to 100"),
        (lambda: hermite.Function(math.tanh), "one numpy array .np.tanh, not math.tanh.; .*TypeError"),
        (lambda: hermite.Function(np.abs, kinks=0.0), "kinks = 0.0: must be a list"),
        (lambda: hermite.Function(3), "f = 3"),
        (lambda: hermite.Function(np.tanh, derivative=1), "derivative = 1"),
        (lambda: hermite.Function(np.asarray, derivative=lambda z: 1.0), "derivative = .*same shape"),
        (lambda: hermite.Function(np.tanh, kinks=(np.inf,)), "kinks"),
        (lambda: hermite.Function(lambda z: np.tanh(z.ravel())), "same shape"),
        (lambda: hermite.Function(lambda z: np.tanh(z, out=z)), "must not change the array"),
        (lambda: hermite.NAMED["tanh"].coefficients(-1), "order = -1"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_function_that_is_a_polynomial_is_read_as_one():
    cubic = hermite.Function(lambda z: z + 0.4 * (z**3 - 3 * z), name="cubic")
    found = hermite.exact(cubic)
    assert isinstance(found, hermite.Polynomial)
    assert found.name == "cubic"
    np.testing.assert_allclose(found.series, [0, 1, 0, 0.4], atol=1e-14)
    assert all(hermite.exact(f) is f for f in hermite.NAMED.values())


@pytest.mark.parametrize("name", sorted(hermite.NAMED))
def test_named_functions_have_no_fault_and_their_derivatives_are_right(name):
    f = hermite.NAMED[name]
    assert (f.fault, f.jumps) == ("", ())
    z = np.linspace(-3.9, 3.9, 40)
    differences = (f(z + 1e-6) - f(z - 1e-6)) / 2e-6
    np.testing.assert_allclose(f.derivative(z), differences, atol=1e-8)


@pytest.mark.parametrize(
    ("f", "fault"),
    [
        (hermite.Function(lambda z: np.clip(z, -1, 1)), "a kink or a jump that is not stated"),
        (hermite.Function(lambda z: np.clip(z, -1, 1), kinks=(0.3,)), "a kink or a jump elsewhere than stated"),
        (hermite.Function(lambda z: np.clip(z, -1, 1), kinks=(-1, 1)), ""),
        (hermite.Function(np.sign), "not stated"),
        (hermite.Function(np.sign, kinks=(0.0,)), ""),
        (hermite.Function(lambda z: np.tanh(30 * z)), "too steep"),
        (hermite.Function(lambda z: np.exp(z**2 / 2)), "grows too fast"),
        (hermite.Function(np.exp, np.exp), ""),
        (hermite.Function(np.tanh, np.cos), "the stated derivative is not that of f: off by"),
        (hermite.Function(lambda z: 1e-4 * np.clip(z, -1, 1)), "a kink or a jump that is not stated"),
        (hermite.Function(lambda z: 1e4 * np.tanh(z)), ""),
        (hermite.Function(lambda z: np.maximum(z + 0.5, 0), kinks=(-0.5,)), ""),
        (hermite.function((0, 1, 0.4, 0.2, 0.06)), ""),
    ],
)
def test_faults_are_found_and_only_faults(f, fault):
    assert (fault in f.fault) if fault else f.fault == ""
