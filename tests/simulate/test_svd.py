import numpy as np
import pytest

from onestep import simulate
from onestep.simulate import key


def matrix(n, N, seed=0):
    return key(seed, n, N).standard_normal((n, N))


@pytest.mark.parametrize("shape", [(120, 50), (50, 120), (60, 60), (1, 5), (7, 1), (11, 30)])
def test_norm_is_the_largest_singular_value(shape):
    A = matrix(*shape)
    assert simulate.svd.operator_norm(A) == pytest.approx(np.linalg.norm(A, 2), rel=1e-6)
    assert simulate.svd.operator_norm(0 * A) == 0


def test_equal_arguments_give_equal_results():
    A = matrix(80, 70)
    assert simulate.svd.operator_norm(A) == simulate.svd.operator_norm(A)
