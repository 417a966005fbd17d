import itertools
from math import inf

import numpy as np
import pytest

from onestep import Problem, hermite, simulate, theory
from onestep.simulate.expansion import Version

SINE = hermite.shifted(hermite.Function(np.sin, np.cos, name="sin"), 0.8)
P = Problem(160, 40, 60, activation=SINE, teacher=(0.0, 1.0, 0.4), noise=0.3)


def replicate(p, trial=0, seed=0):
    now = simulate.draw(p, simulate.key(seed, trial))
    return now, simulate.gradient(p, now), now.X.T @ simulate.residual(p, now) / p.n


@pytest.mark.parametrize("output", ["negligible", "full"])
def test_norms_by_the_definition(output, monkeypatch):
    monkeypatch.setattr(simulate.svd, "NORM", 1e-8)
    p, eta = P.replace(initial_output=output), [1.5, 4.0]
    got = simulate.expansion.norms(p, eta, [0, 1, 3], trials=2, directions=("residual", "labels"))
    for trial in range(2):
        now, G, beta = replicate(p, trial)
        c = p.student.coefficients(3)
        for i, direction in enumerate((beta, now.X.T @ now.y / p.n)):
            z = now.X2 @ direction
            for m, step in enumerate(eta):
                rest = p.student(now.X2 @ (now.W0 + step * G).T) - p.student(now.X2 @ now.W0.T)
                for k in range(4):
                    if k:
                        rest = rest - c[1] ** k * c[k] * step**k * np.outer(z**k, now.a**k)
                    if k != 2:
                        found = got.values[trial, i, m, {0: 0, 1: 1, 3: 2}[k]]
                        assert found == pytest.approx(np.linalg.norm(rest, 2) / np.sqrt(p.n), rel=1e-6)
        assert got.readout[trial] == pytest.approx(np.sqrt(p.N * np.sum(now.a**4) / 3))


def test_directions_agree_exactly_when_the_initial_output_is_negligible():
    got = simulate.expansion.norms(P, 2.0, [1], trials=1, directions=simulate.network.DIRECTIONS).values[0, :, 0, 0]
    assert got[0] == got[1]
    full = simulate.expansion.norms(
        P.replace(initial_output="full"), 2.0, [1], trials=1, directions=simulate.network.DIRECTIONS
    )
    assert abs(full.values[0, 1, 0, 0] - full.values[0, 0, 0, 0]) > 1e-3


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
    assert np.all(simulate.expansion.norms(P, 0.0, [0, 1, inf], trials=1).values == 0)


@pytest.mark.slow
def test_gaussian_features_have_the_covariance_of_the_features():
    p = P.replace(d=300, N=4)
    now = simulate.draw(p, simulate.key(0))
    X, noise = simulate.key(1).standard_normal((60_000, 300)), simulate.key(2).standard_normal((60_000, 4))
    F, Z = p.student(X @ now.W0.T), simulate.expansion.gaussian_features(p, X, now.W0, noise)
    np.testing.assert_allclose(Z.T @ Z / len(X), F.T @ F / len(X), atol=0.02)
    np.testing.assert_allclose(Z.T @ X @ now.W0.T / len(X), F.T @ X @ now.W0.T / len(X), atol=0.02)
    residual = Z - p.student.linear * X @ now.W0.T
    np.testing.assert_allclose(residual.T @ residual / len(X), p.student.tail * np.eye(4), atol=0.01)


VERSIONS = [
    Version(),
    Version("rank one"),
    Version("restored"),
    Version("initial", 2),
    Version("initial", 3, growth=True),
    Version("bulk", 1),
    Version("gaussian", 2, tail=1.2),
    Version(intercept=True),
    Version("initial", 3, growth=True, intercept=True),
    Version("gaussian", 2, intercept=True),
]


def written_out(p, version, now, G, beta, eta, X, Z):
    """The features of a version on inputs X, from their definition."""
    c1, E = p.student.linear, G - p.student.linear * np.outer(now.a, beta)
    bulk, spike = now.W0 + eta * E, eta * c1 * np.outer(now.a, beta)
    lengths = np.linalg.norm(now.W0, axis=1) / np.linalg.norm(bulk, axis=1)
    W = {"real": bulk + spike, "rank one": now.W0 + spike, "restored": lengths[:, None] * bulk + spike, "bulk": bulk}
    F = p.student(X @ W.get(version.base, now.W0).T)
    if version.base == "gaussian":
        F = c1 * X @ now.W0.T + version.tail * np.sqrt(p.student.tail) * Z
    x, q = X @ beta, np.sum(E**2) / np.sum(now.a**2) / c1**2 * version.growth
    for k, power in enumerate([x, x**2 + q, x**3 + 3 * q * x][: version.order], 1):
        F = F + p.student.coefficients(k)[k] * (c1 * eta) ** k * np.outer(power, now.a**k)
    return F


@pytest.mark.slow
@pytest.mark.parametrize("output", ["negligible", "full"])
def test_losses_by_the_definition(output):
    p, eta = P.replace(first_layer="gaussian", initial_output=output), 3.0
    got = simulate.expansion.losses(p, eta, VERSIONS, trials=2, seed=5)
    np.testing.assert_array_equal(got.test, simulate.expansion.losses(p, eta, VERSIONS, trials=2, seed=5, jobs=1).test)
    rng = simulate.key(5, 1)
    now = simulate.draw(p, rng)
    G, beta, Z = simulate.gradient(p, now), simulate.direction(p, now), rng.standard_normal((p.n, p.N))
    fresh = np.random.default_rng(8)
    X, y = simulate.sample(p, now.beta_star, fresh, size=60_000)
    noise = fresh.standard_normal((len(X), p.N))
    for j, version in enumerate(VERSIONS):
        F = written_out(p, version, now, G, beta, eta, now.X2, Z)
        middle, level = (F.mean(0), now.y2.mean()) if version.intercept else (0.0, 0.0)
        A = F - middle
        a = np.linalg.solve(A.T @ A + p.ridge * p.n * np.eye(p.N), A.T @ (now.y2 - level))
        rest = now.y2 - level - A @ a
        assert got.train[1, j] == pytest.approx(np.mean(rest**2) + p.ridge * a @ a, rel=1e-9)
        errors = (y - level - (written_out(p, version, now, G, beta, eta, X, noise) - middle) @ a) ** 2
        assert abs(got.test[1, j] - errors.mean()) < 4.5 * errors.std() / np.sqrt(errors.size)


def test_real_rows_have_the_losses_of_the_real_step():
    got = simulate.expansion.losses(P, 3.0, [Version(), Version("initial")], trials=2, seed=4)
    real = simulate.losses(P, [3.0, 0.0], trials=2, seed=4)
    np.testing.assert_allclose(got.train, real.train, rtol=1e-10)
    np.testing.assert_allclose(got.test, real.test, rtol=1e-8)
    np.testing.assert_array_equal(got.variates, real.variates)


@pytest.mark.slow
def test_more_draws_of_the_noises_leave_the_means_and_shrink_the_spread():
    p, versions = P.replace(noise=1.5), [Version(), Version("gaussian", 1)]
    one, many = (simulate.expansion.losses(p, 3.0, versions, trials=120, seed=6, redraws=k) for k in (1, 8))
    for a, b in ((one.train, many.train), (one.test, many.test)):
        assert np.all(np.abs((a - b).mean(0)) < 4 * (a - b).std(0) / np.sqrt(120))
        assert np.all(b.std(0) < 0.85 * a.std(0))


def test_gaussian_features_without_their_noise_are_the_linear_network():
    linear = P.replace(activation=(0.0, P.student.linear))
    a = simulate.expansion.losses(P, 3.0, [Version("gaussian", 0, tail=0.0)], trials=1, seed=2)
    b = simulate.expansion.losses(linear, 0.0, [Version()], trials=1, seed=2)
    assert a.train == pytest.approx(b.train)
    assert a.test == pytest.approx(b.test)


def test_with_an_intercept_growing_rows_do_not_matter_to_two_terms():
    versions = [Version("initial", 2, grown, intercept=free) for free in (True, False) for grown in (False, True)]
    got = simulate.expansion.losses(P, 3.0, versions, trials=2).test
    np.testing.assert_allclose(got[:, 0], got[:, 1], rtol=1e-9)
    assert np.all(np.abs(got[:, 2] - got[:, 3]) > 1e-4)


def test_sizes_of_a_cubic_are_read_off_exactly_from_a_step_of_rank_one():
    """Without the rest of the gradient, E_x H_k of σ(w_iᵀx) is c_k(cos·r)^k + …: polynomials in a_i and w_iᵀβ."""
    p = P.replace(activation=(0.0, 0.8, 0.3, 0.1), n=400, d=200, N=150)
    got = simulate.expansion.sizes(p, [2.0, 5.0], 3, trials=40, rows="rank one").values
    claimed = np.array([0.8**2 * 0.3, 0.8 * 0.8, 0.8**2 * 0.3, 0.8**3 * 0.1])
    assert got.shape == (40, 2, 4)
    np.testing.assert_allclose(got.mean(0) / claimed, 1, atol=0.02)
    np.testing.assert_allclose(got[:, :, 2:] / claimed[2:], 1, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("output", ["negligible", "full"])
def test_sizes_of_a_real_step_count_the_growth_of_its_rows(output):
    p = Problem(600, 300, 300, activation=SINE, noise=0.5, initial_output=output)
    c, q = p.student.coefficients(2), theory.growth_ratio(p)
    got = {
        rows: simulate.expansion.sizes(p, 4.0, 2, trials=20, rows=rows).values[:, 0] for rows in ("real", "restored")
    }
    for rows, grown in (("real", q), ("restored", 0.0)):
        ratio = got[rows] / [c[1] ** 2 * c[2], c[1] ** 2, c[1] ** 2 * c[2]]
        error = ratio.std(0) / np.sqrt(len(ratio))
        assert np.all(np.abs(ratio.mean(0) - [1 + grown, 1, 1]) < 4 * error + 0.03)
        assert error[0] < 0.1 * q


@pytest.mark.parametrize("N", [60, 300])
def test_forms_against_an_explicit_inverse(N):
    p, ridges = P.replace(N=N), [0.01, 0.5]
    got = simulate.expansion.forms(p, ridges, order=2, trials=1, seed=2)
    now, _, beta = replicate(p, 0, 2)
    F0 = p.student(now.X2 @ now.W0.T)
    z, zs = now.X2 @ beta / np.linalg.norm(beta), now.X2 @ now.beta_star
    vectors = [v / np.sqrt(np.mean(v**2)) for v in (z, z**2 - 1, zs, zs**2 - 1)]
    vectors[1::2] = [np.sqrt(2) * v for v in vectors[1::2]]
    hidden = [now.a, now.a**2, np.ones(N)]
    vectors += [F0 @ (size * u / np.linalg.norm(u)) for u, size in zip(hidden, (1, np.sqrt(3), 1), strict=True)]
    vectors.append(np.ones(p.n))
    labels = simulate.expansion.form_labels(2)
    assert len(labels) == len(vectors)
    assert labels[3] == "H2(z⋆)"
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
    F0 = simulate.expansion.gaussian_features(P, now.X2, now.W0, rng.standard_normal((P.n, P.N)))
    R0 = np.linalg.inv(F0 @ F0.T + 0.2 * P.n * np.eye(P.n))
    v = F0 @ now.a / np.linalg.norm(now.a)
    assert got.values[0, 0, 2, 2] == pytest.approx(v @ R0 @ v)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: simulate.expansion.norms(P, 1.0, [-1]), "order = -1"),
        (lambda: simulate.expansion.norms(P, 1.0, [1], directions=("label",)), "of = 'label'"),
        (lambda: simulate.expansion.norms(P, -1.0, [1]), "eta"),
        (lambda: simulate.expansion.norms(P.replace(n=10**7, N=10**6), 1.0, [1]), "not enough memory"),
        (lambda: simulate.expansion.norms(P, 1.0, [2], rows="short"), "rows = 'short'"),
        (lambda: simulate.expansion.norms(P, 1.0, [2, inf], growth=True), "False for the sum"),
        (lambda: simulate.expansion.sizes(P, 0.0, 1), "eta"),
        (lambda: simulate.expansion.sizes(P, 1.0, 0), "order = 0"),
        (lambda: simulate.expansion.sizes(P, 1.0, 1, rows="long"), "rows = 'long'"),
        (lambda: simulate.expansion.sizes(P.replace(n=10**7, N=10**6), 1.0, 1), "not enough memory"),
        (lambda: simulate.expansion.losses(P, [1.0], [Version()]), "eta"),
        (lambda: simulate.expansion.losses(P, 1.0, [Version()], redraws=0), "redraws = 0"),
        (lambda: simulate.expansion.losses(P.replace(n=10**7, N=10**6), 1.0, [Version()]), "not enough memory"),
        (lambda: Version("grown"), "base = 'grown'"),
        (lambda: Version("initial", -1), "order = -1"),
        (lambda: Version("gaussian", tail=-0.5), "tail = -0.5"),
        (lambda: simulate.expansion.forms(P, [0.0]), "ridges = 0"),
        (lambda: simulate.expansion.forms(P, [1.0], order=0), "order = 0"),
        (lambda: simulate.expansion.forms(P.replace(n=10**7), [1.0]), "not enough memory"),
        (lambda: simulate.direction(P, None, of="y"), "of = 'y'"),
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


def test_rest_of_the_gradient_has_rows_as_long_as_stated():
    p = Problem(300, 300, 150, activation=(0.0, 1.0, 0.5), noise=1.0)
    growth = simulate.expansion.norms(p, 1.0, [0], trials=40).growth
    assert growth.mean() == pytest.approx(1, abs=4 * growth.std() / np.sqrt(40) + 0.01)
    now, G, beta = replicate(p)
    rows = np.sum((G - np.outer(now.a, beta)) ** 2, axis=1)
    assert growth[0] * p.row_growth == pytest.approx(np.sum(rows) / np.sum(now.a**2))


def test_norms_with_growth_and_with_restored_rows_by_the_definition(monkeypatch):
    monkeypatch.setattr(simulate.svd, "NORM", 1e-8)
    kinds = list(itertools.product((False, True), simulate.network.ROWS))
    growth, rows = zip(*kinds, strict=True)
    got = simulate.expansion.norms(P, 3.0, [2] * len(kinds), trials=1, growth=growth, rows=rows)
    now, G, beta = replicate(P)
    for j, (grown, kind) in enumerate(kinds):
        F = written_out(P, Version(kind), now, G, beta, 3.0, now.X2, None)
        expansion = written_out(P, Version("initial", 2, growth=grown), now, G, beta, 3.0, now.X2, None)
        norm = np.linalg.norm(F - expansion, 2) / np.sqrt(P.n)
        assert got.values[0, 0, 0, j] == pytest.approx(norm, rel=1e-6)
    alone = simulate.expansion.norms(P, 3.0, [2], trials=1, rows="restored").values
    assert alone[0, 0, 0, 0] == got.values[0, 0, 0, kinds.index((False, "restored"))]


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
