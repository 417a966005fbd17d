import numpy as np
import pytest
from scipy.sparse.linalg import aslinearoperator, svds

from onestep import simulate
from onestep.simulate import key


def matrix(n, N, seed=0):
    return key(seed, n, N).standard_normal((n, N))


def with_values(values, n, N):
    left, right = np.linalg.qr(matrix(n, len(values)))[0], np.linalg.qr(matrix(N, len(values), 1))[0]
    return left * values @ right.T


@pytest.mark.parametrize("shape", [(120, 50), (50, 120), (60, 60), (1, 7), (7, 1)])
def test_norm_is_the_largest_singular_value(shape):
    A = matrix(*shape)
    assert simulate.svd.operator_norm(A) == pytest.approx(np.linalg.norm(A, 2), rel=1e-10)


@pytest.mark.parametrize("shape", [(150, 80), (80, 150)])
def test_triplets_against_the_dense_svd(shape):
    A = matrix(*shape)
    found = simulate.svd.singular_triplets(A, 5, tolerance=1e-9)
    left, values, right = np.linalg.svd(A, full_matrices=False)
    np.testing.assert_allclose(found.values, values[:5], rtol=1e-12)
    np.testing.assert_allclose(np.abs(np.sum(found.left * left[:, :5], 0)), 1, atol=1e-9)
    np.testing.assert_allclose(np.abs(np.sum(found.right * right[:5].T, 0)), 1, atol=1e-9)
    np.testing.assert_allclose(A @ found.right, found.left * found.values, atol=1e-11)
    np.testing.assert_allclose(found.left.T @ found.left, np.eye(5), atol=1e-12)


def test_the_residual_is_what_it_says_and_bounds_the_error():
    A = matrix(300, 200)
    found = simulate.svd.singular_triplets(A, 3, tolerance=0.05)
    assert found.steps < 100
    measured = np.linalg.norm(A.T @ found.left - found.right * found.values, axis=0)
    np.testing.assert_allclose(found.residual, measured, rtol=1e-8)
    assert measured.max() > 1e-3
    values = np.linalg.svd(A, compute_uv=False)
    distance = np.abs(values[:, None] - found.values).min(0)
    assert np.all(distance <= found.residual)
    assert np.all(found.values <= values[:3] * (1 + 1e-14))


def test_operators_and_sums_give_the_same_as_arrays():
    A, left, right = matrix(90, 60), matrix(90, 2, 1), matrix(60, 2, 2)
    operator, dense = simulate.svd.deflated(A, left, right), A - left @ right.T
    np.testing.assert_allclose(operator @ np.eye(60), dense, atol=1e-12)
    np.testing.assert_allclose(operator.T @ np.eye(90), dense.T, atol=1e-12)
    assert simulate.svd.operator_norm(operator) == pytest.approx(np.linalg.norm(dense, 2), rel=1e-10)
    for same in (dense, aslinearoperator(dense), operator.T):
        assert simulate.svd.operator_norm(operator) == pytest.approx(simulate.svd.operator_norm(same), rel=1e-12)


@pytest.mark.parametrize("shape", [(900, 400), (400, 900), (300, 300)])
def test_products_by_blocks_of_rows_lose_nothing(shape, monkeypatch):
    """Against an operator without them, over as many steps as the smallest singular values take."""
    monkeypatch.setattr(simulate.svd, "_CACHED", 7)
    A = matrix(*shape)
    blocks, plain = (simulate.svd.singular_triplets(x, 40, tolerance=1e-10) for x in (A, aslinearoperator(A)))
    assert blocks.steps == plain.steps > 80
    np.testing.assert_allclose(blocks.values, plain.values, rtol=1e-13)
    np.testing.assert_allclose(A @ blocks.right, blocks.left * blocks.values, atol=1e-11)
    np.testing.assert_allclose(A.T @ blocks.left, blocks.right * blocks.values, atol=1e-8)


def test_equal_arguments_give_equal_results():
    A = matrix(80, 70)
    first, second = simulate.svd.singular_triplets(A, 2), simulate.svd.singular_triplets(A, 2)
    np.testing.assert_array_equal(first.left, second.left)
    np.testing.assert_array_equal(first.values, second.values)


@pytest.mark.parametrize("shape", [(200, 90), (90, 200)])
def test_triplets_against_scipys_partial_svd(shape):
    A = matrix(*shape)
    values = np.sort(svds(A, 4, return_singular_vectors=False, rng=np.random.default_rng(0)))[::-1]
    np.testing.assert_allclose(simulate.svd.singular_triplets(A, 4, tolerance=1e-8).values, values, rtol=1e-12)


def test_low_rank_and_zero_matrices():
    found = simulate.svd.singular_triplets(with_values([5.0, 2.0], 40, 30), 3)
    np.testing.assert_allclose(found.values, [5, 2, 0], atol=1e-12)
    assert found.steps <= 6
    tiny = simulate.svd.singular_triplets(with_values([5.0, 2.0, 1e-4, 1e-6], 40, 30), 4)
    np.testing.assert_allclose(tiny.values, [5, 2, 1e-4, 1e-6], rtol=1e-6)
    assert simulate.svd.operator_norm(np.zeros((6, 4))) == 0
    assert simulate.svd.operator_norm(np.eye(9)) == pytest.approx(1)
    np.testing.assert_allclose(simulate.svd.singular_triplets(np.eye(5), 5).values, np.ones(5))


def test_scale_and_transpose():
    A = matrix(70, 40)
    for scale in (1e-100, 1e100):
        assert simulate.svd.operator_norm(scale * A) / scale == pytest.approx(simulate.svd.operator_norm(A), rel=1e-10)
    assert simulate.svd.operator_norm(A.T) == pytest.approx(simulate.svd.operator_norm(A), rel=1e-10)


def test_too_few_steps_are_reported(monkeypatch):
    monkeypatch.setattr(simulate.svd, "_MOST", 3)
    with pytest.raises(ArithmeticError, match="3 steps leave a relative residual"):
        simulate.svd.operator_norm(matrix(200, 200))


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"count": 0}, "count = 0"),
        ({"count": 6}, "has only 5"),
        ({"count": 1, "tolerance": 0.0}, "tolerance = 0"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        simulate.svd.singular_triplets(matrix(5, 8), **arguments)
    with pytest.raises(ValueError, match=r"left \(3, 2\), right \(4, 1\)"):
        simulate.svd.deflated(np.ones((3, 4)), np.ones((3, 2)), np.ones((4, 1)))


def test_alignment():
    e = np.eye(4)
    assert simulate.svd.alignment(3 * e[0] + 4 * e[1], e[0]) == pytest.approx(9 / 25)
    skew = np.column_stack([e[0] + e[1], e[0] - 2 * e[1]])
    np.testing.assert_allclose(simulate.svd.alignment(np.column_stack([e[0] + e[2], e[3], e[1]]), skew), [0.5, 0, 1])
    with pytest.raises(ValueError, match="equally many rows"):
        simulate.svd.alignment(e[0], np.ones(3))
