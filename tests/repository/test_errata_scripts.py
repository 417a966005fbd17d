"""The errata's scripts: plain numpy, short, and printing what is committed beside them."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = sorted((Path(__file__).parents[2] / "docs/errata").glob("*.py"))
NUMBER = re.compile(r"-?\d+\.\d+")


def numbers(text):
    """The decimal numbers of a text with the size of their last digit."""
    return [(float(number), 10.0 ** -len(number.partition(".")[2])) for number in NUMBER.findall(text)]


def committed(name):
    """What the script of this name printed: per line that begins with a word, its value and standard error."""
    text = next(path for path in SCRIPTS if path.stem == name).with_suffix(".txt").read_text(encoding="utf-8")
    found = re.findall(r"(?m)^(\w+) +([\d.]+) ± ([\d.]+)$", text)
    return {word: (float(value), float(error)) for word, value, error in found}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_it_prints_what_is_committed(script):
    run = subprocess.run([sys.executable, "-I", script], capture_output=True, text=True, encoding="utf-8", check=True)
    expected = script.with_suffix(".txt").read_text(encoding="utf-8")
    assert NUMBER.sub("", run.stdout) == NUMBER.sub("", expected)
    for (value, _), (claimed, digit) in zip(numbers(run.stdout), numbers(expected), strict=True):
        assert value == pytest.approx(claimed, abs=1.01 * digit), run.stdout  # rounding may differ between machines


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_it_is_short_and_needs_numpy_alone(script):
    text = script.read_text(encoding="utf-8")
    imports = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert [ast.unparse(node) for node in imports] == ["import numpy as np"]
    assert len([line for line in text.splitlines() if line.strip()]) <= 25


@pytest.mark.parametrize("name", ["equation_3", "equation_4", "length_of_x"])
def test_the_simulation_agrees_with_the_corrected_value_and_not_with_the_printed_one(name):
    found = committed(name)
    value, error = found["simulated"]
    assert abs(value - found["corrected"][0]) < 3 * error
    assert abs(value - found["printed"][0]) > 5 * error
