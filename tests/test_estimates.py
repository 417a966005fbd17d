import numpy as np
import pytest

from onestep import estimates
from onestep.estimates import Estimate
from onestep.simulate import key


def test_the_jackknife_s_crossing_and_its_error_cover_the_truth():
    x = np.geomspace(1, 100, 9)
    truth, slope = np.log(12), 0.2
    z = []
    for trial in range(300):
        noise = 0.05 * key(2, trial).standard_normal((8, 1))
        found = estimates.jackknife(
            lambda y: np.log(estimates.crossing(x, y, 0.5)), 0.5 + slope * (np.log(x) - truth) + noise
        )
        z.append((found.value - truth) / found.se)
        assert found.dof == 7
    assert abs(np.mean(z)) < 0.25
    assert 0.95 < np.std(z) < 1.35  # t with 7 degrees of freedom: 1.18


def test_the_ratio_of_geometric_means_and_its_error_cover_the_truth():
    rng, z = key(11), []
    for _ in range(400):
        found = estimates.ratio(np.exp(0.3 * rng.standard_normal(20)), 2 * np.exp(0.1 * rng.standard_normal(30)))
        z.append((found.value - 0.5) / found.se)
    assert abs(np.mean(z)) < 0.2 and 0.9 < np.std(z) < 1.2


def test_an_estimate_keeps_the_chi2_of_its_fit():
    sizes = [100, 200, 400, 800]
    parts = [Estimate(np.array([1.0, 1.0 + off]), np.array([0.1, 0.1]), 20.0) for off in (0.0, 0.3, -0.3, 0.0)]
    found = estimates.limit(sizes, parts)
    flat, bent = (2 * found[k] - 1.0 for k in (0, 1))
    design = np.column_stack([np.ones(4), 1 / np.array(sizes)])
    chi2 = np.linalg.lstsq(design, np.array([0.0, 0.3, -0.3, 0.0]))[1][0] / 0.1**2
    assert bent.chi2 == pytest.approx(chi2) and bent.spare == 2
    assert flat.chi2 == pytest.approx(0, abs=1e-20) and bent.se == pytest.approx(flat.se * np.sqrt(chi2 / 2))
    for sum_ in (flat + bent, bent + flat, Estimate(0.0, 0.1, 20.0, chi2=50.0, spare=9) - bent):  # the worse fit's
        assert sum_.chi2 == pytest.approx(chi2) and sum_.spare == 2
    assert estimates.mean(np.arange(5.0)).spare == 0


def test_arithmetic_is_that_of_independent_estimates():
    pair = Estimate(np.array([1.0, 2.0]), np.array([0.1, 0.2]))
    for sum_ in (np.ones(2) + pair, pair + np.ones(2)):
        np.testing.assert_array_equal(sum_.value, [2.0, 3.0])
    one, two = Estimate(3.0, 0.3, 10.0), Estimate(1.0, 0.4, 20.0)
    found = 2 * one - two / 2 + 1
    assert found.value == pytest.approx(6.5)
    assert found.se == pytest.approx(np.hypot(0.6, 0.2))
    assert found.dof == pytest.approx(0.4**2 / (0.36**2 / 10 + 0.04**2 / 20))
    assert (5 - one).value == 2.0
    assert (one + Estimate(1.0, 0.0)).dof == pytest.approx(10)
    assert (Estimate(1.0, 0.0) + Estimate(2.0, 0.0)).dof == np.inf
    row = Estimate(np.array([1.0, 2.0]), np.array([0.1, 0.2]), 5.0)[1]
    assert (row.value, row.se, row.dof) == (2.0, 0.2, 5.0)


@pytest.mark.parametrize("count", [3, 30])
def test_reach_misses_as_often_as_it_says(count):
    rng = key(8)
    misses = 0
    for _ in range(3000):
        found = estimates.mean(rng.standard_normal(count))
        misses += abs(found.value) > found.reach(0.05)
    assert abs(misses / 3000 - 0.05) < 4 * np.sqrt(0.05 * 0.95 / 3000)


def test_control_variates_take_out_what_they_explain_and_cover_the_truth():
    rng, z, plain = key(9), [], []
    for _ in range(400):
        controls = rng.standard_normal((40, 2))
        samples = 1.0 + controls @ [[2.0, 0.0], [1.0, 0.0]] + 0.5 * rng.standard_normal((40, 2))
        found = estimates.controlled(samples, controls)
        z.append((found.value - 1.0) / found.se)
        plain.append(estimates.mean(samples).se / found.se)
    assert np.all(np.abs(np.mean(z, axis=0)) < 0.2)
    assert np.all(np.abs(np.std(z, axis=0) - 1.03) < 0.1)  # t with 37 degrees of freedom
    np.testing.assert_allclose(np.mean(plain, axis=0), [np.sqrt(5.25) / 0.5, 1.0], rtol=0.05)
    assert np.all(found.dof == 37)


@pytest.mark.parametrize("powers", [(1,), (1, 1.5)])
def test_limits_are_free_of_the_stated_bias_and_cover_the_truth(powers):
    rng, sizes, z = key(10), np.array([100.0, 200.0, 400.0, 800.0]), []
    for _ in range(400):
        parts = []
        for n in sizes:
            bias = sum(30.0 * n**-p for p in powers)
            parts.append(estimates.mean(2.0 + bias + 0.3 * rng.standard_normal(25)))
        found = estimates.limit(sizes, parts, powers=powers)
        z.append((found.value - 2.0) / found.se)
    assert abs(np.mean(z)) < 0.2
    assert 0.75 < np.std(z) < 1.15  # Birge's ratio can only widen the error


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: estimates.crossing([1, 2], [0.6, 0.9], 0.5), "level = 0.5"),
        (lambda: estimates.crossing([2, 1], [0.1, 0.9], 0.5), "increasing"),
        (lambda: estimates.crossing([1, 2], [0.1, np.nan], 0.5), "must be 2 finite numbers"),
        (lambda: estimates.limit([1, 2], [1.0, 2.0]), "must be finite Estimates"),
        (lambda: estimates.limit([2, 1], [Estimate(1.0, 0.1)] * 2), "sizes = "),
        (
            lambda: estimates.limit([1, 2], [Estimate(1.0, 0.1), Estimate(np.ones(2), 0.1)]),
            "parts: must be of one shape",
        ),
        (lambda: estimates.power_law([1, 2], [Estimate(0.0, 0.1), Estimate(1.0, 0.0)]), "standard errors > 0"),
        (lambda: estimates.mean([1.0]), "at least two finite numbers"),
        (lambda: estimates.mean(np.ma.masked_greater([1.0, 2.0, 50.0], 10)), "at least two finite numbers"),
        (lambda: estimates.controlled(np.ones(3), np.ones((3, 2))), "k < 2"),
        (lambda: estimates.crossing([1, 2], [0.1, 0.9], "a"), "level = 'a'"),
        (lambda: estimates.limit([1, 2], [Estimate(1.0, 0.1)] * 2, powers=(0,)), "powers = .*: must be numbers > 0"),
        (lambda: estimates.power_law([1, 2], np.array([0, 1])), "must be a list of 2 Estimates"),
        (lambda: estimates.limit([1, 2], [Estimate(1.0, 0.1)] * 2, powers=(1, 2)), "more than the 2 powers"),
        (lambda: estimates.ratio([1.0, 2.0], [1.0]), "at least two finite numbers"),
        (lambda: estimates.jackknife(np.sum, [[1, 2]]), "at least two finite numbers"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_exponents_cover_the_truth_whatever_the_spread_at_each_place():
    x, spreads, z = np.array([100.0, 400.0, 1600.0]), (0.2, 0.4, 0.1), []
    for trial in range(300):
        rng = key(3, trial)
        logs = [0.7 * np.log(v) + s * rng.standard_normal((20, 2)) for v, s in zip(x, spreads, strict=True)]
        found = estimates.power_law(x, [estimates.mean(part) for part in logs])
        z.append((found.value - 0.7) / found.se)
    assert np.all(np.abs(np.mean(z, axis=0)) < 0.2)
    assert np.all((0.75 < np.std(z, axis=0)) & (np.std(z, axis=0) < 1.15))  # Birge's ratio can only widen the error


def test_estimates_read_as_numbers_with_their_errors():
    assert str(Estimate(0.123456, 0.00123)) == "0.1235 ± 0.0012"
    assert str(Estimate(np.array([1.0, 2.0]), np.array([0.1, 0.0]))) == "1.00 ± 0.10, 2"
    assert str(Estimate(-0.00012, 0.0996)) == "0.00 ± 0.10"
    assert str(Estimate(1234.56, 56.7)) == "1235 ± 57"
    assert str(Estimate(0.5, np.nan)) == "0.5"
