import numpy as np
import pytest

from onestep import Problem, simulate, theory

second_step = simulate.second_step
P = Problem(120, 30, 60, 0.1, teacher=(0.0, 1.0, 0.5), noise=0.3)


def test_two_steps_written_out():
    now, kept = simulate.draw(P, simulate.key(3, 0)), []
    W1 = now.W0 + 2 * simulate.gradient(P, now)
    for X, y in ((now.X, now.y), (now.X2, now.y2)):
        slopes = (X @ W1.T > 0) * y[:, None]
        kept.append(np.linalg.svd(W1 + 3 * now.a[:, None] * (slopes.T @ X) / P.n))
    run = second_step.outliers(P, 2.0, 3.0, count=2, trials=1, seed=3)
    for b, (_, values, right) in enumerate(kept):
        assert run.value[0, b] == pytest.approx(values[:2], rel=1e-9)
        assert run.ahead[0, b] == pytest.approx((right[:2] @ now.beta_star) ** 2, rel=1e-7)


def test_directions_written_out():
    p = P.replace(N=1)
    now = simulate.draw(p, simulate.key(4, 0))
    run = second_step.directions(P, 3, trials=1, seed=4)
    beta = now.X.T @ now.y / p.n
    for b, (X, y) in enumerate(((now.X, now.y), (now.X2, now.y2))):
        d = X.T @ (y * (X @ beta) ** 2) / p.n
        assert run.ahead[0, b, 2] == pytest.approx(now.beta_star @ d)
        assert run.square[0, b, 2] == pytest.approx(d @ d)
    assert run.square[0, 0, 0] == pytest.approx(beta @ beta)


def test_variates_of_directions_explain_the_overlap_and_have_mean_zero():
    run = second_step.directions(P, 2, trials=600, seed=9)
    assert np.all(np.abs(run.variates.mean(0)) < 4 * run.variates.std(0) / np.sqrt(600))
    assert np.corrcoef(run.variates[:, 0], run.ahead[:, 0, 0])[0, 1] == pytest.approx(1)
    raw, controlled = (np.var(x) for x in (run.ahead[:, 0, 1], _residuals(run.ahead[:, 0, 1], run.variates)))
    assert controlled < 0.3 * raw


def _residuals(values, variates):
    design = np.column_stack([np.ones(len(values)), variates])
    return values - design @ np.linalg.lstsq(design, values)[0]


@pytest.mark.slow
def test_outliers_lie_where_predicted():
    p, eta1, eta2 = P.scaled(480), 20.0, 40.0
    run = second_step.outliers(p, eta1, eta2, count=2, trials=16, seed=5)
    for b, batch in enumerate(theory.second_step.BATCHES):
        predicted = theory.second_step.outliers(p, eta1, eta2, batch=batch)
        ratio = run.value[:, b] / predicted.value
        assert np.all(np.abs(ratio.mean(0) - 1) < 0.06 + 4 * ratio.std(0) / np.sqrt(16))
        assert run.ahead[:, b, 0].mean() == pytest.approx(predicted.ahead[0], abs=0.03)


def test_first_stairs_are_those_of_the_span():
    p = P.scaled(400)
    run = second_step.first_stairs(p, 1.0, 1.0, trials=40, seed=6)
    train = run.train
    predicted = [p.rho**2, *(theory.second_step.span(p, 1.0, 1.0, batch=batch) for batch in theory.second_step.BATCHES)]
    ratio = (train[:, :1] - train[:, 1:]) / (theory.gains(p, 1).train / p.rho**2 * np.array(predicted))
    assert np.all(np.abs(ratio.mean(0) - 1) < 0.03 + 4 * ratio.std(0) / np.sqrt(40))
    assert len(run.variates) == 40
    change = train[:, 1] - train[:, 3]
    assert change.mean() > 5 * change.std() / np.sqrt(40)


def test_losses_written_out():
    now = simulate.draw(P, simulate.key(8, 0), test_size=3 * P.n)
    run = second_step.losses(P, 2.0, [0.0, 3.0], trials=1, seed=8)
    assert run.train[0, 0, 0] == run.train[0, 1, 0] and run.test[0, 0, 0] == run.test[0, 1, 0]
    W1 = now.W0 + 2 * simulate.gradient(P, now)
    for b, (X, y) in enumerate(((now.X, now.y), (now.X2, now.y2))):
        slopes = (X @ W1.T > 0) * y[:, None]
        F = P.student(now.X3 @ (W1 + 3 * now.a[:, None] * (slopes.T @ X) / P.n).T)
        fit = np.linalg.solve(F[: P.n].T @ F[: P.n] + P.ridge * P.n * np.eye(P.N), F[: P.n].T @ now.y3[: P.n])
        rest = now.y3 - F @ fit
        assert run.train[0, b, 1] == pytest.approx(np.mean(rest[: P.n] ** 2) + P.ridge * fit @ fit)
        assert run.test[0, b, 1] == pytest.approx(np.mean(rest[P.n :] ** 2))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: second_step.outliers(P, -1.0, 1.0), "eta1 = -1"),
        (lambda: second_step.outliers(P, 1.0, 1.0, count=0), "count = 0"),
        (lambda: second_step.first_stairs(P, 1.0, 0.0), "eta2 = 0"),
        (lambda: second_step.losses(P, 1.0, [1.0, np.nan]), r"eta2 = \[1.0"),
        (lambda: second_step.losses(P, 1.0, []), r"eta2 = \[\]"),
        (lambda: second_step.losses(P, 1.0, -1.0), "eta2 = -1"),
        (lambda: second_step.directions(P, 0), "count = 0"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
