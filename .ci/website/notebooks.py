"""One executed notebook as a page of MyST Markdown."""

import json
import re

from runner.documents import FIGURE, escaped

from . import results, text

_SHOWN = ("image/png", "text/markdown", "text/plain")  # the richest kind of an output is the one that is shown


def page(path, book, names, terms, urls):
    """A notebook's Markdown. Raises ValueError for an output that has no place on a page.

    path : the notebook.   book : its ledger.   names : all notebooks, for the links between them.
    terms : {term: anchor} of the glossary.   urls : the project's addresses.
    """
    figures = {finding: name for name, finding in book["figures"].items()}
    head = front_matter(f"{book['claim']}. Source: {book['source']}.", next(iter(sorted(book["figures"])), None))
    parts = [head]
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(text.linked(text.pages(_described(source, book["figures"])), names, terms))
            if len(parts) == 2:
                parts.append(_ways(path.name, urls.get("Repository", "")))
        elif source.strip():
            parts.append(_fenced(source, "python"))
            parts += [_output(output, figures, f"{path.name}, cell {cell['id']}") for output in cell["outputs"]]
    return "\n\n".join(parts) + "\n"


def _ways(file, repository):
    """A line of links: download, and where the repository is on GitHub also view and Binder."""
    ways = [f"[Download {file}]({file})"]
    if re.match(r"https://github\.com/[\w.-]+/[\w.-]+$", repository):
        place = repository.removeprefix("https://github.com/")
        ways += [
            f"[view on GitHub]({repository}/blob/HEAD/notebooks/{file})",
            f"[run on Binder](https://mybinder.org/v2/gh/{place}/HEAD?labpath=notebooks/{file})",
        ]
    return " · ".join(ways)


def front_matter(description, image=None):
    """The head of a page's Markdown: what others show of it, with the name of a figure."""
    lines = [f"description: {json.dumps(description, ensure_ascii=False)}", *([f"image: {image}"] if image else [])]
    return "\n".join(["---", *lines, "---"])


def title(path):
    """A notebook's title, as Markdown."""
    first = "".join(json.loads(path.read_text(encoding="utf-8"))["cells"][0]["source"])
    return re.match(r"# (.+)", first)[1]


def _described(source, figures):
    """Markdown whose pictures from `figures/` have their findings as alternative texts."""

    def described(match):
        return f"![{escaped(figures[match[1]])}]" + match[0].partition("]")[2] if match[1] in figures else match[0]

    return FIGURE.sub(described, source)


def _output(output, figures, where):
    if output["output_type"] == "stream":
        return _fenced("".join(output["text"]), "none")
    data = {kind: "".join(value) for kind, value in output.get("data", {}).items()}
    kind = next((kind for kind in _SHOWN if kind in data), None)
    if kind == "image/png" and (says := data.get("text/plain")) in figures:
        return results.figure(figures[says], says, up="../")
    if kind == "text/markdown":
        return data[kind]
    if kind == "text/plain":
        return _fenced(data[kind], "none")
    raise ValueError(f"{where}: an output of kind {sorted(data) or output['output_type']} has no place on a page")


def _fenced(code, language):
    role = "input" if language == "python" else "output"
    return f"````{{code-block}} {language}\n:class: {role}\n\n{code.rstrip()}\n````"
