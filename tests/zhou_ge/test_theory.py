import numpy as np
import pytest

from onestep.simulate import key
from onestep.zhou_ge import relu, simulate, theory

ORTHOGONAL = relu.random_teacher(6, 3, key(0))
CLOSE = relu.fan_teacher(4, [0, 60], weights=[1.0, 1.0])
OPPOSITE = relu.fan_teacher(4, [0, 50], weights=[1.0, -1.0])
STAR = relu.fan_teacher(3, 36 * np.arange(5), weights=np.ones(5))
UNEQUAL = relu.random_teacher(5, 3, key(1), weights=[2.0, -0.4, 1.0], correlation=0.3)


def cone(degrees):
    """Four lines at one angle from an axis, signs alternating: the certificate of the lines alone exceeds 1."""
    t, tilt = np.pi / 2 * np.arange(4), np.radians(degrees)
    V = np.column_stack([np.sin(tilt) * np.cos(t), np.sin(tilt) * np.sin(t), np.full(4, np.cos(tilt))])
    return relu.Teacher(V, [1.0, -1.0, 1.0, -1.0])


@pytest.mark.parametrize("teacher", [ORTHOGONAL, CLOSE, OPPOSITE, STAR, UNEQUAL])
def test_the_exact_minimum_tends_to_its_law(teacher):
    ridges = np.array([2e-5, 1e-5])
    ends, law = [theory.global_minimum(teacher, ridge) for ridge in ridges], theory.minimum(teacher, ridges)
    ratio = np.array([end.loss for end in ends]) / law.loss
    assert 2 * ratio[1] - ratio[0] == pytest.approx(1, abs=1e-3)
    angle = simulate.weighted_angle(ends[1].a, ends[1].W, teacher)
    assert angle == pytest.approx(law.angle[1], rel=0.02, abs=1e-6)


@pytest.mark.parametrize("weights", [[1.0, 1.0], [2.0, -0.3]])
@pytest.mark.parametrize("degrees", [25, 90])
def test_the_law_does_not_depend_on_the_space_around(degrees, weights):
    fans = [relu.fan_teacher(d, [0, degrees], weights=weights) for d in (2, 9)]
    near, far = (theory.minimum(fan, [1e-3, 1e-4]) for fan in fans)
    for part in ("loss", "angle"):
        np.testing.assert_allclose(getattr(near, part), getattr(far, part), rtol=1e-9, atol=1e-12)
    assert near.loss[0] == pytest.approx(100 * near.loss[1])
    assert (near.angle[0] > 1e-6) == (degrees == 25)


def test_the_law_of_orthonormal_lines_by_hand():
    assert theory.minimum(ORTHOGONAL, 1e-3).loss == pytest.approx(3e-6 / (4 * (1 / 4 - 1 / (2 * np.pi))))


@pytest.mark.parametrize("teacher", [ORTHOGONAL, CLOSE, OPPOSITE, STAR, UNEQUAL, cone(20)])
@pytest.mark.parametrize("ridge", [1e-2, 1e-3])
def test_the_global_minimum_is_stationary_below_its_neighbours_and_certified(teacher, ridge):
    low, system, rng = theory.global_minimum(teacher, ridge), relu.Population(teacher), key(6)
    loss, by_a, by_W = system.gradient(low.a, low.W)
    assert loss == pytest.approx(low.loss, abs=1e-14)
    assert simulate.objective(system, low.a, low.W, ridge) == pytest.approx(low.objective, rel=1e-12)
    np.testing.assert_allclose(by_a + ridge * low.a, 0, atol=2e-3 * ridge)
    np.testing.assert_allclose(by_W + ridge * low.W, 0, atol=2e-3 * ridge)
    for _ in range(20):
        a, W = simulate.planted(relu.network(low.W, low.a), 2 * len(low.a), 0.1, rng)
        assert simulate.objective(system, a, W, ridge) > low.objective
    values = theory.certificate(teacher, low, ridge, rng.standard_normal((20_000, teacher.d)))
    assert np.abs(values).max() < 1 + 2e-3
    np.testing.assert_allclose(theory.certificate(teacher, low, ridge, low.W), np.sign(low.a), atol=2e-3)


@pytest.mark.parametrize("teacher", [ORTHOGONAL, UNEQUAL, relu.fan_teacher(5, range(0, 180, 36), weights=[1.0] * 5)])
def test_no_wide_trained_network_lies_below_the_global_minimum(teacher):
    ridge, system = 3e-3, relu.Population(teacher)
    end = simulate.train(system, 6 * teacher.r, key(7), [1e-2, ridge])[-1]
    objective, low = simulate.objective(system, end.a, end.W, ridge), theory.global_minimum(teacher, ridge).objective
    assert low * (1 - 1e-9) <= objective == pytest.approx(low, rel=1e-3)


def test_neurons_are_added_where_the_certificate_exceeds_one():
    low = theory.global_minimum(cone(20), 1e-3)
    masses = np.abs(low.a) * np.linalg.norm(low.W, axis=1)
    off = np.abs(low.W @ [0, 0, 1]) < 0.1 * np.linalg.norm(low.W, axis=1)
    assert len(low.a) > 4 and 1e-4 < masses[off].sum() < 0.05
    assert len(theory.global_minimum(ORTHOGONAL, 1e-3).a) == 3
    alone = theory.local_minimum(cone(20), cone(20).weights, cone(20).directions, 1e-3)
    assert low.objective < alone.objective * (1 - 1e-4)


def test_certificate_of_one_line_in_closed_form():
    teacher = relu.Teacher(np.eye(1, 3), [-2.0])
    low, theta = theory.global_minimum(teacher, 1e-3), np.linspace(0, np.pi / 2, 9)
    W = np.column_stack([np.cos(theta), np.sin(theta), 0 * theta])
    h = (np.sin(theta) + np.cos(theta) * np.arcsin(np.cos(theta)) - 1) / (2 * np.pi)
    np.testing.assert_allclose(theory.certificate(teacher, low, 1e-3, W), -h / h[0], atol=1e-7)


def test_a_local_minimum_keeps_its_signs_and_may_miss_a_line():
    h1 = 1 / 4 - 1 / (2 * np.pi)
    short = theory.local_minimum(ORTHOGONAL, [1.0, -1.0], ORTHOGONAL.directions[:2], 0.0)
    assert short.loss == pytest.approx(h1, rel=1e-6)
    np.testing.assert_array_equal(np.sign(short.a), [1, -1])
    angle = np.linspace(0, np.pi, 2001)  # one neuron for two lines, by a search over its angle
    K, k = zip(
        *(
            relu.Population(CLOSE).normal_equations(w[None])
            for w in np.column_stack([np.cos(angle), np.sin(angle), 0 * angle, 0 * angle])
        ),
        strict=True,
    )
    best = relu.Population(CLOSE).start - np.max(np.ravel(k) ** 2 / np.ravel(K))
    single = theory.local_minimum(CLOSE, [1.0], np.array([[1.0, 0.3, 0.0, 0.0]]), 0.0)
    assert single.loss == pytest.approx(best, rel=1e-5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: theory.global_minimum(CLOSE, 0.0), "ridge"),
        (lambda: theory.minimum(CLOSE, -1.0), "ridge"),
        (lambda: theory.local_minimum(CLOSE, [1.0], np.eye(1, CLOSE.d), -1.0), "ridge"),
        (lambda: theory.local_minimum(CLOSE, [0.5], np.eye(1, CLOSE.d), 0.1), r"signs = \[0.5\]"),
        (lambda: theory.local_minimum(CLOSE, [1.0], np.eye(2, CLOSE.d), 0.1), r"W \(2, "),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
