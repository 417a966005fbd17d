"""Docstrings are numpydoc: what a notebook calls names each of its parameters in a section of its own."""

import ast
import inspect
import json
import re
from functools import reduce
from importlib import import_module
from pathlib import Path

import pytest

import onestep

ROOT = Path(__file__).resolve().parents[2]
METHODS = [
    onestep.Problem.replace,
    onestep.Problem.scaled,
    onestep.hermite.Function.coefficients,
    onestep.report.Verdicts.agrees,
    onestep.report.Verdicts.at_least,
    onestep.report.Verdicts.at_most,
    onestep.report.Verdicts.consistent,
    onestep.report.Verdicts.succeeds,
]


def called(code):
    """Functions of the library, by name, that a notebook's code takes from its modules."""
    tree, names = ast.parse(code), {"onestep": onestep}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "onestep":
            module = import_module(node.module)
            names |= {alias.asname or alias.name: getattr(module, alias.name) for alias in node.names}
    found = {}
    for node in ast.walk(tree):
        parts, base = [], node
        while isinstance(base, ast.Attribute):
            parts, base = [base.attr, *parts], base.value
        if isinstance(base, ast.Name) and base.id in names:
            value = reduce(lambda owner, part: getattr(owner, part, None), parts, names[base.id])
            if inspect.isfunction(value) and value.__module__.startswith("onestep"):
                found[f"{value.__module__}.{value.__name__}"] = value
    return found


def everywhere():
    found = {method.__qualname__: method for method in METHODS}
    for path in [*(ROOT / "notebooks").glob("*.ipynb"), ROOT / "docs/template.ipynb"]:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        found |= called("\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"))
    return found


def unnamed(function):
    """Parameters that the docstring's section does not name."""
    section = re.search(r"Parameters\n-+\n(.*?)(?=\n\n\w+\n-+\n|\Z)", inspect.getdoc(function) or "", re.S)
    entries = re.findall(r"(?m)^(\S[^:\n]*)", section[1]) if section else []
    listed = {name.strip().lstrip("*") for entry in entries for name in entry.split(",")}
    return set(inspect.signature(function).parameters) - listed - {"self"}


@pytest.mark.parametrize(
    ("name", "function"), sorted(everywhere().items()), ids=lambda part: part if isinstance(part, str) else ""
)
def test_it_names_its_parameters(name, function):
    assert not unnamed(function)


def test_a_parameter_that_is_not_named_would_be_found():
    def function(one, two):
        """What it does.

        Parameters
        ----------
        one : int
            Not two.
        """

    assert unnamed(function) == {"two"}
    assert called("from onestep import simulate as s\ns.spectra.weights(1)").keys() == {
        "onestep.simulate.spectra.weights"
    }
