import numpy as np
import pytest

from onestep import Problem, simulate

P = Problem(120, 40, 70, teacher=(0.0, 1.0, 0.5), noise=0.2)


@pytest.mark.parametrize("output", ["negligible", "full"])
@pytest.mark.parametrize(("activation", "size"), [("tanh", None), ("softplus", 45)])
def test_gradient_against_differences_of_the_loss(output, activation, size):
    p = P.replace(initial_output=output, activation=activation, step_samples=size)
    now = simulate.draw(p, simulate.key(0))

    def loss(W):
        f = p.student(now.X @ W.T) @ now.a
        if output == "negligible":  # the part of the loss that is linear in the output
            return -now.y @ f / len(f)
        return np.sum((now.y - f) ** 2) / (2 * len(f))

    G = simulate.gradient(p, now)
    rng = np.random.default_rng(1)
    for _ in range(3):
        V = rng.standard_normal(G.shape)
        slope = (loss(now.W0 + 1e-5 * V) - loss(now.W0 - 1e-5 * V)) / 2e-5
        assert -np.sum(G * V) == pytest.approx(slope, rel=1e-6)


@pytest.mark.parametrize("layer", ["sphere", "gaussian"])
def test_draw_follows_the_problem(layer):
    p = P.replace(first_layer=layer, n=2000, d=100, N=400)
    now = simulate.draw(p, simulate.key(5))
    assert np.linalg.norm(now.beta_star) == pytest.approx(1)
    norms = np.linalg.norm(now.W0, axis=1)
    assert norms.mean() == pytest.approx(1, abs=0.02)
    assert (norms.std() < 1e-12) == (layer == "sphere")
    assert now.y2.shape == (2000,)
    assert np.var(now.y) == pytest.approx(p.label_power, rel=0.2)
    assert np.std(now.y - p.target(now.X @ now.beta_star)) == pytest.approx(p.noise, rel=0.08)  # 5 standard errors
    assert not np.allclose(now.X, now.X2)
    assert np.linalg.norm(now.a) == pytest.approx(1, abs=0.2)


@pytest.mark.parametrize("N", [30, 120, 300])
def test_ridge_in_primal_and_dual_is_the_minimiser(N):
    rng = np.random.default_rng(N)
    F, y = rng.standard_normal((120, N)), rng.standard_normal(120)
    a, train = simulate.ridge(F, y, 0.05)
    np.testing.assert_allclose(F.T @ (F @ a - y) / 120 + 0.05 * a, 0, atol=1e-12)
    resolvent = np.linalg.inv(F @ F.T + 0.05 * 120 * np.eye(120))
    assert train == pytest.approx(0.05 * y @ resolvent @ y, rel=1e-10)


@pytest.mark.parametrize("N", [30, 300])
def test_many_labels_at_once_are_fitted_one_by_one(N):
    rng = np.random.default_rng(N)
    F, Y = rng.standard_normal((120, N)), rng.standard_normal((120, 3))
    a, train = simulate.ridge(F, Y, 0.05)
    for k in range(3):
        one, loss = simulate.ridge(F, Y[:, k], 0.05)
        np.testing.assert_allclose(a[:, k], one, rtol=1e-9, atol=1e-14)
        assert train[k] == pytest.approx(loss, rel=1e-12)
