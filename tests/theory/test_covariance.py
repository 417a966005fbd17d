import numpy as np
import pytest

from onestep import Problem, theory
from onestep.theory.covariance import first_gain
from onestep.theory.random_features import solved

P = Problem(400, 120, 200, 0.1, teacher=(0.0, 1.0, 0.5), noise=0.5)
SPECTRUM = 1 / (np.arange(400) + 20.0)
SPECTRUM /= SPECTRUM.mean()


def known(p, P):
    """The law of a step along P(Σ)Xᵀy/n."""
    return SPECTRUM * P, p.phi * p.label_power * SPECTRUM * P**2


@pytest.mark.parametrize("p", [P, P.scaled(50), P.replace(N=80, ridge=3.0), P.replace(d=600, activation="tanh")])
def test_a_flat_spectrum_gives_the_isotropic_theory(p):
    found, expected = first_gain(p, np.ones(3)), theory.gains(p, 1)
    assert (found.train, found.test) == pytest.approx((expected.train, expected.test), rel=1e-11)


def test_only_the_distribution_of_the_spectrum_counts():
    one, other = first_gain(P, SPECTRUM), first_gain(P, np.repeat(SPECTRUM[::-1], 2))
    assert (one.train, one.test) == pytest.approx((other.train, other.test), rel=1e-12)


def test_a_direction_has_no_length():
    one, other = first_gain(P, SPECTRUM, known(P, np.full(400, -3.0))), first_gain(P, SPECTRUM)
    assert (one.train, one.test) == pytest.approx((other.train, other.test), rel=1e-12)


def test_forms_of_features_with_that_covariance():
    """The resolvent of Gaussian features c_1 X W0ᵀ + noise, large and drawn once."""
    p = P.scaled(1200)
    rng, s = np.random.default_rng(0), np.repeat(SPECTRUM, 9).reshape(-1, 10).mean(1)
    X = rng.standard_normal((p.n, p.d)) * np.sqrt(s)
    W0 = rng.standard_normal((p.N, p.d)) / np.sqrt(p.d)
    F = p.student.linear * X @ W0.T + np.sqrt(p.student.tail) * rng.standard_normal((p.n, p.N))
    R = np.linalg.inv(F @ F.T + p.ridge * p.n * np.eye(p.n))
    diagonal = np.einsum("ij,ik,kj->j", X, R, X, optimize=True)
    two, three = (np.mean(s**k * diagonal) for k in (1, 2))
    drop = p.ridge * (p.target.linear**2 * two) ** 2 / (p.phi * p.label_power * two + p.target.linear**2 * three)
    assert first_gain(p, s).train == pytest.approx(drop, rel=0.02)
    assert theory.gains(p, 1).train > 1.5 * drop


def test_test_errors_follow_by_leaving_one_out():
    """Λ_1 = -ν² ∂(Δ_1/λ)/∂λ."""
    h = 1e-4 * P.ridge
    high, low = (first_gain(P.replace(ridge=P.ridge + side), SPECTRUM).train / (P.ridge + side) for side in (h, -h))
    nu = solved(P.phi, P.psi, P.ridge, P.student.linear, P.student.tail, SPECTRUM)[0].nu.real
    assert first_gain(P, SPECTRUM).test == pytest.approx(-(nu**2) * (high - low) / (2 * h), rel=1e-6)


@pytest.mark.parametrize("p", [P, P.replace(ridge=3.0), P.replace(N=30, activation="tanh"), P.replace(noise=2.0)])
def test_one_damped_preconditioner_is_best_for_both_losses(p):
    damped, rng = 1 / (SPECTRUM + p.phi * p.label_power / p.target.linear**2), np.random.default_rng(2)
    best = first_gain(p, SPECTRUM, known(p, damped))
    for size in (1e-2, 0.3, 2.0):
        other = first_gain(p, SPECTRUM, known(p, damped * np.exp(size * rng.standard_normal(400))))
        assert other.train < best.train and other.test < best.test


def test_a_step_on_a_sample_of_its_own_size():
    """With Σ = I the first plateau is as 1/‖β‖²."""
    for m in (100, 4000):
        p = P.replace(step_samples=m)
        assert first_gain(p, [1.0]).test / first_gain(P, [1.0]).test == pytest.approx(P.D / p.D, rel=1e-10)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: first_gain(P, [1.0, 2.0]), "spectrum = .* mean 1"),
        (lambda: first_gain(P, [2.0, 0.0]), "spectrum"),
        (lambda: first_gain(P, []), "spectrum"),
        (lambda: first_gain(P, ["a"]), "spectrum"),
        (lambda: first_gain(P, [[1.0]]), "spectrum"),
        (lambda: first_gain(P.replace(initial_output="full"), [1.0]), "initial_output = 'full'"),
        (lambda: first_gain(P, SPECTRUM, ([1.0], [1.0])), r"law of shapes \(1,\) and \(1,\): must be of 400"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
