import numpy as np
import pytest
from scipy.optimize import minimize_scalar

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
    flat, t = np.ones(3), theory.traces(p)
    linear, rest = p.target.linear**2, theory.best_linear(p)
    J, dJ = (linear * t.T + rest) / t.nu, linear * t.dT / t.nu - (linear * t.T + rest) / t.nu**2
    limit = theory.Losses(p.ridge * J, -(t.nu**2) * dJ * t.dnu)
    for found, expected in (
        (covariance.untrained(p, flat), limit),
        (theory.untrained_limit(p), limit),
        (covariance.first_gain(p, flat), theory.gains(p, 1)),
    ):
        assert found.train == pytest.approx(expected.train, rel=1e-11)
        assert found.test == pytest.approx(expected.test, rel=1e-11)


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


def gains(direction, p=P):
    found = covariance.first_gain(p, SPECTRUM, direction)
    return np.array([found.train, found.test, covariance.cosine(p, SPECTRUM, direction)])


def drawn(step, trials=60):
    """Eigenvalues of d inputs, and signal and noise measured at each."""
    p = P.scaled(600)
    s = SPECTRUM[: 2 * p.d : 2] / SPECTRUM[: 2 * p.d : 2].mean()
    rng, found = np.random.default_rng(5), []
    for _ in range(trials):
        ahead = rng.standard_normal(p.d)
        ahead /= np.sqrt(ahead @ (s * ahead))
        X = rng.standard_normal((p.n, p.d)) * np.sqrt(s)
        y = p.target(X @ ahead) + p.noise * rng.standard_normal(p.n)
        found.append((p.target.linear * ahead, step(X, y, s)))
    theta, b = np.moveaxis(found, 1, 0)
    k = np.sum(theta * b, axis=0) / np.sum(theta**2, axis=0)
    return s, k, p.d * np.mean((b - k * theta) ** 2, axis=0)


@pytest.mark.parametrize("delta", [0.0, 0.2, 2.0])
def test_signal_and_noise_of_the_own_covariance_are_those_of_ridge_regression(delta):
    p = P.scaled(600)

    def ridge(X, y, s):
        return np.linalg.solve(X.T @ X / p.n + delta * np.eye(p.d), X.T @ y / p.n)

    s, k, v = drawn(ridge)
    predicted = covariance.sample_covariance(p, s, delta)
    assert np.mean(k / predicted.signal) == pytest.approx(1, abs=0.04)
    assert np.mean(v / predicted.noise) == pytest.approx(1, abs=0.05)


def test_signal_and_noise_of_a_known_covariance():
    p = P.scaled(600)
    s, k, v = drawn(lambda X, y, s: X.T @ y / p.n / (s + 0.5))
    predicted = covariance.population(p, s, 1 / (s + 0.5))
    assert np.mean(k / predicted.signal) == pytest.approx(1, abs=0.04)
    assert np.mean(v / predicted.noise) == pytest.approx(1, abs=0.06)


def test_without_a_preconditioner_it_is_the_gradient_step():
    flat = gains(covariance.population(P, SPECTRUM, np.full(400, 3.0)))
    assert flat == pytest.approx(gains(None), rel=1e-12)


@pytest.mark.parametrize("p", [P, P.replace(ridge=3.0), P.replace(N=30, activation="tanh"), P.replace(noise=2.0)])
def test_the_best_known_preconditioner_is_best_for_both_losses_and_the_cosine(p):
    best = gains(covariance.population(p, SPECTRUM, 1 / (SPECTRUM + covariance.best_damping(p).population)), p)
    rng = np.random.default_rng(2)
    for size in (1e-2, 0.3, 2.0):
        other = np.exp(size * rng.standard_normal(400)) / (SPECTRUM + covariance.best_damping(p).population)
        assert np.all(gains(covariance.population(p, SPECTRUM, other), p) < best)


@pytest.mark.parametrize("p", [P, P.replace(ridge=3.0), P.replace(d=500), P.replace(noise=2.0)])
@pytest.mark.parametrize("which", [0, 1, 2])
def test_the_best_damping_of_the_own_covariance_is_that_of_ridge_regression(p, which):
    def lost(log):
        return -gains(covariance.sample_covariance(p, SPECTRUM, np.exp(log)), p)[which]

    found = np.exp(minimize_scalar(lost, bounds=(-5, 5), method="bounded", options={"xatol": 1e-7}).x)
    assert found == pytest.approx(covariance.best_damping(p).sample, rel=1e-3)


def test_the_own_covariance_beats_the_known_one_and_adam_depends_on_the_basis():
    damping = covariance.best_damping(P)
    expected = gains(covariance.population(P, SPECTRUM, 1 / (SPECTRUM + damping.population)))
    assert np.all(gains(covariance.sample_covariance(P, SPECTRUM, damping.sample)) > expected)
    ahead, astray = gains(covariance.signs(P, SPECTRUM)), gains(covariance.signs(P, SPECTRUM, basis="random"))
    assert np.all(astray < gains(None)) and np.all(gains(None) < ahead) and np.all(ahead < expected)


def test_signs_of_a_flat_spectrum_do_not_depend_on_the_basis():
    flat = np.ones(3)
    for one, other in zip(covariance.signs(P, flat), covariance.signs(P, flat, basis="random"), strict=True):
        assert one == pytest.approx(other, rel=1e-12)


def test_much_damping_is_no_preconditioner():
    assert gains(covariance.sample_covariance(P, SPECTRUM, 1e7)) == pytest.approx(gains(None), rel=1e-5)


def test_a_teacher_without_a_linear_part_wants_infinite_damping():
    assert covariance.best_damping(P.replace(teacher=(0.0, 0.0, 1.0))).sample == np.inf


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: covariance.untrained(P, [1.0, 2.0]), "spectrum = .* mean 1"),
        (lambda: covariance.untrained(P, [2.0, 0.0]), "spectrum"),
        (lambda: covariance.untrained(P, []), "spectrum"),
        (lambda: covariance.untrained(P, ["a"]), "spectrum"),
        (lambda: covariance.first_gain(P, [[1.0]]), "spectrum"),
        (lambda: covariance.first_gain(P.replace(initial_output="full"), [1.0]), "initial_output = 'full'"),
        (lambda: covariance.first_gain(P, SPECTRUM, covariance.population(P, [1.0])), "direction of 1 eigenvalues"),
        (lambda: covariance.population(P, SPECTRUM, [1.0]), "preconditioner = .* must be 400 eigenvalues"),
        (lambda: covariance.population(P, SPECTRUM, -SPECTRUM), "preconditioner = .* >= 0"),
        (lambda: covariance.population(P, SPECTRUM, 0 * SPECTRUM), "preconditioner = .* not all of them 0"),
        (lambda: covariance.population(P, SPECTRUM, np.nan * SPECTRUM), "preconditioner"),
        (lambda: covariance.sample_covariance(P, SPECTRUM, -0.1), "damping = -0.1"),
        (lambda: covariance.sample_covariance(P.replace(d=400), SPECTRUM, 0), "damping = 0: must be > 0 with d = 400"),
        (lambda: covariance.signs(P, SPECTRUM, basis="own"), "basis = 'own'"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_step_on_a_sample_of_its_own_size():
    """Directions are those of so many samples; with Σ = I the first plateau is as 1/‖β‖²."""
    for m in (100, 4000):
        p, q = P.replace(step_samples=m), P.replace(n=m)
        for law in (covariance.population, covariance.signs, lambda p, s: covariance.sample_covariance(p, s, 0.3)):
            np.testing.assert_array_equal(law(p, SPECTRUM), law(q, SPECTRUM))
        assert covariance.best_damping(p) == covariance.best_damping(q)
        ratio = covariance.first_gain(p, [1.0]).test / covariance.first_gain(P, [1.0]).test
        assert ratio == pytest.approx(P.D / p.D, rel=1e-10)
