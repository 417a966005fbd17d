import numpy as np
import pytest
from scipy.sparse.linalg import aslinearoperator

from onestep import simulate
from onestep.simulate import key


def matrix(n, N, seed=0):
    return key(seed, n, N).standard_normal((n, N))


@pytest.mark.parametrize("shape", [(120, 50), (50, 120), (60, 60)])
def test_norm_is_the_largest_singular_value(shape):
    A = matrix(*shape)
    assert simulate.svd.operator_norm(A) == pytest.approx(np.linalg.norm(A, 2), rel=1e-6)
    assert simulate.svd.operator_norm(0 * A) == 0


@pytest.mark.parametrize("shape", [(150, 80), (80, 150)])
def test_triplets_against_the_dense_svd(shape):
    A = matrix(*shape)
    found_left, found_values, found_right = simulate.svd.singular_triplets(A, 5, tolerance=1e-12)
    left, values, right = np.linalg.svd(A, full_matrices=False)
    np.testing.assert_allclose(found_values, values[:5], rtol=1e-12)
    np.testing.assert_allclose(np.abs(np.sum(found_left * left[:, :5], 0)), 1, atol=1e-9)
    np.testing.assert_allclose(np.abs(np.sum(found_right * right[:5].T, 0)), 1, atol=1e-9)


def test_an_operator_less_its_spikes_gives_the_same_as_the_dense_difference():
    A, left, right = matrix(90, 60), matrix(90, 2, 1), matrix(60, 2, 2)
    operator, dense = simulate.svd.deflated(A, left, right), A - left @ right.T
    np.testing.assert_allclose(operator @ np.eye(60), dense, atol=1e-12)
    np.testing.assert_allclose(operator.T @ np.eye(90), dense.T, atol=1e-12)
    norm = np.linalg.norm(dense, 2)
    for same in (operator, dense, aslinearoperator(dense)):
        assert simulate.svd.operator_norm(same) == pytest.approx(norm, rel=1e-6)


def test_equal_arguments_give_equal_results():
    A = matrix(80, 70)
    first, second = simulate.svd.singular_triplets(A, 2), simulate.svd.singular_triplets(A, 2)
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)


def test_alignment():
    e = np.eye(4)
    assert simulate.svd.alignment(3 * e[0] + 4 * e[1], e[0]) == pytest.approx(9 / 25)
    skew = np.column_stack([e[0] + e[1], e[0] - 2 * e[1]])
    np.testing.assert_allclose(simulate.svd.alignment(np.column_stack([e[0] + e[2], e[3], e[1]]), skew), [0.5, 0, 1])
