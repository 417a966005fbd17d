"""What pages in `docs/` quote from the ledgers, written into them between comments that a reader does not see.

`<!-- row 13 stair 2 --> claimed | measured |`    two cells, of that notebook's first verdict with these words
`<!-- rows gain_1 not printed:begin -->`          a table of the verdicts on numbers that the page marks so
`<!-- erratum equation_3:begin -->`               a script of `docs/errata` and what it prints
`<!-- end -->`                                    the end of either
`<!-- gain_1 -->0.2958`                           a number with a name; a test compares it with the library
`![...](../figures/14_gains.png)`                 a figure, with its finding as alternative text
"""

import re
import sys

from onestep.report import cells, markdown_table

from .files import write_if_changed

ROW = re.compile(r"(<!-- row (\d\d) (.+?) -->)(?:(?:\\.|[^|\\\n])*\|){2}")
NUMBER = re.compile(r"<!-- (\w+) -->(-?[\d.]+\d)")
FIGURE = re.compile(r"!\[[^\]]*\]\((?:\.\./)?figures/(\w+)\.png\)")
_BLOCK = re.compile(r"(?s)(<!-- (rows|erratum) ([^>]+?):begin -->\n).*?(<!-- end -->)")
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>$|#])")


def update(root, ledgers):
    """Bring every page of `docs/` up to date with `ledgers`."""
    for path in sorted((root / "docs").glob("*.md")):
        write_if_changed(path, filled(root, path.read_text(encoding="utf-8"), ledgers))


def filled(root, text, ledgers):
    """A page's text with what it quotes in its places; a verdict or figure that is gone is named on standard error."""
    findings = {name: finding for ledger in ledgers for name, finding in ledger.get("figures", {}).items()}
    numbers = {name: float(value) for name, value in NUMBER.findall(text)}

    def figure(match):
        if match[1] not in findings:
            return _missing(match, f"no ledger names the figure {match[1]}")
        return re.sub(r"!\[[^\]]*\]", lambda _: f"![{escaped(findings[match[1]])}]", match[0])

    def block(match):
        if match[2] == "erratum":
            return f"{match[1]}\n{_erratum(root, match[3])}\n\n{match[4]}"
        right, wrong = ([numbers[name] for name in part.split()] for part in match[3].partition(" not ")[::2])
        table = _judged(ledgers, right, wrong)
        return f"{match[1]}\n{table}\n\n{match[4]}" if table else _missing(match, f"no verdict is about {match[3]}")

    def row(match):
        found = _row(ledgers, match[2], match[3])
        return f"{match[1]} {found} |" if found else _missing(match, f"no verdict of {match[2]} is on {match[3]!r}")

    text = ROW.sub(row, text)
    return _BLOCK.sub(block, FIGURE.sub(figure, text))


def escaped(text):
    """Text as Markdown that shows it as it is."""
    return _SPECIAL.sub(r"\\\1", text)


def _row(ledgers, number, wanted):
    """Claimed and measured of a notebook's first verdict whose quantity contains `wanted`, as two cells."""
    for row in (row for ledger in ledgers if ledger["notebook"][:2] == number for row in ledger["rows"]):
        if wanted in row["quantity"] and not row["control"]:
            return " | ".join(escaped(row[part]) for part in ("claimed", "measured"))
    return None


def _missing(match, what):
    print(f"warning: docs: {what}", file=sys.stderr)
    return match[0]


def _judged(ledgers, right, wrong):
    """A table of the rows that claim one of the numbers `right`, and of the controls that claim one of `wrong`."""
    body = []
    for ledger in ledgers:
        for row in ledger["rows"]:
            claimed, wanted = row.get("values", {}).get("claimed"), wrong if row["control"] else right
            if claimed is not None and any(abs(claimed - number) <= 1e-3 * abs(number) for number in wanted):
                quantity, value, measured, *_, verdict = cells([row])[0]
                link = f"([{ledger['notebook'][:2]}](../notebooks/{ledger['notebook']}.ipynb))"
                body.append([f"{escaped(quantity)} {link}", value, measured, verdict])
    return markdown_table(["quantity", "claimed", "measured ± s.e.", "verdict"], body) if body else None


def _erratum(root, name):
    script, output = ((root / f"docs/errata/{name}.{kind}").read_text("utf-8") for kind in ("py", "txt"))
    return f"```python\n{script}```\n\nIt prints:\n\n```text\n{output}```"
