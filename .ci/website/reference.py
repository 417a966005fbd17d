"""The library's docstrings as pages: one for each package, its modules in the order of the package's own map.

Read from the source, not imported: docstrings are text with code in backticks, in which `*`, `_` and `|` are maths.
"""

import ast
import re

from .notebooks import front_matter
from .text import escaped

# "name    what it is": a line of a package's map, with its continuations
_ROOM = re.compile(r"(?m)^(\w[\w/, ]*?)/?  +(\S.*(?:\n {6,}\S.*)*)")
_ENTRY = re.compile(r"(\S.*?) : (.*)")


def pages(package):
    """Markdown by name: "index" for the package at this path, and a page for each package inside."""
    inner = sorted(path.parent for path in package.glob("*/**/__init__.py"))
    names = {folder: ".".join(folder.relative_to(package).parts) for folder in inner}
    out = {"index": _page(package, f"The library: {package.name}", names)}
    for folder, name in names.items():
        out[name] = _page(folder, name, names, f"{name}.")
    menu = "\n".join(sorted(names.values()))
    out["index"] += f"\n```{{toctree}}\n:hidden:\n\n{menu}\n```\n"
    return out


def _page(package, title, packages, prefix=""):
    tree = _tree(package / "__init__.py")
    text = ast.get_docstring(tree)
    rooms = [(name, says) for names, says in _ROOM.findall(text) for name in re.split(r", *", names)]
    parts = [front_matter(text.splitlines()[0]), f"# {title}", _markdown(_ROOM.sub("", text))]
    parts += [_room(package, name, says, packages) for name, says in rooms]
    doors = _doors(tree)
    for name, _ in rooms:
        path = package / f"{name}.py"
        if path.exists():
            parts.append(_module(path, prefix, doors))
    return "\n\n".join(filter(None, parts)) + "\n"


def _room(package, name, says, packages):
    page = packages.get(package / name)
    link = f"{page}.md" if page else f"#{_anchor(package.name, name)}"
    return f"[**{name}**]({link})\n: {_markdown(' '.join(says.split()))}"


def _anchor(package, module):
    return f"module-{package}-{module}".replace("_", "-")


def _doors(tree):
    """Names that a package's face takes over from its modules: {(module, name)}."""
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module]
    return {(node.module, alias.name) for node in imports for alias in node.names}


def _module(path, prefix, doors):
    """A module's docstring and what it defines; `prefix` and the doors decide under which names users call it."""
    tree, module = _tree(path), path.stem
    anchor = _anchor(path.parent.name, module)
    parts = [f"({anchor})=\n## {escaped(prefix + module)}", _markdown(ast.get_docstring(tree))]
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            owner = prefix if (module, node.name) in doors else f"{prefix}{module}."
            parts.append(_definition(node, owner))
    return "\n\n".join(parts)


def _definition(node, owner, depth=0):
    if isinstance(node, ast.ClassDef):
        kind, signature, inner = "class", _fields(node), [x for x in node.body if isinstance(x, ast.FunctionDef)]
    elif any(ast.unparse(decorator).endswith("property") for decorator in node.decorator_list):
        kind, signature, inner = "property", "", []
    else:
        kind, inner = "method" if depth else "function", []
        signature = f"({_arguments(node, depth)})"
    fence = ":" * (4 - depth)
    body = [_markdown(ast.get_docstring(node) or "")]
    if getattr(node, "returns", None):
        body.append(f"Returns `{ast.unparse(node.returns)}`.")
    body += [
        _definition(method, f"{node.name}.", depth + 1)
        for method in inner
        if not method.name.startswith("_") and ast.get_docstring(method)
    ]
    text = "\n\n".join(filter(None, body))
    return f"{fence}{{py:{kind}}} {owner}{node.name}{signature}\n\n{text}\n{fence}"


def _arguments(node, method):
    """A function's arguments without annotations, which the docstring puts into words."""
    arguments = ast.parse(ast.unparse(node)).body[0].args
    for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg):
        if argument:
            argument.annotation = None
    if method:
        del arguments.args[0]
    return ast.unparse(arguments)


def _fields(node):
    """The constructor's arguments: those of __init__, or a dataclass's fields."""
    for method in node.body:
        if isinstance(method, ast.FunctionDef) and method.name == "__init__":
            return f"({_arguments(method, True)})"
    fields = [field for field in node.body if isinstance(field, ast.AnnAssign) and not field.target.id.startswith("_")]
    shown = [f"{field.target.id}={ast.unparse(field.value)}" if field.value else field.target.id for field in fields]
    return f"({', '.join(shown)})" if shown else ""


def _markdown(docstring):
    """A docstring as Markdown: its underlined sections become lists of definitions, indented text stays code."""
    parts = re.split(r"(?m)^(\w+)\n-{3,}\n", docstring)
    out = [_prose(parts[0])]
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        entries, _, rest = body.partition("\n\n")
        out += [f"**{title}**", _entries(entries), _prose(rest)]
    return "\n\n".join(filter(None, (part.strip("\n") for part in out)))


def _entries(text):
    """Lines "name : what it is", with indented continuations, as definitions; other text stays prose."""
    items = re.split(r"\n(?=\S)", text.strip())
    if not all(_ENTRY.match(item) for item in items):
        return _prose(text)
    lines = []
    for item in items:
        name, says = _ENTRY.match(" ".join(item.split())).groups()
        lines.append(f"`{name}`\n: {_prose(says)}")
    return "\n\n".join(lines)


def _prose(text):
    """Text with code in backticks and in indented blocks; all else is shown to the letter."""
    blocks = re.split(r"((?:^|(?<=\n))(?:    .*(?:\n|$))+)", text)
    return "".join(block if number % 2 else _inline(block) for number, block in enumerate(blocks))


def _inline(text):
    pieces = re.split(r"(`[^`]+`)", text)
    return "".join(piece if number % 2 else escaped(piece) for number, piece in enumerate(pieces))


def _tree(path):
    return ast.parse(path.read_text(encoding="utf-8"))
