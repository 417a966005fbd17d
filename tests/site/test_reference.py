"""The library's docstrings as pages."""

import ast
from pathlib import Path

import pytest

from website import reference

LIBRARY = Path(__file__).parents[2] / "lib/onestep"

FACE = '''"""A package.

    from package import solve

solver, other    what solves; and
                 what does not
inner/   a package inside
"""

from .solver import solve
'''
SOLVER = '''"""How to solve, with c_1 and `code`."""


def solve(x, y: float = 1.0, *, z=None) -> float:
    """Solve x_1 | y.

    Parameters
    ----------
    x, y : numbers,
        on two lines
    z : None

    The answer:

        x + y

    Raises
    ------
    ValueError for bad *x*.
    """


def _hidden():
    """Not shown."""


class Result:
    """What comes out."""

    value: float
    _cache: dict
    error: float = 0.0

    @property
    def size(self):
        """Its size."""

    def grow(self, by: int):
        """Larger by so much."""

    def silent(self):
        pass
'''


@pytest.fixture
def pages(tmp_path):
    package = tmp_path / "package"
    (package / "inner").mkdir(parents=True)
    (package / "__init__.py").write_text(FACE)
    (package / "solver.py").write_text(SOLVER)
    (package / "other.py").write_text('"""Another."""\n\n\ndef rest():\n    """Rest."""\n')
    (package / "inner/__init__.py").write_text('"""Inner.\n\nroom   a room\n"""\n')
    (package / "inner/room.py").write_text('"""Room."""\n\n\ndef enter(x):\n    """Enter."""\n')
    return reference.pages(package)


def test_each_package_is_a_page_with_its_map(pages):
    assert set(pages) == {"index", "inner"}
    index = pages["index"]
    assert "# The library: package" in index
    assert "\n\n    from package import solve\n" in index
    assert "[**solver**](#module-package-solver)\n: what solves; and what does not" in index
    assert "[**inner**](inner.md)\n: a package inside" in index
    assert "(module-package-solver)=\n## solver\n\nHow to solve, with c\\_1 and `code`." in index
    assert "```{toctree}\n:hidden:\n\ninner\n```" in index


def test_functions_stand_under_the_name_they_are_called_by(pages):
    assert "::::{py:function} solve(x, y=1.0, *, z=None)\n\nSolve x\\_1 \\| y." in pages["index"]
    assert "::::{py:function} other.rest()" in pages["index"]
    assert "::::{py:function} inner.room.enter(x)" in pages["inner"]
    assert "_hidden" not in pages["index"]


def test_docstrings_keep_their_sections_lists_and_code(pages):
    index = pages["index"]
    assert "**Parameters**\n\n`x, y`\n: numbers, on two lines\n\n`z`\n: None\n\nThe answer:\n\n    x + y\n" in index
    assert "**Raises**\n\nValueError for bad \\*x\\*.\n\nReturns `float`." in index


def test_classes_show_their_fields_and_documented_methods(pages):
    index = pages["index"]
    assert "::::{py:class} solver.Result(value, error=0.0)" in index
    assert ":::{py:property} Result.size" in index
    assert ":::{py:method} Result.grow(by)" in index
    assert "silent" not in index


def test_everything_public_of_the_library_is_there():
    text = "".join(reference.pages(LIBRARY).values())
    for path in LIBRARY.rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                assert f"{node.name}" in text, f"{path.stem}.{node.name}"
