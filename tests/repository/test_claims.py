"""The public list of claims and the notebooks' labels."""

import re
from pathlib import Path

from runner import tables

ROOT = Path(__file__).parents[2]
LINE = re.compile(r"(?m)^\| ([BC]\d+) \| (.+) \| (.+) \| ([\w, ]+) \| (.+) \|$")
LABEL = re.compile(r"\b[BC]\d+\b")
LIST = LINE.findall((ROOT / "docs/claims.md").read_text(encoding="utf-8"))
NOTEBOOKS = {label: places.split(", ") for label, _, _, places, _ in LIST}
BOOKS = {book["notebook"]: book for book in tables.read_ledgers(ROOT / "figures")}


def test_labels_are_unique_and_count_from_one():
    labels = [label for label, *_ in LIST]
    for kind in "CB":
        numbers = [int(label[1:]) for label in labels if label[0] == kind]
        assert numbers == list(range(1, len(numbers) + 1))
    assert len(NOTEBOOKS) == len(labels)


def test_every_claim_has_a_status_of_four():
    kinds = ("verified for ", "verified after correction", "partly verified", "not reproduced")
    assert all(status.startswith(kinds) for *_, status in LIST)


def test_every_notebook_has_a_headline_row_with_a_control():
    for name, book in BOOKS.items():
        row = max(tables.measured(book), key=tables.strain)
        assert tables.control_of(row, book), f"{name}: {row['quantity']} has no control"


def test_every_notebook_tests_a_claim_of_the_list():
    assert {name for places in NOTEBOOKS.values() for name in places} == set(BOOKS)


def test_a_notebook_states_labels_that_the_list_gives_it():
    for name, book in BOOKS.items():
        stated = set(LABEL.findall(book["claim"]))
        listed = {label for label, places in NOTEBOOKS.items() if name in places}
        assert stated <= listed, f"{name} states {stated}; docs/claims.md gives it {listed}"
        assert stated, f"{name} states no label: docs/claims.md gives it {listed}"
