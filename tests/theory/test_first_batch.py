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
def test_moments_of_the_first_batch_against_one_drawn(output):
    p = Problem(4000, 1000, 800, 0.05, "softplus", (0.0, 1.0, 0.8), 0.5, initial_output=output)
    draw = simulate.draw(p, np.random.default_rng(4))
    y = draw.y - (p.student(draw.X @ draw.W0.T) @ draw.a if output == "full" else 0.0)
    M, C = (draw.X.T * y) @ draw.X / p.n, (draw.X.T * y**2) @ draw.X / p.n
    beta = draw.X.T @ y / p.n
    law = theory.first_batch.first_batch(p, p.phi, 30)
    assert beta @ beta == pytest.approx(law.D, rel=0.1)
    hat = beta / np.linalg.norm(beta)
    zeta = draw.beta_star - (draw.beta_star @ hat) * hat
    assert np.linalg.norm(zeta) == pytest.approx(law.away, abs=0.03)
    zeta = zeta / np.linalg.norm(zeta)
    forms = [np.eye(p.d), M, M @ M, C]
    drawn = np.array([[[v @ X @ w for w in (hat, zeta)] for v in (hat, zeta)] for X in forms])
    np.testing.assert_allclose(law.plane, drawn, atol=0.15 * np.abs(drawn).max())
    traces = np.array([[np.trace(X @ Y) / p.d for X in forms] for Y in forms])
    np.testing.assert_allclose(law.traces, traces, atol=0.06 * traces.max())
