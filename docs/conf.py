"""The site (`make site`): the executed notebooks, the pages of docs/ and the docstrings, by Sphinx as it comes.

Sphinx reads the repository itself, so that every link and picture is found where it is on GitHub.
"""

import json
import re
import sys
from pathlib import Path

from docutils import nodes

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "lib"))

project = html_title = "One gradient step"
copyright = "the onestep maintainers"
root_doc = "docs/index"
include_patterns = ["docs/*.md", "notebooks/*.ipynb", "figures/*.md", "CONTRIBUTING.md"]
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
extensions += ["sphinx-mathjax-offline"]  # formulas are set without a network too
suppress_warnings = ["myst.header", "ref.python"]  # notebooks choose the ranks of their headings

nb_execution_mode = "off"  # what is committed is what is shown
nb_render_markdown_format = "gfm"  # tables as tables
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_dmath_double_inline = True
myst_heading_anchors = 3

default_role = "py:obj"
autodoc_member_order = "bysource"
autodoc_typehints = "none"
add_module_names = False

html_theme = "furo"
html_static_path = ["static"]
html_extra_path = ["static/root"]  # index.html, which leads to docs/
html_css_files = ["site.css"]
html_favicon = "static/favicon.svg"


def alternative_texts(app, doctree):
    """Give each picture of a notebook's outputs the finding that the output has beside it as text."""
    if app.env.docname.startswith("notebooks/"):
        cells = json.loads(Path(app.env.doc2path(app.env.docname)).read_text(encoding="utf-8"))["cells"]
        shown = [output.get("data", {}) for cell in cells for output in cell.get("outputs", [])]
        findings = iter(["".join(data["text/plain"]) for data in shown if "image/png" in data])
        for image in doctree.findall(nodes.image):
            image["alt"] = image.get("alt") or next(findings, "")


def reference(app, docname, source):
    """Name every module of the library on the page of reference."""
    if docname == "docs/reference":
        for path in sorted(set((ROOT / "lib/onestep").rglob("*.py")) - {ROOT / "lib/onestep/__main__.py"}):
            name = ".".join(path.relative_to(ROOT / "lib").with_suffix("").parts).removesuffix(".__init__")
            source[0] += f"\n## {name}\n\n```{{eval-rst}}\n.. automodule:: {name}\n   :members:\n```\n"


def as_text(app, what, name, obj, options, lines):
    """Turn a docstring, which is text, into what Sphinx reads: no markup by chance, and a package's list as a list."""
    lines[:] = [re.sub(r"(`[^`]*`)|([*|])", lambda part: part[1] or "\\" + part[2], line) for line in lines]
    sections = [k - 1 for k, line in enumerate(lines) if re.fullmatch("-+", line)]  # of numpydoc, which napoleon reads
    text = lines[: sections[0] if sections else None]
    made = [""]
    for line in text:
        item = re.match(r"(\w+/?)  +(?=\S)", line)
        listed = made[-1].startswith((":", " "))
        made += [""] if made[-1] and bool(item) != listed and line[:1].strip() else []
        goes_on = made[-1] and not listed and not item
        made.append(f":{item[1]}: {line[item.end() :]}" if item else line.strip() if goes_on else line)
    lines[: len(text)] = made


def setup(app):
    app.connect("doctree-read", alternative_texts)
    app.connect("source-read", reference)
    app.connect("autodoc-process-docstring", as_text, priority=400)  # before napoleon
