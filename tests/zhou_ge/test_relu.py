import numpy as np
import pytest

from onestep.simulate import key
from onestep.zhou_ge import relu


@pytest.fixture
def rng():
    return key(0)


@pytest.fixture
def teacher(rng):
    return relu.random_teacher(7, 3, rng, correlation=0.3)


def plane_average(f, g, cosine):
    """E f(u) g(v) for positively homogeneous f, g and unit Gaussians u, v at a cosine: the radius integrates to 2."""
    t = (np.arange(400_000) + 0.5) * 2 * np.pi / 400_000
    return 2 * np.mean(f(np.cos(t)) * g(np.cos(t - np.arccos(cosine))))


@pytest.mark.parametrize("cosine", [-1.0, -0.6, 0.0, 0.2, 0.999, 1.0])
def test_kernel_against_the_integral_over_the_plane(cosine):
    w, v = np.array([[2.0, 0.0]]), 1.5 * np.array([[cosine, np.sqrt(1 - cosine**2)]])

    def ramp(z):
        return np.maximum(z, 0)

    mean, linear = 3 / (2 * np.pi), 3 * cosine / 4  # E ReLU = 1/√(2π), E g ReLU = 1/2
    expected = 3 * plane_average(ramp, ramp, cosine) - mean - linear
    assert relu.kernel(w, v)[0, 0] == pytest.approx(expected, abs=1e-9)


def test_loss_is_the_quadratic_form_of_the_kernel(rng, teacher):
    system = relu.Population(teacher)
    a, W = rng.standard_normal(5), rng.standard_normal((5, 7))
    u, P = np.append(a, -teacher.weights), np.vstack([W, teacher.directions])
    assert system.loss(a, W) == pytest.approx(u @ relu.kernel(P, P) @ u, rel=1e-12)
    K, k = system.normal_equations(W)
    assert system.loss(a, W) == pytest.approx(a @ K @ a - 2 * a @ k + system.start, rel=1e-12)


def test_gradient_against_differences(rng, teacher):
    system = relu.Population(teacher)
    a, W = rng.standard_normal(5), rng.standard_normal((5, 7))
    _, by_second, by_first = system.gradient(a, W)
    for _ in range(4):
        da, dW = 1e-5 * rng.standard_normal(5), 1e-5 * rng.standard_normal((5, 7))
        change = (system.loss(a + da, W + dW) - system.loss(a - da, W - dW)) / 2
        assert da @ by_second + np.sum(dW * by_first) == pytest.approx(change, rel=1e-6)


def test_gradient_where_neurons_coincide_with_the_teacher_and_with_each_other(teacher):
    a, W = np.repeat(teacher.weights, 2) / 2, np.repeat(teacher.directions, 2, axis=0)
    loss, by_second, by_first = relu.Population(teacher).gradient(a, W)
    assert abs(loss) < 1e-14
    np.testing.assert_allclose(by_second, 0, atol=1e-14)
    np.testing.assert_allclose(by_first, 0, atol=1e-14)


def test_a_neuron_of_length_zero_is_harmless(rng, teacher):
    a, W = rng.standard_normal(3), rng.standard_normal((3, 7))
    W[0] = 0
    system = relu.Population(teacher)
    loss, by_second, by_first = system.gradient(a, W)
    assert loss == pytest.approx(system.loss(a[1:], W[1:]), rel=1e-12)
    assert np.all(np.isfinite(by_second)) and np.all(np.isfinite(by_first))


def test_several_networks_at_once_are_those_one_by_one(rng, teacher):
    system = relu.Population(teacher)
    a, W = rng.standard_normal((2, 4, 6)), rng.standard_normal((2, 4, 6, 7))
    for call in (lambda *at: system.gradient(a[at], W[at]), lambda *at: system.normal_equations(W[at])):
        together = call()
        for at in np.ndindex(2, 4):
            for part, alone in zip(together, call(*at), strict=True):
                np.testing.assert_allclose(part[at], alone, rtol=1e-11, atol=1e-13)


def test_the_loss_does_not_feel_signs_rotations_order_or_scales_of_the_layers(rng, teacher):
    a, W = rng.standard_normal(5), rng.standard_normal((5, 7))
    rotation, order = np.linalg.qr(rng.standard_normal((7, 7)))[0], rng.permutation(5)
    turned = relu.Population(relu.Teacher(teacher.directions @ rotation, teacher.weights))
    t = np.exp(rng.standard_normal(5))
    other = turned.loss((a / t)[order], (-(t[:, None] * W) @ rotation)[order])
    assert other == pytest.approx(relu.Population(teacher).loss(a, W), rel=1e-10)


def test_a_network_of_any_norms_is_a_teacher_of_unit_rows(rng):
    W, a, X = rng.standard_normal((3, 4)), np.array([2.0, -0.1, 0.5]), rng.standard_normal((9, 4))
    teacher = relu.network(W, a)
    output = np.maximum(X @ teacher.directions.T, 0) @ teacher.weights
    np.testing.assert_allclose(output, np.maximum(X @ W.T, 0) @ a, rtol=1e-12)


def test_more_neurons_than_dimensions():
    fan = relu.fan_teacher(6, [0, 60, 120])
    assert (fan.r, fan.d, fan.basis.shape) == (3, 6, (2, 6))
    np.testing.assert_allclose(fan.basis @ fan.basis.T, np.eye(2), atol=1e-12)
    assert np.all(fan.directions[:, 2:] == 0)


def test_every_fourth_neuron_is_negative():
    assert list(relu.mixed_signs(7)) == [1, -1, 1, 1, 1, -1, 1]
    assert list(relu.random_teacher(9, 6, key(0)).weights) == [1, -1, 1, 1, 1, -1]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: relu.Teacher(np.ones((2, 3)), [1.0, 1.0]), "unit vector"),
        (lambda: relu.Teacher(np.eye(2, 3), [1.0]), r"\(r, d\)"),
        (lambda: relu.Teacher(np.eye(3)[[0, 2, 0]], [1.0, 1.0, 1.0]), "rows 0 and 2 lie on one line"),
        (lambda: relu.Teacher(np.eye(2, 3), [1.0, 0.0]), "not 0"),
        (lambda: relu.network(np.eye(2, 3) * [[1], [0]], [1.0, 1.0]), "differ from 0"),
        (lambda: relu.network(np.eye(2, 3), 1.0), r"W \(2, 3\) and a \(\): must be"),
        (lambda: relu.fan_teacher(3, [0, "x"]), "unit vector"),
        (lambda: relu.random_teacher(3, 4, key(0)), "r = 4"),
        (lambda: relu.random_teacher(6, 3, key(0), correlation=-0.5), "correlation"),
        (lambda: relu.fan_teacher(3, [0, 180]), "one line"),
        (lambda: relu.fan_teacher(1, [0, 90]), "d = 1"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
