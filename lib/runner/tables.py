"""Tables of results, made of the ledgers that notebooks write."""

import json
from pathlib import Path

from onestep.report import describe, folded, label, markdown_table, resolution


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
        table = markdown_table(*folded(book["rows"]))
        parts.append(f"## {book['claim']}\n\n{book['source']}; `{book['notebook']}`\n\n{table}")
    return "\n\n".join(parts)
