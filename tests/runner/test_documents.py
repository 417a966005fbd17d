"""What the pages of `docs/` quote from the ledgers."""

from pathlib import Path

import pytest

from runner import documents, tables

ROOT = Path(__file__).parents[2]
BOOKS = tables.read_ledgers(ROOT / "figures")
SAMPLE = [
    {
        "notebook": "13_x",
        "figures": {"13_x": "The drop |Δ| rises."},
        "rows": [
            {"quantity": "stair 2: as printed", "control": True, "claimed": "3", "measured": "2"},
            {"quantity": "stair 2", "control": False, "claimed": "1.000", "measured": "0.998 ± 0.01"},
        ],
    }
]


@pytest.mark.parametrize("path", sorted((ROOT / "docs").glob("*.md")), ids=lambda path: path.stem)
def test_each_page_is_up_to_date(path, capsys):
    text = path.read_text(encoding="utf-8")
    assert documents.filled(ROOT, text, BOOKS) == text
    assert capsys.readouterr().err == ""  # nothing it asks for is gone


def test_rows_and_figures_are_filled():
    text = documents.filled(ROOT, "| a | <!-- row 13 stair 2 --> 0 | 0 | ok |\n![](../figures/13_x.png)", SAMPLE)
    row, figure = text.splitlines()
    assert row == "| a | <!-- row 13 stair 2 --> 1.000 | 0.998 ± 0.01 | ok |"
    assert figure == r"![The drop \|Δ\| rises.](../figures/13_x.png)"
    assert documents.filled(ROOT, text, SAMPLE) == text


def test_a_row_with_bars_stays_two_cells():
    row = {"quantity": "size", "control": False, "claimed": "|a|", "measured": "|b|"}
    text = documents.filled(ROOT, "<!-- row 13 size --> 0 | 0 | ok |", [{"notebook": "13_x", "rows": [row]}])
    assert text == r"<!-- row 13 size --> \|a\| | \|b\| | ok |"
    assert documents.filled(ROOT, text, [{"notebook": "13_x", "rows": [row]}]) == text


def test_blocks_hold_verdicts_on_marked_numbers_and_scripts():
    page = (ROOT / "docs/errata.md").read_text(encoding="utf-8")
    emptied = documents._BLOCK.sub(r"\1\4", page)
    assert len(page) - len(emptied) > 10_000  # the blocks were there
    assert documents.filled(ROOT, emptied, BOOKS) == page


@pytest.mark.parametrize("text", ["<!-- row 13 stair 9 --> 1 | 2 |", "![old](../figures/99_gone.png)"])
def test_missing_sources_are_reported_and_the_text_stays(text, capsys):
    assert documents.filled(ROOT, text, SAMPLE) == text
    assert "warning: docs: no " in capsys.readouterr().err


def test_escaped_text_means_itself():
    assert documents.escaped("a_b *c* |d| $e$ [f] <g>") == r"a\_b \*c\* \|d\| \$e\$ \[f\] \<g\>"
