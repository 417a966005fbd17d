"""Verdict rows, ledgers, stored numbers and tables."""

import pytest

from onestep import report
from runner import tables


@pytest.fixture
def verdicts():
    return report.Verdicts("07_example", claim="C9: an example", source="the example paper")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("ONESTEP_FIGURES", str(tmp_path))
    monkeypatch.setattr(report.session, "saved", [])
    return tmp_path


def test_results_table_shows_headlines_or_the_first_three(verdicts):
    for k in range(4):
        verdicts.agrees(f"row {k}", 1.0, 1.0, se=0.1)
    verdicts.control("|broken|", 2.0, 1.0, se=0.1)
    book = {"notebook": verdicts.notebook, "claim": verdicts.claim, "source": "s", "rows": verdicts.rows}
    assert [f"row {k}" in tables.results_table([book]) for k in range(4)] == [True, True, True, False]
    verdicts.rows[3]["headline"] = verdicts.rows[4]["headline"] = True
    lines = tables.results_table([book]).splitlines()
    assert len(lines) == 4
    assert "row 3" in lines[2]
    assert "control: \\|broken\\|" in lines[3]
