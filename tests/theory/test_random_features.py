import numpy as np
import pytest

from onestep import Problem, theory

SETTINGS = {
    1: Problem(1000, 300, 500, noise=1.0),
    2: Problem(1000, 300, 500, teacher=(0.0, 1.0, 2**-0.5)),
}
RICH = Problem(1000, 300, 500, activation=(0, 1, 0.5, 0.3, 0.2), teacher=(0, 1, 0.5, 0.3, 0.2), noise=0.3)


@pytest.mark.parametrize("ridge", [1e-6, 1e-3, 1.0, 1e3])
@pytest.mark.parametrize("phi", [0.01, 0.3, 1.0, 20.0])
@pytest.mark.parametrize("psi", [0.01, 0.6, 1.0, 50.0])
@pytest.mark.parametrize("activation", ["shifted_relu", "erf"])
def test_traces_solve_the_slides_system_and_stay_in_range(phi, psi, ridge, activation):
    n = 10**6
    d = round(phi * n)
    p = Problem(n, d, max(1, round(d / psi)), ridge, activation)
    t = theory.traces(p)
    c1, tail = p.student.linear**2, p.student.tail
    Psi = c1 * t.m1 * t.m2 * (ridge * p.psi * t.m1 / p.phi - 1)
    first = p.phi * (t.m1 - t.m2) * (tail * t.m1 + c1 * t.m2) + Psi
    second = p.phi / p.psi * (c1 * t.m1 * t.m2 + p.phi * (t.m2 - t.m1)) + Psi
    np.testing.assert_allclose(np.divide([first, second], c1 * t.m1 * t.m2), 0, atol=1e-9)
    assert 0 < t.m2 < t.m1 <= p.phi / p.psi / ridge
    assert 0 < t.T < 1


def test_trace_derivatives_against_differences():
    for p in (SETTINGS[1], RICH, Problem(500, 900, 300, 0.3, "erf")):
        h = 1e-5 * p.ridge
        up, down = (theory.traces(p.replace(ridge=p.ridge + s * h)) for s in (1, -1))
        t = theory.traces(p)
        assert t.dm1 == pytest.approx((up.m1 - down.m1) / (2 * h), rel=1e-6)
        assert t.dm2 == pytest.approx((up.m2 - down.m2) / (2 * h), rel=1e-6)
        assert t.dnu == pytest.approx((up.nu - down.nu) / (2 * h), rel=1e-6)


def test_no_linear_part_leaves_the_teacher_unseen():
    p = Problem(1000, 300, 500, activation=(0, 0, 1.0))
    assert theory.traces(p).T == pytest.approx(1.0)
    with pytest.raises(ValueError, match="c_1 = 0"):
        theory.staircase.spiked(p, 1.0)


def test_large_ridge_learns_nothing():
    p = SETTINGS[2].replace(ridge=1e6)
    assert theory.untrained_limit(p).train == pytest.approx(p.label_power, rel=1e-5)
    assert theory.untrained_limit(p).test == pytest.approx(p.label_power, rel=1e-5)


def test_forms_with_correlated_inputs_against_an_explicit_inverse():
    """x_jᵀ(FFᵀ + λnI)⁻¹x_j ≃ s_j T_j/ν for column j of the inputs, features c_1 X W0ᵀ + noise drawn once."""
    p, rng = Problem(1200, 360, 600, 0.1), np.random.default_rng(0)
    s = 1 / (np.arange(360) + 18.0)
    s /= s.mean()
    X = rng.standard_normal((p.n, p.d)) * np.sqrt(s)
    W0 = rng.standard_normal((p.N, p.d)) / np.sqrt(p.d)
    F = p.student.linear * X @ W0.T + np.sqrt(p.student.tail) * rng.standard_normal((p.n, p.N))
    forms = np.einsum("ij,ij->j", X, np.linalg.solve(F @ F.T + p.ridge * p.n * np.eye(p.n), X))
    at, *_ = theory.random_features.solved(p.phi, p.psi, p.ridge, p.student.linear, p.student.tail, s)
    expected = (s * at.T / at.nu).real
    for k in (0, 1, 2):
        assert np.mean(s**k * forms) == pytest.approx(np.mean(s**k * expected), rel=0.02)
    assert np.mean(s**2 * expected) > 2 * theory.traces(p).T / theory.traces(p).nu  # not as if Σ = I
