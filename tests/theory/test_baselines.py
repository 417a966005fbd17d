import numpy as np
import pytest
from scipy import optimize

from onestep import Problem, simulate, theory

P = Problem(n=400, d=200, N=300, teacher="shifted_relu", noise=0.2)


def ridge_error(p, samples, penalty):
    """Bias and variance of ridge regression on an explicit sample, averaged over labels."""
    X = np.random.default_rng(5).standard_normal((samples, p.d))
    values = np.linalg.eigvalsh(X.T @ X / samples)
    rest = theory.best_linear(p)
    bias = p.target.linear**2 * np.mean((penalty / (values + penalty)) ** 2)
    return rest + bias + rest * np.sum(values / (values + penalty) ** 2) / samples


@pytest.mark.parametrize("samples", [300, 800, 4000])
@pytest.mark.parametrize("least", [0.0, 2.0])
def test_linear_ridge_is_the_best_penalty_on_explicit_matrices(samples, least):
    found = optimize.minimize_scalar(
        lambda x: ridge_error(P, samples, least + np.exp(x)), bounds=(-12, 5), method="bounded"
    )
    assert theory.baselines.linear_ridge(P, samples, least=least) == pytest.approx(found.fun, rel=0.01)


def test_linear_ridge_agrees_with_the_random_features_limit_of_a_linear_network():
    p = Problem(n=1000, d=300, N=10**9, ridge=0.1, activation=(0, 1), teacher=(0, 1, 0.5), noise=0.5)
    ridges = np.geomspace(1e4, 1e8, 1001)  # features carry N/d times the power of x
    best = min(theory.untrained_limit(p.replace(ridge=float(ridge))).test for ridge in ridges)
    assert theory.baselines.linear_ridge(p, p.n) == pytest.approx(best, rel=1e-4)


def test_linear_ridge_has_its_limits():
    assert theory.baselines.linear_ridge(P, 10**9) == pytest.approx(theory.best_linear(P), rel=1e-6)
    assert theory.baselines.linear_ridge(P, 1e-6) == pytest.approx(P.label_power, rel=1e-6)
    quadratic = P.replace(teacher=(0, 0, 1))
    assert theory.baselines.linear_ridge(quadratic, 800) == theory.best_linear(quadratic)


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (simulate.baselines.Power(2), 1 / 2),
        (simulate.baselines.Power(3), 4 / 3),
        (simulate.baselines.RBF(1.0), np.e - 2),
        (simulate.baselines.ArcCosine(), 1 - 2 / np.pi),
        (simulate.baselines.ArcCosine(tangent=True), 1 - 1 / np.pi),
    ],
    ids=repr,
)
def test_implicit_ridge_of_known_kernels(kernel, expected):
    assert theory.baselines.implicit_ridge(kernel.matrix) == pytest.approx(expected, rel=1e-5)


def test_kernel_ridge_tends_to_ridge_with_the_implicit_penalty():
    kernel, gaps = simulate.baselines.Power(3), []
    for d in (40, 160):
        p = Problem(n=3 * d, d=d, N=d, teacher=(0, 1), noise=0.5)
        penalty = theory.baselines.implicit_ridge(kernel.matrix) * d / (2 * p.n)
        measured = simulate.baselines.kernel_ridge(p, kernel, [1e-9], trials=1600 // d, seed=6).test.mean()
        gaps.append(abs(measured - theory.baselines.linear_ridge(p, 2 * p.n, least=penalty)))
    assert gaps[1] < 0.02
    assert gaps[1] < gaps[0]


def test_the_conventions_of_ba_et_al_are_ours():
    """Their network aᵀσ(Wx)/√N, step η√N G0 and penalty (λ/N)‖a‖², on one draw, up to their O(1/√N) output."""
    p = Problem(n=300, d=60, N=1500, ridge=0.02, activation="tanh", teacher="erf", noise=0.1, first_layer="gaussian")
    now, eta = simulate.draw(p, simulate.key(8, 0)), 5.0
    pre = now.X @ now.W0.T
    residual = now.y - np.tanh(pre) @ now.a / np.sqrt(p.N)
    G0 = (now.a[:, None] / np.sqrt(p.N)) * ((residual[:, None] * p.student.derivative(pre)).T @ now.X) / p.n
    features = np.tanh(now.X2 @ (now.W0 + eta * np.sqrt(p.N) * G0).T) / np.sqrt(p.N)
    a = np.linalg.solve(features.T @ features / p.n + p.ridge / p.N * np.eye(p.N), features.T @ now.y2 / p.n)
    train = np.mean((now.y2 - features @ a) ** 2) + p.ridge / p.N * a @ a
    ours = simulate.losses(p, [0.0, eta], trials=1, seed=8).train[0]
    assert train == pytest.approx(ours[1], rel=2e-3)
    assert abs(ours[0] - ours[1]) > 10 * abs(train - ours[1])


@pytest.mark.parametrize(("samples", "least", "name"), [(0, 0.0, "samples"), (10, -1.0, "least")])
def test_bad_arguments_are_named(samples, least, name):
    with pytest.raises(ValueError, match=name):
        theory.baselines.linear_ridge(P, samples, least=least)
    with pytest.raises(ValueError, match=name):
        theory.baselines.linear_ridge(P.replace(teacher=(0.0, 0.0, 1.0)), samples, least=least)
