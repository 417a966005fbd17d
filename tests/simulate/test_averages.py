import numpy as np
import pytest

from onestep import hermite, simulate


@pytest.mark.parametrize("name", sorted(hermite.NAMED))
def test_gram_against_two_dimensional_quadrature(name):
    f = hermite.NAMED[name]
    products = np.array([[1.0, 0.4, -0.9], [0.4, 2.0, 0.3], [-0.9, 0.3, 1.5]])
    K = simulate.averages.gram(f, products.copy())
    for i, j in [(0, 1), (0, 2), (1, 2)]:
        r, s = np.sqrt(products[i, i]), np.sqrt(products[j, j])
        c = products[i, j] / (r * s)
        g, weight = f.nodes(0.0, 1.0)
        inner_at = f.moments(s * c * g, s * np.sqrt(1 - c**2))[0]
        assert K[i, j] == pytest.approx((weight * f(r * g) * inner_at).sum(), abs=1e-8)
    np.testing.assert_allclose(K, K.T, atol=1e-12)


def test_unresolved_series_asks_for_a_test_sample():
    jump = hermite.Function(np.sign, derivative=np.zeros_like, kinks=(0.0,))
    products = np.array([[1.0, 0.999], [0.999, 1.0]])
    with pytest.raises(ValueError, match="test_size"):
        simulate.averages.gram(jump, products)
    with pytest.raises(ValueError, match="test_size"):
        simulate.averages.crosses(jump, [jump], np.ones(1), np.array([0.999]))


def test_parallel_rows_have_all_their_terms():
    f, norms = hermite.NAMED["tanh"], np.array([0.5, 1.0, 2.0])
    g, weight = f.nodes(0.0, 2.0)
    signs = np.array([1.0, -1.0, 1.0])
    values = f((signs * norms)[:, None] * g)
    found = simulate.averages.gram(f, np.outer(signs * norms, signs * norms))
    np.testing.assert_allclose(found, (values * weight) @ values.T, atol=1e-6)


def test_long_rows_of_a_sine_do_not_overflow():
    found = simulate.averages.gram(hermite.NAMED["tilted_sin"], np.array([[2e3, 1.8e3], [1.8e3, 2e3]]))
    np.testing.assert_allclose(found, np.exp(-1) / 2 + np.eye(2) / 2, atol=1e-12)  # the squared mean that is taken off


@pytest.mark.parametrize("name", sorted(hermite.NAMED))
def test_products_with_a_target_against_two_dimensional_quadrature(name):
    f, target = hermite.NAMED[name], hermite.function((0.7, 1.0, -0.4, 0.2))
    norms, cosines = np.array([0.6, 1.0, 1.4]), np.array([0.3, -0.9, 0.0])
    x, w = np.polynomial.hermite_e.hermegauss(60)
    for r, c, found in zip(norms, cosines, simulate.averages.crosses(f, [target], norms, cosines)[0], strict=True):
        g, weight = f.nodes()
        inner = target(c * g[:, None] + np.sqrt(1 - c**2) * x) @ w / w.sum()
        assert found == pytest.approx((weight * f(r * g)) @ inner, abs=1e-8)
