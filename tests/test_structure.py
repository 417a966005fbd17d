"""Theory and simulation meet only in notebooks: neither reaches the other through any chain of imports."""

import ast
from pathlib import Path

import pytest

LIBRARY = Path(__file__).resolve().parents[1] / "lib" / "onestep"
THEORY = {"bulk", "overlap", "regimes", "theory", "uniform"}
SIMULATION = {"baselines", "equivalence", "multiindex", "observe", "population", "randomfeatures", "simulate"}


def imports(module, folder=LIBRARY):
    """Names of the sibling modules that `module` imports, at its top or inside a function."""
    siblings = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    found = set()
    for node in ast.walk(ast.parse((folder / f"{module}.py").read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            found |= {node.module} if node.module else {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("onestep"):
            found |= set(node.module.split(".")[1:2]) or {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("onestep.")}
    return found & siblings


def reached(module, folder=LIBRARY):
    seen, waiting = set(), {module}
    while waiting:
        now = waiting.pop()
        seen.add(now)
        waiting |= imports(now, folder) - seen
    return seen


@pytest.mark.parametrize("module", sorted(path.stem for path in LIBRARY.glob("*.py") if path.stem != "__init__"))
def test_theory_and_simulation_stay_apart(module):
    both = reached(module)
    assert not (both & THEORY and both & SIMULATION), f"{module} reaches {sorted(both & (THEORY | SIMULATION))}"


def test_a_hidden_import_would_be_found(tmp_path):
    (tmp_path / "theory.py").write_text("from . import checks\n")
    (tmp_path / "checks.py").write_text("def f():\n    from .simulate import draw\n")
    (tmp_path / "simulate.py").write_text("")
    assert reached("theory", tmp_path) == {"theory", "checks", "simulate"}
