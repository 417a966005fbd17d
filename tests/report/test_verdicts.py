"""Verdict rows and the ledger they are kept in."""

import json

import numpy as np
import pytest
import scipy

from onestep import report
from onestep.estimates import Estimate
from onestep.report import LEVEL


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("ONESTEP_FIGURES", str(tmp_path))
    monkeypatch.delenv("ONESTEP_PRESET", raising=False)
    monkeypatch.setattr(report.session, "saved", {})
    return tmp_path


@pytest.fixture
def verdicts():
    return report.Verdicts("07_example", claim="C9: an example", source="the example paper")


def ledger(folder):
    (path,) = folder.glob("*.json")
    return json.loads(path.read_text(encoding="utf-8"))


def passed(verdicts):
    return [row["passed"] for row in verdicts.rows]


@pytest.mark.parametrize("dof", [3.0, np.inf])
def test_agreement_reaches_as_far_as_students_t(verdicts, dof):
    t = scipy.stats.t.isf(LEVEL / 2, dof)
    for name, off in {"inside": 0.999, "below": -0.999, "outside": 1.001, "outside below": -1.001}.items():
        verdicts.agrees(name, 1.0, Estimate(1 + off * 0.01 * t, 0.01, dof))
    assert passed(verdicts) == [True, True, False, False]
    assert verdicts.rows[0]["resolution"] == pytest.approx(0.01 * t, rel=0.05)


def test_an_allowance_widens_the_tolerance_and_the_resolution(verdicts):
    t = scipy.stats.t.isf(LEVEL / 2, 50)
    verdicts.agrees("without", 2.0, Estimate(2 + 0.01 * t + 0.1, 0.01, 50.0))
    verdicts.agrees("with", 2.0, Estimate(2 + 0.01 * t + 0.1, 0.01, 50.0), allowance=0.101)
    assert passed(verdicts) == [False, True]
    assert verdicts.rows[1]["values"]["tolerance"] == pytest.approx(0.01 * t + 0.101, rel=1e-5)
    assert verdicts.rows[1]["resolution"] == pytest.approx((0.01 * t + 0.101) / 2, rel=0.05)
    with pytest.raises(ValueError, match=r"allowance 0\.21: must be from 0 to 0\.1 of 2"):
        verdicts.agrees("too wide", 2.0, Estimate(2.0, 0.01), allowance=0.21)


def test_noise_counts_against_bounds(verdicts):
    t = scipy.stats.t.isf(LEVEL / 2, 30)
    for name, check, value in (
        ("clear", verdicts.at_most, 1 - 1.001 * t),
        ("not clear", verdicts.at_most, 1 - 0.999 * t),
        ("clear above", verdicts.at_least, 1 + 1.001 * t),
        ("not clear above", verdicts.at_least, 1 + 0.999 * t),
    ):
        check(name, 1.0, Estimate(value, 1.0, 30.0))
    assert passed(verdicts) == [True, False, True, False]


@pytest.mark.parametrize("check", ["agrees", "at_most", "at_least"])
def test_noise_never_helps_a_control(verdicts, check):
    """With more and more noise a control must fail, whatever side chance puts the mean on."""
    wrong, broken = {"agrees": (2.0, 2.0), "at_most": (0.5, 1.5), "at_least": (1.5, 0.5)}[check]
    for k, se in enumerate((1e-3, 0.1, 0.3, 1.0, 10.0)):
        controls = [("broken", wrong), ("broken experiment", Estimate(broken, se, 40.0))]
        getattr(verdicts, check)(f"row {k}", 1.0, Estimate(1.0, se, 40.0), control=controls)
    controls = [row["passed"] for row in verdicts.rows if row["control"]]
    assert controls == [True, True, True, True] + [False] * 6


def test_success_is_a_binomial_bound(verdicts):
    lower = scipy.stats.beta.ppf(LEVEL, 60, 1)
    verdicts.succeeds("all of sixty", lower - 1e-9, [True] * 60)
    verdicts.succeeds("not shown by sixty", lower + 1e-9, [True] * 60)
    verdicts.succeeds("none", 0.01, [False] * 60)
    assert passed(verdicts) == [True, False, False]
    assert verdicts.rows[0]["measured"] == "60 of 60"
    assert verdicts.rows[0]["kind"] == "bound"


@pytest.mark.parametrize(
    ("measured", "message"),
    [
        (Estimate(float("nan"), 0.1), "value must be one finite number"),
        (Estimate(1.0, -1.0), "se and dof must be"),
        (Estimate(1.0, float("inf")), "se must be one finite number"),
        (Estimate(1.0, 0.1, 0.0), "se and dof must be"),
        ([1.0], "at least two finite numbers"),
        ([[1.0, 2.0]], "one dimension"),
        (1.0, "one dimension or an Estimate"),
    ],
)
def test_bad_measurements_are_refused(verdicts, measured, message):
    with pytest.raises(ValueError, match=f"gain: .*{message}"):
        verdicts.agrees("gain", 1.0, measured)
    assert verdicts.rows == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"allowance": -0.1}, "allowance -0.1"),
        ({"allowance": "x"}, "allowance must be one finite number, not 'x'"),
        ({"claimed": float("inf")}, "the claimed value must be one finite"),
        ({"claimed": 0.0}, "scale = 0: must be > 0"),
        ({"scale": 0.0}, "scale = 0: must be > 0"),
        ({"control": [("doubled", 2.0), ("none", float("nan"))]}, "none: the claimed value must be one finite"),
    ],
)
def test_bad_claims_are_refused(verdicts, options, message):
    with pytest.raises(ValueError, match=f"gain: {message}"):
        verdicts.agrees("gain", **({"claimed": 1.0, "measured": Estimate(1.0, 0.1)} | options))
    assert verdicts.rows == []


@pytest.mark.parametrize("successes", [[], [1], [np.nan, 1, 1], [0.3, 1], [[1, 0, 1]]])
def test_bad_successes_are_refused(verdicts, successes):
    with pytest.raises(ValueError, match="gain: successes must be True or False"):
        verdicts.succeeds("gain", 0.5, successes)
    with pytest.raises(ValueError, match="gain: rate = 2"):
        verdicts.succeeds("gain", 2, [1, 1])


def test_other_refusals(verdicts):
    with pytest.raises(ValueError, match="14_gains"):
        report.Verdicts("Gains", claim="", source="")
    verdicts.agrees("fact", 1.0, Estimate(1.0, 0.1))
    with pytest.raises(ValueError, match="gain: all samples are 2: without noise"):
        verdicts.agrees("gain", 2.0, [2.0, 2.0, 2.0])
    for row in (verdicts.agrees, verdicts.at_most):
        with pytest.raises(ValueError, match="already"):
            row("fact", 1.0, Estimate(1.0, 0.1))
    with pytest.raises(ValueError, match="'fact' has no negative control"):
        verdicts.conclude()
    with pytest.raises(ValueError, match="07_empty has no verdicts"):
        report.Verdicts("07_empty", claim="", source="").conclude()


def test_at_quick_sizes_what_noise_hides_is_not_judged_and_what_is_refuted_fails(verdicts, monkeypatch):
    monkeypatch.setenv("ONESTEP_PRESET", "quick")
    noisy, sharp = Estimate(1.0, 0.3, 50.0), Estimate(1.0, 0.01, 50.0)
    verdicts.agrees("too noisy for its control", 1.0, noisy, control=("larger", 1.1))
    verdicts.agrees("one control is rejected", 1.0, sharp, control=[("larger", 1.1), ("hardly larger", 1.001)])
    verdicts.agrees("wrong", 2.0, sharp, control=("larger", 3.0))
    verdicts.at_most("neither shown nor refuted", 0.9, noisy, control=("larger", 5.0 + noisy))
    verdicts.at_least("refuted", 2.0, sharp, control=("none", 0.0 * noisy))
    verdicts.succeeds("too few", 0.8, [True] * 6, control=("none", [False] * 60))
    verdicts.succeeds("hardly any", 0.8, [False] * 60, control=("none", [False] * 60))
    verdicts.conclude()
    open_, refuted = "not judged at quick", "FAILS"
    assert [row["verdict"] for row in verdicts.rows if not row["control"]] == [
        *(open_, "holds", refuted, open_, refuted, open_, refuted)
    ]
    assert [row["verdict"] for row in verdicts.rows if row["control"]][:3] == [open_, "control rejected", open_]
    assert passed(verdicts).count(False) == 3
    monkeypatch.delenv("ONESTEP_PRESET")
    verdicts.agrees("elsewhere", 1.0, noisy, control=("larger", 1.1))
    assert verdicts.rows[-1]["verdict"] == "HOLDS, BUT MUST NOT"


def test_failing_rows_are_named_with_their_gap(verdicts, folder, monkeypatch):
    verdicts.agrees("gain", 1.0, Estimate(1.5, 0.1), control=("broken", 1.6))
    with pytest.raises(AssertionError, match=r"gain: .* off by 0\.50 where 0\.4\d is allowed: FAILS; .*MUST NOT"):
        verdicts.conclude()
    assert not all(row["passed"] for row in ledger(folder)["rows"])
    monkeypatch.setenv("ONESTEP_PRESET", "seeds/101")
    verdicts.conclude()


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.29, "0.2900"),
        (0, "0"),
        (np.int64(12), "12"),
        (12345.6, "12350"),
        (1.5e-7, "1.500e-07"),
        (Estimate(0.29, 0.0123), "0.290 ± 0.012"),
    ],
)
def test_numbers_as_text(number, text):
    assert report.shown(number) == text


def test_a_row_carries_its_controls(verdicts, folder, capsys):
    verdicts.agrees("gain", 1.0, Estimate(1.0, 0.01), control=[("doubled", 2.0), ("no step", Estimate(0.0, 0.01))])
    verdicts.at_most("loss", 1.0, [0.5, 0.51, 0.49] * 9, control=("untrained", [1.5, 1.51, 1.49] * 9))
    verdicts.succeeds("recovered", 0.5, [True] * 60, control=("without stage 1", [False] * 60))
    verdicts.conclude()
    shown = capsys.readouterr().out
    assert "| doubled: 2.000, rejected; no step: 0.000 ± 0.010, rejected\n" in shown
    assert "| without stage 1: 0 of 60, rejected\n" in shown
    assert "control: " not in shown
    rows = ledger(folder)["rows"]
    assert [row["kind"] for row in rows].count("control") == 4
    assert all(row["passed"] and not row["headline"] for row in rows)
    assert rows[1]["quantity"] == "gain: doubled"


def test_a_widened_error_is_disclosed(verdicts):
    verdicts.agrees("wide", 1.0, Estimate(1.0, 0.1, 5.0, chi2=7.25, spare=2))
    verdicts.agrees("narrow", 1.0, Estimate(1.0, 0.1, 5.0, chi2=1.5, spare=2))
    wide, narrow = (row["tolerance"] for row in verdicts.rows)
    assert wide == f"{narrow} (widened, χ² 7.2 on 2)"


@pytest.mark.parametrize("control", [("no value",), [1.0], ["name", 2.0], (2.0, "name"), 0.0])
def test_malformed_controls_are_refused(verdicts, control):
    with pytest.raises(ValueError, match=r"gain: control = .*: must be a pair"):
        verdicts.agrees("gain", 1.0, Estimate(1.0, 0.1), control=control)
