"""The law of the first batch's residuals, against draws."""

import numpy as np
import pytest

from onestep import Problem, simulate, theory


def test_first_batch_carries_the_law_of_residuals():
    p = Problem(600, 300, 400, 0.05, "softplus", (0.0, 1.0, 0.6), 0.3, initial_output="full")
    law = theory.first_batch.first_batch(p, p.phi, 40)
    np.testing.assert_allclose(law.pair.sum(-1), np.eye(2), atol=1e-10)
    np.testing.assert_allclose(law.along.sum(-1), 0, atol=1e-10)
    np.testing.assert_allclose(law.mean, [1.0, -p.student.linear], atol=1e-10)
    assert law.D == pytest.approx(p.D)
    rng = np.random.default_rng(0)
    s, own, rest = rng.standard_normal((3, 400_000))
    noise = np.sqrt(p.student.tail + p.noise**2) * rest
    y = p.target(s) - p.student.linear * own + noise
    for a, first in enumerate((s, own)):
        assert law.along[a] @ law.y**3 == pytest.approx(np.mean(first * y**3), abs=0.3)
        for b, second in enumerate((s, own)):
            drawn = np.mean(first * second * np.cos(y / 2))
            assert np.sum(law.pair[a, b] * np.cos(law.y / 2)) == pytest.approx(drawn, abs=0.01)


@pytest.mark.parametrize("output", ["negligible", "full"])
def test_moments_of_the_first_batch_against_drawn_ones(output):
    p = Problem(1600, 400, 320, 0.05, "softplus", (0.0, 1.0, 0.4), 0.5, initial_output=output)
    law, found = theory.first_batch.first_batch(p, p.phi, 30), []
    for seed in range(16):
        draw = simulate.draw(p, np.random.default_rng(seed))
        y, beta = simulate.residual(p, draw), simulate.direction(p, draw)
        M, C = (draw.X.T * y) @ draw.X / p.n, (draw.X.T * y**2) @ draw.X / p.n
        hat = beta / np.linalg.norm(beta)
        zeta = draw.beta_star - (draw.beta_star @ hat) * hat
        away = np.linalg.norm(zeta)
        plane = np.array([hat, zeta / away])
        forms = [np.eye(p.d), M, M @ M, C]
        traces = [np.sum(X * Y) / p.d for X in forms for Y in forms]
        along = np.mean(y**2 * (draw.X @ hat))
        found.append([beta @ beta, away, along, *np.ravel([plane @ X @ plane.T for X in forms]), *traces])
    mean, se = np.mean(found, axis=0), np.std(found, axis=0, ddof=1) / 4
    expected = np.array([law.D, law.away, law.square_along, *law.plane.ravel(), *law.traces.ravel()])
    assert np.all(np.abs(mean - expected) < 4.5 * se + 0.03 * np.abs(expected) + 3 / p.d)
