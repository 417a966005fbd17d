"""Tables of results, made of the ledgers that notebooks write."""

import json
from pathlib import Path

import numpy as np

from onestep.estimates import Estimate
from onestep.report import HEAD, cells, describe, label, markdown_table, resolution


def ledgers(folder):
    """All ledgers in `folder`, in the order of the notebooks."""
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(Path(folder).glob("[0-9][0-9]_*.json"))]


def failing(book):
    """The rows of a ledger that are not as they should be, in words."""
    return [describe(row) for row in book["rows"] if not row["passed"]]


def results_table(books):
    """The README's table: the headline rows of every ledger, or its first three measurements where none is marked."""
    head = ["claim", "source", "quantity", "predicted", "measured ± s.e.", "resolution", "verdict"]
    body = []
    for book in books:
        rows = [row for row in book["rows"] if row["headline"]]
        rows = rows or [row for row in book["rows"] if row["kind"] in ("agreement", "bound")][:3]
        claim, source = f"[{book['claim']}](notebooks/{book['notebook']}.ipynb)", book["source"]
        for row in rows:
            line = [label(row), row["claimed"], row["measured"], resolution(row), row["verdict"]]
            body.append([claim, source, *line])
            claim = source = ""
    return markdown_table(head, body)


def full_table(books):
    """Every row of every ledger in `books`, one table per notebook."""
    parts = []
    for book in books:
        table = markdown_table(HEAD, cells(book["rows"]))
        parts.append(f"## {book['claim']}\n\n{book['source']}; `{book['notebook']}`\n\n{table}")
    return "\n\n".join(parts)


def seeds_table(rows, failed):
    """What failed under other roots, one line per notebook.

    rows : {notebook: how many rows it has}.   failed : {(root, notebook): message}.
    """
    body = []
    for name, count in rows.items():
        lines = [f"{root}: {' '.join(text.split())}" for (root, failing), text in failed.items() if failing == name]
        body.append([name, str(count), str(len(lines)), "<br>".join(lines)])
    return markdown_table(["notebook", "rows", "roots that fail", "root: what failed"], body)


def pooled_table(runs):
    """Headline agreement rows over several roots: how far measured is from claimed, in per cent of the row's effect.

    runs : ledgers of each root; a row counts where every root has it.
    """
    found = {}
    for books in runs:
        for book in books:
            for row in book["rows"]:
                if row["headline"] and row["kind"] == "agreement" and row["values"].get("se"):
                    found.setdefault((book["notebook"], row["quantity"]), []).append(row)
    body, last = [], ""
    for (name, quantity), rows in found.items():
        if len(rows) < len(runs):
            continue
        values = [(row["values"], row["values"]["tolerance"] / row["resolution"]) for row in rows]
        off = np.array([(value["measured"] - value["claimed"]) / effect for value, effect in values])
        pooled = Estimate(100 * off.mean(), 100 * off.std(ddof=1) / np.sqrt(off.size))
        one = resolution(rows[0] | {"resolution": float(np.median([row["resolution"] for row in rows]))})
        body.append(["" if name == last else name, quantity, str(pooled), one])
        last = name
    return markdown_table(["notebook", "quantity", "off by, % of the effect", "resolution of one run"], body)
