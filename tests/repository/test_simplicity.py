"""What keeps the library legible: short functions, few unnamed results, and no import circle."""

import ast
import io
import tokenize
from pathlib import Path

import pytest

LIBRARY = Path(__file__).resolve().parents[2] / "lib"
FILES = sorted(LIBRARY.rglob("*.py"))
LONGEST, UNNAMED = 40, 3  # lines of code in a function; results that a function returns without names
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
LAYOUT = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)


def lines_of_code(text):
    """Numbers of the lines that hold code: no docstring, no comment, no blank line."""
    tokens = (token for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.type not in LAYOUT)
    lines = {line for token in tokens for line in range(token.start[0], token.end[0] + 1)}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, *FUNCTIONS)) and ast.get_docstring(node) is not None:
            lines -= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return lines


def faults(text):
    """Functions of more than `LONGEST` lines of code, and those that return more than `UNNAMED` results in a tuple."""
    code, found = lines_of_code(text), []
    for function in (node for node in ast.walk(ast.parse(text)) if isinstance(node, FUNCTIONS)):
        length = sum(function.lineno <= line <= function.end_lineno for line in code)
        if length > LONGEST:
            found.append(f"{function.name} has {length} lines of code")
        results = [node.value for node in ast.walk(function) if isinstance(node, ast.Return)]
        results += [node.slice for node in ast.walk(function.returns or ast.Pass()) if isinstance(node, ast.Subscript)]
        if any(isinstance(value, ast.Tuple) and len(value.elts) > UNNAMED for value in results):
            found.append(f"{function.name} returns more than {UNNAMED} unnamed results")
    return found


def imported(path, modules, root):
    """Modules of the library that importing this one imports: not those that a function imports when it is called."""
    package, found = path.relative_to(root).parent.parts, set()
    statements = list(ast.parse(path.read_text(encoding="utf-8")).body)
    while statements:
        node = statements.pop()
        if isinstance(node, ast.Import):
            found |= {tuple(alias.name.split(".")) for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            base += tuple(node.module.split(".")) if node.module else ()
            found |= {(*base, alias.name) if (*base, alias.name) in modules else base for alias in node.names}
        elif not isinstance(node, FUNCTIONS):
            statements += [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)]
    return found & set(modules)


def circle(root=LIBRARY):
    """The modules of one import circle, by depth-first search; empty if there is none."""
    modules = {path.relative_to(root).with_suffix("").parts: path for path in root.rglob("*.py")}
    modules = {name[:-1] if name[-1] == "__init__" else name: path for name, path in modules.items()}
    done = set()

    def search(name, path):
        if name in path:
            return [*path[path.index(name) :], name]
        if name not in done:
            done.add(name)
            for other in sorted(imported(modules[name], modules, root)):
                if found := search(other, [*path, name]):
                    return found
        return []

    return next((found for name in sorted(modules) if (found := search(name, []))), [])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(LIBRARY).as_posix())
def test_functions_are_short_and_name_their_results(path):
    assert not faults(path.read_text(encoding="utf-8"))


def test_no_modules_import_each_other():
    assert not circle()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("def f():\n" + 39 * "    x = 1\n", False),
        ("def f():\n" + 40 * "    x = 1\n", True),
        ('def f():\n    """One.\n\n    Two."""\n' + 39 * "    x = 1  # why\n\n    # why\n", False),
        ("def f():\n    return 1, 2, 3", False),
        ("def f():\n    return 1, 2, 3, 4", True),
        ("class C:\n    def f(self) -> tuple[int, int, int, int]:\n        return self.all", True),
    ],
)
def test_long_functions_and_unnamed_results_would_be_found(text, found):
    assert bool(faults(text)) is found


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        ("from .b import x", "from . import a", True),
        ("import package.b", "try:\n    from package.a import x\nexcept ImportError:\n    x = 1", True),
        ("from .b import x", "def f():\n    from . import a", False),
        ("from .b import x", "import numpy", False),
    ],
)
def test_a_circle_would_be_found(tmp_path, first, second, found):
    folder = tmp_path / "package"
    folder.mkdir()
    for name, text in (("__init__", "from . import a"), ("a", first), ("b", second)):
        (folder / f"{name}.py").write_text(text)
    assert bool(circle(tmp_path)) is found
