import numpy as np
import pytest

from onestep.multiindex import Target

QUADRATIC = Target({(1, 0, 0): 1.0, (0, 2, 0): 0.5, (0, 0, 2): -0.5})
STAIRCASE = Target({(1, 0, 0): 1.0, (1, 1, 0): 1.5, (1, 1, 1): 2.0})
NO_STAIRCASE = Target({(1, 0, 0): 1.0, (0, 1, 1): 1.0})


def test_values_power_and_tensors_against_quadrature():
    target = Target({(0, 0): 0.3, (1, 0): -1.0, (1, 1): 0.7, (2, 1): 0.4, (0, 3): 0.2})
    x, w = np.polynomial.hermite_e.hermegauss(12)
    z, mass = np.stack(np.meshgrid(x, x), -1).reshape(-1, 2), np.outer(w, w).ravel() / w.sum() ** 2
    y = target(z)
    u, v = z.T
    np.testing.assert_allclose(y, 0.3 - u + 0.7 * u * v + 0.4 * (u**2 - 1) * v + 0.2 * (v**3 - 3 * v), atol=1e-9)
    assert mass @ y**2 == pytest.approx(target.power)
    np.testing.assert_allclose(target.tensor(0), mass @ y)
    np.testing.assert_allclose(target.tensor(1), (mass * y) @ z, atol=1e-12)
    second = np.einsum("q,qi,qj->ij", mass * y, z, z) - mass @ y * np.eye(2)
    np.testing.assert_allclose(target.tensor(2), second, atol=1e-12)
    assert target.tensor(3)[0, 0, 1] == target.tensor(3)[1, 0, 0] == pytest.approx(mass * y @ ((u**2 - 1) * v))


def test_preprocessing_leaves_degrees_from_two_on():
    assert all(sum(alpha) > 1 for alpha in QUADRATIC.preprocessed.terms)
    assert QUADRATIC.preprocessed.power == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("terms", "arrival"),
    [
        (STAIRCASE.terms, [1, 2, 3]),
        (NO_STAIRCASE.terms, [1, 0, 0]),
        ({(0, 1, 0): 1.0, (1, 2, 0): 1.0, (0, 0, 2): 1.0}, [2, 1, 0]),
        ({(1, 0): 1.0, (0, 1): -1.0}, [1, 1]),
        ({(2,): 1.0}, [0]),
    ],
)
def test_arrival_follows_the_staircase(terms, arrival):
    assert list(Target(terms).arrival()) == arrival
