import numpy as np
import pytest

from onestep import Problem, theory

SETTINGS = {
    1: Problem(1000, 300, 500, noise=1.0),
    2: Problem(1000, 300, 500, teacher=(0.0, 1.0, 2**-0.5)),
}


def test_metric_of_the_hidden_directions_is_what_the_forms_leave():
    p, K = SETTINGS[2].replace(activation="softplus"), 4
    form = theory.forms(p, 1)
    tau, even = form[2, 2], form[4, 4]
    assert form[3, 3] == pytest.approx(2 * tau + even, rel=1e-12)
    assert form[3, 4] == form[4, 3] == even
    gamma = np.array([0.0, 1.0, 0.0, 3.0])
    moments = np.array([[1, 0, 3, 0], [0, 3, 0, 15], [3, 0, 15, 0], [0, 15, 0, 105.0]])
    left = moments - tau * (moments - np.outer(gamma, gamma)) - even * np.outer(gamma, gamma)
    metric = theory.staircase.hidden_metric(p, theory.traces(p), K)
    np.testing.assert_allclose(metric @ left, np.eye(K), atol=1e-12)


def test_omitted_terms_of_a_polynomial_are_its_last_terms():
    p = Problem(1000, 300, 500, activation=(0.0, 0.8, 0.0, 0.3))
    third = 0.3 * (0.8 * np.sqrt(p.D) * 3.0) ** 3 * 15 / p.N
    assert theory.omitted(p, 3.0, 2) == pytest.approx(third)
    assert theory.term(p, 3.0, 3) == pytest.approx(third)
    assert theory.omitted(p, [3.0, 6.0], 1) == pytest.approx([third, 8 * third])
    assert theory.omitted(p, 3.0, 3) == pytest.approx(0, abs=1e-12)
    # both terms at once: z and z³ are not orthogonal, which leaves a 2 x 2 matrix
    gamma = np.array([[1, 3], [3, 15.0]])
    sizes = np.diag([0.8 * 0.8 * np.sqrt(p.D) * 3.0, third / 15])
    root = np.linalg.cholesky(gamma)
    assert theory.omitted(p, 3.0, 0) == pytest.approx(np.linalg.norm(root.T @ sizes @ root, 2))
