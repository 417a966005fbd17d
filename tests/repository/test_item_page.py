"""The page on the slides, item by item, and the ledgers."""

import re
from pathlib import Path

import pytest

from runner import documents, tables

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/moniri.md").read_text(encoding="utf-8")
ITEMS = [line for line in PAGE.splitlines() if line.startswith("| ") and not re.match(r"\| (item|---) \|", line)]
STATES = ("verified", "verified after a correction", "not reproduced", "not attempted")
BOOKS = {book["notebook"][:2]: book for book in tables.read_ledgers(ROOT / "figures")}


def judged(number, wanted):
    """The first verdict of a notebook whose quantity contains `wanted`, controls aside."""
    rows = BOOKS[number]["rows"]
    return next((row for row in rows if wanted in row["quantity"] and not row["control"]), None)


def controlled(number, row):
    return any(
        other["control"] and other.get("of", other["quantity"].rpartition(": ")[0]).startswith(row["quantity"])
        for other in BOOKS[number]["rows"]
    )


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item[2:40])
def test_an_item_names_a_row_with_a_control_or_says_why_not(item):
    rows = [(number, wanted) for _, number, wanted in documents.ROW.findall(item)]
    *_, status = (cell.strip() for cell in item.strip("| ").split(" | "))
    assert status.startswith(STATES), status
    assert rows or "no row: " in item
    for number, wanted in rows:
        assert f"notebook {number}" in item
        row = judged(number, wanted)
        assert row, f"notebook {number} has no verdict on {wanted!r}"
        assert row["passed"]
        assert controlled(number, row) or row["kind"] == "identity", f"{row['quantity']} has no control"


def test_there_are_items_and_a_boundary():
    assert len(ITEMS) > 40
    for number in range(1, 5):
        assert any(f"({number})" in item for item in ITEMS), f"equation ({number}) is missing"
    assert "## Reproduction boundary" in PAGE
