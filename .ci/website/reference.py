"""The library's reference: for each package a page that asks autodoc for its modules, in the order of its map.

`setup` is for Sphinx: docstrings are text with code in backticks, in which `*`, `_` and `|` are maths.
"""

import ast
import re
import sys

# "name    what it is": a line of a package's map, with its continuations
_ROOM = re.compile(r"(?m)^(\w[\w/, ]*?)/?  +(\S.*(?:\n {6,}\S.*)*)")

_ITEM = re.compile(r"(?m)^(\S[^:\n]*?) : (.*(?:\n {4,}.*)*)")  # "name : what it is", which napoleon takes for a type

_RAISED = re.compile(r"(?s)(?<=\nRaises\n------\n).*?(?=\n\n|\Z)")


def pages(package):
    """Markdown by name: "index" for the package at this path, and a page for each package inside."""
    folders = [package, *sorted(path.parent for path in package.glob("*/**/__init__.py"))]
    names = [".".join(folder.relative_to(package.parent).parts) for folder in folders]
    out = {name: _page(folder, name) for folder, name in zip(folders, names, strict=True)}
    menu = "\n".join(names[1:])
    return {"index": f"{out.pop(names[0])}\n```{{toctree}}\n:hidden:\n\n{menu}\n```\n"} | out


def _page(folder, name):
    text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8")))
    rooms = [room for names, _ in _ROOM.findall(text) for room in re.split(r", *", names)]
    modules = [f"{name}.{room}" for room in rooms if (folder / f"{room}.py").exists() and not room.startswith("_")]
    parts = [f"# {name}", _automodule(name, members=False)]
    parts += [f"## {module.removeprefix('onestep.')}\n\n{_automodule(module)}" for module in modules]
    return "\n\n".join(parts) + "\n"


def _automodule(module, members=True):
    return f"```{{eval-rst}}\n.. automodule:: {module}\n" + ("   :members:\n" if members else "") + "```"


def setup(app):
    """Sphinx's entry: docstrings pass through `prepared` before napoleon reads them."""
    app.connect("autodoc-process-docstring", prepared, priority=400)


def prepared(app, what, name, obj, options, lines):
    """Change a docstring's lines into reStructuredText; a function's first line says what users call it by."""
    text = "\n".join(lines)
    text = _ROOM.sub(r"\n\1\n      \2\n", text) if what == "module" else _ITEM.sub(r"\n\1\n    \2\n", text)
    text = _RAISED.sub(lambda m: re.sub(r"(?m)^(\w+Error) ", r"\1\n    ", m[0]), text)
    package, local = getattr(obj, "__module__", "").rpartition(".")[0], name.rpartition(".")[2]
    if what in ("function", "class") and getattr(sys.modules.get(package), local, None) is obj:
        text = f"Called as `{package}.{local}`.\n\n{text}"
    lines[:] = _escaped(text).split("\n")


def _escaped(text):
    """The text with its indented blocks as code, and signs outside of code kept from meaning anything."""
    text = re.sub(r"(?m)(?<=\n\n)((?: {4}\S.*(?:\n|$))+)", r"::\n\n\1", text)
    pieces = re.split(r"(`[^`]+`|^::\n(?:\n| {4}.*\n?)+)", text, flags=re.MULTILINE)
    # code beside a letter, as in "`Estimate`s", needs a mark between them
    pieces = [
        re.sub(r"`\Z", r"`\\ ", p) if k % 2 and re.match(r"\w", pieces[k + 1]) else p for k, p in enumerate(pieces)
    ]
    return "".join(p if k % 2 else re.sub(r"[*|\\]|_(?!\w)", r"\\\g<0>", p) for k, p in enumerate(pieces))
