"""The table of other seeds: what notebooks do under ten other roots, kept in `figures/seeds.json`, shown in `seeds.md`.

Ten roots of all notebooks take an hour, those of a few only minutes: each notebook's line is of its own last ten.
"""

from datetime import date

import numpy as np

from onestep.estimates import Estimate
from onestep.report import markdown_table, resolution

from . import records
from .project import write_if_changed

ROOTS = tuple(range(101, 111))  # fixed before any of them was run


def found(name, runs, failed, count):
    """Record of one notebook, without date and code: how many rows it has, what failed by root, and pooled headlines.

    runs : its ledger under each of the `count` roots where nothing failed.   failed : {(root, notebook): message}.
    """
    lines = {str(root): " ".join(text.split()) for (root, failing), text in failed.items() if failing == name}
    return {"rows": len(runs[0]["rows"]) if runs else 0, "failed": lines, "headlines": pooled(runs, count)}


def pooled(runs, count):
    """Headline agreement rows over several roots: how far measured is from claimed, in per cent of the row's effect.

    runs : ledgers of one notebook; a row counts if all of the `count` roots have it.
    """
    rows = {}
    for book in runs:
        for row in book["rows"]:
            if row["headline"] and row["kind"] == "agreement" and row["values"].get("se"):
                rows.setdefault(row["quantity"], []).append(row)
    body = []
    for quantity, each in rows.items():
        if len(each) < max(count, 2):
            continue
        values = [(row["values"], row["values"]["tolerance"] / row["resolution"]) for row in each]
        off = np.array([(value["measured"] - value["claimed"]) / effect for value, effect in values])
        mean = Estimate(100 * off.mean(), 100 * off.std(ddof=1) / np.sqrt(off.size))
        one = resolution(each[0] | {"resolution": float(np.median([row["resolution"] for row in each]))})
        body.append({"quantity": quantity, "off": str(mean), "resolution": one})
    return body


def record(project, notebooks, kept):
    """Keep what the ten `ROOTS` found of these notebooks, as they stand, and show it.   kept : {name: `found`}."""
    today = date.today().isoformat()
    now = {book.name: kept[book.name] | {"code": book.code({}), "date": today} for book in notebooks}
    records.update(project.root / "figures" / "seeds.json", now, ("code", "rows", "failed", "headlines"))
    show(project)


def show(project):
    """Write `figures/seeds.md` anew, if ten roots ever were run."""
    kept = records.read(project.root / "figures" / "seeds.json")
    if kept:
        write_if_changed(project.root / "figures" / "seeds.md", text(project, kept))


def table(kept, states=None):
    """What failed under other roots, one line per notebook.   kept : {name: `found`}.   states : when it was run."""
    body = []
    for name, entry in kept.items():
        lines = "<br>".join(f"{root}: {message}" for root, message in entry["failed"].items())
        line = [str(entry["rows"]), str(len(entry["failed"])), lines]
        body.append([name, *([states[name]] if states else []), *line])
    return markdown_table(
        ["notebook", *(["run on"] if states else []), "rows", "roots that fail", "root: what failed"], body
    )


def text(project, kept):
    """`figures/seeds.md`.   kept : as in `figures/seeds.json`."""
    notebooks = {book.name: book for book in project.notebooks()}
    kept = {name: kept[name] for name in notebooks if name in kept}
    states = {name: records.state(kept[name], notebooks[name].code({})) for name in kept}
    body = [
        ["" if k else name, row["quantity"], row["off"], row["resolution"]]
        for name, entry in kept.items()
        for k, row in enumerate(entry["headlines"])
    ]
    off = [abs(float(row["off"].split()[0])) for entry in kept.values() for row in entry["headlines"]]
    summary = "None of these notebooks has a headline row that was measured with a standard error."
    if off:
        summary = (
            f"Of {len(off)} rows the median is {np.median(off):.2g} % off, {sum(np.less(off, 1))} lie within 1 %, and "
            f"the farthest is {max(off):.2g} % off."
        )
    parts = [
        "# Other seeds",
        f"What notebooks do at their default sizes under the roots {', '.join(map(str, ROOTS))}: "
        f"{len(kept)} of {len(notebooks)} have run.",
        table(kept, states),
        "## Headline rows, pooled",
        "A row of one run notices an error as large as its resolution, the mean over ten roots a third of that. Here "
        "is how far that mean lies from what is claimed, in per cent of the effect that the row is about, with its "
        "standard error. What stands out is what theory or extrapolation leaves out at these sizes.",
        summary,
        markdown_table(["notebook", "quantity", "off by, % of the effect", "resolution of one run"], body),
    ]
    return "\n\n".join(parts) + "\n"
