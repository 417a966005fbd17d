import numpy as np
import pytest

from onestep import Problem, simulate
from onestep.simulate.data import BeyondTheory, Rows, Sampler, beyond, departures, examine, prepared, whitened

P = Problem(60, 20, 30, teacher=(0.0, 1.0, 0.5), noise=0.2)


def gaussian(rng, size):
    return rng.standard_normal((size, 20))


def twins():
    return np.repeat(np.random.default_rng(0).standard_normal((9, 1)), 2, axis=1)


def rows(m=400, **kwargs):
    return Rows(np.random.default_rng(0).standard_normal((m, 20)), **kwargs)


def test_samples_are_disjoint_rows_and_keep_their_labels():
    X = np.arange(60.0).reshape(30, 2)
    data = Rows(X, y=X[:, 0] * 10)
    parts = data.samples(np.random.default_rng(1), [10, 12, 5])
    assert [len(x) for x, _ in parts] == [10, 12, 5]
    together = np.concatenate([x for x, _ in parts])
    assert len(np.unique(together[:, 0])) == 27
    for x, y in parts:
        np.testing.assert_array_equal(y, 10 * x[:, 0])
    other = data.samples(np.random.default_rng(2), [10, 12, 5])
    assert not np.array_equal(other[0][0], parts[0][0])


def test_gaussian_rows_give_what_gaussian_inputs_give():
    """The same law by another door: losses agree within their errors."""
    usual = simulate.losses(P, [0.0, 4.0], trials=300, seed=3, test_size=100)
    sampled = simulate.losses(P, [0.0, 4.0], trials=300, seed=4, test_size=100, data=Sampler(gaussian, 20))
    for kind in ("train", "test"):
        a, b = getattr(usual, kind), getattr(sampled, kind)
        error = np.sqrt((a.var(0) + b.var(0)) / 300)
        assert np.all(np.abs(a.mean(0) - b.mean(0)) < 4 * error)


def test_losses_on_own_rows_by_the_definition():
    data = rows(y=np.random.default_rng(1).standard_normal(400))
    got = simulate.losses(P, [0.0, 3.0], trials=2, seed=5, data=data, test_size=50)
    now = simulate.draw(P, simulate.key(5, 1), data=data, test_size=50)
    assert now.X3.shape == (50, 20)
    G = simulate.gradient(P, now)
    F, F3 = (P.student(X @ (now.W0 + 3.0 * G).T) for X in (now.X2, now.X3))
    a = np.linalg.solve(F.T @ F + P.ridge * P.n * np.eye(P.N), F.T @ now.y2)
    assert got.train[1, 1] == pytest.approx(np.mean((now.y2 - F @ a) ** 2) + P.ridge * a @ a, rel=1e-9)
    assert got.test[1, 1] == pytest.approx(np.mean((now.y3 - F3 @ a) ** 2), rel=1e-9)
    assert got.mean.test.dof[0] == 1


def test_a_sampler_may_bring_its_own_labels():
    def labelled(rng, size):
        X = rng.standard_normal((size, 20))
        return X, X[:, 0] ** 3

    data = Sampler(labelled, 20)
    now = simulate.draw(P, simulate.key(4), data=data, test_size=30)
    np.testing.assert_array_equal(now.y2, now.X2[:, 0] ** 3)
    np.testing.assert_array_equal(now.y3, now.X3[:, 0] ** 3)
    assert examine(data)
    assert not examine(Sampler(gaussian, 20))
    with pytest.raises(ValueError, match=r"data: must be simulate\.data\.Rows"):
        examine(np.ones((30, 20)))
    with pytest.raises(ValueError, match="redraws = 2: own labels"):
        simulate.losses(P, 1.0, data=data, test_size=9, redraws=2)


def test_a_teacher_labels_own_rows():
    now = simulate.draw(P.replace(noise=0.0), simulate.key(6), data=rows())
    np.testing.assert_allclose(now.y2, P.target(now.X2 @ now.beta_star))


def test_departures_of_gaussian_rows_vanish_and_others_are_detected():
    rng = np.random.default_rng(7)
    Z = rng.standard_normal((4000, 40))
    none = departures(Z)
    assert max(map(abs, vars(none).values())) < 0.7  # ‖mean‖² of 40 coordinates: ± √(2/40)
    assert abs(none.isotropy) < 0.005
    assert abs(none.tails) < 0.05
    assert departures(Z + 0.2).centre > 100
    assert departures(Z * np.linspace(0.5, 1.5, 40)).isotropy > 0.2
    assert departures(2 * Z).scale == pytest.approx(3, abs=0.1)
    assert departures(Z * rng.choice([0.5, 1.5], (4000, 1))).length > 1
    assert departures(Z * rng.choice([0.5, 1.5], (4000, 1))).tails > 1
    sphere = Z / np.linalg.norm(Z, axis=1, keepdims=True) * np.sqrt(40)
    assert departures(sphere).length == pytest.approx(-1, abs=1e-9)


def test_departures_along_the_learned_direction_need_labels():
    rng = np.random.default_rng(9)
    X = rng.standard_normal((4000, 40))
    X[:, 0] = rng.choice([-1, 1], 4000) * rng.choice([0.2, 1.4], 4000)  # a heavier tail along one direction alone
    assert departures(X).spike == departures(X).level == 0
    found = departures(X, 3 * X[:, 0] + 1.5)
    light = departures(np.sign(X), np.sign(X)[:, 0])
    assert light.spike < -1.5
    assert found.level == pytest.approx(0.5, abs=0.05)
    assert departures(X[:, 1:], X[:, 1]).spike == pytest.approx(0, abs=0.3)


def test_gaussian_rows_are_not_beyond_theory():
    rng = np.random.default_rng(10)
    for m, d in ((60, 20), (200, 100), (1000, 30), (100, 300), (20000, 5), (50, 1), (40, 400), (20, 300), (20, 4)):
        X = rng.standard_normal((m, d))
        assert not beyond(X, X[:, 0] + rng.standard_normal(m)), (m, d)


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (lambda X, g: X + 0.3, {"centre", "scale"}),
        (lambda X, g: X * np.linspace(0.5, 1.5, 40), {"isotropy", "scale"}),
        (lambda X, g: 1.1 * X, {"scale"}),
        (lambda X, g: X * np.sqrt(np.repeat([[0.4], [1.6]], 2000, axis=0)), {"length", "tails"}),
        (lambda X, g: g.standard_t(5, X.shape) / np.sqrt(5 / 3), {"length", "tails"}),
        (lambda X, g: np.eye(40)[g.integers(40, size=len(X))] * 40**0.5 * np.sign(X[:, :1]), {"products"}),
        (lambda X, g: np.where(g.random(X.shape) < 0.2, 2.0, -0.5), {"skewness"}),
        (lambda X, g: np.sign(X), set()),
        (lambda X, g: X / np.linalg.norm(X, axis=1, keepdims=True) * np.sqrt(40), set()),
    ],
)
def test_what_is_beyond_theory_is_named_with_its_number(change, names):
    rng = np.random.default_rng(11)
    X = change(rng.standard_normal((4000, 40)), rng)
    found = beyond(X)
    assert set(found) == names
    assert all(abs(number) > limit > 0 for number, limit in found.values())


def test_losses_warn_with_numbers():
    data = Rows(2 * np.random.default_rng(0).standard_normal((400, 20)))
    with pytest.warns(BeyondTheory, match=r"scale 3\.\d* \(limit 0\.1"):
        simulate.losses(P, 1.0, trials=1, data=data, test_size=9)


def test_whitening_is_not_advised_for_rows_that_are_white():
    rng = np.random.default_rng(0)
    data = Rows(prepared(rng.standard_normal((200, 20)) * np.linspace(0.5, 2.0, 20), "whiten"))
    with pytest.warns(
        BeyondTheory, match=r"isotropy -0\.105 .*To mend it: rows whitened by their own covariance: take more"
    ):
        simulate.losses(P, 1.0, trials=1, data=data, test_size=9)


def test_whitening_keeps_the_leading_directions():
    rng = np.random.default_rng(12)
    X = rng.standard_normal((500, 4)) * [5.0, 3.0, 1.0, 0.2]
    X = np.column_stack([X, X[:, 0] + X[:, 1]])
    white = whitened(X, X, keep=2)
    np.testing.assert_allclose(np.cov(white.T), np.eye(2), atol=1e-10)
    np.testing.assert_allclose(whitened(X, X, keep=4)[:, :2], white)
    near = whitened(X[:, :4], X[:, :4])  # turned back: as close to X as white rows can be
    assert np.all(np.diag(np.corrcoef(X[:, :4].T, near.T)[:4, 4:]) > 0.99)
    fit = X[:, :2] @ np.linalg.lstsq(X[:, :2], white, rcond=None)[0]
    assert np.mean((white - white.mean(0) - (fit - fit.mean(0))) ** 2) < 0.1  # nearly all of it lies in the large two


def test_whitening_makes_the_reference_white():
    rng = np.random.default_rng(8)
    X = rng.standard_normal((300, 5)) @ rng.standard_normal((5, 5)) + 3.0
    white = whitened(X, X)
    np.testing.assert_allclose(np.cov(white.T), np.eye(5), atol=1e-10)
    np.testing.assert_allclose(white.mean(0), 0, atol=1e-12)
    np.testing.assert_allclose(whitened(X[:7], X), white[:7])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Rows(np.ones((3, 2))), "X: column 0, 1 is constant"),
        (lambda: Rows([[1.0, 2.0], [np.nan, 3.0]]), "X: row 1 holds a number that is not finite"),
        (lambda: Rows([[1.0, 2.0], [3.0]]), "X: must be an array of real numbers"),
        (lambda: Rows(rows().X + 1j), "X: must be an array of real numbers"),
        (lambda: prepared(rows(20).X, "whiten"), r"X \(20, 20\): must have more rows than columns"),
        (lambda: Rows([1.0, 2.0]), r"X has shape \(2,\)"),
        (lambda: Rows([["a", "b"]]), "X: must be an array of real numbers"),
        (lambda: rows(y=np.ones(3)), "y has 3 labels for the 400 rows"),
        (lambda: rows(y=["a"] * 400), "y: must be an array of real numbers"),
        (lambda: simulate.draw(P, simulate.key(0), data=rows(100)), "X has 100 rows, but 60 . 60 = 120 are needed"),
        (lambda: simulate.draw(P.replace(d=3), simulate.key(0), data=rows()), "data has 20 columns, .* d = 3"),
        (lambda: simulate.losses(P, 1.0, data=rows()), "test_size = None"),
        (lambda: simulate.losses(P, 1.0, data=rows(y=np.arange(400.0) - 199.5), test_size=9, redraws=3), "redraws = 3"),
        (lambda: Sampler(gaussian, 0), "d = 0"),
        (lambda: Sampler(3, 2), "draw = 3"),
        (lambda: Sampler(gaussian, 7).samples(simulate.key(0), [4]), r"has shape \(4, 20\): must be \(4, 7\)"),
        (lambda: whitened(np.ones((3, 5)), np.ones((4, 5))), r"reference \(4, 5\)"),
        (lambda: whitened(twins(), twins()), "keep = None: the reference varies along 1 of its 2"),
        (lambda: whitened(twins(), twins(), keep=0), "keep = 0"),
        (
            lambda: Sampler(lambda rng, m: (gaussian(rng, m), np.ones(3)), 20).samples(simulate.key(0), [4]),
            "3 labels for",
        ),
        (lambda: Sampler(lambda rng, m: (gaussian(rng, m), ["a"] * m), 20).samples(simulate.key(0), [4]), "y of draw"),
        (lambda: departures(gaussian(np.random.default_rng(0), 9), np.ones(9)), "all 9 labels are 1"),
        (lambda: departures(gaussian(np.random.default_rng(0), 9), np.ones(8)), "y has 8 labels for the 9 rows"),
        (lambda: departures(np.ones((3, 2))), "number of rows of X = 3"),
        (lambda: Rows(np.ma.masked_greater(gaussian(np.random.default_rng(0), 9), 1.0)), "X: row 0, 1"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_whitened_components_do_not_depend_on_arbitrary_signs(monkeypatch):
    X = np.random.default_rng(5).standard_normal((60, 4)) @ np.diag([1.0, 2.0, 3.0, 4.0])
    first, usual = whitened(X[:30], X[30:], keep=3), np.linalg.eigh

    def flipped(matrix):
        values, vectors = usual(matrix)
        return values, vectors * [1, -1, -1, 1]

    monkeypatch.setattr(np.linalg, "eigh", flipped)
    np.testing.assert_array_equal(whitened(X[:30], X[30:], keep=3), first)


def test_prepared_rows_are_centred_or_white():
    rng = np.random.default_rng(4)
    X = np.column_stack([rng.standard_normal((50, 3)) @ rng.standard_normal((3, 3)) + 7.0, np.full(50, 2.0)])
    centred, white = prepared(X), prepared(X, "whiten")
    assert centred.shape == white.shape == (50, 3)
    np.testing.assert_allclose(centred.mean(0), 0, atol=1e-12)
    assert np.mean(centred**2) == pytest.approx(1)
    np.testing.assert_allclose(np.cov(white.T), np.eye(3), atol=1e-10)
    np.testing.assert_allclose(np.corrcoef(centred.T), np.corrcoef(X[:, :3].T))
    assert prepared(np.column_stack([X[:, :3], X[:, 0]]), "whiten").shape == (50, 3)
    units = np.array([1e-3, 1.0, 1e6, 1.0])  # of measurement, which must not matter
    np.testing.assert_allclose(prepared(X * units, "whiten"), white, atol=1e-8)
    for bad, message in (({"how": "scale"}, "how = 'scale'"), ({"X": np.ones((4, 2))}, "all rows are the same")):
        with pytest.raises(ValueError, match=message):
            prepared(**({"X": X} | bad))
