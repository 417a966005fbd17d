from math import sqrt

import numpy as np
import pytest

from onestep import Problem, theory
from onestep.theory import quadrature

two = theory.second_step
P = Problem(1200, 300, 600, 0.1, teacher=(0.0, 1.0, 0.5), noise=0.3)
HARD = P.replace(teacher=(0.0, 0.0, 2**-0.5, 6**-0.5), noise=0.0)


def mean_sizes(p, eta1, eta2, batch):
    """Singular values of the mean part of W_2 - W_0, from its Gram matrix."""
    a, weight = quadrature.gauss_hermite(two._NODES["neuron"])
    gram, _ = two._mean_part(p, eta1, eta2, batch == "reused", a)
    root = np.sqrt(weight)
    return np.sqrt(np.maximum(np.linalg.eigvalsh(gram * np.outer(root, root))[::-1], 0))


@pytest.mark.slow
@pytest.mark.parametrize("p", [P, HARD, P.replace(d=900, teacher=(0.0, 1.0))])
@pytest.mark.parametrize("batch", two.BATCHES)
def test_the_expansion_is_the_limit_of_small_steps(p, batch):
    # On a reused batch the kink changes a sample's own share of its pre-activation, however small the step.
    kink = 0.06 if p is HARD and batch == "reused" else 0.0
    ratio = mean_sizes(p, 1e-2, 1.0, batch)[:2] / two.leading_sizes(p, 1e-2, 1.0, count=2, batch=batch)
    assert ratio == pytest.approx([1.0, 1.0 + kink], abs=0.02)


def test_exponents_of_the_terms():
    """Term k has size n^{α2 - k(1/2 - α1)}; the activation has c_1, c_2, c_3."""
    p, alpha1, alpha2 = P.replace(activation="tilted_sin"), 0.35, 0.45
    few, many = (two.leading_sizes(p.scaled(n), n**alpha1, n**alpha2, count=3) for n in (10**30, 10**31))
    assert np.log10(many / few) == pytest.approx([alpha2, alpha2 - 0.15, alpha2 - 0.3], abs=1e-3)


def test_a_missing_coefficient_is_a_missing_outlier():
    assert two.leading_sizes(P, 1.0, 1.0, count=3)[2] == pytest.approx(0.0, abs=1e-6)


def test_leading_sizes_of_vectors_written_out():
    """Left and right vectors of the three terms with random right vectors of the known inner products."""
    rng, p, count = np.random.default_rng(1), P, 3
    X = rng.standard_normal((40_000, 400))
    basis = np.linalg.qr(X[:, :count])[1]
    assert two._beyond(basis.T @ basis) == pytest.approx(np.abs(np.diag(basis)), rel=1e-10)
    a = rng.standard_normal(400_000)
    powers = np.linalg.qr(a[:, None] ** np.arange(1, count + 1))[1] / sqrt(len(a))
    moments = np.array([[1.0, 0.0, 3.0], [0.0, 3.0, 0.0], [3.0, 0.0, 15.0]])  # E g^{j+k} for j, k = 1, 2, 3
    assert two._beyond(moments) == pytest.approx(np.abs(np.diag(powers)), rel=0.05)
    assert two._beyond(moments) == pytest.approx([1.0, sqrt(3), sqrt(6)], rel=1e-10)
    assert two.leading_sizes(p, 0.0, 2.0, count=1)[0] == pytest.approx(2 * p.student.linear * sqrt(p.D))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("teacher", "k"),
    [((0.0, 1.0, 0.5), 0), ((0.0, 1.0, 0.5), 1), ((0.0, 0.0, 0.8, 0.2), 1), ((0.0, 1.0, 0.1), 2), ((0.0, 0.5), 2)],
)
def test_directions_of_one_large_batch(teacher, k):
    p, rng, found = P.replace(n=1500, d=375, teacher=teacher, noise=1.0), np.random.default_rng(k), []
    for _ in range(20):
        ahead = np.eye(p.d)[0]
        (X, y), (X2, y2) = ([X, p.target(X @ ahead) + p.noise * rng.standard_normal(p.n)]
                            for X in rng.standard_normal((2, p.n, p.d)))  # fmt: skip
        beta = X.T @ y / p.n
        d = np.array([x.T @ (label * (x @ beta) ** k) / p.n for x, label in ((X, y), (X2, y2))])
        found.append([d[:, 0], np.sum(d**2, axis=1)])
    found = np.array(found)
    value, error = found.mean(0), found.std(0) / sqrt(19)
    for b, batch in enumerate(two.BATCHES):
        predicted = two.direction(p, k, batch=batch)
        assert abs(value[0, b] - predicted.ahead) < 5 * error[0, b] + 0.02
        assert abs(value[1, b] - predicted.square) < 5 * error[1, b] + 0.05 * predicted.square


@pytest.mark.parametrize("p", [P, HARD, P.replace(teacher=(0.0, 0.7, 0.2, 0.3), d=900)])
def test_the_first_direction_of_a_reused_batch_is_that_of_the_first_step(p):
    """d_0 = β, so that its inner products are those with β: an identity between two ways to count shared samples."""
    rows, along, _ = two._monomials(p, np.arange(3), "reused")
    assert rows[0] == pytest.approx(along, rel=1e-9)
    assert rows[0, 0] == pytest.approx(p.D, rel=1e-9)


def test_a_reused_batch_depends_on_the_squared_label():
    z, weight = HARD.target.nodes()
    assert two.direction(HARD, 1).ahead == pytest.approx(HARD.phi * weight @ (z * HARD.target(z) ** 2), rel=1e-9)
    even = HARD.replace(teacher=(0.0, 0.0, 1.0))
    odd = HARD.replace(teacher=(0.0, 0.0, 0.0, 1.0))
    assert two.direction(even, 1).cosine2 < 1e-20 and two.direction(even, 2).cosine2 < 1e-20
    assert two.direction(odd, 1).cosine2 < 1e-20 and two.direction(odd, 2).cosine2 > 0.01
    for k in (0, 1, 2):
        assert two.direction(HARD, k, batch="fresh").cosine2 < 1e-20


def test_the_span_of_both_steps():
    assert two.span(P, 1.0, 1.0, batch="fresh") > two.span(P, 1.0, 1.0) > P.rho**2
    assert two.span(HARD, 1.0, 1.0) > two.direction(HARD, 1).cosine2 and two.span(HARD, 1.0, 1.0, batch="fresh") < 1e-12
    twice = P.replace(n=2 * P.n)  # two fresh batches of equal weight are one batch of twice the size, but for d_1
    assert twice.rho**2 < two.span(P, 1.0, 1.0, batch="fresh") < 1.05 * twice.rho**2


@pytest.mark.slow
def test_without_a_second_step_the_first_outlier_is_that_of_one_step():
    eta = 3.0
    alone = theory.spectra.weight_spike(P, eta)
    for batch in two.BATCHES:
        found = two.outliers(P, eta, 1e-6, batch=batch)
        assert found.value[0] == pytest.approx(alone.value, rel=2e-3)
        assert found.ahead[0] == pytest.approx(alone.right * P.rho**2, rel=2e-3)
        assert np.isnan(found.value[1])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: two.outliers(P, 1.0, 1.0, batch="same"), "batch = 'same'"),
        (lambda: two.outliers(P, 0.0, 1.0), "eta1 = 0.0"),
        (lambda: two.outliers(P.replace(activation="tanh"), 1.0, 1.0), "activation = 'tanh': must be 'shifted_relu'"),
        (lambda: two.direction(P, -1), "k = -1"),
        (lambda: two.direction(P.replace(initial_output="full"), 1), "initial_output = 'full'"),
        (lambda: two.leading_sizes(P, 1.0, 1.0, count=0), "count = 0"),
        (lambda: two.leading_sizes(P, 1.0, 1.0, count=11), "count = 11: must be at most 10"),
        (lambda: two.span(P, -1.0, 1.0), "eta1 = -1"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
