"""Numpydoc sections stand on the public face alone, and name every parameter; that all have docstrings ruff checks."""

import ast
import inspect
import re
from pathlib import Path

import pytest

import onestep
from onestep import simulate, theory

ROOT = Path(__file__).resolve().parents[2] / "lib/onestep"
FACE = [
    onestep.Problem,
    onestep.study,
    *(getattr(theory, name) for name in ("losses", "best_step", "best_ridge", "gains", "traces")),
    *(getattr(simulate, name) for name in ("losses", "plateaus", "draw", "repeat")),
    onestep.report.Verdicts,
    onestep.estimates.Estimate,
]


@pytest.mark.parametrize("call", FACE, ids=lambda call: call.__qualname__)
def test_the_public_face_names_its_parameters_in_sections(call):
    section = re.search(r"Parameters\n-+\n(.*?)(?=\n\n\w+\n-+\n|\Z)", inspect.getdoc(call), re.S)
    listed = {name.strip() for entry in re.findall(r"(?m)^(\S[^:\n]*)", section[1]) for name in entry.split(",")}
    assert not set(inspect.signature(call).parameters) - listed


def test_sections_stand_on_the_public_face_alone():
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in ROOT.rglob("*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef | ast.FunctionDef)]
    found = [node.name for node in nodes if "\n----" in (ast.get_docstring(node) or "")]
    assert sorted(found) == sorted(call.__name__ for call in FACE)
