import numpy as np
import pytest

from onestep import simulate, theory
from onestep.hermite import function
from onestep.multiindex import Target
from onestep.simulate import key

QUADRATIC = Target({(1, 0, 0): 1.0, (0, 2, 0): 0.5, (0, 0, 2): -0.5})
STAIRCASE = Target({(1, 0, 0): 1.0, (1, 1, 0): 1.5, (1, 1, 1): 2.0})
NO_STAIRCASE = Target({(1, 0, 0): 1.0, (0, 1, 1): 1.0})
CURVED = (0.0, 1.0, 0.6, 0.4)


def direct(target, d, n, N, rng, *, activation, preprocess):
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
        cosines = [
            step(target, d, 60, 8, key(2, branch, t), activation=CURVED, preprocess=preprocess) for t in range(300)
        ]
        return np.mean(np.square(cosines), axis=1)

    one, other = energies(simulate.directions.one_step, 0), energies(direct, 1)
    error = np.sqrt((one.var(axis=0) + other.var(axis=0)) / 300)
    assert np.all(np.abs(one.mean(axis=0) - other.mean(axis=0)) < 4 * error)
    np.testing.assert_allclose(one.std(axis=0), other.std(axis=0), rtol=0.35)


def test_one_step_counts_every_coordinate_outside():
    """In five dimensions one coordinate that is missing, or too many, is a fifth of the squared length."""
    target, options = Target({(1,): 1.0, (2,): 0.5}), (5, 10, 3)
    runs = [
        [
            np.mean(step(target, *options, key(12, branch, t), activation=CURVED, preprocess=False) ** 2)
            for t in range(1200)
        ]
        for branch, step in enumerate((simulate.directions.one_step, direct))
    ]
    error = np.sqrt(sum(np.var(run) for run in runs) / 1200)
    assert abs(np.mean(runs[0]) - np.mean(runs[1])) < 4 * error < 0.12 * np.mean(runs[1])


def test_linear_part_collapses_the_neurons_and_preprocessing_spreads_them():
    kept, removed = (
        simulate.directions.one_step(QUADRATIC, 60, 60_000, 40, key(4), preprocess=p) for p in (False, True)
    )
    assert np.mean(kept[:, 0] ** 2) > 0.9
    assert np.mean(removed[:, 0] ** 2) < 0.1 < np.mean(removed[:, 1] ** 2)
    assert np.mean(np.sum(removed**2, axis=1)) > 0.7


def test_fresh_steps_climb_the_staircase_and_only_that():
    d = 100
    climbed = np.mean(simulate.directions.fresh_steps(STAIRCASE, d, 40 * d, 40, 3, key(5), CURVED) ** 2, axis=1)
    stuck = np.mean(simulate.directions.fresh_steps(NO_STAIRCASE, d, 40 * d, 40, 3, key(5), CURVED) ** 2, axis=1)
    np.testing.assert_allclose(climbed[0], 1 / d, rtol=0.6)
    assert climbed[1, 0] > 0.3 and climbed[1, 1:].max() < 0.04
    assert climbed[2, 1] > 0.08 and climbed[2, 2] < 0.04 < climbed[3, 2]
    assert stuck[:, 1:].max() < 0.03


def test_neurons_of_either_sign_move_either_way():
    both = simulate.directions.one_step(QUADRATIC, 30, 900, 40, key(9))[:, 0]
    assert 10 < np.sum(both > 0.3) < 30 and 10 < np.sum(both < -0.3) < 30
    steps = simulate.directions.fresh_steps(QUADRATIC, 30, 900, 40, 1, key(9), "shifted_relu", eta=10.0)[1, :, 0]
    assert 10 < np.sum(steps > 0.3) < 30 and 10 < np.sum(steps < -0.3) < 30


def test_fresh_steps_first_step_is_one_step():
    """With an enormous η the first step forgets where it began, as one_step does."""
    d, n = 30, 300
    one = [np.mean(simulate.directions.one_step(QUADRATIC, d, n, 10, key(6, t)) ** 2, axis=0) for t in range(200)]
    many = [
        simulate.directions.fresh_steps(QUADRATIC, d, n, 10, 1, key(7, t), "shifted_relu", eta=1e9)[1]
        for t in range(200)
    ]
    many = np.mean(np.square(many), axis=1)
    error = np.sqrt((np.var(one, axis=0) + many.var(axis=0)) / 200)
    assert np.all(np.abs(np.mean(one, axis=0) - many.mean(axis=0)) < 4 * error)


def test_one_fresh_step_by_the_definition():
    d, n, N = 9, 40, 4
    path = simulate.directions.fresh_steps(QUADRATIC, d, n, N, 1, key(10), CURVED, eta=0.7)
    rng = key(10)
    W = rng.standard_normal((N, d))
    W /= np.linalg.norm(W, axis=1, keepdims=True)
    a, X = rng.choice([-1.0, 1.0], (N, 1)), rng.standard_normal((n, d))
    np.testing.assert_allclose(path[0], W[:, :3])
    W = W + 0.7 * a * ((QUADRATIC(X[:, :3])[:, None] * function(CURVED).derivative(X @ W.T)).T @ X) / n
    np.testing.assert_allclose(path[1], (W / np.linalg.norm(W, axis=1, keepdims=True))[:, :3], rtol=1e-12)


def test_same_key_same_numbers():
    for preprocess in (False, True):
        runs = [simulate.directions.one_step(QUADRATIC, 30, 500, 5, key(8), preprocess=preprocess) for _ in range(2)]
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
        (lambda: simulate.directions.one_step(QUADRATIC, 2, 10, 4, key(0)), "d = 2"),
        (lambda: simulate.directions.one_step(QUADRATIC, 5, 1, 4, key(0)), "n = 1"),
        (lambda: simulate.directions.one_step(QUADRATIC, 5, 10, 0, key(0)), "N = 0"),
        (lambda: simulate.directions.one_step(QUADRATIC, 5, 10, 4, key(0), activation="step"), "activation"),
        (lambda: simulate.directions.fresh_steps(QUADRATIC, 5, 10, 4, 0, key(0), "tanh"), "steps = 0"),
        (lambda: simulate.directions.fresh_steps(QUADRATIC, 5, 10, 4, 1, key(0), "tanh", eta=0.0), "eta"),
        (lambda: theory.directions.energy(QUADRATIC, 5, [0.0]), "n = 0"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
