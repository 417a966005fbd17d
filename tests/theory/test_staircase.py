import numpy as np
import pytest

from onestep import Problem, theory

SETTINGS = {
    1: Problem(1000, 300, 500, noise=1.0),
    2: Problem(1000, 300, 500, teacher=(0.0, 1.0, 2**-0.5)),
}
RICH = Problem(1000, 300, 500, activation=(0, 1, 0.5, 0.3, 0.2), teacher=(0, 1, 0.5, 0.3, 0.2), noise=0.3)
VARIANTS = [(layer, output) for layer in ("sphere", "gaussian") for output in ("negligible", "full")]
UNSEEN = SETTINGS[1].replace(activation=(0.0, 0.0, 1.0))


def test_growing_rows_add_a_constant_to_the_second_spike():
    p = SETTINGS[2]
    q = theory.growth_ratio(p)
    assert q == pytest.approx(0.3 * 2 * 0.25 / (0.25 * 1.6))
    for name in ("train", "test"):
        first, second, grown = (
            getattr(x, name) for x in (theory.gains(p, 1), theory.gains(p, 2), theory.gains(p, 2, growing_rows=True))
        )
        assert grown - first == pytest.approx((second - first) * 3 / (2 + (1 + q) ** 2), rel=1e-12)
        assert getattr(theory.gains(p, 1, growing_rows=True), name) == first


@pytest.mark.parametrize("problem", [SETTINGS[2], SETTINGS[2].replace(activation="tilted_sin")])
def test_growing_rows_are_the_limit_of_the_uniform_theory(problem):
    p = problem.scaled(10**24)
    at = theory.losses(p, [0.0, 1e24**0.29])
    grown, theorem = theory.gains(p, 2, growing_rows=True), theory.gains(p, 2)
    for name in ("train", "test"):
        before, after = getattr(at, name)
        assert before - after == pytest.approx(getattr(grown, name), rel=0.01)
        assert abs(before - after - getattr(theorem, name)) > 0.05 * getattr(theorem, name)


def test_printed_gains_are_the_slides_whatever_the_network():
    p = SETTINGS[2]
    t, D, c = theory.traces(p), p.D, p.target.coefficients(2)
    first = -(c[1] ** 4) * t.dm2 / D
    second = first - 4 * c[1] ** 4 * c[2] ** 2 * t.dm1 / (3 * t.m1**2 * D**2)
    assert theory.gains(p, 1, printed=True).test == pytest.approx(first, rel=1e-12)
    assert theory.gains(p, 2, printed=True).test == pytest.approx(second, rel=1e-12)
    network = p.replace(initial_output="full", first_layer="gaussian")
    for order in (1, 2):
        assert theory.gains(network, order, printed=True) == theory.gains(p, order, printed=True)
        assert theory.gains(p, order, printed=True).train == theory.gains(p, order).train
    p = SETTINGS[1]
    assert theory.gains(p, 1, printed=True).test > 1000 * theory.gains(p, 1).test


def double_sum(p, order):
    """Δ_ℓ as the theorem's double sum over p, q, i, j, with the indices set right."""
    t, D = theory.traces(p), p.D
    xi = theory.staircase.monomials(order)
    fact = [1, 1, 2, 6, 24]
    omega_inverse = np.empty((order, order))
    for i in range(1, order + 1):
        for j in range(1, order + 1):
            rest = sum(fact[k] * xi[i, k] * xi[j, k] for k in range(min(i, j) + 1) if k != 1)
            omega_inverse[i - 1, j - 1] = (
                D ** ((i + j) / 2) * p.psi / p.phi * (t.m2 * xi[i, 1] * xi[j, 1] + t.m1 * rest)
            )
    omega = np.linalg.inv(omega_inverse)
    c = p.target.coefficients(order)
    cosine = p.target.linear / np.sqrt(D)
    r = [fact[k] * p.psi / p.phi * (t.m2 if k == 1 else t.m1) * cosine**k for k in range(order + 1)]
    return p.ridge * sum(
        c[a] * c[b] * r[a] * r[b] * omega[i - 1, j - 1] * D ** ((i + j) / 2) * xi[i, a] * xi[j, b]
        for a in range(1, order + 1)
        for b in range(1, order + 1)
        for i in range(1, order + 1)
        for j in range(1, order + 1)
    )


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_compact_form_equals_the_theorems_double_sum(order):
    assert theory.gains(RICH, order).train == pytest.approx(double_sum(RICH, order), rel=1e-10)


@pytest.mark.parametrize(("layer", "output"), VARIANTS)
@pytest.mark.parametrize("eta", [0.0, 1.0, 2.5])
def test_test_error_is_the_exact_derivative_of_the_training_loss(layer, output, eta):
    """L_te = -ν² ∂(L_tr/λ)/∂λ, here by central differences in λ."""
    p = RICH.replace(first_layer=layer, initial_output=output)
    h = 1e-4 * p.ridge
    up, down = (
        theory.staircase.spiked(p.replace(ridge=p.ridge + s * h), eta).train / (p.ridge + s * h) for s in (1, -1)
    )
    expected = -(theory.traces(p).nu ** 2) * (up - down) / (2 * h)
    assert theory.staircase.spiked(p, eta).test == pytest.approx(expected, rel=1e-6)


def test_reference_values():
    """Independent numbers computed before this code existed (train drops of setting 1, Λ of both settings)."""
    p = SETTINGS[1]
    alpha = np.array([0, 0.05, 0.1, 0.15, 0.2, 0.25])
    drops = theory.staircase.spiked(p, 0.0).train - theory.staircase.spiked(p, 1000**alpha).train
    np.testing.assert_allclose(drops, [0.0151, 0.0264, 0.0422, 0.0603, 0.0768, 0.0890], atol=6e-5)
    assert theory.gains(p, 1).test == pytest.approx(0.2958, abs=5e-5)
    q = SETTINGS[2]
    assert theory.gains(q, 2).test - theory.gains(q, 1).test == pytest.approx(0.441, abs=5e-4)
    q = q.replace(first_layer="gaussian")
    assert theory.gains(q, 2).test - theory.gains(q, 1).test == pytest.approx(0.518, abs=5e-4)


@pytest.mark.parametrize(("layer", "output"), VARIANTS)
def test_spiked_curve_reaches_the_plateaus(layer, output):
    p = RICH.replace(first_layer=layer, initial_output=output).scaled(10**300)
    base = theory.staircase.spiked(p, 0.0)
    for alpha, order in [(0.125, 1), (0.292, 2), (0.354, 3), (0.3875, 4)]:
        at = theory.staircase.spiked(p, 10.0 ** (300 * alpha))
        expected = theory.gains(p, order)
        assert base.train - at.train == pytest.approx(expected.train, rel=1e-3)
        assert base.test - at.test == pytest.approx(expected.test, rel=1e-3)


def test_a_spiked_curve_of_given_order_has_so_many_spikes():
    p = RICH.scaled(10**300)
    base, eta = theory.staircase.spiked(p, 0.0), 10.0 ** (300 * 0.41)
    for order in (1, 2, 3):
        for grown in (False, True):
            at, expected = (
                theory.staircase.spiked(p, eta, growing_rows=grown, order=order),
                theory.gains(p, order, growing_rows=grown),
            )
            assert base.train - at.train == pytest.approx(expected.train, rel=1e-3)
            assert base.test - at.test == pytest.approx(expected.test, rel=1e-3)
    p = RICH.scaled(4000)
    assert theory.staircase.spiked(p, 4.0, order=10) == theory.staircase.spiked(p, 4.0)
    assert theory.staircase.spiked(p, 60.0, order=2).test < theory.staircase.spiked(p, 60.0, order=1).test
    with pytest.raises(ValueError, match="order"):
        theory.staircase.spiked(p, 4.0, order=0)


def test_the_spiked_curve_climbs_beyond_the_fourth_stair():
    p = Problem(10**300, 3 * 10**299, 5 * 10**299, 0.01, "tilted_sin", (0, 1, 0.5, 0.4, 0.3, 0.2))
    drop = theory.untrained_limit(p).train - theory.staircase.spiked(p, 10.0 ** (300 * 0.408)).train
    assert drop == pytest.approx(theory.gains(p, 5).train, rel=1e-3)
    assert drop > 1.01 * theory.gains(p, 4).train


@pytest.mark.parametrize("order", [2, 3, 4])
def test_at_a_threshold_the_drop_lies_between_plateaus(order):
    alpha = (order - 1) / (2 * order)
    p = RICH.scaled(10**300)
    drop = theory.staircase.spiked(p, 0.0).train - theory.staircase.spiked(p, 10.0 ** (300 * alpha)).train
    assert 1.01 * theory.gains(p, order - 1).train < drop < theory.gains(p, order).train


@pytest.mark.parametrize("output", ["negligible", "full"])
def test_small_steps_change_nothing_and_sign_flips_do_not_matter(output):
    p = RICH.replace(initial_output=output)
    assert theory.staircase.spiked(p, 0.0).test == theory.untrained_limit(p).test
    assert theory.staircase.spiked(p, 1e-6).train == pytest.approx(theory.staircase.spiked(p, 0.0).train, rel=1e-9)
    flipped = p.replace(activation=tuple(-c for c in p.activation))
    mirrored = p.replace(
        activation=tuple((-1) ** k * c for k, c in enumerate(p.activation)),
        teacher=tuple((-1) ** k * c for k, c in enumerate(p.teacher)),
    )
    for other in (flipped, mirrored):
        np.testing.assert_allclose(
            theory.staircase.spiked(other, [1.0, 2.8]).test, theory.staircase.spiked(p, [1.0, 2.8]).test, rtol=1e-9
        )


def test_growing_rows_matter_to_even_spikes_alone():
    rich = RICH.replace(teacher=(0.0, 1.0, 0.5, 0.4, 0.3))
    third = [
        theory.gains(rich, 3, growing_rows=grown).test - theory.gains(rich, 2, growing_rows=grown).test
        for grown in (False, True)
    ]
    assert third[0] == pytest.approx(third[1], rel=1e-8)
    assert theory.gains(rich, 2, growing_rows=True).test < theory.gains(rich, 2).test


def test_information_exponent_above_one_gains_nothing():
    p = SETTINGS[2].replace(teacher=(0.0, 0.0, 1.0))
    assert theory.gains(p, 2).train == 0
    assert theory.staircase.spiked(p, 10.0).test == theory.staircase.spiked(p, 0.0).test


def test_shapes_follow_eta():
    assert np.ndim(theory.staircase.spiked(RICH, 1.0).train) == 0
    assert theory.staircase.spiked(RICH, [1.0]).test.shape == (1,)
    assert theory.staircase.spiked(RICH, np.linspace(0, 3, 5)).train.shape == (5,)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: theory.gains(SETTINGS[1], 3), "c_3 = 0"),
        (lambda: theory.gains(RICH, 3, printed=True), "order = 3.*1 and 2 only"),
        (lambda: theory.gains(RICH, -1), "order = -1"),
        (lambda: theory.gains(RICH, 2, printed=True, growing_rows=True), "growing_rows = True"),
        (lambda: theory.gains(RICH, 2, growing_rows="no"), "growing_rows = 'no': must be True or False"),
        (lambda: theory.staircase.spiked(RICH, 1.0, growing_rows="no"), "growing_rows = 'no': must be True or"),
        (lambda: theory.staircase.spiked(RICH.replace(readout=[1.0]), 1.0), r"readout = \(1.0,\).* must be"),
        (lambda: theory.staircase.spiked(RICH.replace(step_samples=10), 1.0), "step_samples = 10: must be"),
        (lambda: theory.staircase.spiked(RICH, -1.0), "eta = -1.0"),
        (lambda: theory.staircase.spiked(RICH, np.ones((2, 2))), "eta"),
        (lambda: theory.staircase.spiked(RICH, "big"), "eta = 'big'"),
        (lambda: theory.staircase.spiked(RICH, []), "eta"),
        (lambda: theory.staircase.spiked(RICH, [1.0, 40.0]), r"eta = 40: .* s <= 0.25, here for eta <= 4\.027"),
        (lambda: theory.growth_ratio(UNSEEN), "c_1 = 0"),
        (lambda: theory.gains({"n": 1}, 1), "p = {'n': 1}: must be a Problem"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
