"""Theory and simulation meet only in notebooks and tests: no import leads from one wing to the other."""

import ast
from pathlib import Path

import pytest

LIBRARY = Path(__file__).resolve().parents[2] / "lib"
WINGS = {"theory", "simulate"}
# the places that name both
MEETING = {LIBRARY / "onestep" / name for name in ("__init__.py", "own_problem.py", "zhou_ge/__init__.py")}
SECOND = "zhou_ge"  # the second source: a package with a file for each wing, which the rest never imports
PACKAGES = ["onestep", "onestep/theory", "onestep/simulate", "onestep/report", "runner", "../.ci/website"]
PACKAGES += [f"onestep/{SECOND}"]


def places(path, root=LIBRARY):
    """Where the imports of a file lead, at its top or inside a function, as tuples of package and module names."""
    package = path.relative_to(root).with_suffix("").parts[:-1]
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {tuple(alias.name.split(".")) for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = (*base, *(node.module.split(".") if node.module else ()))
            found |= {(*module, alias.name) for alias in node.names}
    return found


def forbidden(path, root=LIBRARY):
    """Imports of a file in `onestep` that leave its wing for the other, common ground for either, or the library.

    `study`, which sees both wings, is for the command line alone.
    """
    parts = path.relative_to(root).parts
    home = {Path(part).stem for part in parts[1:3]} & (WINGS | {SECOND})
    home |= {"study"} if parts[1] == "__main__.py" else set()
    closed = (WINGS | {"study", SECOND}) - home
    away = [place for place in places(path, root) if place[0] == "runner" or set(place[1:3]) & closed]
    return [place for place in away if place[0] in ("onestep", "runner")]


@pytest.mark.parametrize("path", sorted((LIBRARY / "onestep").rglob("*.py")), ids=lambda path: str(path.name))
def test_theory_and_simulation_do_not_import_each_other(path):
    if path not in MEETING:
        assert not forbidden(path)


@pytest.mark.parametrize(
    ("file", "line", "found"),
    [
        ("theory/a.py", "from ..simulate import draw", True),
        ("theory/a.py", "def f():\n    from .. import simulate", True),
        ("simulate/a.py", "import onestep.theory.spectra", True),
        ("report/a.py", "from onestep.theory import gains", True),
        ("checks.py", "from .simulate.network import draw", True),
        ("checks.py", "from runner import tables", True),
        ("theory/a.py", "from ..own_problem import study", True),
        ("zhou_ge/theory.py", "from .simulate import descend", True),
        ("zhou_ge/theory.py", "from ..simulate import key", True),
        ("zhou_ge/simulate.py", "from .theory import minimum", True),
        ("zhou_ge/relu.py", "from .theory import minimum", True),
        ("theory/a.py", "from ..zhou_ge import relu", True),
        ("zhou_ge/simulate.py", "from .relu import Population\nfrom ..simulate.replicates import key", False),
        ("__main__.py", "from .own_problem import study", False),
        ("theory/a.py", "from .spectra import features\nfrom ..checks import steps\nimport numpy", False),
    ],
)
def test_a_hidden_import_would_be_found(tmp_path, file, line, found):
    path = tmp_path / "onestep" / file
    path.parent.mkdir(parents=True)
    path.write_text(line)
    assert bool(forbidden(path, tmp_path)) is found


def modules(package, wing):
    return {path.stem for path in (LIBRARY / package / wing).glob("*.py")}


def test_modules_of_theory_and_simulation_have_equal_names():
    theory, simulate = (modules("onestep", wing) for wing in ("theory", "simulate"))
    measured_alone = {"averages", "data", "checkpoint", "network", "replicates", "svd", "control_variates"}
    predicted_alone = {"bulks", "quadrature"}
    assert simulate - measured_alone == theory - predicted_alone


@pytest.mark.parametrize("package", PACKAGES)
def test_each_package_lists_its_modules(package):
    folder = LIBRARY / package
    text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8")))
    rooms = {path.stem for path in folder.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    missing = [room for room in rooms - {"__init__"} if room not in text]
    assert not missing
