"""Figures, gallery and verdicts as Markdown, made of the ledgers."""

import json

from onestep.report import folded, markdown_table
from runner.documents import escaped


def figure(name, finding, label=None, up="", links=""):
    """A committed figure: its finding is its alternative text and its caption; a tap shows the picture in full.

    label : the anchor, if another than `anchor(name)`.   up : from the page to the site's root, "../" in a folder.
    links : a line below the caption, as Markdown; on pages of many figures, which load as one comes near them.
    """
    options = {"alt": json.dumps(finding, ensure_ascii=False), "target": f"{up}_images/{name}.png"}
    options |= {"name": label or anchor(name)} | ({"loading": "lazy"} if links else {})
    lines = [f":::{{figure}} /figures/{name}.png", *(f":{key}: {value}" for key, value in options.items())]
    return "\n".join([*lines, "", escaped(finding), *(["", links] if links else []), ":::"])


def anchor(name):
    """Where a figure stands on its notebook's page."""
    return f"figure-{name.replace('_', '-')}"


def gallery(books, titles):
    """Every figure with its finding, its data and its place, by notebook.

    books : the ledgers.   titles : the notebooks' titles by name.
    """
    parts = []
    for book in books:
        name = book["notebook"]
        parts.append(f"## {titles[name]}\n\n::::{{container}} gallery")
        for picture, finding in sorted(book["figures"].items()):
            links = f"[in the notebook](/notebooks/{name}.md#{anchor(picture)}) · [data (.npz)](/figures/{picture}.npz)"
            parts.append(figure(picture, finding, f"gallery-{anchor(picture)}", links=links))
        parts.append("::::")
    return "\n\n".join(parts)


def verdicts(books, large):
    """For each notebook its claim and its main rows, and what fails in the records `large`; all rows unfold below."""
    parts = []
    for book in books:
        failing = large.get(book["notebook"], {}).get("failing", ())
        main = headlines(book["rows"])
        beside = [row for row in book["rows"] if row.get("of") in {row["quantity"] for row in main}]
        parts += [
            f"## {escaped(book['claim'])}",
            f"{escaped(book['source'])}; [{book['notebook']}](/notebooks/{book['notebook']}.md)",
            markdown_table(*folded([*main, *beside])),
            *(f"**At [larger sizes](/large.md) this row fails:** {escaped(row)}." for row in failing),
            f"<details><summary>All {len(book['rows'])} rows</summary>",
            markdown_table(*folded(book["rows"])),
            "</details>",
        ]
    return "\n\n".join(parts)


def headlines(rows):
    """The rows that a notebook marks as its main ones, or its first three measurements."""
    marked = [row for row in rows if row["headline"]]
    return marked or [row for row in rows if row["kind"] in ("agreement", "bound")][:3]


def tally(books):
    """How many rows there are and whether all are as they should be, as a sentence."""
    rows = [row for book in books for row in book["rows"]]
    controls, failing = sum(row["control"] for row in rows), sum(not row["passed"] for row in rows)
    outcome = f"{failing} are not as they should be" if failing else "all are as they should be"
    return f"{len(books)} notebooks end in {len(rows)} verdicts, {controls} of them negative controls: {outcome}."
