import numpy as np
import pytest

from onestep.simulate import key
from onestep.zhou_ge import relu, theory
from onestep.zhou_ge.simulate import threestage

RIDGES = np.geomspace(3e-3, 3e-5, 3)


@pytest.fixture
def rng():
    return key(0)


@pytest.fixture
def teacher(rng):
    return relu.random_teacher(7, 3, rng, correlation=0.3)


@pytest.mark.parametrize("removed", [(0, 1), (0,), (1,), ()])
def test_loss_is_the_quadratic_form_of_the_kernel(rng, teacher, removed):
    system = threestage.Population(teacher, removed)
    a, W = rng.standard_normal(5), rng.standard_normal((5, 7))
    u, P = np.append(a, -teacher.weights), np.vstack([W, teacher.directions])
    assert system.loss(a, W) == pytest.approx(u @ relu.kernel(P, P, removed=removed) @ u, rel=1e-12)
    assert system.loss(teacher.weights, teacher.directions) == pytest.approx(0, abs=1e-14)
    K, k = system.normal_equations(W)
    assert system.loss(a, W) == pytest.approx(a @ K @ a - 2 * a @ k + system.start, rel=1e-12)


def check_gradient(system, a, W, rng, rel=1e-6):
    _, by_second, by_first = system.gradient(a, W)
    for _ in range(4):
        da, dW = rng.standard_normal(a.shape), rng.standard_normal(W.shape)
        h = 1e-5
        slope = (system.loss(a + h * da, W + h * dW) - system.loss(a - h * da, W - h * dW)) / (2 * h)
        assert da @ by_second + np.sum(dW * by_first) == pytest.approx(slope, rel=rel)


@pytest.mark.parametrize("removed", [(0, 1), (0,), (1,), ()])
def test_population_gradient_against_differences(rng, teacher, removed):
    system = threestage.Population(teacher, removed)
    check_gradient(system, rng.standard_normal(5), rng.standard_normal((5, 7)), rng)


def test_empirical_gradient_against_differences(rng, teacher):
    system = threestage.sample(teacher, 60, rng)
    a, W = rng.standard_normal(5), rng.standard_normal((5, 7))
    check_gradient(system, a, W, rng, rel=1e-3)  # the loss has kinks, which the differences may cross
    K, k = system.normal_equations(W)
    assert system.loss(a, W) == pytest.approx(a @ K @ a - 2 * a @ k + system.start, rel=1e-10)


def test_gradient_where_neurons_coincide_with_the_teacher_and_with_each_other(teacher):
    system = threestage.Population(teacher)
    a, W = np.repeat(teacher.weights, 2) / 2, np.repeat(teacher.directions, 2, axis=0)
    loss, by_second, by_first = system.gradient(a, W)
    assert abs(loss) < 1e-14
    np.testing.assert_allclose(by_second, 0, atol=1e-14)
    np.testing.assert_allclose(by_first, 0, atol=1e-14)


def test_a_neuron_of_length_zero_is_harmless(rng, teacher):
    a, W = rng.standard_normal(3), rng.standard_normal((3, 7))
    W[0] = 0
    system = threestage.Population(teacher)
    loss, by_second, by_first = system.gradient(a, W)
    assert loss == pytest.approx(system.loss(a[1:], W[1:]), rel=1e-12)
    assert np.all(np.isfinite(by_second)) and np.all(np.isfinite(by_first))


def test_samples_approach_the_population(rng, teacher):
    a, W = rng.standard_normal(4), rng.standard_normal((4, 7))
    exact = threestage.Population(teacher).gradient(a, W)
    draws = [threestage.sample(teacher, 20_000, key(1, t)).gradient(a, W) for t in range(12)]
    for k, expected in enumerate(exact):
        samples = np.array([draw[k] for draw in draws]).reshape(12, -1)
        error = samples.std(axis=0, ddof=1) / np.sqrt(12)
        z = (samples.mean(axis=0) - np.ravel(expected)) / error
        assert np.sqrt(np.mean(z**2)) < 2 and np.abs(z).max() < 6  # 33 numbers, t with 11 degrees of freedom


def test_first_step_finds_the_subspace_and_preprocessing_prevents_collapse(rng):
    teacher = relu.random_teacher(200, 3, rng)
    a, W = threestage.initialise(200, 40, rng)
    energy, largest = {}, {}
    for removed in ((0, 1), (0,), (1,)):
        step = threestage.first_step(threestage.Population(teacher, removed), a, W)
        assert np.mean(np.sum(step**2, axis=1)) == pytest.approx(1)
        energy[removed] = threestage.subspace_energy(step, teacher)
        largest[removed] = np.linalg.svd(relu.polar(step)[1], compute_uv=False)[0] ** 2 / 40
    assert energy[0, 1] > 0.99 and largest[0, 1] < 0.6
    assert largest[(0,)] > 0.97  # the linear part collapses them onto one line
    assert energy[(1,)] < 0.1  # the mean keeps each where it was
    assert threestage.subspace_energy(W, teacher) < 0.1


def test_second_layer_is_the_minimiser_and_balancing_keeps_the_network(rng, teacher):
    W = rng.standard_normal((6, 7))
    system = threestage.Population(teacher)
    a = threestage.fit_second_layer(system, W, 0.01)
    np.testing.assert_allclose(system.gradient(a, W)[1] + 0.01 * a, 0, atol=1e-13)
    b, V = threestage.balance(a, W)
    np.testing.assert_allclose(np.abs(b), np.linalg.norm(V, axis=1))
    assert system.loss(b, V) == pytest.approx(system.loss(a, W), rel=1e-12)


@pytest.mark.parametrize("correlation", [0.0, 0.4])
def test_all_stages_reach_the_predicted_minimum(rng, correlation):
    teacher = relu.random_teacher(10, 3, rng, weights=[1.0, -0.7, 1.2], correlation=correlation)
    system = threestage.Population(teacher)
    run = threestage.train(system, 24, rng, RIDGES)
    losses = [descent.loss for descent in run.descents]
    predicted = theory.threestage.minimum(teacher, RIDGES)
    np.testing.assert_array_less(np.abs(losses / predicted.loss - 1), 30 * RIDGES)  # the next order is in λ
    a, W = run.final
    assert threestage.masses(a, W).sum() == pytest.approx(predicted.penalty[-1], rel=1e-5)
    assert threestage.weighted_angle(a, W, teacher) == pytest.approx(predicted.angle[-1], abs=0.005)
    assert (predicted.angle[-1] > 1e-3) == (correlation > 0)
    np.testing.assert_allclose(np.abs(a), np.linalg.norm(W, axis=1), atol=1e-3)
    assert threestage.subspace_energy(W, teacher) == pytest.approx(1, abs=1e-3)
    assert threestage.weighted_angle(*run.fitted, teacher) > 5


def test_gradient_descent_arrives_where_quasi_newton_does(rng, teacher):
    system = threestage.Population(teacher)
    start = threestage.planted(teacher, 6, 0.5, rng)
    ends = [threestage.descend(system, *start, 3e-3, method=method, limit=20_000) for method in threestage.METHODS]
    assert all(end.converged for end in ends)
    assert ends[0].evaluations < ends[1].evaluations
    assert ends[0].loss == pytest.approx(ends[1].loss, rel=1e-4)
    for end in ends:
        angle = theory.threestage.minimum(teacher, 3e-3).angle
        assert threestage.weighted_angle(end.a, end.W, teacher) == pytest.approx(angle, rel=0.1)


def test_several_gradient_descents_at_once_are_those_one_by_one(teacher):
    system = threestage.Population(teacher)
    a, W = threestage.planted(teacher, 4, 0.5, key(9), count=3)
    together = threestage.descend(system, a, W, 3e-3, method="gradient", limit=50)
    assert together.loss.shape == together.converged.shape == (3,)
    for t, start in enumerate(zip(a, W, strict=True)):
        alone = threestage.descend(system, *start, 3e-3, method="gradient", limit=50)
        np.testing.assert_allclose(together.W[t], alone.W, rtol=1e-9, atol=1e-12)


def test_unequal_decay_acts_like_its_geometric_mean(rng, teacher):
    system, start = threestage.Population(teacher), threestage.planted(teacher, 6, 0.3, rng)
    same = threestage.descend(system, *start, 2e-3)
    unequal = threestage.descend(system, *start, (4e-3, 1e-3), tolerance=1e-8)
    assert unequal.loss == pytest.approx(same.loss, rel=1e-4)
    ratio = np.abs(unequal.a) / np.linalg.norm(unequal.W, axis=1)
    np.testing.assert_allclose(ratio[np.abs(unequal.a) > 1e-3], 0.5, rtol=1e-3)


def predict(system, a, W, X):
    """The network's output at inputs X, with the affine term that fits the samples of the system."""
    rest = system.labels - np.abs(system.X @ W.T) @ (a / 2)
    affine = np.linalg.lstsq(np.column_stack([np.ones(system.n), system.X]), rest)[0]
    return np.abs(X @ W.T) @ (a / 2) + np.column_stack([np.ones(len(X)), X]) @ affine


def test_samples_of_ones_own(rng, teacher):
    X = rng.standard_normal((60, 7))
    y = 3 + X @ np.arange(7) + np.abs(X @ teacher.directions.T) @ teacher.weights / 2
    own, drawn = threestage.Empirical(X, y), threestage.sample(teacher, 60, key(0))
    assert own.teacher is None and own.n == 60 and own.d == 7
    a, W = threestage.balance(teacher.weights, teacher.directions)
    assert own.loss(a, W) == pytest.approx(0, abs=1e-20)
    np.testing.assert_allclose(predict(own, a, W, X), y, rtol=1e-10)
    run = threestage.train(own, 6, rng, RIDGES[:1])
    assert np.mean((predict(own, *run.final, X) - y) ** 2) == pytest.approx(run.descents[-1].loss, rel=1e-9)
    assert drawn.loss(a, W) == pytest.approx(0, abs=1e-20)


def test_test_loss_is_the_error_on_fresh_samples(rng, teacher):
    system = threestage.sample(teacher, 80, rng, noise=0.3)
    a, W = rng.standard_normal(4), rng.standard_normal((4, 7))
    X = rng.standard_normal((400_000, 7))
    error = (predict(system, a, W, X) - np.maximum(X @ teacher.directions.T, 0) @ teacher.weights) ** 2
    assert system.test_loss(a, W) == pytest.approx(error.mean(), abs=5 * error.std() / np.sqrt(len(X)))
    assert system.start > threestage.sample(teacher, 80, key(0)).start  # same inputs, no noise


def test_descent_on_samples_stops_when_it_has_settled(rng, teacher):
    system = threestage.sample(teacher, 300, rng)
    run = threestage.train(system, 6, rng, [1e-2, 1e-3], limit=1500)
    assert all(end.converged and end.evaluations < 1500 for end in run.descents)
    assert not threestage.descend(system, *run.fitted, 1e-2, limit=20).converged


def test_descent_reports_that_it_did_not_converge(rng, teacher):
    for method in threestage.METHODS:
        start = threestage.planted(teacher, 6, 0.5, rng)
        system = threestage.Population(teacher)
        end = threestage.descend(system, *start, 3e-3, method=method, limit=3)
        assert not end.converged


def test_measures_do_not_feel_signs_rotations_or_order(rng, teacher):
    a, W = threestage.planted(teacher, 9, 0.3, rng)
    rotation = np.linalg.qr(rng.standard_normal((7, 7)))[0]
    turned = relu.Teacher(teacher.directions @ rotation, teacher.weights)
    order = rng.permutation(9)
    angle = threestage.weighted_angle(a[order], -W[order] @ rotation, turned)
    assert angle == pytest.approx(threestage.weighted_angle(a, W, teacher))
    assert threestage.Population(turned).loss(a, -W @ rotation) == pytest.approx(
        threestage.Population(teacher).loss(a, W), rel=1e-10
    )


def test_angles_are_exact_when_tiny():
    teacher = relu.Teacher(np.eye(2, 3), [1.0, 1.0])
    angle = threestage.angles(np.array([[[0.0, -1.0, 1e-10], [1.0, 0.0, 0.0], [0.0, 0.0, 2.0]]]), teacher)[0]
    np.testing.assert_allclose(angle, [np.degrees(1e-10), 0, 90], rtol=1e-9)


def test_covering_angle():
    rng = key(11)
    plane = relu.fan_teacher(5, [10, 80])
    W = np.pad(np.array([[1.0, 0], [0, -2], [-1, 1]]), ((0, 0), (0, 3)))
    W[:, 4] = 0.3  # what lies outside the subspace is not seen
    assert threestage.covering(W, plane) == pytest.approx(45)
    turns = rng.uniform(0, np.pi, 40)
    W = np.pad(np.column_stack([np.cos(turns), np.sin(turns)]), ((0, 0), (0, 3)))
    probes = np.linspace(0, np.pi, 20_001)
    far = np.arccos(np.abs(np.cos(probes[:, None] - turns)).max(axis=1)).max()
    assert threestage.covering(W, plane) == pytest.approx(np.degrees(far), rel=1e-3)
    space = relu.random_teacher(6, 3, rng)
    assert threestage.covering(space.basis, space) == pytest.approx(np.degrees(np.arccos(3**-0.5)), rel=0.02)
    assert threestage.covering(W, relu.Teacher(np.eye(1, 5), [1.0])) == 0


def test_planted_start_without_spread_is_the_teacher(rng, teacher):
    assert threestage.Population(teacher).loss(*threestage.planted(teacher, 8, 0.0, rng)) == pytest.approx(0, abs=1e-14)


def test_same_key_same_training():
    def run():
        rng = key(3)
        teacher = relu.random_teacher(6, 2, rng)
        return threestage.train(threestage.sample(teacher, 60, rng), 6, rng, RIDGES[:1])

    np.testing.assert_array_equal(run().final[1], run().final[1])


@pytest.mark.parametrize("trial", [2, 3, 7])
def test_descent_on_few_samples_goes_on_where_a_line_search_fails_at_a_kink(trial):
    rng = key(1, 8, 1, trial, 450)
    system = threestage.sample(relu.random_teacher(8, 1, rng), 36, rng)
    run = threestage.train(system, 6, rng, [3e-2, 3e-3])
    for end, ridge in zip(run.descents, run.ridges, strict=True):
        assert end.converged
        again = threestage.descend(system, end.a, end.W, ridge)
        decays = [ridge / 2 * (np.sum(x.a**2) + np.sum(x.W**2)) for x in (end, again)]
        assert again.loss + decays[1] == pytest.approx(end.loss + decays[0], rel=3e-3)


def test_the_least_samples_are_found_by_bisection():
    asked = []
    sizes = range(10, 200, 10)
    assert threestage.least_samples(lambda n: asked.append(n) or n >= 73, sizes) == 80
    assert len(asked) <= 5
    assert threestage.least_samples(lambda n: np.True_, sizes) == 10
    with pytest.raises(ValueError, match="n = 190"):
        threestage.least_samples(lambda n: False, sizes)


@pytest.mark.parametrize("samples", [False, True])
def test_converged_networks_are_set_aside_and_change_nothing(teacher, samples):
    system = threestage.sample(teacher, 60, key(4)) if samples else threestage.Population(teacher)
    a, W = threestage.planted(teacher, 4, 0.5, key(9), count=4)
    options = {"method": "gradient", "limit": 400, "tolerance": 3e-3}
    together = threestage.descend(system, a, W, 3e-3, **options)
    alone = [threestage.descend(system, *start, 3e-3, **options) for start in zip(a, W, strict=True)]
    assert len({end.evaluations for end in alone}) > 1
    assert together.evaluations == max(end.evaluations for end in alone)
    for t, end in enumerate(alone):
        np.testing.assert_allclose(together.W[t], end.W, rtol=1e-9, atol=1e-12)
        assert together.loss[t] == pytest.approx(end.loss) and together.converged[t] == end.converged


def test_starts_at_once_have_the_law_of_single_ones(teacher):
    a, W = threestage.initialise(7, 4, key(5), scale=0.1, count=300)
    assert a.shape == (300, 4) and W.shape == (300, 4, 7)
    np.testing.assert_allclose(np.abs(a), np.linalg.norm(W, axis=-1))
    assert abs(a.mean()) < 0.01 and len(np.unique(W[:, 0, 0])) == 300
    a, W = threestage.fitted(threestage.Population(teacher), 5, key(6), count=2)
    for net in zip(a, W, strict=True):
        assert threestage.first_step(threestage.Population(teacher), *net).shape == (5, 7)
        assert threestage.subspace_energy(net[1], teacher) > 0.8
    one = threestage.train(threestage.Population(teacher), 5, key(6), ()).fitted
    np.testing.assert_allclose(threestage.fitted(threestage.Population(teacher), 5, key(6))[1], one[1])


def test_moved_neurons_keep_their_relative_length(teacher):
    a, W = threestage.planted(teacher, 1200, 0.1, key(3))
    units = W / np.linalg.norm(W, axis=1, keepdims=True)
    moved = units - teacher.directions[np.arange(1200) % 3]
    assert np.mean(np.sum(moved**2, axis=1)) == pytest.approx(0.01 * 6 / 7, rel=0.1)  # all but the radial part
    np.testing.assert_allclose(np.abs(a), np.linalg.norm(W, axis=1))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: threestage.sample(relu.random_teacher(6, 2, key(0)), 7, key(0)), "n = 7"),
        (lambda: threestage.sample(relu.random_teacher(6, 2, key(0)), 9, key(0), noise=-1.0), "noise"),
        (lambda: threestage.Empirical(np.ones((9, 2)), np.ones(8)), r"must be \(n, d\) and \(n,\)"),
        (lambda: threestage.Empirical(np.ones((9, 2)), np.full(9, np.nan)), "finite"),
        (lambda: threestage.train(threestage.Population(relu.random_teacher(6, 4, key(0))), 3, key(0), ()), "m = 3"),
        (lambda: threestage.initialise(5, 0, key(0)), "m = 0"),
        (lambda: threestage.initialise(5, 3, key(0), scale=0), "scale"),
        (lambda: threestage.planted(relu.random_teacher(6, 3, key(0)), 2, 0.1, key(0)), "m = 2"),
        (lambda: descend(ridge=-1.0), "ridge"),
        (lambda: descend(method="newton"), "method"),
        (lambda: descend(limit=0), "limit"),
        (lambda: descend(method="gradient", step=0), "step"),
        (lambda: descend(a=np.ones(2)), r"must be \(m,\)"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def descend(a=None, ridge=0.01, **options):
    rng = key(0)
    system = threestage.Population(relu.random_teacher(6, 2, rng))
    start, W = threestage.initialise(6, 3, rng)
    return threestage.descend(system, start if a is None else a, W, ridge, **options)
