"""Tables of results from ledgers."""

import pytest

from onestep import report
from onestep.estimates import Estimate
from runner import tables


@pytest.fixture
def book():
    verdicts = report.Verdicts("07_example", claim="C9: an example", source="the example paper")
    verdicts.consistent("formula", 1.0, 1.0, 1e-3)
    for k in range(4):
        verdicts.agrees(f"row {k}", 1.0, Estimate(1.0, 0.01))
    verdicts.control("|broken|", of="row 3", claimed=2.0)
    return {"notebook": verdicts.notebook, "claim": verdicts.claim, "source": "s", "rows": verdicts.rows}


def test_results_table_shows_headlines_or_the_first_three_measurements(book):
    assert [f"row {k}" in tables.results_table([book]) for k in range(4)] == [True, True, True, False]
    assert "formula" not in tables.results_table([book])
    book["rows"][4]["headline"] = book["rows"][5]["headline"] = True
    lines = tables.results_table([book]).splitlines()
    assert len(lines) == 4
    assert "| row 3 | 1.000 | 1.000 ± 0.010 | 4.1 % | holds |" in lines[2]
    assert "control: row 3: \\|broken\\| | 2.000 | 1.000 ± 0.010 |  | control rejected |" in lines[3]


def test_the_full_table_has_every_row_with_its_kind_in_words(book):
    text = tables.full_table([book])
    assert len(text.splitlines()) == 4 + 2 + 6
    assert "| formula | 1.000 | computed 1.000 | 0.0010 | 0.1 % | consistent |" in text


def test_failing_rows_are_put_into_words(book):
    assert tables.failing(book) == []
    book["rows"][1]["passed"] = False
    (text,) = tables.failing(book)
    assert text.startswith("row 0: claimed 1.000, measured 1.000 ± 0.010")


def test_pooling_roots_shows_how_far_off_headlines_are(book):
    row = book["rows"][1] | {"headline": True, "resolution": 0.2}
    runs = []
    for measured in (1.1, 1.2, 1.3):
        values = row["values"] | {"measured": measured, "claimed": 1.0, "se": 0.1, "tolerance": 0.4}
        other = row | {"quantity": "only once"}
        runs.append(book | {"rows": [row | {"values": values}, *([other] if measured == 1.1 else [])]})
    assert tables.pooled(runs, 3) == [{"quantity": "row 0", "off": "10 ± 2.9", "resolution": "20 %"}]
    assert tables.pooled(runs, 4) == []  # one root failed: what the others say would flatter
