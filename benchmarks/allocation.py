"""`python benchmarks/allocation.py`: what each notebook costs and each headline row resolves, as allocation.md.

CPU seconds are those of the last `make figures` here, budgets those of notebooks/presets.toml, and resolutions those of
the committed ledgers.
"""

import json
import math
import sys
from datetime import date
from pathlib import Path

import numpy as np

from onestep.report import markdown_table
from runner.files import write_atomically
from runner.project import Project
from runner.tables import read_ledgers

HERE = Path(__file__).resolve().parent
HEAD = [
    "notebook",
    "budget, CPU s",
    "CPU s",
    "headline rows",
    "resolution: median",
    "worst",
    "median with one CPU minute more",
    "CPU s for 5 % in the worst row",
]
ROW_HEAD = ["notebook", "headline row", "resolution", "CPU s of its notebook"]
MINUTE, AIM = 60.0, 0.05


def resolutions(book):
    """Resolutions of a ledger's headline rows that compare measured with claimed, by quantity."""
    rows = [row for row in book["rows"] if row["headline"] and row["kind"] == "agreement"]
    return {row["quantity"]: row["resolution"] for row in rows if row["resolution"]}


def line(name, budget, seconds, found):
    """One line of the table.

    Parameters
    ----------
    name : str
    budget, seconds : float
        CPU seconds that the notebook may take, and those that it took.
    found : array
        Resolutions of its headline rows. A resolution falls with the root of the time spent on replicates.
    """
    start = [name, f"{budget:.0f}", f"{seconds:.0f}", f"{found.size}"]
    if not found.size:
        return [*start, "", "", "", ""]
    median, worst = np.median(found), found.max()
    more = median * math.sqrt(seconds / (seconds + MINUTE))
    return [*start, *map(percent, (median, worst, more)), f"{seconds * (worst / AIM) ** 2:.0f}"]


def table(project):
    """The lines of both tables, and all headline resolutions.

    Raises
    ------
    FileNotFoundError
        Some notebook has not run in this folder, or has no ledger.
    """
    path = project.build / "manifest" / "default.json"
    costs = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    resolved = {book["notebook"]: resolutions(book) for book in read_ledgers(project.root / "figures")}
    names = [book.name for book in project.notebooks()]
    if missing := [name for name in names if name not in costs or name not in resolved]:
        raise FileNotFoundError(f"not run in this folder: {', '.join(missing)}; `make figures` runs them")
    lines, rows = [], []
    for name in names:
        cpu = costs[name]["cpu"]
        lines.append(line(name, project.seconds("default", name), cpu, np.array(list(resolved[name].values()))))
        rows += [[name, quantity, percent(share), f"{cpu:.0f}"] for quantity, share in resolved[name].items()]
    return lines, rows, np.array([share for name in names for share in resolved[name].values()])


def page(lines, rows, found):
    """The text of allocation.md: a table of notebooks, and one of headline rows."""
    budget, seconds = (sum(float(each[column]) for each in lines) for column in (1, 2))
    median, worst = np.median(found), np.max(found)
    more = median * math.sqrt(seconds / (seconds + MINUTE))
    return f"""# What a minute of the set buys

`python benchmarks/allocation.py` writes this page. CPU seconds of the last run of each notebook, the start of its
kernel and its figures included; two notebooks run at a time, so that the whole takes about half of their sum.
A row's resolution is the smallest relative error it would notice. It falls with the root of the number of replicates:
the last column but one says what one more CPU minute would make of the median if it went to that notebook alone, and
the last what the notebook would take if its worst headline row had to notice 5 %.

Measured on {date.today().isoformat()}: {len(lines)} notebooks, {seconds:.0f} CPU s of a budget of {budget:.0f};
{found.size} headline rows, median resolution {percent(median)}, worst {percent(worst)}.
One more CPU minute, spread over all of them, would make the median {percent(more)}.

{markdown_table(HEAD, lines)}

## Headline rows

{markdown_table(ROW_HEAD, rows)}
"""


def percent(share):
    return f"{100 * share:.2g} %"


def main(folder=HERE, root=HERE.parent):
    try:
        text = page(*table(Project(root)))
    except FileNotFoundError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(text)
    write_atomically(folder / "allocation.md", text.encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
