import numpy as np
import pytest

from onestep.simulate import key
from onestep.zhou_ge import relu
from onestep.zhou_ge.relu import kernel


def plane_average(f, g, cosine):
    """E f(u) g(v) for positively homogeneous f, g and unit Gaussians u, v at a cosine: the radius integrates to 2."""
    t = (np.arange(400_000) + 0.5) * 2 * np.pi / 400_000
    return 2 * np.mean(f(np.cos(t)) * g(np.cos(t - np.arccos(cosine))))


@pytest.mark.parametrize("cosine", [-1.0, -0.6, 0.0, 0.2, 0.999, 1.0])
def test_kernel_against_the_integral_over_the_plane(cosine):
    w, v = np.array([[2.0, 0.0]]), 1.5 * np.array([[cosine, np.sqrt(1 - cosine**2)]])

    def ramp(z):
        return np.maximum(z, 0)

    plain = 3 * plane_average(ramp, ramp, cosine)
    mean, linear = 3 / (2 * np.pi), 3 * cosine / 4  # E ReLU = 1/√(2π), E g ReLU = 1/2
    for removed, expected in (
        ((), plain),
        ((0,), plain - mean),
        ((1,), plain - linear),
        ((0, 1), plain - mean - linear),
    ):
        assert kernel(w, v, removed=removed)[0, 0] == pytest.approx(expected, abs=1e-9)


def test_several_networks_at_once_are_those_one_by_one():
    rng = key(0)
    system = relu.Population(relu.random_teacher(5, 3, rng, correlation=0.3))
    a, W = rng.standard_normal((2, 4, 6)), rng.standard_normal((2, 4, 6, 5))
    together = system.gradient(a, W)
    for at in np.ndindex(2, 4):
        for part, alone in zip(together, system.gradient(a[at], W[at]), strict=True):
            np.testing.assert_allclose(part[at], alone, rtol=1e-11, atol=1e-13)


def test_networks_with_teachers_of_their_own_are_those_one_by_one():
    rng = key(3)
    teachers = [relu.random_teacher(5, 3, rng, weights=rng.standard_normal(3)) for _ in range(4)]
    a, W = rng.standard_normal((4, 6)), rng.standard_normal((4, 6, 5))
    systems, chosen = relu.Populations(teachers), np.array([True, False, True, True])
    for calls in ("gradient", "normal_equations"):
        arguments = (a, W) if calls == "gradient" else (W,)
        together = getattr(systems.part(chosen), calls)(*(part[chosen] for part in arguments))
        for k, t in enumerate(np.flatnonzero(chosen)):
            alone = getattr(relu.Population(teachers[t]), calls)(*(part[t] for part in arguments))
            for part, one in zip(together, alone, strict=True):
                np.testing.assert_allclose(part[k], one, rtol=1e-11, atol=1e-13)


def test_a_network_of_any_norms_is_a_teacher_of_unit_rows():
    rng = key(1)
    W, a, X = rng.standard_normal((3, 4)), np.array([2.0, -0.1, 0.5]), rng.standard_normal((9, 4))
    teacher = relu.network(W, a)
    np.testing.assert_allclose(
        np.maximum(X @ teacher.directions.T, 0) @ teacher.weights, np.maximum(X @ W.T, 0) @ a, rtol=1e-12
    )


def test_more_neurons_than_dimensions():
    fan = relu.fan_teacher(6, [0, 60, 120])
    assert (fan.r, fan.d, fan.basis.shape) == (3, 6, (2, 6))
    np.testing.assert_allclose(fan.basis @ fan.basis.T, np.eye(2), atol=1e-12)
    assert fan.separation == pytest.approx(60)
    padded = relu.padded_teacher(9, key(2).standard_normal((5, 3)), weights=[1.0, 2, -3, 1, 1])
    assert padded.basis.shape == (3, 9) and list(padded.weights) == [1, 2, -3, 1, 1]
    assert np.all(padded.directions[:, 3:] == 0)


def test_separation_of_a_single_neuron_and_of_lines_beyond_a_right_angle():
    assert relu.Teacher(np.eye(1, 3), [1.0]).separation == pytest.approx(90)
    assert relu.fan_teacher(2, [0, 130]).separation == pytest.approx(50)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: relu.Teacher(np.ones((2, 3)), [1.0, 1.0]), "unit vector"),
        (lambda: relu.Teacher(np.eye(2, 3), [1.0]), r"\(r, d\)"),
        (lambda: relu.Teacher(np.eye(0, 3), []), r"\(r, d\)"),
        (lambda: relu.Teacher(np.eye(3)[[0, 2, 0]], [1.0, 1.0, 1.0]), "rows 0 and 2 lie on one line"),
        (lambda: relu.Teacher(np.eye(3)[[0, 0]] * [[1], [-1]], [1.0, 1.0]), "one line"),
        (lambda: relu.Teacher(np.eye(2, 3), [1.0, 0.0]), "not 0"),
        (lambda: relu.network(np.eye(2, 3) * [[1], [0]], [1.0, 1.0]), "differ from 0"),
        (lambda: relu.random_teacher(3, 4, key(0)), "r = 4"),
        (lambda: relu.random_teacher(6, 3, key(0), correlation=-0.5), "correlation"),
        (lambda: relu.random_teacher(6, 3, key(0), correlation=1.0), "correlation"),
        (lambda: relu.fan_teacher(3, [0, 180]), "one line"),
        (lambda: relu.fan_teacher(1, [0, 90]), "d = 1"),
        (lambda: relu.padded_teacher(3, np.eye(4)), "d = 3"),
        (lambda: relu.Population(relu.random_teacher(3, 2, key(0)), removed=(2,)), "removed"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_every_fourth_neuron_is_negative():
    assert list(relu.mixed_signs(7)) == [1, -1, 1, 1, 1, -1, 1]
    assert list(relu.random_teacher(9, 6, key(0)).weights) == [1, -1, 1, 1, 1, -1]
