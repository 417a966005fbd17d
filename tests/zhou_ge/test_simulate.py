import numpy as np
import pytest

from onestep.simulate import key
from onestep.zhou_ge import relu, simulate


@pytest.fixture
def rng():
    return key(0)


@pytest.fixture
def teacher(rng):
    return relu.random_teacher(7, 3, rng, correlation=0.3)


def test_empirical_gradient_against_differences(rng, teacher):
    system = simulate.sample(teacher, 60, rng)
    a, W = rng.standard_normal(5), rng.standard_normal((5, 7))
    _, by_second, by_first = system.gradient(a, W)
    for _ in range(4):
        da, dW = 1e-5 * rng.standard_normal(5), 1e-5 * rng.standard_normal((5, 7))
        change = (system.loss(a + da, W + dW) - system.loss(a - da, W - dW)) / 2
        # the loss has kinks, which the differences may cross
        assert da @ by_second + np.sum(dW * by_first) == pytest.approx(change, rel=1e-3)
    K, k = system.normal_equations(W)
    assert system.loss(a, W) == pytest.approx(a @ K @ a - 2 * a @ k + np.mean(system.y**2), rel=1e-10)


def test_samples_approach_the_population(rng, teacher):
    a, W = rng.standard_normal(4), rng.standard_normal((4, 7))
    exact = relu.Population(teacher).gradient(a, W)
    draws = [simulate.sample(teacher, 20_000, key(1, t)).gradient(a, W) for t in range(12)]
    for k, expected in enumerate(exact):
        samples = np.array([draw[k] for draw in draws]).reshape(12, -1)
        error = samples.std(axis=0, ddof=1) / np.sqrt(12)
        z = (samples.mean(axis=0) - np.ravel(expected)) / error
        assert np.sqrt(np.mean(z**2)) < 2 and np.abs(z).max() < 6  # 33 numbers, t with 11 degrees of freedom


def test_first_step_finds_the_subspace_and_forgets_the_start(rng):
    teacher = relu.random_teacher(200, 3, rng)
    a, W = simulate.initialise(200, 40, rng)
    step = simulate.first_step(relu.Population(teacher), a, W)
    assert np.mean(np.sum(step**2, axis=1)) == pytest.approx(1)
    assert simulate.subspace_energy(step, teacher) > 0.99 > 0.1 > simulate.subspace_energy(W, teacher)
    H = (teacher.directions.T * teacher.weights) @ teacher.directions
    cosine = np.vecdot(relu.polar(step)[1], relu.polar(np.sign(a)[:, None] * W @ H)[1])
    assert np.median(cosine) > 0.99  # H w, to leading order in 1/√d


def test_second_layer_is_the_minimiser_and_balancing_keeps_the_network(rng, teacher):
    W = rng.standard_normal((6, 7))
    system = relu.Population(teacher)
    a = simulate.fit_second_layer(system, W, 0.01)
    np.testing.assert_allclose(system.gradient(a, W)[1] + 0.01 * a, 0, atol=1e-13)
    b, V = simulate.balance(a, W)
    np.testing.assert_allclose(np.abs(b), np.linalg.norm(V, axis=1))
    assert system.loss(b, V) == pytest.approx(system.loss(a, W), rel=1e-12)
    decay = 0.01 * np.sum(np.abs(b) * np.linalg.norm(V, axis=1))
    assert simulate.objective(system, b, V, 0.01) == pytest.approx(system.loss(b, V) + decay)


def test_gradient_descent_is_the_loop_and_arrives_where_quasi_newton_does(teacher):
    system, start, options = relu.Population(teacher), simulate.planted(teacher, 6, 0.5, key(2)), {"method": "gradient"}
    a, W = start
    for _ in range(5):
        _, by_a, by_W = system.gradient(a, W)
        a, W = a - 0.5 * (by_a + 3e-3 * a), W - 0.5 * (by_W + 3e-3 * W)
    end = simulate.descend(system, *start, 3e-3, limit=5, step=0.5, **options)
    np.testing.assert_allclose(end.W, W, rtol=1e-12)
    assert not end.converged and not simulate.descend(system, *start, 3e-3, limit=3).converged
    slow, fast = (simulate.descend(system, *start, 3e-3, limit=20_000, **more) for more in (options, {}))
    assert slow.converged and fast.converged
    assert slow.loss == pytest.approx(fast.loss, rel=1e-4)


def test_a_descent_that_diverges_is_named(teacher):
    with pytest.raises(ArithmeticError, match=r"step = 1: the descent diverges; take a smaller step"):
        a, W = 30 * np.ones(4), np.ones((4, teacher.d))
        simulate.descend(relu.Population(teacher), a, W, 1e-3, method="gradient")


def test_unequal_decay_acts_like_its_geometric_mean(teacher):
    system, start = relu.Population(teacher), simulate.planted(teacher, 6, 0.3, key(3))
    same = simulate.descend(system, *start, 2e-3)
    unequal = simulate.descend(system, *start, (4e-3, 1e-3), tolerance=1e-8)
    assert unequal.loss == pytest.approx(same.loss, rel=1e-4)
    ratio = np.abs(unequal.a) / np.linalg.norm(unequal.W, axis=1)
    np.testing.assert_allclose(ratio[np.abs(unequal.a) > 1e-3], 0.5, rtol=1e-3)


@pytest.mark.parametrize("samples", [False, True])
def test_converged_networks_are_set_aside_and_change_nothing(teacher, samples):
    system = simulate.sample(teacher, 60, key(4)) if samples else relu.Population(teacher)
    a, W = simulate.planted(teacher, 4, 0.5, key(9), count=4)
    options = {"method": "gradient", "limit": 400, "tolerance": 3e-3}
    together = simulate.descend(system, a, W, 3e-3, **options)
    alone = [simulate.descend(system, *start, 3e-3, **options) for start in zip(a, W, strict=True)]
    for t, end in enumerate(alone):
        np.testing.assert_allclose(together.W[t], end.W, rtol=1e-9, atol=1e-12)
        assert together.loss[t] == pytest.approx(end.loss) and together.converged[t] == end.converged


def predict(system, a, W, X):
    """The network's output at inputs X, with the affine term that fits the samples of the system."""
    rest = system.labels - np.abs(system.X @ W.T) @ (a / 2)
    affine = np.linalg.lstsq(np.column_stack([np.ones(system.n), system.X]), rest)[0]
    return np.abs(X @ W.T) @ (a / 2) + np.column_stack([np.ones(len(X)), X]) @ affine


def test_samples_of_ones_own(rng, teacher):
    X = rng.standard_normal((60, 7))
    y = 3 + X @ np.arange(7) + np.abs(X @ teacher.directions.T) @ teacher.weights / 2
    own = simulate.Empirical(X, y)
    a, W = simulate.balance(teacher.weights, teacher.directions)
    assert own.loss(a, W) == pytest.approx(0, abs=1e-20)
    assert simulate.sample(teacher, 60, key(0)).loss(a, W) == pytest.approx(0, abs=1e-20)
    np.testing.assert_allclose(predict(own, a, W, X), y, rtol=1e-10)
    end = simulate.train(own, 6, rng, [3e-3])[-1]
    assert np.mean((predict(own, end.a, end.W, X) - y) ** 2) == pytest.approx(end.loss, rel=1e-9)


@pytest.mark.parametrize("trial", [2, 3, 7])
def test_descent_on_few_samples_goes_on_where_a_line_search_fails_at_a_kink(trial):
    rng, ridges = key(1, 8, 1, trial, 450), [3e-2, 3e-3]
    system = simulate.sample(relu.random_teacher(8, 1, rng), 36, rng)
    for end, ridge in zip(simulate.train(system, 6, rng, ridges), ridges, strict=True):
        assert end.converged
        again = simulate.descend(system, end.a, end.W, ridge)
        objectives = [simulate.objective(system, x.a, x.W, ridge) for x in (end, again)]
        assert objectives[1] == pytest.approx(objectives[0], rel=3e-3)


def test_measures_do_not_feel_signs_rotations_or_order(rng, teacher):
    a, W = simulate.planted(teacher, 9, 0.3, rng)
    rotation, order = np.linalg.qr(rng.standard_normal((7, 7)))[0], rng.permutation(9)
    turned = relu.Teacher(teacher.directions @ rotation, teacher.weights)
    angle = simulate.weighted_angle(a[order], -W[order] @ rotation, turned)
    assert angle == pytest.approx(simulate.weighted_angle(a, W, teacher))
    energy = simulate.subspace_energy(-W[order] @ rotation, turned)
    assert energy == pytest.approx(simulate.subspace_energy(W, teacher))


def test_angles_are_exact_when_tiny():
    teacher = relu.Teacher(np.eye(2, 3), [1.0, 1.0])
    angle = simulate.angles(np.array([[[0.0, -1.0, 1e-10], [1.0, 0.0, 0.0], [0.0, 0.0, 2.0]]]), teacher)[0]
    np.testing.assert_allclose(angle, [np.degrees(1e-10), 0, 90], rtol=1e-9)


def test_starts_have_their_lengths_and_several_at_once_the_law_of_single_ones(teacher):
    a, W = simulate.initialise(7, 4, key(5), scale=0.1, count=300)
    assert a.shape == (300, 4) and W.shape == (300, 4, 7)
    np.testing.assert_allclose(np.abs(a), 0.1)
    np.testing.assert_allclose(np.linalg.norm(W, axis=-1), 0.1)
    assert abs(a.mean()) < 0.01 and len(np.unique(W[:, 0, 0])) == 300
    system = relu.Population(teacher)
    for net in zip(*simulate.fitted(system, 5, key(6), count=2), strict=True):
        assert simulate.subspace_energy(net[1], teacher) > 0.8
    a, W = simulate.planted(teacher, 1200, 0.1, key(3))
    moved = W / np.linalg.norm(W, axis=1, keepdims=True) - teacher.directions[np.arange(1200) % 3]
    assert np.mean(np.sum(moved**2, axis=1)) == pytest.approx(0.01 * 6 / 7, rel=0.1)  # all but the radial part
    np.testing.assert_allclose(np.abs(a), np.linalg.norm(W, axis=1))
    assert system.loss(*simulate.planted(teacher, 8, 0.0, key(7))) == pytest.approx(0, abs=1e-14)


def descend(a=None, ridge=0.01, **options):
    rng = key(0)
    system = relu.Population(relu.random_teacher(6, 2, rng))
    start, W = simulate.initialise(6, 3, rng)
    return simulate.descend(system, start if a is None else a, W, ridge, **options)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: simulate.sample(relu.random_teacher(6, 2, key(0)), 7, key(0)), "n = 7"),
        (lambda: simulate.sample(relu.random_teacher(6, 2, key(0)), 9, key(0), noise=-1.0), "noise"),
        (lambda: simulate.Empirical(np.ones((9, 2)), np.ones(8)), r"must be \(n, d\) and \(n,\)"),
        (lambda: simulate.Empirical(np.ones((9, 2)), np.full(9, np.nan)), "finite"),
        (lambda: simulate.initialise(5, 0, key(0)), "m = 0"),
        (lambda: simulate.initialise(0, 5, key(0)), "d = 0"),
        (lambda: simulate.initialise(5, 3, key(0), scale=0), "scale"),
        (lambda: simulate.planted(relu.random_teacher(6, 3, key(0)), 2, 0.1, key(0)), "m = 2"),
        (lambda: descend(ridge=-1.0), "ridge"),
        (lambda: descend(method="newton"), "method"),
        (lambda: descend(limit=0), "limit"),
        (lambda: simulate.anneal(None, np.ones(1), np.eye(1), 0.1), "ridges = 0.1"),
        (lambda: descend(method="gradient", step=0), "step"),
        (lambda: descend(a=np.full(3, np.nan)), "a, W: must be finite"),
        (lambda: descend(a=np.ones(2)), r"must be \(m,\)"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
