import numpy as np
import pytest

from onestep import Problem, theory
from onestep.theory import covariance

P = Problem(400, 120, 200, 0.1, teacher=(0.0, 1.0, 0.5), noise=0.5)
SPECTRUM = 1 / (np.arange(400) + 20.0)
SPECTRUM /= SPECTRUM.mean()


def effective_ridge(p):
    """ν, by way of labels that are noise alone: L_tr = λ E y²/ν."""
    silent = p.replace(teacher=(0.0, 0.0, 1.0), noise=0.0)
    return p.ridge * silent.label_power / covariance.untrained(silent, SPECTRUM).train


@pytest.mark.parametrize("p", [P, P.scaled(50), P.replace(N=80, ridge=3.0), P.replace(d=600, activation="tanh")])
def test_a_flat_spectrum_gives_the_isotropic_theory(p):
    flat = np.ones(3)
    for found, known in (
        (covariance.untrained(p, flat), theory.untrained_limit(p)),
        (covariance.first_gain(p, flat), theory.gains(p, 1)),
    ):
        assert found.train == pytest.approx(known.train, rel=1e-11)
        assert found.test == pytest.approx(known.test, rel=1e-11)


@pytest.mark.parametrize("function", [covariance.untrained, covariance.first_gain])
def test_only_the_distribution_of_the_spectrum_counts(function):
    one, other = function(P, SPECTRUM), function(P, np.repeat(SPECTRUM[::-1], 2))
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
    one, two, three = (np.mean(s**k * diagonal) for k in range(3))
    c, power = p.target.linear**2, p.label_power
    train = p.ridge * (c * one + theory.best_linear(p) * np.trace(R))
    assert covariance.untrained(p, s).train == pytest.approx(train, rel=0.01)
    drop = p.ridge * (c * two) ** 2 / (p.phi * power * two + c * three)
    assert covariance.first_gain(p, s).train == pytest.approx(drop, rel=0.02)
    assert theory.gains(p, 1).train > 1.5 * drop


@pytest.mark.parametrize("function", [covariance.untrained, covariance.first_gain])
def test_test_errors_follow_by_leaving_one_out(function):
    """L_te = -ν² ∂(L_tr/λ)/∂λ."""
    h = 1e-4 * P.ridge
    high, low = (function(P.replace(ridge=P.ridge + side), SPECTRUM).train / (P.ridge + side) for side in (h, -h))
    assert function(P, SPECTRUM).test == pytest.approx(-(effective_ridge(P) ** 2) * (high - low) / (2 * h), rel=1e-6)


def test_many_samples_and_units_leave_what_is_not_linear():
    p = P.replace(n=10**9, d=120, N=10**6, ridge=1e-9)
    assert covariance.untrained(p, SPECTRUM).test == pytest.approx(theory.best_linear(p), rel=1e-2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: covariance.untrained(P, [1.0, 2.0]), "spectrum = .* mean 1"),
        (lambda: covariance.untrained(P, [2.0, 0.0]), "spectrum"),
        (lambda: covariance.untrained(P, []), "spectrum"),
        (lambda: covariance.untrained(P, ["a"]), "spectrum"),
        (lambda: covariance.first_gain(P, [[1.0]]), "spectrum"),
        (lambda: covariance.first_gain(P.replace(initial_output="full"), [1.0]), "initial_output = 'full'"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
