"""docs/theory.md names for each of its equations a test that holds it."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/theory.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| ((?:\(\d+\)(?:–\(\d+\))?(?:, )?)+) \| (.*) \|$", PAGE, re.MULTILINE)


def numbers(cell):
    for low, high in re.findall(r"\((\d+)\)(?:–\((\d+)\))?", cell):
        yield from range(int(low), int(high or low) + 1)


def test_every_equation_is_held_by_a_test():
    equations = {int(number) for number in re.findall(r"\\tag\{(\d+)\}", PAGE)}
    assert len(equations) == max(equations)
    assert {number for cell, _ in ROWS for number in numbers(cell)} == equations


def test_the_tests_named_exist():
    for _, cell in ROWS:
        named = re.findall(r"`(test_\w+)\.(\w+)`", cell)
        assert named
        for file, name in named:
            text = (ROOT / "tests/theory" / f"{file}.py").read_text(encoding="utf-8")
            assert f"def test_{name}(" in text, (file, name)
