from math import inf

import numpy as np
import pytest

from onestep import Problem, hermite, simulate, theory

SINE = hermite.shifted(hermite.Function(np.sin, np.cos, name="sin"), 0.8)
P = Problem(160, 40, 60, activation=SINE, teacher=(0.0, 1.0, 0.4), noise=0.3)


def replicate(p, trial=0, seed=0):
    now = simulate.draw(p, simulate.key(seed, trial))
    return now, simulate.gradient(p, now), now.X.T @ simulate.residual(p, now) / p.n


@pytest.mark.parametrize("output", ["negligible", "full"])
def test_norms_by_the_definition(output):
    p, eta = P.replace(initial_output=output), [1.5, 4.0]
    got = simulate.expansion.norms(p, eta, [0, 1, 3], trials=2, directions=("residual", "labels"), tolerance=1e-8)
    for trial in range(2):
        now, G, beta = replicate(p, trial)
        c = p.student.coefficients(3)
        for i, direction in enumerate((beta, now.X.T @ now.y / p.n)):
            z = now.X2 @ direction
            for m, step in enumerate(eta):
                rest = p.student(now.X2 @ (now.W0 + step * G).T) - p.student(now.X2 @ now.W0.T)
                for k in range(4):
                    if k:
                        term = c[1] ** k * c[k] * step**k * np.outer(z**k, now.a**k)
                        size = np.linalg.norm(term, 2) / np.sqrt(p.n)
                        assert got.term[trial, i, m, k - 1] == pytest.approx(size, rel=1e-9)
                        rest = rest - term
                    if k != 2:
                        found = got.difference[trial, i, m, {0: 0, 1: 1, 3: 2}[k]]
                        assert found == pytest.approx(np.linalg.norm(rest, 2) / np.sqrt(p.n), rel=1e-6)


def test_directions_agree_exactly_when_the_initial_output_is_negligible():
    got = simulate.expansion.norms(P, 2.0, [1], trials=1, directions=simulate.network.DIRECTIONS).difference[0, :, 0, 0]
    assert got[0] == got[1]
    full = simulate.expansion.norms(
        P.replace(initial_output="full"), 2.0, [1], trials=1, directions=simulate.network.DIRECTIONS
    )
    assert abs(full.difference[0, 1, 0, 0] - full.difference[0, 0, 0, 0]) > 1e-3


@pytest.mark.parametrize("activation", [SINE, "tanh", "shifted_relu", (0.0, 0.8, 0.3, 0.1)])
def test_the_whole_series_is_the_mean_over_the_preactivation(activation):
    p = P.replace(activation=activation)
    rng = simulate.key(3)
    z, a = rng.standard_normal(30), rng.standard_normal(20) / np.sqrt(20)
    t = p.student.linear * 2.5 * np.outer(z, a)
    left, right = simulate.expansion.terms(p, z, a, 2.5, inf)
    np.testing.assert_allclose(left @ right.T, p.student.moments(t, 1.0)[0], atol=2e-6)
    if p.student.name.startswith("0.8"):  # a cubic is its own series
        left, right = simulate.expansion.terms(p, z, a, 2.5, 3)
        np.testing.assert_allclose(left @ right.T, p.student.moments(t, 1.0)[0], atol=1e-12)


def test_no_step_changes_nothing():
    assert np.all(simulate.expansion.norms(P, 0.0, [0, 1, inf], trials=1).difference == 0)


def test_a_list_of_orders_for_each_step():
    both = simulate.expansion.norms(P, [1.0, 4.0], [1, 2, inf], trials=1).difference
    each = simulate.expansion.norms(P, [1.0, 4.0], [[1, inf], [2, inf]], trials=1).difference
    np.testing.assert_array_equal(each[0, 0], [both[0, 0, 0, [0, 2]], both[0, 0, 1, [1, 2]]])


def test_gaussian_features_have_the_covariance_of_the_features():
    p = P.replace(d=300, N=4)
    now = simulate.draw(p, simulate.key(0))
    X = simulate.key(1).standard_normal((60_000, 300))
    F, Z = p.student(X @ now.W0.T), simulate.expansion.gaussian_features(p, X, now.W0, simulate.key(2))
    np.testing.assert_allclose(Z.T @ Z / len(X), F.T @ F / len(X), atol=0.02)
    np.testing.assert_allclose(Z.T @ X @ now.W0.T / len(X), F.T @ X @ now.W0.T / len(X), atol=0.02)
    residual = Z - p.student.linear * X @ now.W0.T
    np.testing.assert_allclose(residual.T @ residual / len(X), p.student.tail * np.eye(4), atol=0.01)


def test_losses_by_the_definition():
    got = simulate.expansion.losses(P, 3.0, 2, trials=2, seed=5, test_size=90)
    same = simulate.expansion.losses(P, 3.0, 2, trials=2, seed=5, jobs=1, test_size=90)
    np.testing.assert_array_equal(got.test, same.test)
    rng = simulate.key(5, 1)
    now = simulate.draw(P, rng)
    G, beta = simulate.gradient(P, now), now.X.T @ now.y / P.n
    X3, y3 = simulate.sample(P, now.beta_star, rng, 90)
    left, right = simulate.expansion.terms(P, now.X2 @ beta, now.a, 3.0, 2)
    left3 = simulate.expansion.terms(P, X3 @ beta, now.a, 3.0, 2)[0]
    W = now.W0 + 3.0 * G
    pairs = [(P.student(now.X2 @ W.T), P.student(X3 @ W.T))]
    pairs.append((P.student(now.X2 @ now.W0.T) + left @ right.T, P.student(X3 @ now.W0.T) + left3 @ right.T))
    for j, (F, F3) in enumerate(pairs):
        a = np.linalg.solve(F.T @ F + P.ridge * P.n * np.eye(P.N), F.T @ now.y2)
        train = np.mean((now.y2 - F @ a) ** 2) + P.ridge * a @ a
        assert got.train[1, j] == pytest.approx(train, rel=1e-9)
        assert got.test[1, j] == pytest.approx(np.mean((y3 - F3 @ a) ** 2), rel=1e-9)
    linear = simulate.expansion.losses(P.replace(activation=(0.0, 1.0)), 3.0, 0, trials=1)
    assert linear.train[0, 1] == pytest.approx(linear.train[0, 2])  # no tail, no noise: the same features


@pytest.mark.parametrize("N", [60, 300])
def test_forms_against_an_explicit_inverse(N):
    p, ridges = P.replace(N=N), [0.01, 0.5]
    got = simulate.expansion.forms(p, ridges, order=2, trials=1, seed=2)
    now, _, beta = replicate(p, 0, 2)
    F0 = p.student(now.X2 @ now.W0.T)
    z, zs = now.X2 @ beta / np.linalg.norm(beta), now.X2 @ now.beta_star
    vectors = [v / np.sqrt(np.mean(v**2)) for v in (z, z**2 - 1, zs, zs**2 - 1)]
    vectors[1::2] = [np.sqrt(2) * v for v in vectors[1::2]]
    vectors += [F0 @ now.a, np.sqrt(N) * F0 @ now.a**2, F0.sum(1) / np.sqrt(N), np.ones(p.n)]
    assert len(got.labels) == len(vectors)
    assert got.labels[3] == "H2(z⋆)"
    for k, ridge in enumerate(ridges):
        R0 = np.linalg.inv(F0 @ F0.T + ridge * p.n * np.eye(p.n))
        expected = np.array([[v @ R0 @ w for w in vectors] for v in vectors])
        np.testing.assert_allclose(got.values[0, k], expected, rtol=1e-8, atol=1e-10)
        assert got.m1[0, k] == pytest.approx(p.phi / p.psi * np.trace(R0))
        assert got.m2[0, k] == pytest.approx(p.phi / p.psi * np.trace(now.X2.T @ R0 @ now.X2) / p.d)


def test_forms_with_gaussian_features_use_them_throughout():
    got = simulate.expansion.forms(P, [0.2], order=1, gaussian=True, trials=1, seed=2)
    rng = simulate.key(2, 0)
    now = simulate.draw(P, rng)
    F0 = simulate.expansion.gaussian_features(P, now.X2, now.W0, rng)
    R0 = np.linalg.inv(F0 @ F0.T + 0.2 * P.n * np.eye(P.n))
    v = F0 @ now.a
    assert got.values[0, 0, 2, 2] == pytest.approx(v @ R0 @ v)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: simulate.expansion.norms(P, [1.0, 2.0], [[1], [2], [3]]), "one list for all 2 steps"),
        (lambda: simulate.expansion.norms(P, 1.0, []), "orders"),
        (lambda: simulate.expansion.norms(P, 1.0, [-1]), "orders = -1"),
        (lambda: simulate.expansion.norms(P, 1.0, [1], directions=("label",)), "directions = 'label'"),
        (lambda: simulate.expansion.norms(P, -1.0, [1]), "eta"),
        (lambda: simulate.expansion.norms(P, 1.0, [1], tolerance=0), "tolerance"),
        (lambda: simulate.expansion.norms(P.replace(n=10**7, N=10**6), 1.0, [1]), "not enough memory"),
        (lambda: simulate.expansion.losses(P, [1.0], 1), "eta"),
        (lambda: simulate.expansion.losses(P, 1.0, 1, test_size=0), "test_size = 0"),
        (lambda: simulate.expansion.losses(P.replace(n=10**7, N=10**6), 1.0, 1), "not enough memory"),
        (lambda: simulate.expansion.forms(P, [0.0]), "ridges = 0"),
        (lambda: simulate.expansion.forms(P, [1.0], order=0), "order = 0"),
        (lambda: simulate.expansion.forms(P.replace(n=10**7), [1.0]), "not enough memory"),
        (lambda: simulate.direction(P, None, "y"), "of = 'y'"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_series_out_of_reach_is_reported():
    with pytest.raises(ArithmeticError, match="not resolved by degree"):
        simulate.expansion.terms(P, np.array([40.0]), np.array([3.0]), 5.0, inf)


def test_terms_with_growth_are_the_mean_over_longer_rows():
    z, a = np.linspace(-2, 2, 9), np.array([0.4, -0.7])
    p = P.replace(activation=(0.0, 0.8, 0.3, 0.1, 0.05))
    left, right = simulate.expansion.terms(p, z, a, 1.5, 4, growth=0.9)
    mean = p.student.moments(0.8 * 1.5 * np.outer(z, a), np.sqrt(1 + 1.5**2 * 0.9 * a**2))[0]
    np.testing.assert_allclose(left @ right.T, mean, atol=1e-12)


def test_growth_of_the_rows_is_what_the_second_term_misses():
    p = Problem(600, 600, 300, activation=(0.0, 1.0, 0.5), noise=1.0)
    now, G, beta = replicate(p)
    rows = np.sum((G - np.outer(now.a, beta)) ** 2, axis=1)
    assert np.sum(rows) / np.sum(now.a**2) == pytest.approx(p.row_growth, rel=0.1)
    printed = simulate.expansion.norms(p, 6.0, [2], trials=2)
    corrected = simulate.expansion.norms(p, 6.0, [2], trials=2, growth=True)
    assert np.all(corrected.mean < 0.5 * printed.mean)
    assert np.all(printed.mean <= printed.difference * (1 + 1e-3))
    both = simulate.expansion.norms(p, 6.0, [2, 2], trials=2, growth=(False, True))
    np.testing.assert_array_equal(both.mean, np.concatenate([printed.mean, corrected.mean], axis=-1))
    with pytest.raises(ValueError, match="one for each of 1 orders"):
        simulate.expansion.norms(p, 6.0, [2], trials=1, growth=(False, True))
    with pytest.raises(ValueError, match="must be finite"):
        simulate.expansion.norms(p, 6.0, [2, inf], trials=1, growth=True)


@pytest.mark.parametrize("layer", ["sphere", "gaussian"])
def test_simulated_forms_approach_their_limits(layer):
    p = Problem(500, 150, 250, first_layer=layer, teacher=(0.0, 1.0, 0.5), ridge=0.1)
    got = simulate.expansion.forms(p, [p.ridge], order=2, trials=24, seed=1).values[:, 0]
    limit = theory.forms(p, 2)
    np.testing.assert_array_equal(limit, limit.T)
    lengths = np.sqrt(np.diagonal(limit))
    error = got.std(0, ddof=1) / np.sqrt(len(got)) / np.outer(lengths, lengths)
    gap = (got.mean(0) - limit) / np.outer(lengths, lengths)
    allowance = np.where(np.eye(len(limit), dtype=bool), 0.02, p.d**-0.5)  # the size of corrections to what vanishes
    assert np.all(np.abs(gap) < 3.5 * error + allowance)
    even = got[:, -2, -2]
    assert even.mean() == pytest.approx(limit[-2, -2], abs=0.015)
    assert even.mean() > limit[-4, -4] + 0.08  # not a direction like any other
