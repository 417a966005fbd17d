import numpy as np
import pytest

from onestep import Problem, simulate
from onestep.simulate.control_variates import variates


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "readout", "step_samples"),
    [
        ({}, "gaussian", None),
        ({"teacher": "shifted_relu", "noise": 0.7, "first_layer": "gaussian"}, "gaussian", 33),
        ({"teacher": (0.0, 0.5, 0.4, 0.3), "initial_output": "full"}, [0.6, np.sqrt(2 - 0.36)], 80),
    ],
)
def test_their_means_are_zero(change, readout, step_samples):
    p = Problem(20, 8, 12, teacher=(0.0, 1.0, 0.7), noise=0.4, readout=readout, step_samples=step_samples).replace(
        **change
    )
    found = []
    for trial in range(3000):
        now = simulate.draw(p, simulate.key(3, trial))
        found.append(variates(p, now, now.y2[:, None]))
    found = np.array(found)
    assert found.shape == (3000, 7)
    assert np.all(np.abs(found.mean(0)) < 4.5 * found.std(0) / np.sqrt(3000))
    assert np.all(found.std(0) > 0.05)


def test_redraws_count_as_one_label():
    p = Problem(20, 8, 12, noise=1.0)
    now = simulate.draw(p, simulate.key(1))
    labels = np.column_stack([now.y2, -now.y2])
    one, two = variates(p, now, now.y2[:, None]), variates(p, now, labels)
    np.testing.assert_array_equal(one[:3], two[:3])
    assert two[3] == pytest.approx(-1.0)


@pytest.mark.parametrize("size", [1, 4])
def test_the_squared_gradient_is_taken_less_its_exact_mean(size):
    """E ‖Xᵀy/m‖² = E y²‖x‖²/m + (1 - 1/m) (E y x)², by quadrature."""
    p = Problem(20, 8, 12, teacher=(0.0, 0.8, 0.4, 0.3), noise=0.5, step_samples=size)
    now = simulate.draw(p, simulate.key(2))
    beta = now.X.T @ now.y / size
    z, w = np.polynomial.hermite_e.hermegauss(20)
    w, y = w / w.sum(), p.target(z)
    power = w @ y**2 + 0.25
    mean = (w @ (z * y) ** 2 + 0.25 + 7 * power) / size + (1 - 1 / size) * (w @ (z * y)) ** 2
    assert beta @ beta - variates(p, now, now.y2[:, None])[0] == pytest.approx(mean, rel=1e-12)
