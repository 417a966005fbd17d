"""Verdict rows, ledgers, stored numbers and tables."""

import json

import matplotlib.pyplot as plt
import numpy as np
import pytest
from PIL import Image

from onestep import report


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("ONESTEP_FIGURES", str(tmp_path))
    monkeypatch.setattr(report, "_saved", [])
    return tmp_path


@pytest.fixture
def verdicts():
    return report.Verdicts("07_example", claim="C9: an example", source="the example paper")


def passed(verdicts):
    return [row["passed"] for row in verdicts.rows]


def test_agreement_is_counted_in_standard_errors(verdicts):
    verdicts.agrees("inside", 1.0, 1.29, se=0.1)
    verdicts.agrees("outside", 1.0, 1.31, se=0.1)
    verdicts.agrees("outside below", 1.0, 0.69, se=0.1)
    verdicts.agrees("allowed", 1.0, 1.31, se=0.1, allowance=0.02)
    verdicts.agrees("stricter", 1.0, 1.29, se=0.1, z=2)
    assert passed(verdicts) == [True, False, False, True, False]


def test_samples_give_mean_and_standard_error(verdicts):
    samples = np.array([1.0, 2.0, 3.0, 6.0])
    se = samples.std(ddof=1) / 2
    verdicts.agrees("just inside", 3.0 + 2.999 * se, samples)
    verdicts.agrees("just outside", 3.0 + 3.001 * se, samples)
    assert passed(verdicts) == [True, False]
    assert verdicts.rows[0]["measured"] == "3.000 ± 1.1"


def test_noise_counts_against_one_sided_claims(verdicts):
    verdicts.at_most("clear", 1.0, 0.69, se=0.1)
    verdicts.at_most("not clear", 1.0, 0.71, se=0.1)
    verdicts.at_least("clear above", 1.0, 1.31, se=0.1)
    verdicts.at_least("not clear above", 1.0, 1.29, se=0.1)
    assert passed(verdicts) == [True, False, True, False]


@pytest.mark.parametrize("measured", [0.5, 1.0, 1.5])
@pytest.mark.parametrize("kind", ["", "_at_most", "_at_least"])
def test_a_control_passes_exactly_when_the_check_fails(verdicts, kind, measured):
    check = {"": verdicts.agrees, "_at_most": verdicts.at_most, "_at_least": verdicts.at_least}[kind]
    check("it", 1.0, measured, se=0.1)
    getattr(verdicts, f"control{kind}")("it", 1.0, measured, se=0.1)
    ordinary, control = passed(verdicts)
    assert control is not ordinary


@pytest.mark.parametrize(
    ("measured", "se", "message"),
    [
        (float("nan"), 0.1, "measured must be one finite number"),
        (1.0, None, "needs its standard error"),
        (1.0, -1.0, "se must be ≥ 0"),
        (1.0, float("inf"), "se must be one finite number"),
        ([1.0], None, "at least two finite numbers"),
        ([1.0, float("nan")], None, "at least two finite numbers"),
        ([[1.0, 2.0]], None, "one dimension"),
        ([1.0, 2.0], 0.1, "not both"),
        ("1.0", 0.1, "measured must be one finite number"),
    ],
)
def test_bad_measurements_are_refused(verdicts, measured, se, message):
    with pytest.raises(ValueError, match=f"gain: .*{message}"):
        verdicts.agrees("gain", 1.0, measured, se=se)
    assert verdicts.rows == []


@pytest.mark.parametrize("options", [{"allowance": -0.1}, {"z": 0}, {"z": float("nan")}, {"predicted": float("inf")}])
def test_bad_tolerances_are_refused(verdicts, options):
    with pytest.raises(ValueError, match="gain"):
        verdicts.agrees("gain", **({"predicted": 1.0, "measured": 1.0, "se": 0.1} | options))


def test_other_refusals(verdicts):
    with pytest.raises(ValueError, match="07_gains"):
        report.Verdicts("Gains", claim="", source="")
    with pytest.raises(ValueError, match="True or False"):
        verdicts.check("fact", "yes", "no", passed="no")
    verdicts.check("fact", "yes", "no", passed=False)
    with pytest.raises(ValueError, match="already"):
        verdicts.check("fact", "yes", "yes", passed=True)
    with pytest.raises(ValueError, match="no negative control"):
        verdicts.conclude()


def test_ledger_is_written_and_the_table_shown(verdicts, folder, monkeypatch, capsys):
    monkeypatch.setenv("ONESTEP_PARAMETERS", '{"n": 100}')
    fig, ax = plt.subplots()
    ax.plot([1, 2])
    report.save(fig, "07_picture", x=[1.0, 2.0])
    plt.close(fig)
    verdicts.agrees("gain", 1.0, 1.1, se=0.1)
    verdicts.control("gain", 2.0, 1.1, se=0.1)
    verdicts.conclude()
    assert "control: gain" in capsys.readouterr().out
    (book,) = report.ledgers(folder)
    assert book["parameters"] == {"n": 100}
    assert book["figures"] == ["07_picture"]
    assert [row["verdict"] for row in book["rows"]] == ["holds", "fails, as it must"]


def test_failing_rows_are_named_with_their_gap(verdicts, folder):
    verdicts.agrees("gain", 1.0, 1.5, se=0.1)
    verdicts.control("broken", 1.0, 1.1, se=0.1)
    with pytest.raises(
        AssertionError, match=r"gain: .* off by 0\.50 where 0\.30 is allowed: FAILS; control: broken: .*MUST NOT"
    ):
        verdicts.conclude()
    assert not all(row["passed"] for row in report.ledgers(folder)[0]["rows"])


def test_saved_files_are_the_same_bytes_each_time(folder):
    def save():
        report.style()
        fig, ax = plt.subplots()
        ax.plot([1, 2, 3], label="theory")
        ax.legend()
        report.save(fig, "07_picture", x=np.linspace(0, 1, 5), label="theory")
        plt.close(fig)
        return {path.name: path.read_bytes() for path in folder.iterdir()}

    with plt.rc_context():
        first = save()
        assert save() == first
    assert sorted(first) == ["07_picture.npz", "07_picture.pdf", "07_picture.png"]
    assert b"Software" not in first["07_picture.png"]
    assert b"CreationDate" not in first["07_picture.pdf"]


def test_animations_are_the_same_bytes_each_time_and_play(folder, capsys):
    fig, ax = plt.subplots(figsize=(2, 2), dpi=50)
    drawn = []

    def draw(k):
        drawn.append(k)
        ax.clear()
        ax.plot([0, 1], [0, k])

    def animate(frames=4):
        report.animate(fig, draw, frames, "07_moving", seconds=1.0, x=1.0)
        return {path.name: path.read_bytes() for path in folder.iterdir()}

    first = animate()
    assert animate() == first
    assert sorted(first) == ["07_moving.npz", "07_moving.pdf", "07_moving.png"]
    assert drawn == [0, 1, 2, 3] * 2
    with Image.open(folder / "07_moving.png") as picture:
        assert picture.n_frames == 4
        assert picture.info["loop"] == 0
    with pytest.raises(ValueError, match="at least 2 frames"):
        animate(frames=1)
    plt.close(fig)


def test_stored_numbers_carry_their_parameters_and_six_digits(folder, monkeypatch):
    monkeypatch.setenv("ONESTEP_PARAMETERS", '{"n": 100}')
    numbers = np.array([0.0, 1 / 3, -1e-300 / 3, 2e300 / 3, np.nan, np.inf])
    fig = plt.figure()
    report.save(fig, "07_picture", x=numbers, n=np.array([3, 4]), drift=numbers * (1 + 1e-12))
    plt.close(fig)
    with np.load(folder / "07_picture.npz", allow_pickle=False) as stored:
        assert json.loads(str(stored["parameters"])) == {"n": 100}
        np.testing.assert_allclose(stored["x"], numbers, rtol=1e-5)
        np.testing.assert_array_equal(stored["x"], stored["drift"])
        np.testing.assert_array_equal(stored["n"], [3, 4])


def test_save_refuses_what_it_cannot_keep(folder):
    fig = plt.figure()
    with pytest.raises(ValueError, match="no arrays"):
        report.save(fig, "07_picture")
    with pytest.raises(ValueError, match="pickle"):
        report.save(fig, "07_picture", x=np.array([None]))
    with pytest.raises(ValueError, match="two digits"):
        report.save(fig, "figures/07.png", x=1.0)
    plt.close(fig)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.29, "0.2900"),
        (0, "0"),
        (0.0, "0"),
        (3, "3"),
        (np.int64(12), "12"),
        (1234.5, "1234"),
        (12345.6, "12350"),
        (1.5e-7, "1.500e-07"),
        (-0.123456, "-0.1235"),
        (2e9, "2.000e+09"),
    ],
)
def test_digits(number, text):
    assert report.digits(number) == text


def test_results_table_shows_headlines_or_the_first_three(verdicts):
    for k in range(4):
        verdicts.agrees(f"row {k}", 1.0, 1.0, se=0.1)
    verdicts.control("|broken|", 2.0, 1.0, se=0.1)
    book = {"notebook": verdicts.notebook, "claim": verdicts.claim, "source": "s", "rows": verdicts.rows}
    assert [f"row {k}" in report.results_table([book]) for k in range(4)] == [True, True, True, False]
    verdicts.rows[3]["headline"] = verdicts.rows[4]["headline"] = True
    lines = report.results_table([book]).splitlines()
    assert len(lines) == 4
    assert "row 3" in lines[2]
    assert "control: \\|broken\\|" in lines[3]
