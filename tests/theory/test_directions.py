import numpy as np
import pytest

from onestep import simulate, theory
from onestep.multiindex import Target
from onestep.simulate import key

QUADRATIC = Target({(1, 0, 0): 1.0, (0, 2, 0): 0.5, (0, 0, 2): -0.5})
CURVED = (0.0, 1.0, 0.6, 0.4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "activation", "preprocess", "n"),
    [
        (QUADRATIC, "shifted_relu", False, 900),
        (QUADRATIC, "shifted_relu", True, 40_000),
        (Target({(3,): 1.0}), CURVED, False, 300_000),
        (Target({(2, 0): 1.0, (1, 1): 0.5}), CURVED, False, 5_000),
    ],
)
def test_overlap_predicts_one_step(target, activation, preprocess, n):
    d = 80
    cosines = [
        simulate.directions.one_step(target, d, n, 24, key(3, t), activation=activation, preprocess=preprocess)
        for t in range(8)
    ]
    energies = np.mean(np.square(cosines), axis=1)
    error = energies.std(axis=0, ddof=1) / np.sqrt(8)
    predicted = theory.directions.energy(target, d, [n], activation=activation, preprocess=preprocess)[0]
    assert np.all(np.abs(energies.mean(axis=0) - predicted) < 4 * error + 2 / d)
    assert predicted.max() > 0.15


def test_overlap_limits():
    d = 1000
    small, large = theory.directions.energy(QUADRATIC, d, [1e-3, 1e15])
    np.testing.assert_allclose(small, 1 / d, rtol=1e-3)
    assert large.sum() == pytest.approx(1)
    assert large[0] > 0.99  # the linear part wins for ever: all neurons collapse onto one direction
    removed = theory.directions.energy(QUADRATIC, d, [1e15], preprocess=True)[0]
    np.testing.assert_allclose(removed, [0, 0.5, 0.5], atol=1e-3)
    even = theory.directions.energy(Target({(3,): 1.0}), d, [1e15])  # the ReLU has no third Hermite part
    np.testing.assert_allclose(even, 1 / d, rtol=1e-3)


def test_overlap_collapses_at_the_power_of_the_information_exponent():
    for order in (1, 2, 3):
        target = Target({(order,): 1.0})
        curves = [
            theory.directions.energy(target, d, np.array([0.3, 3.0]) * d**order, activation=CURVED)
            for d in (10_000, 40_000)
        ]
        np.testing.assert_allclose(curves[0], curves[1], rtol=0.01)
        assert np.all((curves[0] > 0.01) & (curves[0] < 0.99))


def test_a_strong_linear_part_that_is_estimated_and_removed_leaves_its_noise():
    d, n, target = 150, 20_000, Target({(1,): 3.0, (2,): 0.7})
    runs = [
        simulate.directions.one_step(target, d, n, 48, key(8, t), activation=CURVED, preprocess=True) for t in range(8)
    ]
    energies = np.mean(np.square(runs), axis=(1, 2))
    predicted = theory.directions.energy(target, d, [n], activation=CURVED, preprocess=True)[0, 0]
    error = energies.std(ddof=1) / np.sqrt(len(energies))
    assert abs(energies.mean() - predicted) < 4 * error + 0.02 * predicted
    assert error < 0.1 * predicted < 0.05
