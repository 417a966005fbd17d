import numpy as np
import pytest

from onestep import Problem, Study, simulate, study, theory

P = Problem(120, 40, 60, ridge=0.1, activation="tanh", teacher=(0.0, 1.0, 0.5), noise=0.3)
STEPS = [1.0, 4.0]
ROWS = np.random.default_rng(0).standard_normal((300, 40))


@pytest.fixture(scope="module")
def found():
    return study(P, STEPS, trials=40, seed=3)


def test_it_holds_what_theory_and_simulation_say(found):
    assert isinstance(found, Study)
    best = found.best_step
    np.testing.assert_allclose(found.eta, sorted([0.0, *STEPS, best.eta]))
    predicted, simulated = theory.losses(P, found.eta), simulate.losses(P, found.eta, trials=40, seed=3)
    for what in ("train", "test"):
        np.testing.assert_allclose(getattr(found.predicted, what), getattr(predicted, what), rtol=1e-3)
        np.testing.assert_array_equal(getattr(found.simulated, what).value, getattr(simulated.mean, what).value)
        assert np.all(getattr(found.simulated, what).se > 0)
    assert best.test < theory.losses(P, best.eta * np.array([0.7, 1.4])).test.min()
    assert best.test <= found.predicted.test.min() * (1 + 1e-6)
    assert found.best_ridge.eta == best.eta
    assert found.best_ridge.test == pytest.approx(theory.losses(P.replace(ridge=found.best_ridge.ridge), best.eta).test)
    assert found.best_ridge.test < best.test


def test_its_spikes_are_the_visible_ones_over_the_edge(found):
    assert [len(sizes) for sizes in found.spikes] == theory.visible(P, found.eta).tolist()
    largest = found.spikes[-1][0] * theory.spectra.features(P, found.eta[-1]).edge
    assert largest == pytest.approx(theory.spectra.feature_spikes(P, found.eta[-1]).value[0, 0])


def test_it_reads_as_a_table_with_conclusions(found):
    text = str(found)
    head, *rows = found.table()
    assert text == repr(found)
    assert "activation tanh, teacher 1 H1 + 0.5 H2, noise 0.3" in text
    assert "means of 40 replicates" in text
    assert head.count("simulated") == 2
    assert rows[0][:2] == ["0", "no step"]
    assert sum("best" in row[1] for row in rows) == 1
    assert all(" ± " in row[3] and " ± " in row[5] for row in rows)
    assert f"best linear predictor: test error {theory.best_linear(P):.4f}" in text
    assert f"best ridge at that step: {found.best_ridge.ridge:.3g}" in text
    assert "beyond may be better" not in text


def test_it_is_saved_with_its_numbers(found, tmp_path):
    found.save(tmp_path / "mine")
    assert {path.name for path in (tmp_path / "mine").iterdir()} == {"study.txt", "study.png", "study.npz"}
    assert (tmp_path / "mine/study.txt").read_text() == f"{found}\n"
    with np.load(tmp_path / "mine/study.npz") as numbers:
        np.testing.assert_array_equal(numbers["test_simulated"], found.simulated.test.value)
        np.testing.assert_array_equal(numbers["test_predicted"], found.predicted.test)
        assert numbers["spikes"].tolist() == [len(sizes) for sizes in found.spikes]
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ValueError, match="cannot be written"):
        found.save(tmp_path / "file")


@pytest.mark.slow
def test_predictions_alone_need_no_memory(tmp_path):
    far = P.scaled(3 * 10**9)
    messages = []
    found = study(far, far.n**0.2, trials=0, tell=messages.append)
    assert found.simulated is None
    assert messages == ["predicting"]
    assert "simulated" not in str(found)
    assert "errors were not calibrated for n = 3e+09, not 100 to 1000" in str(found)
    found.save(tmp_path)
    assert len(found.figure().axes[1].containers) == 0


def test_an_interrupted_simulation_leaves_the_predictions(monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    told = []
    monkeypatch.setattr(simulate, "losses", interrupted)
    with pytest.raises(KeyboardInterrupt):
        study(P, STEPS, tell=told.append)
    assert "best step: η" in told[-1] and "simulated" not in told[-1]


def test_a_study_is_saved_whole_or_not_at_all(found, tmp_path, monkeypatch):
    monkeypatch.setattr(np, "savez", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        found.save(tmp_path)
    assert not list(tmp_path.iterdir())


def test_own_labels_have_losses_and_accuracy_and_no_prediction(tmp_path):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((300, 40))
    data = simulate.data.Rows(X, np.sign(X[:, 0]))
    p = P.replace(n=100)
    found = study(p, [2.0], trials=4, data=data)
    assert isinstance(found, Study)
    assert found.predicted is None
    assert found.labels.startswith("own labels")
    assert np.all((found.simulated.accuracy.value > 0.5) & (found.simulated.accuracy.value <= 1))
    again = simulate.losses(p, [0.0, 2.0], trials=4, seed=0, test_size=100, data=data)
    np.testing.assert_array_equal(found.simulated.test.value, again.mean.test.value)
    assert "accuracy" in str(found)
    assert "initial output negligible" in str(found)
    with pytest.raises(ValueError, match="figure"):
        found.figure()
    (tmp_path / "study.png").touch()  # of another problem
    found.save(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"study.txt", "study.npz"}


@pytest.mark.slow
def test_an_activation_without_exact_averages_is_tested_on_fresh_samples():
    p, said = Problem(1000, 30, 50, activation="tanh"), []
    found = study(p, [31.6], trials=4, tell=said.append)
    assert "test errors on 10000 fresh samples" in said[1]
    np.testing.assert_allclose(found.simulated.test.value, found.predicted.test, rtol=0.3)


@pytest.mark.slow
def test_the_figure_of_a_problem_whose_best_step_is_none():
    p = Problem(100, 20, 10, teacher=(0.0, 0.1), noise=3.0)
    found = study(p, [0.0, 4.0], trials=0)
    assert found.best_step.eta == 0
    assert [text.get_text() for text in found.figure().axes[0].get_xticklabels()] == ["no step", "0.3"]


@pytest.mark.parametrize(
    ("p", "options", "message"),
    [
        (P, {"trials": 0, "data": simulate.data.Rows(ROWS)}, "trials = 0"),
        (P, {"data": ROWS}, "data: must be simulate.data.Rows"),
        (P, {"data": simulate.data.Rows(ROWS[:240])}, "none is left to test on; take n <= 119"),
        (3, {}, "p = 3: must be a Problem"),
        (P.replace(step_samples=50), {}, "step_samples = 50"),
        (P, {"trials": 1}, "trials = 1: must be 0, or at least 2"),
        (P, {"seed": -1}, "seed = -1"),
        (P, {"jobs": 0}, "jobs = 0"),
        (P, {"eta": [-1.0]}, "eta"),
        (P.scaled(10**7), {}, "not enough memory"),
        (P.replace(activation=(0.0, 0.0, 1.0)), {"trials": 0}, "c_1 = 0"),
        (P.replace(d=7), {"trials": 0}, "d = 7"),
    ],
)
def test_bad_input_is_named_before_anything_runs(p, options, message):
    with pytest.raises(ValueError, match=message):
        study(p, **options)


@pytest.mark.slow
def test_what_the_theory_does_not_cover_is_said_at_one_place():
    with pytest.warns(UserWarning, match=r"simulate\.losses") as caught:
        study(Problem(200, 30, 60, 0.1, teacher=(0, 0.5, 0.5)), trials=0)
    assert len({each.lineno for each in caught}) == 1
