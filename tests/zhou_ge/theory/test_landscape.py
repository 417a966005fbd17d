import numpy as np
import pytest
from scipy import stats

from onestep.simulate import key
from onestep.zhou_ge import relu
from onestep.zhou_ge.simulate import landscape, threestage
from onestep.zhou_ge.theory.landscape import (
    Certificate,
    certificate_at,
    enough_signs,
    gap_parts,
    global_minimum,
    local_minimum_missing_neuron,
)

ORTHOGONAL = relu.random_teacher(6, 3, key(0))
CLOSE = relu.fan_teacher(4, [0, 60], weights=[1.0, 1.0])
OPPOSITE = relu.fan_teacher(4, [0, 50], weights=[1.0, -1.0])
STAR = relu.fan_teacher(3, 36 * np.arange(5), weights=np.ones(5))
UNEQUAL = relu.random_teacher(5, 3, key(1), weights=[2.0, -0.4, 1.0], correlation=0.3)


def cone(degrees):
    """Four lines at one angle from an axis, signs alternating."""
    t, tilt = np.pi / 2 * np.arange(4), np.radians(degrees)
    V = np.column_stack([np.sin(tilt) * np.cos(t), np.sin(tilt) * np.sin(t), np.full(4, np.cos(tilt))])
    return relu.Teacher(V, [1.0, -1.0, 1.0, -1.0])


def along(line, toward, angle):
    """Unit vector at `angle` from `line`, in the direction of `toward`."""
    side = toward - (toward @ line) * line
    return np.cos(angle) * line + np.sin(angle) * side / np.linalg.norm(side)


@pytest.mark.parametrize("teacher", [ORTHOGONAL, CLOSE, OPPOSITE, STAR, UNEQUAL])
def test_certificate_is_the_residual_of_the_minimum(teacher):
    """-(2/λ) E (f - f⋆) σ(wᵀx) at the minimum, half the gradient of a neuron of weight 0."""
    rng = key(2)
    W = rng.standard_normal((40, teacher.d))
    W /= np.linalg.norm(W, axis=1, keepdims=True)
    found = {}
    for ridge in (2e-5, 1e-5):
        end = global_minimum(teacher, ridge)
        a, probes = np.append(end.a, np.zeros(40)), np.vstack([end.W, W])
        found[ridge] = -threestage.Population(teacher).gradient(a, probes)[1][len(end.a) :] / ridge
    np.testing.assert_allclose(2 * found[1e-5] - found[2e-5], Certificate(teacher)(W), atol=2e-3)


@pytest.mark.parametrize("teacher", [ORTHOGONAL, CLOSE, OPPOSITE, STAR, UNEQUAL])
def test_certificate_touches_one_at_the_teacher_and_knows_its_slope(teacher):
    certificate, rng = Certificate(teacher), key(3)
    np.testing.assert_allclose(certificate(teacher.directions), np.sign(teacher.weights), atol=1e-10)
    np.testing.assert_allclose(certificate.slope(teacher.directions), 0, atol=1e-6)
    W = rng.standard_normal((10, teacher.d))
    np.testing.assert_allclose(certificate(-3 * W), certificate(W), rtol=1e-12)
    W /= np.linalg.norm(W, axis=1, keepdims=True)
    move = rng.standard_normal(W.shape)
    move -= np.sum(move * W, axis=1, keepdims=True) * W
    change = (certificate(W + 1e-6 * move) - certificate(W - 1e-6 * move)) / 2e-6
    np.testing.assert_allclose(np.sum(certificate.slope(W) * move, axis=1), change, atol=1e-7)


def test_curvatures_of_an_orthogonal_teacher_in_closed_form():
    share = 2 / np.pi
    same, opposite, outside = 1.0, (1 + share) / (1 - share), 1 / (1 - share)  # signs + - +
    expected = [[same, opposite, outside], [opposite, opposite, outside], [same, opposite, outside]]
    np.testing.assert_allclose(Certificate(ORTHOGONAL).curvatures, expected, rtol=1e-9)
    assert Certificate(relu.Teacher(np.eye(1, 3), [-2.0])).slowest == pytest.approx(outside)


@pytest.mark.parametrize("teacher", [CLOSE, OPPOSITE, relu.fan_teacher(4, [0, 75], weights=[1.0, 0.5])])
def test_curvatures_are_the_second_differences_on_the_side_the_minimum_moves_to(teacher):
    certificate, outside = Certificate(teacher), np.eye(teacher.d)[-1]
    step = 1e-4
    for k, line in enumerate(teacher.directions):
        sign = np.sign(teacher.weights[k])
        moved = global_minimum(teacher, 1e-4).W[k]
        inward = along(line, moved / np.linalg.norm(moved), step)
        assert 2 * (1 - sign * certificate(inward[None])[0]) / step**2 == pytest.approx(
            certificate.curvatures[k, 0], rel=0.01
        )
        beside = along(line, outside, step)
        one_sided = 2 * (1 - sign * certificate(beside[None])[0]) / step**2
        assert one_sided >= certificate.curvatures[k, 1] - 0.01  # the kink adds to it but on the line's own plane


@pytest.mark.parametrize("teacher", [ORTHOGONAL, CLOSE])
def test_rate_of_gathering_is_the_slowest_curvature(teacher):
    slowest, rates = Certificate(teacher).slowest, []
    for ridge in (2e-2, 1e-2):
        marks = (np.array([10, 12]) / ridge / slowest).astype(int)
        start = threestage.planted(teacher, 3 * teacher.r, 0.05, key(5), count=2)
        rates.append(landscape.rate(threestage.Population(teacher), *start, ridge, marks) / ridge)
    np.testing.assert_allclose(2 * rates[1] - rates[0], slowest, rtol=0.02)


def test_floor_is_the_ratio_of_a_tiny_neuron_between_two_lines():
    teacher, certificate = ORTHOGONAL, Certificate(ORTHOGONAL)
    middle = teacher.directions[0] + teacher.directions[2]  # of one sign
    middle /= np.linalg.norm(middle)
    assert certificate.floor == pytest.approx(2 * (1 - certificate(middle[None])[0]), rel=1e-3)
    assert certificate.floor < certificate.steepness(key(9).standard_normal((1000, teacher.d))).min()
    ridge, mass = 1e-3, 1e-8  # mass ≪ λ², else the other neurons feel it
    end, system = global_minimum(teacher, ridge), threestage.Population(teacher)
    a, W = np.append(end.a, np.sqrt(mass)), np.vstack([end.W, np.sqrt(mass) * middle])
    objective, slope, _ = landscape.evaluate(system, a, W, ridge)
    assert slope / ridge / (objective - end.objective) == pytest.approx(certificate.floor, rel=0.1)
    assert certificate.floor < 2 * certificate.slowest
    assert Certificate(cone(20)).floor == 0


def test_peaks_where_the_certificate_fails():
    values, lines = Certificate(cone(20)).peaks
    assert values[0] == pytest.approx(1.334, abs=0.002)
    np.testing.assert_allclose(np.abs(lines[0] @ [0, 0, 1]), 0, atol=1e-4)  # orthogonal to the axis
    assert np.all(Certificate(ORTHOGONAL).peaks[0] < 1)
    end = global_minimum(cone(20), 1e-3)
    assert end.objective < 4e-3 and len(end.a) > 4
    masses = np.abs(end.a) * np.linalg.norm(end.W, axis=1)
    off = np.abs(end.W @ [0, 0, 1]) < 0.1 * np.linalg.norm(end.W, axis=1)
    assert 1e-4 < masses[off].sum() < 0.05


@pytest.mark.parametrize("teacher", [ORTHOGONAL, CLOSE, OPPOSITE, UNEQUAL])
def test_lowest_is_a_stationary_point_below_its_neighbours(teacher):
    end, system, rng = global_minimum(teacher, 1e-3), threestage.Population(teacher), key(6)
    assert landscape.evaluate(system, end.a, end.W, 1e-3)[1] < 1e-15
    for _ in range(20):
        a, W = threestage.planted(relu.network(end.W, end.a), 2 * len(end.a), 0.1, rng)
        assert landscape.evaluate(system, a, W, 1e-3)[0] > end.objective


@pytest.mark.parametrize("teacher", [ORTHOGONAL, CLOSE, OPPOSITE, UNEQUAL])
def test_three_parts_sum_to_the_gap_anywhere(teacher):
    ridge, rng, system = 0.02, key(11), relu.Population(teacher)
    a, W = rng.standard_normal((2, 3, 7)), rng.standard_normal((2, 3, 7, teacher.d))  # neither balanced nor near
    low = global_minimum(teacher, ridge)
    parts = gap_parts(teacher, low, ridge, a, W)
    np.testing.assert_allclose(sum(parts), landscape.evaluate(system, a, W, ridge)[0] - low.objective, rtol=1e-7)
    near = gap_parts(teacher, low, ridge, *threestage.planted(relu.network(low.W, low.a), 3 * len(low.a), 0.01, rng))
    assert near[2] == pytest.approx(0, abs=1e-12) and near[0] > 0 and near[1] > 0


def test_certificate_at_a_penalty_is_the_sign_of_the_minimiser_and_tends_to_the_limit():
    low, W = global_minimum(CLOSE, 1e-4), key(12).standard_normal((30, 4))
    np.testing.assert_allclose(certificate_at(CLOSE, low, 1e-4, low.W), np.sign(low.a), atol=1e-6)
    np.testing.assert_allclose(certificate_at(CLOSE, low, 1e-4, W), Certificate(CLOSE)(W), atol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("teacher", [ORTHOGONAL, CLOSE, OPPOSITE, STAR, UNEQUAL])
def test_nothing_ends_between_the_minimum_and_the_stuck_objective(teacher):
    ridge, system = 3e-3, threestage.Population(teacher)
    starts = threestage.initialise(teacher.d, teacher.r + 1, key(7), scale=0.3, count=60)
    end = threestage.descend(system, *starts, ridge, method="gradient", limit=4000, step=0.5)
    objectives = landscape.evaluate(system, end.a, end.W, ridge)[0]
    low, high = global_minimum(teacher, ridge).objective, local_minimum_missing_neuron(teacher, ridge).objective
    assert np.all((objectives < low + 0.05 * (high - low)) | (objectives > high - 0.005 * (high - low)))
    assert np.any(objectives > high - 0.005 * (high - low))


def test_local_minimum_has_one_missing_neuron_or_one_that_serves_two_lines():
    assert local_minimum_missing_neuron(ORTHOGONAL).loss == pytest.approx(0.25 - 0.5 / np.pi, rel=1e-6)
    assert local_minimum_missing_neuron(relu.Teacher(np.eye(1, 3), [1.0])).loss == pytest.approx(0.25 - 0.5 / np.pi)
    single = local_minimum_missing_neuron(CLOSE)
    best = min(one_neuron(CLOSE, angle) for angle in np.linspace(0, np.pi, 2001))
    assert single.loss == pytest.approx(best, rel=1e-5)
    for ridge in (0.0, 1e-3):
        low = global_minimum(CLOSE, ridge).objective if ridge else 0
        assert local_minimum_missing_neuron(CLOSE, ridge).objective > low


def one_neuron(teacher, angle):
    """Minimiser loss of a single neuron at this angle."""
    w = np.zeros((1, teacher.d))
    w[0, :2] = np.cos(angle), np.sin(angle)
    system = threestage.Population(teacher)
    K, k = system.normal_equations(w)
    return system.start - k[0] ** 2 / K[0, 0]


def test_enough_signs_counts():
    rng = key(8)
    signs = rng.choice([-1, 1], (40_000, 5))
    positive = np.sum(signs > 0, axis=1)
    assert enough_signs(ORTHOGONAL, 5) == pytest.approx(np.mean((positive >= 2) & (positive <= 4)), abs=0.01)
    assert enough_signs(CLOSE, 4) == pytest.approx(1 - stats.binom.cdf(1, 4, 0.5))
    assert enough_signs(ORTHOGONAL, 2) == 0
    assert enough_signs(ORTHOGONAL, 60) == pytest.approx(1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: global_minimum(CLOSE, 0.0), "ridge"),
        (lambda: local_minimum_missing_neuron(CLOSE, -1.0), "ridge"),
        (lambda: enough_signs(CLOSE, 0), "m = 0"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
