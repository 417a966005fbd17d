"""Tables made of the ledgers in figures/: README's, figures/README.md, and what the pages of docs/ quote.

`python tools/tables.py` writes them anew and runs nothing; `make figures` ends with it. A page quotes by comments:

`<!-- row 13 stair 2 --> claimed | measured |`   two cells, of that notebook's first verdict with these words
`<!-- rows gain_1 not printed:begin -->`         a table of the verdicts on numbers that the page marks so
`<!-- erratum equation_3:begin -->`              a script of docs/errata and what it prints
`<!-- end -->`                                   the end of either
`<!-- gain_1 -->0.2958`                          a number with a name; a test compares it with the library
`![...](../figures/14_gains.png)`                a figure, with its finding as alternative text
"""

import re
import sys
import tomllib

import numpy as np

import records
from onestep.report import HEAD, cells, folded, label, markdown_table, plain_table, resolution
from run_notebook import ROOT, UserError, load, write

FAR = 4  # standard errors: of eighty rows that are exactly right one would be so far off in one of twenty such tables
ROW = re.compile(r"(<!-- row (\d\d) (.+?) -->)(?:(?:\\.|[^|\\\n])*\|){2}")
NUMBER = re.compile(r"<!-- (\w+) -->(-?[\d.]+\d)")
FIGURE = re.compile(r"!\[[^\]]*\](\((?:\.\./)?figures/(\w+)\.png\))")
BLOCK = re.compile(r"(?s)(<!-- (rows|erratum) ([^>]+?):begin -->\n).*?(<!-- end -->)")
PART = re.compile(r"(?s)(<!-- (results|glance):begin -->\n).*?(<!-- \2:end -->)")


def ledgers(folder):
    """All ledgers of a folder, in the order of the notebooks."""
    books = {path: load(path) for path in sorted(folder.glob("[0-9][0-9]_*.json"))}
    for path, book in books.items():
        whole = isinstance(book, dict) and {"notebook", "claim", "source", "figures", "rows"} <= book.keys()
        if not whole or not all({"quantity", "verdict", "claimed", "measured"} <= row.keys() for row in book["rows"]):
            raise UserError(f"{path} is no ledger; git has the committed one")
    return list(books.values())


def conclude(found, folders):
    """Print the verdicts of runs, what is wrong and where results lie; returns the exit status.

    found : [(task, ledger or None, what is wrong, what is known of its run)].
    """
    lines = [(book["notebook"][:2], *line) for _, book, *_ in found if book for line in cells(book["rows"])]
    print(plain_table([("notebook", *HEAD), *lines]))
    wrong = {task.name: message for task, _, message, _ in found if message}
    for name, message in wrong.items():
        print(f"\n{name}: {message}", file=sys.stderr)
    state = f"{len(wrong)} of {len(found)} notebooks FAILED" if wrong else "as they should be"
    verdicts = [line[-1] for line in lines]
    counts = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in dict.fromkeys(verdicts))
    cost = sum(known.get("cpu", 0) for *_, known in found)
    print(f"\n{len(lines)} rows{f' ({counts})' if lines else ''}: {state}")
    if lines:
        places = " and ".join(f"{folder.relative_to(ROOT)}/" for folder in folders)
        print(f"{cost:.0f} CPU s of notebooks; results are in {places}")
    return int(bool(wrong))


def update():
    """Write what is made of the committed ledgers and records."""
    write({path: text.encode() for path, text in pages().items()})


def pages():
    """{path: its text, as the ledgers and records make it}."""
    books, large = ledgers(ROOT / "figures"), records.read("large")
    known = {book["notebook"] for book in books}
    for path in sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb")):
        if path.stem not in known:
            print(f"warning: figures/{path.stem}.json is missing; the tables leave {path.stem} out", file=sys.stderr)
    parts = {"results": results_table(books), "glance": glance(books, large)}
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    made = {ROOT / "README.md": PART.sub(lambda match: f"{match[1]}\n{parts[match[2]]}\n\n{match[3]}", readme)}
    made[ROOT / "figures/README.md"] = all_verdicts(books, large)
    for page in sorted((ROOT / "docs").glob("*.md")):
        made[page] = quoted(page.read_text(encoding="utf-8"), books)
    return made


def results_table(books):
    """For each claim the row that is marked as its front: the claim's own quantity."""
    claims, body = {}, []
    for book in books:  # those that share the first label of a claim stand together
        claims.setdefault((re.findall(r"\b[BC]\d+\b", book["claim"]) or [book["claim"]])[0], []).append(book)
    for about in claims.values():
        links = " ".join(f"[{b['notebook'][:2]}](notebooks/{b['notebook']}.ipynb)" for b in about)
        source = f" ({about[0]['source'].split(';')[0]})".replace(" (this project)", "")  # which its label B says
        rows = [row for book in about for row in book["rows"]]
        for row in (row for row in rows if row.get("front")):
            quantity = re.sub(r"[:,]? (simulated|drawn) / predicted", ", ratio", label(row))
            control = next(each["name"] for each in rows if each.get("of") == row["quantity"])
            found = [row["claimed"], row["measured"], resolution(row), control]
            body.append([f"{about[0]['claim']}{source} {links}", quantity, *found])
    head = ["claim, source, notebooks", "quantity", "predicted", "measured ± s.e.", "resolution", "rejected control"]
    return re.sub(r"(?<!\\)( ?)\|( ?)", "|", markdown_table(head, body))  # bars are no words


def standing(books):
    """(what other seeds say of the headline rows, [notebook, quantity, off, why] of those off significantly)."""
    rows = {(book["notebook"], row["quantity"]): row for book in books for row in book["rows"] if row["headline"]}
    path, far, significant = ROOT / "notebooks/reasons.toml", [], []
    reasons = load(path, tomllib.loads) if path.exists() else {}
    for name, record in records.read("seeds").items():
        still = [row for row in record["headlines"] if (name, row["quantity"]) in rows]
        for row in still:
            off, se = map(float, row["off"].split(" ± "))
            far.append(abs(off))
            why = [reason for words, reason in reasons.get(name, {}).items() if words in row["quantity"]]
            if abs(off) > FAR * se:
                significant.append([name, row["quantity"], f"{off:+.2g} ± {se:.2g} %", (why or ["open"])[0]])
    sharp = [100 * row["resolution"] for row in rows.values()]
    if not far:
        return "No headline row has been run under other seeds", []
    drawn = [row for row in rows.values() if row["kind"] == "agreement" and row["values"]["se"]]
    newer = len(drawn) - len(far)
    more = f"; {newer} newer rows have not run so" if newer else ""
    return (
        f"In the mean over {len(records.ROOTS)} other seeds a headline row lies {np.median(far):.2g} % from what is "
        f"claimed (median of {len(far)} rows; {max(far):.2g} % at worst{more}). One run tolerates "
        f"{np.median(sharp):.1f} % (median; {max(sharp):.1f} % at most). All are in per cent of the "
        f"effect that the row is about"
    ), significant


def glance(books, large):
    """How far off the claims are, how many have which status, how many rows there are, what fails."""
    claims = (ROOT / "docs/claims.md").read_text(encoding="utf-8")
    status = [s.split(" for ")[0].split(";")[0] for s in re.findall(r"(?m)^\| [BC]\d+ \|.*\| ([^|]+) \|$", claims)]
    kinds = ("verified after correction", "verified", "not reproduced", "partly verified")
    counted = ", ".join(f"{status.count(kind)} {kind}" for kind in kinds if kind in status)
    rows = [row for book in books for row in book["rows"]]
    controls = sum(row["control"] for row in rows)
    statement, significant = standing(books)
    far = {}
    for name, _, value, _ in significant:
        far.setdefault(name, []).append(value.split()[0])
    off = ", ".join(f"[{name[:2]}](notebooks/{name}.ipynb) {' and '.join(each)} %" for name, each in far.items())
    wrong = {name: len(found["failing"]) for name, found in sorted(large.items()) if found["failing"]}
    places = ", ".join(f"[{name[:2]}](notebooks/{name}.ipynb)" for name in wrong)
    seeds = records.read("seeds").values()
    return f"""\
- {statement}.
- {len(significant)} of these means are off by more than {FAR} standard errors, [why](figures/README.md): {off}.
- {len(status)} [claims](docs/claims.md): {counted}.
- {len(books)} notebooks, {len(rows) - controls} tests with {controls} controls that they must reject; \
{sum(not row["passed"] for row in rows)} fail.
- Runs under [other seeds](figures/seeds.md), of each notebook as it stood on the day, in which a row fails: \
{sum(len(found["failed"]) for found in seeds)} of {sum(found["roots"] for found in seeds)}. \
Rows that failed were [mended](docs/seeds.md) and ran again under the same seeds.
- At [larger sizes](figures/large.md), in {len(large)} notebooks as each stood when it was last run so, \
{sum(wrong.values())} of {sum(found["rows"] for found in large.values())} rows fail\
{f", in {places}: [what and why](docs/large.md)" * bool(wrong)}."""


def all_verdicts(books, large):
    """`figures/README.md`: how far off the claims are, and every row, a table for each notebook."""
    statement, significant = standing(books)
    text = f"""# All verdicts

{statement}. {len(significant)} of these means are off by more than {FAR} standard errors:

{markdown_table(["notebook", "quantity", "off by, % of the effect", "why"], significant)}

*Claimed* is the predicted or printed value, or a bound. *Tolerance* is how far the measured value may lie from it: \
standard errors, an allowance for what is not noise, or both. *Resolution* is the tolerance over the effect: an error \
of this size is noticed every other time, one twice as large nearly always. A *control* is the claim made false on \
purpose, with the wrong value or measurement; the row must reject it.
"""
    for book in books:
        table = markdown_table(*folded(book["rows"]))
        text += f"\n## {book['claim']}\n\n{book['source']}; `{book['notebook']}`\n\n{table}\n"
        for row in large.get(book["notebook"], {}).get("failing", ()):
            text += f"\nAt larger sizes this row fails: {row}.\n"
    return text


def quoted(text, books):
    """A page with what it quotes in its places; a verdict or figure that is gone is named on standard error."""
    findings = {name: finding for book in books for name, finding in book["figures"].items()}
    numbers = {name: float(value) for name, value in NUMBER.findall(text)}
    rows = [(book["notebook"], row) for book in books for row in book["rows"]]

    def kept(match, what):
        print(f"warning: docs: {what}; the old text stays", file=sys.stderr)
        return match[0]

    def row(match):
        for name, each in rows:
            if name[:2] == match[2] and match[3] in each["quantity"] and not each["control"]:
                return f"{match[1]} {escaped(each['claimed'])} | {escaped(each['measured'])} |"
        return kept(match, f"no verdict of {match[2]} is on {match[3]!r}")

    def block(match):
        if match[2] == "erratum":
            script, output = ((ROOT / f"docs/errata/{match[3]}.{kind}").read_text("utf-8") for kind in ("py", "txt"))
            return f"{match[1]}\n```python\n{script}```\n\nIt prints:\n\n```text\n{output}```\n\n{match[4]}"
        right, wrong = ([numbers[name] for name in part.split()] for part in match[3].partition(" not ")[::2])
        body = []
        for name, each in rows:
            claimed, wanted = each.get("values", {}).get("claimed"), wrong if each["control"] else right
            if claimed is not None and any(abs(claimed - number) <= 1e-3 * abs(number) for number in wanted):
                quantity, value, found, *_, verdict = cells([each])[0]
                body.append([f"{escaped(quantity)} ([{name[:2]}](../notebooks/{name}.ipynb))", value, found, verdict])
        table = markdown_table(["quantity", "claimed", "measured ± s.e.", "verdict"], body)
        return f"{match[1]}\n{table}\n\n{match[4]}" if body else kept(match, f"no verdict is about {match[3]}")

    def figure(match):
        finding = findings.get(match[2])
        return f"![{escaped(finding)}]{match[1]}" if finding else kept(match, f"no ledger has the figure {match[2]}")

    return BLOCK.sub(block, FIGURE.sub(figure, ROW.sub(row, text)))


def escaped(text):
    """Text as Markdown that shows it as it is."""
    return re.sub(r"([\\`*_{}\[\]<>$|#])", r"\\\1", text)


if __name__ == "__main__":
    try:
        update()
    except (UserError, OSError) as error:
        sys.exit(f"error: {error}")
