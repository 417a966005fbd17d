import numpy as np
import pytest
from scipy import stats

from onestep.simulate import key
from onestep.zhou_ge import relu, theory
from onestep.zhou_ge.simulate import threestage


@pytest.fixture
def rng():
    return key(0)


@pytest.fixture
def teacher(rng):
    return relu.random_teacher(7, 3, rng, correlation=0.3)


def test_missing_direction_is_what_is_left_without_it(rng, teacher):
    system = threestage.Population(teacher)
    left = []
    for k in range(3):
        rest = np.delete(teacher.directions, k, axis=0)
        K, moment = system.normal_equations(rest)
        left.append(system.start - moment @ np.linalg.solve(K, moment))
    assert theory.threestage.missing_loss(teacher) == pytest.approx(min(left), rel=1e-10)
    orthogonal = relu.random_teacher(7, 3, rng)
    assert theory.threestage.missing_loss(orthogonal) == pytest.approx(0.25 - 0.5 / np.pi, rel=1e-12)


@pytest.mark.parametrize("weights", [[1.0, 1.0], [2.0, -0.3]])
@pytest.mark.parametrize("degrees", [25, 90])
def test_minimum_does_not_depend_on_the_space_around(degrees, weights):
    fans = [relu.fan_teacher(d, [0, degrees], weights=weights) for d in (2, 9)]
    near, far = (theory.threestage.minimum(fan, [1e-3, 1e-4]) for fan in fans)
    for part in ("loss", "penalty", "angle"):
        np.testing.assert_allclose(getattr(near, part), getattr(far, part), rtol=1e-9, atol=1e-12)
    assert near.loss[0] == pytest.approx(100 * near.loss[1])


@pytest.mark.parametrize("removed", [(0, 1), (0,), (1,), ()])
@pytest.mark.parametrize(("d", "r", "correlation"), [(40, 4, 0.0), (60, 3, 0.5)])
def test_first_step_against_many_neurons(d, r, correlation, removed):
    rng = key(3)
    teacher = relu.random_teacher(d, r, rng, correlation=correlation)
    a, W = np.ones((3000, 20)), 1e-3 * unit_rows(rng.standard_normal((3000, 20, d)))
    W = threestage.Population(teacher, removed).gradient(a * 1e-3, W)[2].reshape(-1, d)
    predicted = theory.threestage.first_step(teacher, removed)
    along = teacher.weights @ teacher.directions
    aligned = np.sum((W @ along) ** 2) / np.sum(W**2) / (along @ along)
    tolerance = 0.03 if removed == (0, 1) else 0.01  # of the smaller share: the next order in 1/d, and the draw
    found = threestage.subspace_energy(W, teacher)
    assert 1 - found == pytest.approx(1 - predicted.subspace, rel=4 * tolerance, abs=2e-4)
    if removed != (0, 1):
        assert aligned == pytest.approx(predicted.linear, rel=6 * tolerance)


def unit_rows(W):
    return W / np.linalg.norm(W, axis=-1, keepdims=True)


def test_first_step_limits():
    teacher = relu.random_teacher(100_000, 4, key(0))
    both, linear = (theory.threestage.first_step(teacher, removed) for removed in ((), (0,)))
    assert both.linear == pytest.approx(0.25 / (0.25 + 1 / np.pi**2), rel=1e-4)  # Σa⋆ = 2, ‖Σa⋆w⋆‖ = 2
    assert linear == pytest.approx((1, 1), abs=1e-4)
    assert theory.threestage.first_step(teacher, (1,)).subspace == pytest.approx(0, abs=1e-3)
    assert theory.threestage.first_step(teacher).subspace == pytest.approx(1, abs=1e-4)


def test_first_step_on_samples_against_simulation():
    d, n = 60, 2 * 60**2
    for noise in (0.0, 0.5):
        teacher, found = relu.random_teacher(d, 2, key(5), weights=[1.0, -0.5], correlation=0.3), []
        for s in range(8):
            system = threestage.sample(teacher, n, key(6, s), noise=noise)
            W = threestage.first_step(system, *threestage.initialise(d, 40, key(7, s)))
            found.append(threestage.subspace_energy(W, teacher))
        assert np.mean(found) == pytest.approx(theory.threestage.sampled_step(teacher, [n], noise=noise)[0], rel=0.1)


def test_first_step_on_samples_limits():
    teacher = relu.random_teacher(50, 3, key(0), correlation=0.2)
    n = np.array([10.0, 1e3, 1e12])
    share = theory.threestage.sampled_step(teacher, n)
    assert np.all(np.diff(share) > 0) and share[0] < 0.1 and share[-1] == pytest.approx(1, abs=1e-6)
    power = threestage.Population(teacher).start
    noisy = theory.threestage.sampled_step(teacher, 2 * n, noise=np.sqrt(power))
    assert noisy == pytest.approx(share, rel=1e-12)  # noise as strong as the target costs half the samples
    alternating = relu.fan_teacher(50, [0, 45, 90, 135], weights=[1.0, -1.0, 1.0, -1.0])
    assert theory.threestage.sampled_step(alternating, n) == pytest.approx(2 / 50, rel=1e-9)
    with pytest.raises(ValueError, match="noise = -1"):
        theory.threestage.sampled_step(teacher, n, noise=-1.0)
    with pytest.raises(ValueError, match="n = 0"):
        theory.threestage.sampled_step(teacher, [0.0])


def test_covering_angle_of_random_lines_in_a_plane():
    rng = key(4)
    for m in (1, 2, 7):
        lines = np.sort(rng.uniform(0, 180, (20_000, m)), axis=1)
        gaps = np.diff(np.hstack([lines, lines[:, :1] + 180]), axis=1)
        assert theory.threestage.covering(m) == pytest.approx(gaps.max(axis=1).mean() / 2, rel=0.02)
    with pytest.raises(ValueError, match="m = 0"):
        theory.threestage.covering(0)


def four_lines(d):
    return relu.fan_teacher(d, [0, 45, 90, 135], weights=[1.0, -1.0, 1.0, -1.0])


@pytest.mark.parametrize("d", [20, 60])
def test_a_step_without_quadratic_part_is_that_of_degree_four(d):
    teacher = four_lines(d)
    V, b = teacher.directions[:, :2], teacher.weights
    square = stats.beta.ppf((np.arange(200_000) + 0.5) / 200_000, 1, d / 2 - 1)  # of the part of ŵ in the plane
    inside = outside = 0.0
    for turn in np.arange(8) * np.pi / 8:
        unit = np.sqrt(square)[:, None] * [np.cos(turn), np.sin(turn)]
        c = unit @ V.T
        radial = (np.sqrt(1 - c**2) - 1) @ b
        inside += np.sum((radial[:, None] * unit + (b * np.arcsin(c)) @ V) ** 2)
        outside += np.sum(radial**2 * (1 - square))
    exact = outside / (inside + outside)
    assert 1 - theory.threestage.quartic_step(teacher) == pytest.approx(exact, rel=20 / d**2)
    assert 2.25 / d == pytest.approx(exact, rel=12 / d)


def test_quartic_step_wants_a_teacher_of_degree_four():
    for bad in (relu.fan_teacher(5, [0, 45]), relu.fan_teacher(5, range(0, 180, 30), weights=[1.0, -1.0] * 3)):
        with pytest.raises(ValueError, match="degree 4"):
            theory.threestage.quartic_step(bad)


def test_noise_costs_its_variance_times_the_parameters_over_the_samples():
    teacher, rng, noise, n = relu.random_teacher(5, 2, np.random.default_rng(1)), np.random.default_rng(2), 0.3, 200_000
    X = rng.standard_normal((n, 5))
    tangents = [(np.sign(X @ w) / 2)[:, None] * X for w in teacher.directions]  # of |wᵀx|/2 in each of its coordinates
    design = np.column_stack([*tangents, X, np.ones(n)])
    used = np.linalg.matrix_rank(design.T @ design)
    assert theory.threestage.noisy_loss(teacher, n, noise) == pytest.approx(noise**2 * used / n)
    assert theory.threestage.noisy_loss(teacher, [n, 2 * n], noise).shape == (2,)
    with pytest.raises(ValueError, match="n = 0"):
        theory.threestage.noisy_loss(teacher, 0, noise)


def uniform_lines_loss(teacher, m, ridge, rng):
    """Loss of ridge regression on m features on Gaussian lines of the teacher's space."""
    W = rng.standard_normal((m, teacher.d)) / np.sqrt(teacher.d)
    system = relu.Population(teacher)
    K, k = system.normal_equations(W)
    return system.loss(np.linalg.solve(K + ridge / 2 * np.eye(m), k), W)


def test_loss_after_stage_two_falls_with_the_width_as_on_random_lines():
    teacher, widths, measured = relu.Teacher(np.eye(4), relu.mixed_signs(4)), [20, 80], []
    for m in widths:
        measured.append(np.mean([uniform_lines_loss(teacher, m, 1e-3, key(9, m, s)) for s in range(100)]))
    predicted = np.array([theory.threestage.second_stage_loss(teacher, m, 1e-3) for m in widths])
    ratio = measured / predicted
    assert ratio[0] / ratio[1] == pytest.approx(1, abs=0.12) and np.all((ratio > 1) & (ratio < 1.4))


@pytest.mark.parametrize(("k", "exponent"), [(2, -3.0), (3, -1.5), (4, -1.0)])
def test_loss_after_stage_two_at_small_ridge_is_the_cube_of_the_mesh(k, exponent):
    teacher = relu.Teacher(np.eye(k), relu.mixed_signs(k))
    widths = np.geomspace(25, 150, 12).astype(int)  # eq. (1) fills one degree after the other
    losses = [theory.threestage.second_stage_loss(teacher, m, 1e-12) for m in widths]
    assert np.polyfit(np.log(widths), np.log(losses), 1)[0] == pytest.approx(exponent, rel=0.12)


def test_loss_after_stage_two_limits():
    teacher = relu.fan_teacher(3, [0, 70, 110], weights=[1.0, -0.5, 2.0])
    start = relu.Population(teacher).start
    assert theory.threestage.second_stage_loss(teacher, 5, 1e6) == pytest.approx(start, rel=1e-4)
    # a wide layer with mean penalty is ridge regression in the limit kernel: one equation, no fluctuation
    wide = theory.threestage.second_stage_loss(teacher, 10**6, 10**6 * 0.02)
    t = np.arange(2000) * np.pi / 2000
    lines = np.column_stack([np.cos(t), np.sin(t), 0 * t])
    K = relu.kernel(lines, lines) / 2000
    k = relu.kernel(lines, teacher.directions) @ teacher.weights / 2000**0.5
    a = np.linalg.solve(K + 0.01 * np.eye(2000), k)
    assert wide == pytest.approx(start - 2 * a @ k + a @ K @ a, rel=1e-4)


@pytest.mark.parametrize(
    ("teacher", "m", "ridge", "message"),
    [
        (relu.Teacher(np.eye(1, 3), [1.0]), 4, 1e-3, "two dimensions"),
        (relu.Teacher(np.eye(2), [1.0, 1.0]), 0, 1e-3, "m = 0"),
        (relu.Teacher(np.eye(2), [1.0, 1.0]), 4, 0.0, "ridge"),
    ],
)
def test_loss_after_stage_two_names_bad_input(teacher, m, ridge, message):
    with pytest.raises(ValueError, match=message):
        theory.threestage.second_stage_loss(teacher, m, ridge)
