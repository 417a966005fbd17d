import numpy as np
import pytest

from onestep import estimates
from onestep.simulate import key


def test_crossing_is_exact_for_curves_linear_in_log_x():
    x = np.array([1.0, 10.0, 100.0])
    assert estimates.crossing(x, [0.0, 0.4, 0.8], 0.5) == pytest.approx(10**1.25)
    assert estimates.crossing(x, [0.2, 0.6, 0.5], 0.5) == pytest.approx(10**0.75)


def test_mean_crossing_and_its_error_cover_the_truth():
    x = np.geomspace(1, 100, 9)
    truth, slope = np.log(12), 0.2
    z = []
    for trial in range(300):
        noise = 0.05 * key(2, trial).standard_normal((8, 1))
        mean, error = estimates.mean_crossing(x, 0.5 + slope * (np.log(x) - truth) + noise, 0.5)
        z.append((mean - truth) / error)
    assert abs(np.mean(z)) < 0.25
    assert 0.95 < np.std(z) < 1.35  # t with 7 degrees of freedom: 1.18


def test_threshold_and_its_error_cover_the_truth():
    x = np.geomspace(1, 1000, 13)
    chance = 1 / (1 + np.exp(-3 * (np.log(x) - np.log(40))))
    chance[0], chance[-1] = 0, 1
    z = []
    for trial in range(200):
        mean, error = estimates.threshold(x, key(0, trial).random((20, 13)) < chance)
        z.append((mean - np.log(40)) / error)
    assert abs(np.mean(z)) < 0.35  # 3 standard errors, and the grid's own bias
    assert 0.85 < np.std(z) < 1.2


def test_power_law_recovers_exponents_and_covers_them():
    d = np.array([8, 16, 32, 64])
    exponent, error = estimates.power_law(d, 1.5 * np.log(d) + 2, np.full(4, 0.1))
    assert exponent == pytest.approx(1.5)
    assert error == pytest.approx(0.1 / np.sqrt(np.sum((np.log(d) - np.log(d).mean()) ** 2)))
    rng = key(1)
    z = []
    for _ in range(300):
        noise = 0.1 * rng.standard_normal(4)
        exponent, error = estimates.power_law(d, np.log(d) + noise, np.full(4, 0.1))
        z.append((exponent - 1) / error)
    assert abs(np.mean(z)) < 0.2
    assert np.std(z) < 1.1


def test_scatter_beyond_the_errors_widens_the_error():
    d, bent = np.array([8, 16, 32]), np.array([0.0, 1.0, 0.0])
    assert (
        estimates.power_law(d, bent, np.full(3, 0.01))[1] > 10 * estimates.power_law(d, 0 * bent, np.full(3, 0.01))[1]
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: estimates.crossing([1, 2], [0.6, 0.9], 0.5), "level = 0.5"),
        (lambda: estimates.crossing([1, 2], [0.1, 0.2], 0.5), "level = 0.5"),
        (lambda: estimates.crossing([2, 1], [0.1, 0.9], 0.5), "increasing"),
        (lambda: estimates.threshold([1, 2], [[True, True]]), "success rates"),
        (lambda: estimates.power_law([1, 2], [0, 1], [0.1, 0.0]), "positive errors"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("moment", [0, 2])
def test_exponent_of_replicates_covers_the_truth(moment):
    x, counts = np.array([100.0, 400.0, 1600.0]), (30, 8, 3)
    z = []
    for trial in range(300):
        rng = key(3, trial)
        samples = [v**0.7 * np.exp(_noise(rng, k, v, moment)) for v, k in zip(x, counts, strict=True)]
        value, error = estimates.exponent(x, samples, moment)
        z.append((value - 0.7) / error)
    assert abs(np.mean(z)) < 0.2
    assert 0.75 < np.std(z) < 1.1  # Birge's ratio can only widen the error
    with pytest.raises(ValueError, match="at least two numbers"):
        estimates.exponent(x, [[1.0, 2.0], [1.0, 2.0], [1.0]])


def _noise(rng, count, x, moment):
    """Logarithms of factors whose mean square (moment 2) or geometric mean (0) is 1, with spread 3/√x."""
    return 3 / np.sqrt(x) * rng.standard_normal(count) - moment / 2 * 9 / x
