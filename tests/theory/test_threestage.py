import numpy as np
import pytest

from onestep import relu, theory
from onestep.simulate import key, threestage


@pytest.fixture
def rng():
    return key(0)


@pytest.fixture
def teacher(rng):
    return relu.random_teacher(7, 3, rng, correlation=0.3)


def test_missing_direction_is_what_is_left_without_it(rng, teacher):
    system = threestage.Population(teacher)
    left = []
    for k in range(3):
        rest = np.delete(teacher.directions, k, axis=0)
        K, moment = system.normal_equations(rest)
        left.append(system.start - moment @ np.linalg.solve(K, moment))
    assert theory.threestage.missing_loss(teacher) == pytest.approx(min(left), rel=1e-10)
    orthogonal = relu.random_teacher(7, 3, rng)
    assert theory.threestage.missing_loss(orthogonal) == pytest.approx(0.25 - 0.5 / np.pi, rel=1e-12)
