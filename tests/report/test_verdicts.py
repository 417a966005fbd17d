"""Verdict rows and the ledger they are kept in."""

import json

import matplotlib.pyplot as plt
import numpy as np
import pytest

from onestep import report


@pytest.fixture
def verdicts():
    return report.Verdicts("07_example", claim="C9: an example", source="the example paper")


def ledger(folder):
    (path,) = folder.glob("*.json")
    return json.loads(path.read_text(encoding="utf-8"))


def passed(verdicts):
    return [row["passed"] for row in verdicts.rows]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("ONESTEP_FIGURES", str(tmp_path))
    monkeypatch.setattr(report.session, "saved", [])
    return tmp_path


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
    book = ledger(folder)
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
    assert not all(row["passed"] for row in ledger(folder)["rows"])


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
