"""Tables made of the ledgers in figures/, and what pages quote of them.

`python tools/tables.py` brings the pages up to date and runs nothing; `make figures` ends with it. A page quotes by
comments:

`<!-- verdicts:begin -->`                        a table of `parts`, up to `<!-- verdicts:end -->`
`<!-- equation_3:begin -->`                      in the same way a script of docs/errata and what it prints
`<!-- row 13 stair 2 --> claimed | measured |`   two cells, of that notebook's first row with these words, controls last
`<!-- gain_1 -->0.2958`                          a number with a name; a test compares it with the library
`![...](../figures/14_gains.png)`                a figure, with its finding as alternative text
"""

import re
import sys
import tomllib

import numpy as np

import records
from onestep.report import HEAD, cells, describe, folded, markdown_table, plain_table
from run_notebook import ROOT, UserError, done, load, write

FAR = 4  # standard errors: of eighty rows that are exactly right one would be so far off in one of twenty such tables
ROW = re.compile(r"(<!-- row (\d\d) (.+?) -->)(?:(?:\\.|[^|\\\n])*\|){2}")
FIGURE = re.compile(r"!\[[^\]]*\](\((?:\.\./)?figures/(\w+)\.png\))")
PART = re.compile(r"(?s)(<!-- (\w+):begin -->\n).*?(<!-- \2:end -->)")


def ledgers(folder):
    """All ledgers of a folder, in the order of the notebooks."""
    return [load(path) for path in sorted(folder.glob("[0-9][0-9]_*.json"))]


def outcome(task, said):
    """(a notebook's ledger or None, what is wrong).   said : by `run_notebook`."""
    if not done(task):
        return None, said
    book = load(task.figures / f"{task.name}.json")
    return book, "\n  ".join(describe(row) for row in book["rows"] if not row["passed"])


def conclude(found):
    """Print the verdicts of runs, what is wrong and where results lie; returns the exit status.

    found : [(task, ledger or None, what is wrong)].
    """
    lines = [(book["notebook"][:2], *line) for _, book, _ in found if book for line in cells(book["rows"])]
    print(plain_table([("notebook", *HEAD), *lines]))
    wrong = {task.name: message for task, _, message in found if message}
    for name, message in wrong.items():
        print(f"\n{name}: {message}", file=sys.stderr)
    state = f"{len(wrong)} of {len(found)} notebooks FAILED" if wrong else "as they should be"
    verdicts = [line[-1] for line in lines]
    counts = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in dict.fromkeys(verdicts))
    print(f"\n{len(lines)} rows{f' ({counts})' * bool(lines)}: {state}")
    if lines:
        task, *_ = found[0]
        print(f"results are in {task.book.parent.relative_to(ROOT)}/ and {task.figures.relative_to(ROOT)}/")
    return int(bool(wrong))


def pages():
    """{path: its text, as the ledgers and records make it}."""
    books = ledgers(ROOT / "figures")
    made = parts(books)
    every = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "figures").glob("*.md"))]
    return {page: quoted(page, books, made) for page in every}


def parts(books):
    """{name: Markdown}, what stands between two comments with this name."""
    large = records.read("large")
    made = records.large_tables(large) | records.seeds_tables(records.read("seeds"))
    made["results"] = results_table([book for book in books if book["notebook"].startswith("1")])
    made["claims"] = results_table(books, "../")
    made["glance"] = glance(books, large)
    made["off"], made["verdicts"] = off_table(books), all_verdicts(books)
    for path in (ROOT / "docs/errata").glob("*.py"):
        script, output = (path.with_suffix(kind).read_text(encoding="utf-8") for kind in (".py", ".txt"))
        made[path.stem] = f"```python\n{script}```\n\nIt prints:\n\n```text\n{output}```"
    return made


def results_table(books, up=""):
    """For each claim the row that is marked as its front: the claim's own quantity."""
    claims, body = {}, []
    for book in books:  # those that share the first label of a claim stand together
        claims.setdefault((re.findall(r"\b[BC]\d+\b", book["claim"]) or [book["claim"]])[0], []).append(book)
    for about in claims.values():
        source = f" ({about[0]['source'].split(';')[0]})".replace(" (this project)", "")  # which its label B says
        links = (f"[{book['notebook'][:2]}]({up}notebooks/{book['notebook']}.ipynb)" for book in about)
        claim = f"{about[0]['claim']}{source} {' '.join(links)}"
        for book in about:
            front = [row["quantity"] for row in book["rows"] if row.get("front")]
            for quantity, predicted, measured, _, sharp, _, control in folded(book["rows"])[1]:
                if quantity in front:
                    body.append([claim, quantity, predicted, measured, sharp, control.replace(", rejected", "")])
                    claim = ""  # further rows of the claim
    head = ["claim, source, notebooks", "quantity", "predicted", "measured ± s.e.", "resolution", "rejected controls"]
    return re.sub(r"(?<!\\)( ?)\|( ?)", "|", markdown_table(head, body))  # bars are no words


def standing(books):
    """(what other seeds say of headline rows, how sharp rows are, [ledger, quantity, off, why] of those off)."""
    reasons, seeds = load(ROOT / "notebooks/reasons.toml", tomllib.loads), records.read("seeds")
    pooled = {(name, row["quantity"]): row["off"] for name, record in seeds.items() for row in record["headlines"]}
    main = [(book, row) for book in books for row in book["rows"] if row["headline"]]
    sharp = [100 * row["resolution"] for _, row in main]
    far, significant = [], []
    for book, row in main:
        if off := pooled.get((book["notebook"], row["quantity"])):
            value, se = map(float, off.split(" ± "))
            far.append(abs(value))
            if far[-1] > FAR * se:
                known = reasons.get(book["notebook"], {}).items()
                why = next((reason for words, reason in known if words in row["quantity"]), "open")
                significant.append([book, row["quantity"], f"{value:+.2g} ± {se:.2g} %", why])
    if not far:
        return "No headline row has been run under other seeds", "", []
    said = (
        f"Averaged over {len(records.ROOTS)} other seeds, half of the {len(far)} main results that predict a value lie "
        f"within {np.median(far):.2g} % of it (in per cent of the effect), the worst {max(far):.2g} % off; "
        f"{len(significant)} are more than {FAR} standard errors off"
    )
    sharpness = (
        f"The committed run resolves {np.median(sharp):.1f} % of the effect in the median of all {len(sharp)} main "
        f"results, bounds included, {max(sharp):.0f} % at worst."
    )
    return said, sharpness, significant


def glance(books, large):
    """How far off the claims are, how many have which status, how many rows there are, what fails."""
    claims = (ROOT / "docs/claims.md").read_text(encoding="utf-8")
    status = [s.split(" for ")[0].split(";")[0] for s in re.findall(r"(?m)^\| [BC]\d+ \|.*\| ([^|]+) \|$", claims)]
    counted = ", ".join(f"{status.count(kind)} {kind}" for kind in sorted(set(status), reverse=True))
    rows = [row for book in books for row in book["rows"]]
    controls = sum(row["control"] for row in rows)
    statement, sharp, _ = standing(books)
    seeds, large = records.read("seeds").values(), large.values()
    return f"""\
- {len(status)} [claims](docs/claims.md): {counted}.
- {statement}: [reasons](figures/README.md). {sharp}
- {len(books)} notebooks, {len(rows) - controls} tests with {controls} controls that they must reject; \
{sum(not row["passed"] for row in rows)} fail. Under [other seeds](figures/seeds.md) \
a test or control fails in {sum(len(found["failed"]) for found in seeds)} of \
{sum(len(found["roots"]) for found in seeds)} runs. At [larger sizes](figures/large.md) \
{sum(len(found["failing"]) for found in large)} of {sum(found["rows"] for found in large)} tests and controls fail, \
each notebook as it stood on the day."""


def off_table(books):
    """How far off the claims are, and the rows that differ."""
    statement, sharp, significant = standing(books)
    body = [[book["notebook"], *line] for book, *line in significant]
    table = markdown_table(["notebook", "quantity", "off by, % of the effect", "why"], body)
    return f"{statement}. {sharp} The means that are off:\n\n{table}"


def all_verdicts(books):
    """Every row, a table for each notebook."""
    text = ""
    for book in books:
        table = markdown_table(*folded(book["rows"]))
        text += f"\n## {book['claim']}\n\n{book['source']}; `{book['notebook']}`\n\n{table}\n"
    return text.strip()


def quoted(page, books, made):
    """The text of a page with what it quotes in its places; a row, figure or part that is gone raises UserError."""
    findings = {name: finding for book in books for name, finding in book["figures"].items()}

    def row(match):
        rows = (row for book in books if book["notebook"][:2] == match[2] for row in book["rows"])
        for each in sorted(rows, key=lambda row: row["control"]):  # controls bear the words of others, too
            if match[3] in each["quantity"]:
                return f"{match[1]} {escaped(each['claimed'])} | {escaped(each['measured'])} |"
        raise UserError(f"{page} quotes {match[3]!r}, which no row of notebook {match[2]} has")

    def figure(match):
        if match[2] not in findings:
            raise UserError(f"{page} shows {match[2]}, which no notebook draws")
        return f"![{escaped(findings[match[2]])}]{match[1]}"

    def part(match):
        if match[2] not in made:
            raise UserError(f"{page} quotes {match[2]}, of which there is no table")
        return f"{match[1]}\n{made[match[2]]}\n\n{match[3]}"

    return PART.sub(part, FIGURE.sub(figure, ROW.sub(row, page.read_text(encoding="utf-8"))))


def escaped(text):
    """Text as Markdown that shows it as it is."""
    return re.sub(r"([\\`*_{}\[\]<>$|#])", r"\\\1", text)


if __name__ == "__main__":
    try:
        write(pages())
    except (UserError, OSError) as error:
        sys.exit(f"error: {error}")
