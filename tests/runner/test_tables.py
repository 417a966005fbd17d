"""Tables and records of made-up ledgers."""

import json
from types import SimpleNamespace

import pytest

import records
import tables
from onestep import report
from onestep.estimates import Estimate
from run_notebook import UserError


@pytest.fixture
def books(tmp_path, monkeypatch):
    """Ledgers of two notebooks on claim C1 and one of the paper's on B2, in a repository that has these alone."""
    for module in (tables, records):
        monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(report.session, "show", lambda data: None)
    monkeypatch.setenv("ONESTEP_FIGURES", str(tmp_path / "figures"))
    (tmp_path / "notebooks").mkdir()
    for name, claim in (("01_one", "C1: it"), ("02_two", "C1: more"), ("13_three", "B2: else")):
        v = report.Verdicts(name, claim, "here")
        v.agrees("close", 1.0, Estimate(1.01, 0.1, 50.0), headline=True, control=("far", 9.0))
        v.agrees("closest to failing", 2.0, Estimate(2.2, 0.1, 50.0), headline=True, control=("far", 9.0))
        v.at_most(
            "chosen", 9.0, Estimate(2.0, 0.1, 50.0), headline=True, front=name != "01_one", control=("small", 1.0)
        )
        v.conclude()
    return tables.ledgers(tmp_path / "figures")


def test_a_claim_shows_the_row_that_its_author_chose(books):
    lines = tables.results_table(books, "../").splitlines()
    assert lines[0].split("|")[2] == "quantity"
    assert [line.split("|")[1:4] for line in lines[2:]] == [
        ["C1: it (here) [01](../notebooks/01_one.ipynb) [02](../notebooks/02_two.ipynb)", "chosen", "≤ 9.000"],
        ["B2: else (here) [13](../notebooks/13_three.ipynb)", "chosen", "≤ 9.000"],
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<!-- row 01 far away --> a | b |", "quotes 'far away', which"),
        ("![x](figures/09_gone.png)", "shows 09_gone, which"),
        ("<!-- gone:begin -->\n<!-- gone:end -->", "quotes gone, of which"),
    ],
)
def test_what_a_page_quotes_and_is_gone_is_named(books, tmp_path, text, said):
    page = tmp_path / "page.md"
    page.write_text("<!-- row 01 close: far --> x | y |")
    assert tables.quoted(page, books, {}) == "<!-- row 01 close: far --> 9.000 | 1.01 ± 0.10 |"
    page.write_text(text)
    with pytest.raises(UserError, match=rf"page\.md {said}"):
        tables.quoted(page, books, {})


def test_twenty_seeds_are_pooled_kept_and_held_against_four_standard_errors(books, tmp_path, monkeypatch, capsys):
    found = []
    for root in records.ROOTS:
        book = json.loads(json.dumps(books[0]))
        book["rows"][0]["values"]["measured"] = 1.02 + 0.001 * (root % 2)
        book["rows"][2]["values"]["measured"] = 2.0 + 0.1 * (-1) ** root
        book["rows"][4]["values"]["measured"] = 5.0 + 0.1 * (-1) ** root
        task = SimpleNamespace(name="01_one", in_force={"seed": root})
        found.append((task, book, "a row fails" * (root == records.ROOTS[0])))
    assert records.seeds(found, records.ROOTS) == 1
    kept = records.read("seeds")["01_one"]
    assert kept["failed"] == {str(records.ROOTS[0]): "a row fails"}
    assert [float(row["off"].split()[0]) for row in kept["headlines"]] == [pytest.approx(2.05, rel=0.01), 0]
    assert [(row["bound"], row["mean"]) for row in kept["bounds"]] == [("≤ 9.000", "5.000 ± 0.023")]
    (tmp_path / "notebooks/reasons.toml").write_text('[01_one]\n"clos" = "a term of order 1/n"\n')
    statement, _, significant = tables.standing(books)
    assert "half of the 2 main results that predict a value lie within 1 % of it" in statement
    assert "(in per cent of the effect), the worst 2 % off" in statement
    assert significant == [[books[0], "close", "+2 ± 0.011 %", "a term of order 1/n"]]
    before = (tmp_path / "figures/seeds.json").read_bytes()
    records.seeds(found[:3], records.ROOTS[:3])
    assert "not kept" in capsys.readouterr().err
    assert (tmp_path / "figures/seeds.json").read_bytes() == before
