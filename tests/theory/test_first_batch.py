"""The law of the first batch's residuals, against draws."""

import numpy as np
import pytest

from onestep import Problem, simulate, theory


def test_first_batch_carries_the_law_of_residuals():
    p = Problem(600, 300, 400, 0.05, "softplus", (0.0, 1.0, 0.6), 0.3, initial_output="full")
    law = theory.fixed_point.first_batch.first_batch(p, 40)
    np.testing.assert_allclose(law.pair.sum(-1), np.eye(2), atol=1e-10)
    np.testing.assert_allclose(law.along.sum(-1), 0, atol=1e-10)
    np.testing.assert_allclose(law.mean, [1.0, -p.student.linear], atol=1e-10)
    assert law.D == pytest.approx(p.D - 2 * p.phi * law.moments[2] / p.d)  # the rest of β lies in d - 2 dimensions
    rng = np.random.default_rng(0)
    s, own, rest = rng.standard_normal((3, 400_000))
    noise = np.sqrt(p.student.tail + p.noise**2) * rest
    y = p.target(s) - p.student.linear * own + noise
    for a, first in enumerate((s, own)):
        assert law.along[a] @ law.y**3 == pytest.approx(np.mean(first * y**3), abs=0.3)
        for b, second in enumerate((s, own)):
            drawn = np.mean(first * second * np.cos(y / 2))
            assert np.sum(law.pair[a, b] * np.cos(law.y / 2)) == pytest.approx(drawn, abs=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("output", ["negligible", "full"])
def test_moments_of_the_first_batch_against_drawn_ones(output):
    p = Problem(1600, 400, 320, 0.05, "softplus", (0.0, 1.0, 0.4), 0.5, initial_output=output)
    law, found = theory.fixed_point.first_batch.first_batch(p, 30), []
    for seed in range(16):
        draw = simulate.draw(p, np.random.default_rng(seed))
        y, beta = simulate.residual(p, draw), simulate.direction(p, draw)
        M, C = (draw.X.T * y) @ draw.X / p.n, (draw.X.T * y**2) @ draw.X / p.n
        hat = beta / np.linalg.norm(beta)
        away = np.sqrt(1 - (draw.beta_star @ hat) ** 2)
        forms = [np.eye(p.d), M, M @ M, C]
        traces = np.array([np.trace(X) for X in forms]) / p.d
        products = [
            np.sum(X * Y) / p.d - x * y
            for X, x in zip(forms, traces, strict=True)
            for Y, y in zip(forms, traces, strict=True)
        ]
        along = np.mean(y**2 * (draw.X @ hat))
        found.append([beta @ beta, away, along, *(hat @ X @ hat for X in forms), *traces, *products])
    mean, se = np.mean(found, axis=0), np.std(found, axis=0, ddof=1) / 4
    expected = np.array([law.D, law.away, law.moment_along(2), *law.plane[:, 0, 0], *law.traces, *law.products.ravel()])
    assert np.all(np.abs(mean - expected) < 4.5 * se + 0.03 * np.abs(expected) + 3 / p.d)
    assert law.products[1, 1] == pytest.approx(law.traces[2])


@pytest.mark.slow
@pytest.mark.parametrize("output", ["negligible", "full"])
def test_what_a_first_batch_has_at_finite_d(output):
    """Traces beyond d times the limit's, and the mean of ‖β‖² over two batches."""
    p = Problem(480, 40, 100, 0.05, "tanh", (0.0, 1.0, 0.5, 0.2), 0.3, initial_output=output)
    law, found = theory.fixed_point.first_batch.first_batch(p, 30), []
    for seed in range(1500):
        draw = simulate.draw(p, np.random.default_rng(seed))
        X, y = draw.X, simulate.residual(p, draw)
        M, C = (X.T * y) @ X / p.n, (X.T * y**2) @ X / p.n
        beta = X.T @ y / p.n
        traces = np.array([np.trace(M), np.sum(M**2), np.trace(C)]) - p.d * law.traces[1:]
        found.append([*traces, beta @ beta])
    mean, se = np.mean(found, axis=0), np.std(found, axis=0, ddof=1) / np.sqrt(len(found))
    spread = np.mean([batch.D for batch in theory.fixed_point.first_batch.spread(law, p.d)])
    expected = np.array([*law.excess[1:], spread])
    allowance = [0.06, 0.15, 0.5, 0.015]  # the next order in 1/d
    assert np.all(np.abs(mean - expected) < 4 * se + allowance), (mean, expected, se)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "d", "teacher", "noise"), [(400, 100, (0.0, 1.0, 0.6), 0.3), (300, 60, (0.0, 1.0), 3.0)])
def test_two_batches_vary_as_drawn_ones_do(n, d, teacher, noise):
    """‖β‖², and the mean label with it: its slope on ‖β‖² and what is left of its variance, eq. (43)."""
    p = Problem(n, d, 100, 0.05, teacher=teacher, noise=noise)
    law, found = theory.fixed_point.first_batch.first_batch(p, 30), []
    for seed in range(1500):
        draw = simulate.draw(p, np.random.default_rng(seed))
        beta = simulate.direction(p, draw)
        found.append([beta @ beta, draw.y @ np.sum(draw.X**2, axis=1) / p.n / p.d])
    (mean, _), covariance = np.mean(found, axis=0), np.cov(np.transpose(found))
    low, high = theory.fixed_point.first_batch.spread(law, p.d)
    assert (high.D - low.D) / 2 == pytest.approx(np.sqrt(covariance[0, 0]), rel=0.07)
    assert (high.D + low.D) / 2 == pytest.approx(mean, abs=4 * np.sqrt(covariance[0, 0] / len(found)))
    level, error = (high.level - low.level) / 2, np.sqrt(covariance[1, 1] / len(found))
    assert level == pytest.approx(covariance[0, 1] / np.sqrt(covariance[0, 0]), abs=4 * error)
    assert high.level_std**2 + level**2 == pytest.approx(covariance[1, 1], rel=0.15)
    if len(teacher) > 2:
        assert level > 8 * error
