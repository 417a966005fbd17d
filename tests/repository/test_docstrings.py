"""One convention for docstrings: a public function's docstring, or the common words of its package, name each parameter."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2] / "lib/onestep"
# what the package's docstring and those of its modules explain once
COMMON = {"self", "cls", "p", "eta", "rng", "trials", "seed", "jobs", "executor", "run", "options"}
SECOND = {"teacher", "system", "a", "W", "ridge"}  # what the docstring of `zhou_ge` explains once


def public(tree):
    """Public functions of a module and public methods of its public classes."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from public(node)
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            yield node


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda path: str(path.relative_to(ROOT)))
def test_docstrings_say_what_names_do_not(path):
    missing = []
    for function in public(ast.parse(path.read_text())):
        text = ast.get_docstring(function) or ""
        arguments = function.args
        names = {a.arg for a in [*arguments.args, *arguments.kwonlyargs]} - COMMON
        names -= SECOND if "zhou_ge" in path.parts else set()
        missing += [f"{function.name}: {name}" for name in sorted(names) if name not in text]
        missing += [f"{function.name}: no docstring"] * (not text)
    assert not missing
