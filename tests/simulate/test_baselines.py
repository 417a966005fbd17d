import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge

from onestep import Problem, simulate
from onestep.simulate.baselines import RBF, ArcCosine, Power

SMALL = Problem(n=20, d=6, N=5, teacher=(0, 1, 0.4, 0.2), noise=0.3)
EXACT = [RBF(0.7), RBF(2.0), Power(2), Power(3)]


def both_samples(p, seed, trial=0):
    rng = simulate.key(seed, trial)
    now = simulate.draw(p, rng)
    return now, np.concatenate([now.X, now.X2]), np.concatenate([now.y, now.y2]), rng


@pytest.mark.parametrize("kernel", EXACT, ids=repr)
def test_population_averages_are_those_of_a_large_sample(kernel):
    now, X, _, rng = both_samples(SMALL, 1)
    X = X[:5]
    twice, once = kernel.averages(X, SMALL.target, now.beta_star)
    Z = rng.standard_normal((400_000, SMALL.d))
    values, labels = kernel.matrix(Z, X), SMALL.target(Z @ now.beta_star)
    for i in range(5):
        samples = values[:, i] * labels
        assert abs(samples.mean() - once[i]) < 4 * samples.std() / np.sqrt(len(Z))
        for j in range(5):
            samples = values[:, i] * values[:, j]
            assert abs(samples.mean() - twice[i, j]) < 4 * samples.std() / np.sqrt(len(Z))


def test_arc_cosine_kernels_are_averages_over_relu_neurons():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((3, 4))
    w = rng.standard_normal((1_000_000, 4)) / 2
    pre = w @ X.T
    features, active = np.maximum(pre, 0), (pre > 0) * 1.0
    random_features = 2 * features.T @ features / len(w)
    tangent = random_features + 2 * (active.T @ active / len(w)) * (X @ X.T) / 4
    np.testing.assert_allclose(ArcCosine().matrix(X, X), random_features, rtol=0.02, atol=3e-3)
    np.testing.assert_allclose(ArcCosine(tangent=True).matrix(X, X), tangent, rtol=0.02, atol=3e-3)


@pytest.mark.parametrize(
    ("kernel", "theirs"),
    [
        (RBF(0.7), {"kernel": "rbf", "gamma": 1 / (2 * 0.7**2 * 6)}),
        (Power(3), {"kernel": "poly", "gamma": 1 / 6, "coef0": 1, "degree": 3}),
    ],
    ids=repr,
)
def test_fits_are_those_of_scikit_learn(kernel, theirs):
    _, X, y, _ = both_samples(SMALL, 4)
    Z = simulate.key(5).standard_normal((300, SMALL.d))
    fit = KernelRidge(alpha=len(X) * 0.02, **theirs).fit(X, y)
    ours = kernel.matrix(Z, X) @ np.linalg.solve(kernel.matrix(X, X) + len(X) * 0.02 * np.eye(len(X)), y)
    np.testing.assert_allclose(ours, fit.predict(Z), rtol=1e-9, atol=1e-12)


def test_kernels_have_their_formulas():
    X, Z = np.array([[1.0, 2.0]]), np.array([[0.5, -1.0]])
    assert RBF(0.5).matrix(X, Z)[0, 0] == pytest.approx(np.exp(-(0.5**2 + 3**2) / (2 * 0.25 * 2)))
    assert Power(3).matrix(X, Z)[0, 0] == pytest.approx((1 + (0.5 - 2) / 2) ** 3)


@pytest.mark.parametrize("kernel", [*EXACT, ArcCosine()], ids=repr)
def test_kernel_ridge_is_the_stated_minimiser_on_all_labels(kernel):
    penalties = np.array([0.003, 0.1])
    errors = simulate.baselines.kernel_ridge(SMALL, kernel, penalties, trials=1, seed=3, test_size=60_000).test[0]
    now, X, y, _ = both_samples(SMALL, 3)
    Z = simulate.key(99, 0).standard_normal((60_000, SMALL.d))
    for penalty, error in zip(penalties, errors, strict=True):
        weights = np.linalg.solve(kernel.matrix(X, X) + 2 * SMALL.n * penalty * np.eye(2 * SMALL.n), y)
        squares = (SMALL.target(Z @ now.beta_star) - kernel.matrix(Z, X) @ weights) ** 2 + SMALL.noise**2
        assert abs(squares.mean() - error) < 6 * squares.std() / np.sqrt(len(Z))


def test_the_control_variate_of_a_fresh_sample_takes_nothing_away():
    """A teacher with c⋆1 far from 1, and a test sample so large that any bias shows."""
    p = SMALL.replace(teacher=(0, 0.4, 0.5))
    error = simulate.baselines.kernel_ridge(p, ArcCosine(), [0.05], trials=1, seed=3, test_size=40_000).test[0, 0]
    now, X, y, _ = both_samples(p, 3)
    Z = simulate.key(98, 0).standard_normal((40_000, p.d))
    weights = np.linalg.solve(ArcCosine().matrix(X, X) + 0.05 * len(X) * np.eye(len(X)), y)
    squares = (p.target(Z @ now.beta_star) - ArcCosine().matrix(Z, X) @ weights) ** 2 + p.noise**2
    assert abs(squares.mean() - error) < 6 * squares.std() / np.sqrt(len(Z)) < 0.1


def test_a_quadratic_kernel_learns_a_quadratic():
    p = Problem(n=200, d=4, N=4, teacher=(0, 0, 1))
    quadratic = simulate.baselines.kernel_ridge(p, Power(2), [1e-6], trials=2, seed=4).test
    assert quadratic.max() < 1e-3


def test_results_depend_on_the_seed_and_not_on_the_jobs():
    def run(**options):
        return simulate.baselines.kernel_ridge(SMALL, ArcCosine(), [0.1], trials=3, test_size=50, **options).test

    np.testing.assert_array_equal(run(seed=1, jobs=1), run(seed=1, jobs=2))
    assert not np.allclose(run(seed=1), run(seed=2))


@pytest.mark.parametrize(
    ("argument", "value"),
    [("penalties", [0]), ("penalties", [np.inf]), ("trials", 0), ("seed", 1.5), ("kernel", "rbf"), ("test_size", 0)],
)
def test_bad_arguments_are_named(argument, value):
    arguments = {"kernel": Power(2), "penalties": [0.1], argument: value}
    with pytest.raises(ValueError, match=argument):
        simulate.baselines.kernel_ridge(SMALL, **arguments)


@pytest.mark.parametrize(("build", "argument"), [(lambda: RBF(0.0), "width"), (lambda: Power(4), "degree")])
def test_bad_kernels_are_refused(build, argument):
    with pytest.raises(ValueError, match=argument):
        build()
