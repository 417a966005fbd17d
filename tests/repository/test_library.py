"""Theory and simulation meet only in notebooks and tests, and the library needs what `pip install .` brings."""

import ast
import sys
from pathlib import Path

import pytest

import onestep
from onestep import simulate, theory

LIBRARY = Path(__file__).resolve().parents[2] / "lib"
FILES = sorted([*(LIBRARY / "onestep").rglob("*.py"), *(LIBRARY / "onestep").rglob("*.pyi")])
MEETING = {"onestep/__init__.pyi", "onestep/own_problem.py", "onestep/zhou_ge/__init__.py"}  # these name both
NEEDED = {"lazy_loader", "numpy", "scipy", "matplotlib", "PIL", "psutil", "threadpoolctl"}
IF_THERE = {"IPython", "distributed"}  # inside functions, where they are needed


def places(path):
    """Where the imports of a file lead, at its top or inside a function, as tuples of package and module names."""
    package = path.relative_to(LIBRARY).parent.parts
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (tuple(alias.name.split(".")) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            yield from ((*base, *(node.module or "").split("."), alias.name) for alias in node.names)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(LIBRARY).as_posix())
def test_imports_keep_to_their_wing_and_to_what_is_installed(path):
    home = set(path.relative_to(LIBRARY).parts) & {"theory", "simulate", "zhou_ge"}
    for place in places(path):
        if place[0] == "onestep" and path.relative_to(LIBRARY).as_posix() not in MEETING:
            assert set(place) & {"theory", "simulate", "zhou_ge"} <= home, place
        assert place[0] in {"onestep", "__future__"} | NEEDED | IF_THERE | set(sys.stdlib_module_names), place


@pytest.mark.parametrize("package", [onestep, theory, simulate], ids=lambda package: package.__name__)
def test_what_a_package_offers_is_there(package):
    assert all(hasattr(package, name) for name in dir(package))
