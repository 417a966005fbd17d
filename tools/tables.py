"""Tables made of the ledgers in figures/: README's, figures/README.md, and what the pages of docs/ quote.

`python tools/tables.py` writes them anew and runs nothing; `make figures` ends with it. A page quotes by comments:

`<!-- row 13 stair 2 --> claimed | measured |`   two cells, of that notebook's first verdict with these words
`<!-- rows gain_1 not printed:begin -->`         a table of the verdicts on numbers that the page marks so
`<!-- erratum equation_3:begin -->`              a script of docs/errata and what it prints
`<!-- end -->`                                   the end of either
`<!-- gain_1 -->0.2958`                          a number with a name; a test compares it with the library
`![...](../figures/14_gains.png)`                a figure, with its finding as alternative text
"""

import json
import re
import sys

import numpy as np

import records
from onestep.report import HEAD, cells, folded, label, markdown_table, plain_table, resolution
from run_notebook import ROOT, write

ROW = re.compile(r"(<!-- row (\d\d) (.+?) -->)(?:(?:\\.|[^|\\\n])*\|){2}")
NUMBER = re.compile(r"<!-- (\w+) -->(-?[\d.]+\d)")
FIGURE = re.compile(r"!\[[^\]]*\](\((?:\.\./)?figures/(\w+)\.png\))")
BLOCK = re.compile(r"(?s)(<!-- (rows|erratum) ([^>]+?):begin -->\n).*?(<!-- end -->)")


def conclude(found, notebooks, figures):
    """Print the verdicts of runs, what is wrong and where results lie; returns the exit status.

    found : [(task, ledger or None, what is wrong, what is known of its run)].
    """
    books = [book for _, book, _, _ in found if book]
    lines = [(book["notebook"][:2], *line) for book in books for line in cells(book["rows"])]
    print(plain_table([("notebook", *HEAD), *lines]))
    wrong = {task.name: message for task, _, message, _ in found if message}
    for name, message in wrong.items():
        print(f"\n{name}: {message}", file=sys.stderr)
    state = f"{len(wrong)} of {len(found)} notebooks FAILED" if wrong else "as they should be"
    cost = sum(known.get("cpu", 0) for *_, known in found)
    places = " and ".join(f"{folder.relative_to(ROOT)}/" for folder in (notebooks, figures))
    print(f"\n{len(lines)} verdicts, {state}; {cost:.0f} CPU s of notebooks; results are in {places}")
    return int(bool(wrong))


def update():
    """Write what is made of the committed ledgers and records."""
    for path, text in pages().items():
        write(path, text.encode())


def pages():
    """{path: its text, as the ledgers and records make it}."""
    books, large, seeds = ledgers(ROOT / "figures"), records.read("large"), records.read("seeds")
    made = {ROOT / "figures/README.md": all_verdicts(books, large)}
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for part, content in (("results", results_table(books)), ("glance", glance(books, large, seeds))):
        block = re.compile(rf"(?s)(<!-- {part}:begin -->).*?(<!-- {part}:end -->)")
        readme = block.sub(lambda match, content=content: f"{match[1]}\n\n{content}\n\n{match[2]}", readme)
    made[ROOT / "README.md"] = readme
    for page in sorted((ROOT / "docs").glob("*.md")):
        made[page] = quoted(page.read_text(encoding="utf-8"), books)
    return made


def ledgers(folder):
    """All ledgers of a folder, in the order of the notebooks."""
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("[0-9][0-9]_*.json"))]


def results_table(books):
    """For each claim the headline row that came closest to failing, with its first control."""
    head = ["claim, source, notebooks", "row closest to failing", "predicted", "measured ± s.e.", "resolution"]
    body = []
    for about in by_claim(books):
        row, book = max(((row, book) for book in about for row in measured(book)), key=lambda pair: strain(pair[0]))
        links = " ".join(f"[{b['notebook'][:2]}](notebooks/{b['notebook']}.ipynb)" for b in about)
        source = f" ({about[0]['source'].split(';')[0]})".replace(" (this project)", "")  # which its label B says
        quantity = re.sub(r"[:,]? (simulated|drawn) / predicted", ", ratio", label(row))
        found = [row["claimed"], row["measured"], resolution(row), control_of(row, book)]
        body.append([f"{about[0]['claim']}{source} {links}", quantity, *found])
    return re.sub(r"(?<!\\)( ?)\|( ?)", "|", markdown_table([*head, "rejected control"], body))  # bars are no words


def by_claim(books):
    """Ledgers that share a claim's label, in lists."""
    groups = []
    for book in books:
        labels = set(re.findall(r"\b[BC]\d+\b", book["claim"])) or {book["claim"]}
        shared = next((group for group in groups if group[0] & labels), None)
        if not shared:
            groups.append(shared := (set(), []))
        shared[0].update(labels)
        shared[1].append(book)
    return [about for _, about in groups]


def measured(book):
    """Headline rows of a ledger that have a control, or its first three measurements where none is marked."""
    rows = [row for row in book["rows"] if row["kind"] in ("agreement", "bound")]
    rows = [row for row in rows if row["headline"]] or rows[:3]
    return [row for row in rows if control_of(row, book)] or rows


def strain(row):
    """How close a row is to failing: its distance from what is claimed over its tolerance."""
    if row["kind"] != "agreement":
        return 0.0
    return abs(row["values"]["measured"] - row["values"]["claimed"]) / row["values"]["tolerance"]


def control_of(row, book):
    """The name of the first control of a row."""
    start = f"{row['quantity']}: "
    controls = [other["quantity"] for other in book["rows"] if other["control"]]
    return next((name.removeprefix(start) for name in controls if name.startswith(start)), "")


def glance(books, large, seeds):
    """How many claims have which status, how many rows there are, how small an error they would notice, what fails."""
    claims = (ROOT / "docs/claims.md").read_text(encoding="utf-8")
    status = [s.split(" for ")[0].split(";")[0] for s in re.findall(r"(?m)^\| [BC]\d+ \|.*\| ([^|]+) \|$", claims)]
    kinds = ("verified after correction", "verified", "not reproduced", "partly verified")
    counted = ", ".join(f"{status.count(kind)} {kind}" for kind in kinds if kind in status)
    rows = [row for book in books for row in book["rows"]]
    controls = sum(row["control"] for row in rows)
    sharp = [100 * row["resolution"] for row in rows if row["headline"] and not row["control"]]
    wrong = {name: len(found["failing"]) for name, found in sorted(large.items()) if found["failing"]}
    places = ", ".join(f"[{name[:2]}](notebooks/{name}.ipynb)" for name in wrong)
    return f"""\
- {len(status)} [claims](docs/claims.md): {counted}.
- {len(books)} notebooks, {len(rows) - controls} tests with {controls} controls that they must reject; \
{sum(not row["passed"] for row in rows)} fail.
- Headline rows would notice an error of {np.median(sharp):.1f} % (median), {max(sharp):.1f} % at most.
- Runs under [other seeds](figures/seeds.md) in which a row fails: \
{sum(len(found["failed"]) for found in seeds.values())} of {sum(found["roots"] for found in seeds.values())}.
- At larger sizes, in {len(large)} notebooks, {sum(wrong.values())} of \
{sum(found["rows"] for found in large.values())} fail{f", in {places}: [what and why](docs/large.md)" * bool(wrong)}."""


def all_verdicts(books, large):
    """`figures/README.md`: every row, a table for each notebook."""
    text = """# All verdicts

*Claimed* is the predicted or printed value, or a bound. *Tolerance* is how far the measured value may lie \
from it: standard errors, an allowance for what is not noise, or both. *Resolution* is the smallest relative \
error that the row detects. A *control* is the claim made false on purpose, with the wrong value or \
measurement; the row must reject it.
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
    update()
