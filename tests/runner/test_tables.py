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
        verdicts.agrees(f"row {k}", 1.0, Estimate(1.0, 0.01), control=("|broken|", 2.0) if k == 3 else ())
    return {"notebook": verdicts.notebook, "claim": verdicts.claim, "source": "s", "rows": verdicts.rows}


def test_the_results_table_shows_of_each_claim_the_row_closest_to_failing(book):
    rows = book["rows"]
    assert "row 0" in tables.results_table([book])  # none is marked, and none of the first three has a control
    for row in rows[3:5]:
        row["headline"] = True
    assert "row 3" in tables.results_table([book])  # it alone has a control
    lines = tables.results_table([book, book | {"notebook": "08_more"}]).splitlines()
    assert len(lines) == 3  # one claim
    assert "[07](notebooks/07_example.ipynb) [08](notebooks/08_more.ipynb)|row 3|1.000|" in lines[2]
    assert lines[2].endswith("|\\|broken\\||")
    rows[4]["passed"], rows[4]["verdict"] = False, "FAILS"
    assert "**FAILS**" in tables.results_table([book])
    other = book | {"claim": "C2, B9: another"}
    assert len(tables.results_table([book, other]).splitlines()) == 4
    assert len(tables.by_claim([book, other, book | {"claim": "B9: the same"}])) == 2


def test_a_row_is_strained_by_its_distance_over_its_tolerance(book):
    row = book["rows"][1]
    assert tables.strain(row) == 0
    assert tables.strain(row | {"values": row["values"] | {"measured": 1.5, "tolerance": 2.0}}) == 0.25
    assert tables.strain(row | {"passed": False}) > 1e9


def test_the_glance_counts_claims_rows_and_resolutions(book):
    book["rows"][1]["headline"] = True
    claims = "| C1 | a | b | c | verified for n ≤ 3 |\n| C2 | a | b | c | verified after correction; x |\n"
    large = {"07_example": {"rows": 5, "failing": ["a"]}, "08_gone": {"rows": 3, "failing": []}}
    seeds = {"07_example": {"roots": 20, "failed": {"101": "a"}}, "08_other": {"roots": 10, "failed": {}}}
    text = tables.glance([book], claims, large, seeds)
    assert "Runs under [other seeds](figures/seeds.md) in which a row fails: 1 of 30." in text
    assert "At larger sizes, in 1 notebooks, 1 of 5 fail, in [07](notebooks/07_example.ipynb)" in text
    assert "2 [claims](docs/claims.md): 1 verified after correction, 1 verified." in text
    assert "1 notebooks, 5 tests with 1 controls that they must reject; 0 fail." in text
    assert "4.1 % (median), 4.1 % at most" in text


def test_the_full_table_has_every_row_with_its_kind_in_words(book):
    text = tables.all_verdicts([book], {"07_example": {"failing": ["row 3: claimed 1"]}})
    assert text.endswith("\n\nAt larger sizes this row fails: row 3: claimed 1.\n")
    assert len(text.splitlines()) == 4 + 4 + 2 + 5 + 2
    assert "| formula | 1.000 | computed 1.000 | 0.0010 | 0.1 % | consistent |  |" in text
    assert "| \\|broken\\|: 2.000, rejected |" in text


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
    assert tables.pooled(runs, 4) == []  # it stopped at one root: what the others say would flatter
