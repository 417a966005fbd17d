import numpy as np
import pytest
import scipy
from numpy.polynomial import hermite_e

from onestep import Problem, estimates, simulate, theory

P1 = Problem(1000, 300, 500, noise=1.0)
P2 = Problem(1000, 300, 500, teacher=(0.0, 1.0, 2**-0.5))
ODD = Problem(600, 300, 200, 0.05, "tanh", teacher=(0.0, 1.0, 0.0, 0.4), noise=0.3)
VARIANTS = [(layer, output) for layer in ("sphere", "gaussian") for output in ("negligible", "full")]


def drops(losses):
    return np.array([losses.train[0] - losses.train[1:], losses.test[0] - losses.test[1:]])


def isotropic_by_damping(p, eta, order=30, omega_change=0.0, z_change=None):
    """The fixed point in T (nodes × nodes) by plain iteration, term by term; (L_tr, κ) at perturbed weights."""
    z, pz = hermite_e.hermegauss(order)
    pz = pz / pz.sum()
    a = np.linspace(-6.5, 6.5, 60)
    pu = scipy.stats.norm.pdf(a) / scipy.stats.norm.pdf(a).sum()
    f, n, d, N = p.student, p.n, p.d, p.N
    power = p.target.second_moment + p.noise**2
    u = eta * f.linear * np.sqrt(p.D / N) * a
    r = np.sqrt(1 + eta**2 * a**2 / N * p.phi * power * (f.slope_second_moment - f.linear**2))
    mean, spread = u[:, None] * z, np.broadcast_to(r[:, None], (a.size, z.size))
    mu0, mu1, square, _ = f.moments(mean, spread)
    noise = square - mu0**2 - mu1**2
    h = 1e-3
    bend = (f.moments(mean, np.sqrt(spread**2 + h))[0] - f.moments(mean, np.sqrt(spread**2 - h))[0]) / (2 * h)
    weight = np.ones(order) if z_change is None else 1 + omega_change * z_change
    kappa, T = np.ones(order), np.eye(order)
    for _ in range(3000):
        g = pz * weight / (1 + weight * kappa)
        m = np.sqrt(g) * mu1
        q = 1 / (p.ridge + noise @ g + np.sum(m @ T * m, axis=1))
        T_new = np.linalg.inv(np.eye(order) + N / d * (m.T * (pu * q)) @ m)
        new = (N * (pu * q) @ noise + d * (1 - np.diag(T_new)) / g) / n
        if max(np.abs(np.sqrt(pz) * (new / kappa - 1)).max(), np.abs(T_new - T).max()) < 1e-13:
            break
        kappa, T = (kappa + new) / 2, (T + T_new) / 2
    away = np.sqrt(1 - p.rho**2)
    h0, h1, second, _ = p.target.moments(p.rho * z, np.full(order, away))
    mean0, mean1 = np.sqrt(g) * h0, np.sqrt(g) * h1
    P, tilt, even = np.sqrt(g) * mu0, np.sqrt(g) * z * mu1, np.sqrt(g) * bend
    share = np.sqrt(pu * q)[:, None]
    swell = share * r[:, None] ** 2 * even  # along what ‖x‖² moves, units pay for its variance 2/d
    units = np.linalg.inv(np.eye(a.size) + 2 * N / d * swell @ swell.T)
    top = np.eye(order) + N * (share * P).T @ units @ (share * P) + N / d * (tilt.T * (pu * q)) @ tilt
    if p.first_layer == "gaussian":
        top += 2 * N / d * (even.T * (pu * q * r**4)) @ even
    train = g @ (second - h0**2 - h1**2 + p.noise**2) + mean1 @ T @ mean1 + mean0 @ np.linalg.solve(top, mean0)
    return train, kappa


@pytest.mark.slow
@pytest.mark.parametrize("layer", ["sphere", "gaussian"])
@pytest.mark.parametrize("p", [P1, P2, ODD], ids=["linear", "quadratic", "odd"])
def test_isotropic_fixed_point_against_plain_iteration(p, layer):
    p = p.replace(first_layer=layer).scaled(10**10)  # so large that only degrees 0 and 1 can be learned
    eta = 0.7 * np.sqrt(p.n)
    train, kappa = isotropic_by_damping(p, eta)
    z_change, h = (1 + kappa) ** 2, 1e-4
    up, down = (isotropic_by_damping(p, eta, omega_change=s * h, z_change=z_change)[0] for s in (1, -1))
    found = theory.losses(p, eta, step_noise="isotropic")
    assert found.train == pytest.approx(train, rel=2e-4)
    assert found.test == pytest.approx((up - down) / (2 * h), rel=2e-4)


@pytest.mark.parametrize(("layer", "output"), VARIANTS)
@pytest.mark.parametrize("p", [P1, P2, ODD], ids=["linear", "quadratic", "odd"])
def test_no_step_is_the_random_features_model(p, layer, output):
    p = p.replace(first_layer=layer, initial_output=output).scaled(10**10)
    train, test = theory.fixed_point.family(p, order=58).evaluate(0.0).losses
    expected = theory.untrained_limit(p)
    assert train == pytest.approx(expected.train, rel=1e-7)
    assert test == pytest.approx(expected.test, rel=1e-7)


def test_problems_outside_the_calibrated_range_are_reported():
    p = Problem(900, 300, 450, 0.1)
    assert theory.uncalibrated(p) == []
    assert theory.uncalibrated(p.replace(d=30)) == ["d/n = 0.0333, not 0.05 to 1.5"]
    dense = p.replace(d=60, initial_output="full")
    assert theory.uncalibrated(dense) == ['n/d² = 0.25, not 0 to 0.03 (initial_output = "full")']
    bent = p.replace(initial_output="full", teacher=(0.0, 1.0, 0.7))
    assert theory.uncalibrated(bent) == ['|c⋆2/c⋆1| = 0.7, not 0 to 0.4 (n/d² above 0.005) (initial_output = "full")']
    assert theory.uncalibrated(bent.replace(d=500)) == []
    weak = p.replace(initial_output="full", teacher=(0.0, 0.1))
    assert theory.uncalibrated(weak) == ['E σ²/E y² = 34.1, not 0.1 to 5 (initial_output = "full")']
    dense = dense.replace(initial_output="negligible", teacher=(0.0, 1.0, 0.4))
    assert theory.uncalibrated(dense) == []
    stronger = dense.replace(teacher=(0.0, 1.0, 0.5))
    assert theory.uncalibrated(stronger) == ["|c⋆2/c⋆1| = 0.5, not 0 to 0.4 (n/d² above 0.03)"]
    assert theory.uncalibrated(p.replace(teacher=(0, 0, 0, 1))) == [
        "|c⋆2/c⋆1| = inf, not 0 to 0.75",
        "|c⋆3/c⋆1| = inf, not 0 to 0.5",
    ]
    cubic = dense.replace(activation="tanh", teacher=(0.0, 1.0, 0.0, 0.1))
    assert theory.uncalibrated(cubic) == ["|c⋆3/c⋆1| n/d² where c_3 ≠ 0 = 0.025, not 0 to 0.02"]
    assert theory.uncalibrated(cubic.replace(activation="shifted_relu")) == []
    quadratic = dense.replace(activation=(0.0, 1.0, 0.5), step_samples=400)
    assert theory.uncalibrated(quadratic) == [
        "|c⋆2/c⋆1| = 0.4, not 0 to 0.2 (n/d² above 0.03)",
        "step_samples/n = 0.444, not 0.5 or more",
    ]
    fourth = p.replace(teacher=(0, 1, 0, 0, 0.1), activation=(0.0, 1.0, 1.0))
    assert theory.uncalibrated(fourth) == [
        "share of E σ⋆² above degree 3 = 0.194, not 0 to 0.035",
        "|c_2/c_1| = 1, not 0 to 0.5",
        "teacher = a function that outgrows its Hermite series to degree 3",
    ]
    for field, f in (("teacher", np.sinh), ("activation", lambda z: np.exp(z) - np.exp(0.5))):
        assert f"{field} = a function that outgrows its Hermite series to degree 3" in theory.uncalibrated(
            p.replace(**{field: f})
        )
    cubic = theory.uncalibrated(p.replace(activation=(0.0, 1.0, 0.0, 0.2)))
    assert cubic == ["|c_3/c_1| = 0.2, not 0 to 0.17", "activation = a polynomial of degree 3 or more"]
    for readout, covered, not_covered in (
        ([1.0, -1.0, -1.0, 1.0], ("softplus", "tanh"), ("tilted_sin",)),
        ([1.0], ("tanh",), ("softplus", "tilted_sin")),
        ([1.4, -0.2], (), ("softplus", "tanh")),
    ):
        for activation in (*covered, *not_covered):
            said = theory.uncalibrated(p.replace(readout=readout, activation=activation))
            assert [text.partition(" = ")[0] for text in said] == ["readout"] * (activation in not_covered)
    assert theory.uncalibrated(p.replace(n=90, d=7, N=45, noise=2.0)) == [
        "n = 90, not 100 to 1000",
        "d = 7, not 15 or more",
        "n/d² = 1.84, not 0 to 1.5",
        "noise/√(E σ⋆²) = 2, not 0 to 1.7",
    ]


def test_the_stated_error_does_not_depend_on_the_units_of_labels_and_features():
    p = Problem(300, 100, 150, 0.1, teacher=(0.0, 1.0, 0.3), noise=0.5)
    eta = np.sqrt(p.n) * np.array([0.0, 0.5, 1.5, 1.8])
    stated = theory.losses(p, eta).rel_std.test
    assert np.isnan(stated).tolist() == [False, False, False, True]
    tripled = theory.losses(p.replace(teacher=(0.0, 3.0, 0.9), noise=1.5), eta / 3).rel_std.test
    np.testing.assert_allclose(tripled, stated, rtol=1e-6)
    p = p.replace(activation=(0.0, 0.5, 0.2))
    stated = theory.losses(p, eta).rel_std.test
    assert np.isnan(stated).tolist() == [False, False, False, True]
    doubled = theory.losses(p.replace(activation=(0.0, 1.0, 0.4), ridge=0.4), eta / 2).rel_std.test
    np.testing.assert_allclose(doubled, stated, rtol=1e-6)


@pytest.mark.parametrize("activation", [(0.0, 1.0, 0.3, 0.1), (0.0, 1.0, 0.0, 0.0, 0.1)])
def test_polynomials_of_degree_three_are_warned_about(activation):
    p = Problem(300, 100, 100, 0.1, activation)
    with pytest.warns(UserWarning, match="degree 3 or more.*simulate.losses") as caught:
        theory.losses(p, 1.0)
    assert caught[0].filename == __file__
    assert len(caught) == 1
    theory.losses(p.replace(activation=(0.0, 1.0, 0.3)), 1.0)  # pytest turns warnings into errors


@pytest.mark.slow
def test_strong_quadratic_teachers_of_many_samples_are_warned_about():
    p = Problem(400, 40, 100, 0.1, teacher=(0.0, 0.5, 0.5))
    for call in (
        lambda: theory.losses(p, 1.0),
        lambda: theory.learned(p, 1.0, 2),
        lambda: theory.best_ridge(p, 1.0),
        lambda: theory.best_step(p, 5.0),
    ):
        with pytest.warns(UserWarning, match=r"\|c⋆2/c⋆1\| = 1 at n/d² = 0.25.*simulate.losses") as caught:
            call()
        assert (len(caught), caught[0].filename) == (1, __file__)
    theory.losses(p.replace(teacher=(0.0, 1.0, 0.7)), 1.0)  # pytest turns warnings into errors
    theory.losses(p.replace(d=120), 1.0)


def test_untrained_is_about_the_d_at_hand():
    """What features of degree 2 learn of a quadratic teacher is of order n/d²."""
    p = Problem(300, 60, 200, 0.1, (0.0, 1.0, 1.0), (0.0, 1.0, 1.0))
    found, limit = theory.losses(p, 0.0), theory.untrained_limit(p)
    assert found.test < 0.9 * limit.test
    gaps = [theory.losses(p.scaled(scale * p.n), 0.0).test / limit.test - 1 for scale in (10, 100)]
    assert gaps[1] == pytest.approx(gaps[0] / 10, rel=0.15)


@pytest.mark.parametrize(("layer", "output"), VARIANTS)
@pytest.mark.parametrize("activation", ["shifted_relu", "softplus", (0.0, 1.0, 0.5, 0.3, 0.2)])
@pytest.mark.filterwarnings("ignore:activation")
def test_small_steps_give_the_spiked_curve(activation, layer, output):
    p = Problem(10**9, 3 * 10**8, 5 * 10**8, 0.01, activation, (0.0, 1.0, 0.7), 0.5, layer, output)
    eta = np.array([0.0, 1.0, 10.0, 30.0])
    np.testing.assert_allclose(
        drops(theory.losses(p, eta)),
        drops(theory.staircase.spiked(p, eta)),
        rtol=1e-3,
        atol=1e-6,
    )


@pytest.mark.parametrize(("alpha", "order"), [(0.125, 1), (0.3, 2)])
@pytest.mark.parametrize("p", [P1, P2], ids=["linear", "quadratic"])
def test_plateaus_inside_the_intervals(p, alpha, order):
    p = p.scaled(10**20)
    first, gain = (theory.gains(p, k) for k in (1, order))
    # the step inflates ‖w_i‖² by a share κ of u_i²: the second spike carries z² + κ, of power 2 + (1 + κ)² and not 3
    f = p.student
    kappa = p.phi * p.label_power * (f.slope_second_moment - f.linear**2) / (f.linear**2 * p.D)
    share = 3 / (2 + (1 + kappa) ** 2)
    expected = [x + share * (y - x) for x, y in ((first.train, gain.train), (first.test, gain.test))]
    found = drops(theory.losses(p, np.array([0.0, 1e20**alpha])))[:, 0]
    np.testing.assert_allclose(found, expected, rtol=2e-3)


@pytest.mark.parametrize("layer", ["sphere", "gaussian"])
@pytest.mark.parametrize("width", [0.5, 1.5])
def test_threshold_of_the_second_spike(width, layer):
    p = Problem(10**24, 3 * 10**23, int(width * 10**24), 0.05, teacher=(0.0, 1.0, 0.7), first_layer=layer)
    steps = np.array([0.0, 1e24**0.25])
    expected = drops(theory.staircase.spiked(p, steps, growing_rows=True, order=2))
    np.testing.assert_allclose(drops(theory.losses(p, steps)), expected, rtol=1e-3)


@pytest.mark.parametrize("output", ["negligible", "full"])
@pytest.mark.filterwarnings("ignore:activation")
def test_signs_of_activation_input_and_teacher_do_not_matter(output):
    sigma = np.array([0.0, 1.0, 0.5, 0.2])
    parity = np.array([1, -1, 1, -1])
    p = Problem(800, 240, 400, 0.05, tuple(sigma), (0.0, 1.0, 0.6), 0.2, initial_output=output)
    expected = theory.losses(p, [5.0, 20.0])
    for changes in (
        {"activation": tuple(-sigma)},
        {"activation": tuple(sigma * parity)},
        {"teacher": (0.0, -1.0, 0.6)},
    ):
        found = theory.losses(p.replace(**changes), [5.0, 20.0])
        np.testing.assert_allclose(found.train, expected.train, rtol=1e-6)
        np.testing.assert_allclose(found.test, expected.test, rtol=1e-6)


BATTERY = [
    P1.replace(n=500, d=150, N=250),
    P2.replace(n=500, d=150, N=250, first_layer="gaussian"),
    P2.replace(n=500, d=150, N=250, initial_output="full"),
    Problem(400, 200, 500, 0.1, "tanh", "softplus", 0.3),
    Problem(500, 80, 160, 0.03, "erf", (0.0, 1.0, 0.0, 0.4), 0.2, initial_output="full"),
]


@pytest.mark.slow
@pytest.mark.parametrize("p", BATTERY)
def test_against_simulation(p):
    # 3 standard errors, 2 % and a finite-size allowance of 10/n of the loss, about twice the drift seen from n to 2n
    eta = np.concatenate([[0.0], float(p.n) ** np.array([0.1, 0.25, 0.4])])
    found, ran = theory.losses(p, eta), simulate.losses(p, eta, trials=24, seed=5, jobs=1)
    predicted = drops(found)
    for row, loss, sample in ((0, found.train[0], ran.train), (1, found.test[0], ran.test)):
        drop = sample[:, :1] - sample[:, 1:]
        error = 3 * drop.std(axis=0, ddof=1) / np.sqrt(len(drop)) + 0.02 * predicted[row] + 10 / p.n * loss
        assert np.all(np.abs(drop.mean(axis=0) - predicted[row]) < error)


@pytest.mark.slow
def test_a_loss_that_is_nearly_zero_against_simulation():
    """What units of one readout share, eq. (38), is a fifth of the test error here."""
    p = Problem(300, 20, 200)
    eta = np.sqrt(p.n)
    found, ran = theory.losses(p, eta), simulate.losses(p, eta, trials=400, seed=40, jobs=1).mean
    for loss, predicted in ((ran.train, found.train), (ran.test, found.test)):
        assert abs(loss.value / predicted - 1) < 0.03 + 3 * loss.se / predicted


@pytest.mark.slow
def test_lengths_of_inputs_are_resolved():
    """An activation that saturates, at a small ridge and without noise; two lengths predict 26 % less."""
    p = Problem(300, 20, 900, 0.001, "tanh")
    found, ran = theory.losses(p, 0.0), simulate.losses(p, 0.0, trials=30, seed=41, jobs=1).mean
    assert abs(ran.test.value / found.test - 1) < 0.04 + 3 * ran.test.se / found.test


@pytest.mark.slow
@pytest.mark.parametrize("p", BATTERY[1:4])
def test_quadrature_that_was_chosen_against_one_five_times_finer(p, monkeypatch):
    eta = np.sqrt(p.n) * np.array([0.0, 0.1, 1.0])
    found = theory.losses(p, eta)
    monkeypatch.setattr(theory.fixed_point.solver, "_ORDERS", (60, 90))
    finest = theory.losses(p, eta)
    np.testing.assert_allclose(found.train, finest.train, rtol=1e-4)
    np.testing.assert_allclose(found.test, finest.test, rtol=1e-4)


@pytest.mark.parametrize(("layer", "output"), VARIANTS)
def test_without_a_step_only_the_linear_part_is_learned(layer, output, monkeypatch):
    monkeypatch.setattr(theory.fixed_point.solver, "_ORDERS", (58, 87))
    p = ODD.replace(first_layer=layer, initial_output=output).scaled(10**10)
    learned = theory.learned(p, 0.0, 3)
    assert learned[1] == pytest.approx(1 - theory.traces(p).T, rel=1e-7)
    np.testing.assert_allclose(learned[[0, 2, 3]], 0, atol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("p", [BATTERY[1], BATTERY[3], BATTERY[4]], ids=["quadratic", "softplus", "cubic"])
def test_learned_coefficients_against_simulation(p):
    # 4 standard errors, 2 % and a finite-size allowance of 5/n; the last step alone learns a curve
    eta = float(p.n) ** np.array([0.0, 0.25, 0.5])
    found = theory.learned(p, eta, 3)
    ran = estimates.mean(simulate.losses(p, eta, trials=20, seed=6, jobs=1, degree=3).learned)
    assert np.all(np.abs(ran.value - found) < 4 * ran.se + 0.02 * np.abs(found) + 5 / p.n)
    assert np.abs(found[2, 2:]).max() > 0.005 + 2 * np.abs(found[0, 2:]).max()


def test_an_ample_sample_and_a_wide_network_learn_the_teacher_of_their_own_kind():
    p = Problem(10**7, 10**3, 10**6, 1e-6, "erf", "erf")
    np.testing.assert_allclose(theory.learned(p, 2 * np.sqrt(p.N), 5), p.target.coefficients(5), atol=2e-3)


def test_readout_laws_meet_and_differ():
    quantiles = scipy.stats.norm.ppf((np.arange(100) + 0.5) / 100)
    quantiles /= np.sqrt(np.mean(quantiles**2))
    eta = np.array([4.0, 15.0])
    gaussian, many = theory.losses(P2, eta), theory.losses(P2.replace(readout=quantiles), eta)
    np.testing.assert_allclose(many.train, gaussian.train, rtol=2e-3)
    np.testing.assert_allclose(many.test, gaussian.test, rtol=2e-3)
    assert np.all(np.abs(theory.losses(P2.replace(readout=[1.0]), eta).test / gaussian.test - 1) > 0.02)


@pytest.mark.slow
@pytest.mark.parametrize(("N", "n"), [(100, 500), (400, 500)])
def test_equal_readouts_with_a_quadratic_activation_against_a_simulation(N, n):
    """All rests on how little the spikes differ, and on how much of that other directions show."""
    p = Problem(n, 50, N, 0.1, (0.0, 1.0, 0.4), (0.0, 1.0), readout=[1.0], step_samples=500)
    eta = 1.2 * np.sqrt(N)
    ran = simulate.losses(p, eta, trials=100, seed=3, jobs=1).mean
    found = theory.losses(p, eta)
    for loss, predicted in ((ran.train, found.train), (ran.test, found.test)):
        assert abs(loss.value / predicted - 1) < 0.03 + 3 * loss.se / predicted  # 9 % and 99.9 % without the correction


def test_shapes_and_residuals():
    learned = theory.learned(P2, [3.0, 0.0, 20.0], 2)
    assert learned.shape == (3, 3)
    np.testing.assert_allclose(learned[2], theory.learned(P2, 20.0, 4)[:3], rtol=1e-6, atol=1e-9)
    curve = theory.losses(P1, [0.0, 3.0, 1.0])
    single = theory.losses(P1, 3.0)
    assert curve.train.shape == curve.test.shape == (3,)
    assert np.ndim(single.train) == 0
    assert curve.test[1] == pytest.approx(single.test, rel=1e-9)
    assert curve.rel_std.train.shape == curve.rel_std.test.shape == (3,)
    assert curve.rel_std.test[1] == pytest.approx(float(single.rel_std.test), rel=1e-6)
    same = theory.losses(P1.replace(step_samples=P1.n), 3.0)
    assert same.test == pytest.approx(single.test, rel=1e-12)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"eta": -1.0}, "eta"),
        ({"eta": [[1.0]]}, "eta"),
        ({"step_noise": "none"}, "step_noise"),
        ({"p": P1.replace(activation=(0.0, 0.0, 1.0))}, "c_1 = 0"),
        ({"p": P1.scaled(10**30)}, "N = "),
        ({"p": P1.replace(d=7)}, "d = 7: must be at least 8"),
        ({"p": (1000, 300, 500)}, r"p = \(1000, 300, 500\): must be a Problem"),
        ({"eta": 1e6}, r"eta = 1e\+06: makes spike weights .* up to 20, here for eta <= "),
    ],
)
def test_bad_input_is_named(changes, message):
    with pytest.raises(ValueError, match=message):
        theory.losses(**({"p": P1, "eta": 1.0} | changes))


def test_failures_are_reported(monkeypatch):
    monkeypatch.setattr(theory.fixed_point.solver, "QUADRATURE", 1e-16)
    monkeypatch.setattr(theory.fixed_point.solver, "_ORDERS", (12, 18))
    with pytest.raises(ArithmeticError, match="quadrature nodes"):
        theory.losses(P1, 5.0)
    monkeypatch.setattr(theory.fixed_point.solver, "_ITERATIONS", 2)
    with pytest.raises(ArithmeticError, match="did not converge"):
        theory.fixed_point.family(P1).evaluate(0.0)
    monkeypatch.undo()
    monkeypatch.setattr(theory.every_step, "_over_batches", lambda *_: -9.0)  # as rounding does at n = 1e24
    with pytest.raises(ArithmeticError, match="rounding"):
        theory.losses(P1, 0.0)


def test_rounding_is_looked_for_at_every_step(monkeypatch):
    """It spoils steps around n^.4 at n = 1e22, though neither smaller ones nor √n, which decides on the quadrature."""
    monkeypatch.setattr(theory.every_step, "_ROUNDED", 0.0)
    steps = P1.n ** np.array([0.2, 0.4, 0.5])
    found = theory.losses(P1, steps)
    monkeypatch.undo()
    np.testing.assert_array_equal(found.test, theory.losses(P1, steps).test)
    monkeypatch.setattr(theory.every_step, "_ROUNDED", 0.0)
    monkeypatch.setattr(theory.every_step, "_ROUNDING", 0.0)
    with pytest.raises(ArithmeticError, match="rounding spoils the fixed point at eta"):
        theory.losses(P1, steps)
    monkeypatch.undo()
    with pytest.raises(ArithmeticError):  # where losses would be wrong by a half
        theory.losses(Problem(10**22, 10**21, 5 * 10**21, 0.1, teacher=(0, 1, 0.4)), 1e22 ** np.array([0.4, 0.42, 0.5]))


def test_no_step_at_a_small_ridge_converges():  # where a cold start diverges on some processors
    p = Problem(951, 925, 2673, 0.0032378627817870277, "erf", "softplus", 0.23778365911992883, initial_output="full")
    untrained, small = theory.fixed_point.family(p).evaluate(0.0), theory.losses(p, 0.01)
    np.testing.assert_allclose(untrained.losses, [small.train, small.test], rtol=1e-4)


@pytest.mark.slow
def test_best_step_and_ridge_beat_their_neighbours(monkeypatch):
    best = theory.every_step.best_step(P1)
    around = theory.losses(P1, best.eta * np.array([0.3, 0.8, 1.0, 1.25, 3.0])).test
    assert np.argmin(around) == 2
    assert best.test == pytest.approx(around[2], rel=1e-6)
    assert not best.at_bound
    assert theory.every_step.best_step(P1, largest=best.eta / 4).at_bound
    ridge = theory.every_step.best_ridge(P1, best.eta)
    others = [theory.losses(P1.replace(ridge=ridge.ridge * s), best.eta).test for s in (0.5, 2.0)]
    assert ridge.test < min(others)
    assert ridge.test <= best.test
    with pytest.raises(ValueError, match="largest"):
        theory.every_step.best_step(P1, largest=0.0)
    far = theory.every_step.best_step(Problem(200, 8, 1), largest=1e3)
    assert far.eta < 40 and far.at_bound
    monkeypatch.setattr(theory.every_step, "_RIDGES", (1e-6, 1e-4))
    assert theory.every_step.best_ridge(P1, best.eta).at_bound


@pytest.mark.filterwarnings("ignore:activation")
def test_the_error_to_expect_grows_where_the_loss_is_a_small_part_of_the_labels_power():
    p, smaller = P1.replace(noise=0.0), P1.scaled(P1.n // 4)
    for one in (p, P1, smaller):
        found = theory.losses(one, [0.0, 5.0])
        expected = np.hypot(1.1 * np.sqrt(one.label_power / np.sqrt(found.train * found.test)) / one.n, 1e-4)
        for stated in (found.rel_std.train, found.rel_std.test):
            np.testing.assert_allclose(stated, expected, rtol=1e-9)
    assert np.isnan(theory.losses(P1.scaled(P1.n + 10), 5.0).rel_std.test)
    assert theory.losses(p, 5.0).rel_std.test > 1.3 * theory.losses(P1, 5.0).rel_std.test
    assert np.isnan(theory.losses(P1.replace(activation=(0.0, 1.0, 0.3, 0.3)), 5.0).rel_std.test)


def test_the_best_step_is_looked_for_beyond_the_root_of_n():
    p = P2.replace(n=500, d=150, N=250)
    best = theory.best_step(p.replace(readout=[1.0]))
    assert np.sqrt(p.n) < best.eta < 2 * np.sqrt(p.n)
    assert not best.at_bound


@pytest.mark.slow
def test_the_best_ridge_is_found_on_either_side_of_the_grids_best(monkeypatch):
    found = []
    for smallest in (1e-3, 2.1e-3):
        monkeypatch.setattr(theory.every_step, "_RIDGES", (smallest, 1e3 * smallest))
        found.append(theory.every_step.best_ridge(BATTERY[0], 4.0))
    assert found[1].ridge == pytest.approx(found[0].ridge, rel=0.01)
    assert not any(one.at_bound for one in found)
