import numpy as np
import pytest

from onestep import multiindex, overlap
from onestep.hermite import function
from onestep.multiindex import Target
from onestep.simulate import key

QUADRATIC = Target({(1, 0, 0): 1.0, (0, 2, 0): 0.5, (0, 0, 2): -0.5})
STAIRCASE = Target({(1, 0, 0): 1.0, (1, 1, 0): 1.5, (1, 1, 1): 2.0})
NO_STAIRCASE = Target({(1, 0, 0): 1.0, (0, 1, 1): 1.0})
CURVED = (0.0, 1.0, 0.6, 0.4)


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


def test_information_exponent_and_preprocessing():
    assert QUADRATIC.information_exponent == 1
    assert QUADRATIC.preprocessed.information_exponent == 2
    assert Target({(0, 0): 5.0, (3, 0): 1.0}).information_exponent == 3
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


def direct(target, d, n, N, rng, activation, preprocess):
    """One step in all d coordinates."""
    V = np.linalg.qr(rng.standard_normal((d, target.r)))[0]
    W = rng.standard_normal((N, d))
    W /= np.linalg.norm(W, axis=1, keepdims=True)
    mean, linear = 0.0, np.zeros(d)
    if preprocess:
        X = rng.standard_normal((n, d))
        y = target(X @ V)
        mean, linear = y.mean(), y @ X / n
    X = rng.standard_normal((n, d))
    y = target(X @ V) - mean - X @ linear
    G = (y[:, None] * function(activation).derivative(X @ W.T)).T @ X
    return G @ V / np.linalg.norm(G, axis=1, keepdims=True)


@pytest.mark.parametrize("preprocess", [False, True])
@pytest.mark.parametrize("d", [12, 40])
def test_one_step_has_the_law_of_the_step_in_all_coordinates(preprocess, d):
    target = Target({**QUADRATIC.terms, (0, 0, 0): 2.0})

    def energies(step, branch):
        cosines = [step(target, d, 60, 8, key(2, branch, t), CURVED, preprocess) for t in range(300)]
        return np.mean(np.square(cosines), axis=1)

    one, other = energies(multiindex.one_step, 0), energies(direct, 1)
    error = np.sqrt((one.var(axis=0) + other.var(axis=0)) / 300)
    assert np.all(np.abs(one.mean(axis=0) - other.mean(axis=0)) < 4 * error)
    np.testing.assert_allclose(one.std(axis=0), other.std(axis=0), rtol=0.35)


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
    cosines = [multiindex.one_step(target, d, n, 24, key(3, t), activation, preprocess) for t in range(8)]
    energies = np.mean(np.square(cosines), axis=1)
    error = energies.std(axis=0, ddof=1) / np.sqrt(8)
    predicted = overlap.energy(target, d, [n], activation, preprocess)[0]
    assert np.all(np.abs(energies.mean(axis=0) - predicted) < 4 * error + 2 / d)
    assert predicted.max() > 0.15


def test_overlap_limits():
    d = 1000
    small, large = overlap.energy(QUADRATIC, d, [1e-3, 1e15])
    np.testing.assert_allclose(small, 1 / d, rtol=1e-3)
    assert large.sum() == pytest.approx(1)
    assert large[0] > 0.99  # the linear part wins for ever: all neurons collapse onto one direction
    removed = overlap.energy(QUADRATIC, d, [1e15], preprocess=True)[0]
    np.testing.assert_allclose(removed, [0, 0.5, 0.5], atol=1e-3)
    even = overlap.energy(Target({(3,): 1.0}), d, [1e15])  # the ReLU has no third Hermite part
    np.testing.assert_allclose(even, 1 / d, rtol=1e-3)


def test_overlap_collapses_at_the_power_of_the_information_exponent():
    for order in (1, 2, 3):
        target = Target({(order,): 1.0})
        curves = [overlap.energy(target, d, np.array([0.3, 3.0]) * d**order, CURVED) for d in (10_000, 40_000)]
        np.testing.assert_allclose(curves[0], curves[1], rtol=0.01)
        assert np.all((curves[0] > 0.01) & (curves[0] < 0.99))


def test_linear_part_collapses_the_neurons_and_preprocessing_spreads_them():
    kept, removed = (multiindex.one_step(QUADRATIC, 60, 60_000, 40, key(4), preprocess=p) for p in (False, True))
    assert np.mean(kept[:, 0] ** 2) > 0.9
    assert np.mean(removed[:, 0] ** 2) < 0.1 < np.mean(removed[:, 1] ** 2)
    assert np.mean(np.sum(removed**2, axis=1)) > 0.7


def test_fresh_steps_climb_the_staircase_and_only_that():
    d = 100
    climbed = np.mean(multiindex.fresh_steps(STAIRCASE, d, 40 * d, 40, 3, key(5), CURVED) ** 2, axis=1)
    stuck = np.mean(multiindex.fresh_steps(NO_STAIRCASE, d, 40 * d, 40, 3, key(5), CURVED) ** 2, axis=1)
    np.testing.assert_allclose(climbed[0], 1 / d, rtol=0.6)
    assert climbed[1, 0] > 0.3 and climbed[1, 1:].max() < 0.04
    assert climbed[2, 1] > 0.08 and climbed[2, 2] < 0.04 < climbed[3, 2]
    assert stuck[:, 1:].max() < 0.03


def test_neurons_of_either_sign_move_either_way():
    both = multiindex.one_step(QUADRATIC, 30, 900, 40, key(9))[:, 0]
    assert 10 < np.sum(both > 0.3) < 30 and 10 < np.sum(both < -0.3) < 30
    steps = multiindex.fresh_steps(QUADRATIC, 30, 900, 40, 1, key(9), "shifted_relu", 10.0)[1, :, 0]
    assert 10 < np.sum(steps > 0.3) < 30 and 10 < np.sum(steps < -0.3) < 30


def test_fresh_steps_first_step_is_one_step():
    """With an enormous η the first step forgets where it began, as one_step does."""
    d, n = 30, 300
    one = [np.mean(multiindex.one_step(QUADRATIC, d, n, 10, key(6, t)) ** 2, axis=0) for t in range(200)]
    many = [multiindex.fresh_steps(QUADRATIC, d, n, 10, 1, key(7, t), "shifted_relu", 1e9)[1] for t in range(200)]
    many = np.mean(np.square(many), axis=1)
    error = np.sqrt((np.var(one, axis=0) + many.var(axis=0)) / 200)
    assert np.all(np.abs(np.mean(one, axis=0) - many.mean(axis=0)) < 4 * error)


def test_same_key_same_numbers():
    for preprocess in (False, True):
        runs = [multiindex.one_step(QUADRATIC, 30, 500, 5, key(8), preprocess=preprocess) for _ in range(2)]
        np.testing.assert_array_equal(*runs)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Target({}), "terms"),
        (lambda: Target({(1,): 1.0, (1, 2): 1.0}), "one length"),
        (lambda: Target({"12": 1.0}), "tuples"),
        (lambda: Target({(-1,): 1.0}), "orders"),
        (lambda: Target({(1,): np.inf}), "finite"),
        (lambda: Target({(1,): 0.0}), "not 0"),
        (lambda: Target({(1, 0): 1.0}).preprocessed, "at least one"),
        (lambda: multiindex.one_step(QUADRATIC, 2, 10, 4, key(0)), "d = 2"),
        (lambda: multiindex.one_step(QUADRATIC, 5, 1, 4, key(0)), "n = 1"),
        (lambda: multiindex.one_step(QUADRATIC, 5, 10, 0, key(0)), "N = 0"),
        (lambda: multiindex.one_step(QUADRATIC, 5, 10, 4, key(0), "step"), "activation"),
        (lambda: multiindex.fresh_steps(QUADRATIC, 5, 10, 4, 0, key(0), "tanh"), "steps = 0"),
        (lambda: multiindex.fresh_steps(QUADRATIC, 5, 10, 4, 1, key(0), "tanh", 0.0), "eta"),
        (lambda: overlap.energy(QUADRATIC, 5, [0.0]), "n = 0"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
