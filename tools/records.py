"""Records of runs too long to repeat, each with its date: figures/large.json and seeds.json, and their tables.

large    what `make figures PRESET=large` found
seeds    what fails under other roots, and how far main results lie from what is claimed in the mean over `ROOTS`
"""

import json
import sys
from datetime import date

import numpy as np

from onestep.estimates import Estimate
from onestep.report import describe, label, markdown_table, resolution
from run_notebook import ROOT, done, load, write

ROOTS = tuple(range(301, 321))  # the other roots, fixed before any of them was run


def read(kind):
    """{notebook: record}; empty if there is none yet."""
    path = ROOT / f"figures/{kind}.json"
    return load(path) if path.exists() else {}


def keep(kind, found):
    """Put records in place of those of the same notebooks."""
    kept = dict(sorted((read(kind) | found).items()))
    write({ROOT / f"figures/{kind}.json": json.dumps(kept, indent=1, sort_keys=True, ensure_ascii=False) + "\n"})


def keep_large(found):
    """Keep what large runs found.   found : as in `tables.conclude`."""
    kept = {}
    for task, book, _ in (each for each in found if each[1]):
        kept[task.name] = {
            "date": date.today().isoformat(),
            "minutes": round(done(task)["seconds"] / 60, 1),
            "rows": len(book["rows"]),
            "failing": [describe(row) for row in book["rows"] if not row["passed"]],
            "verdicts": [row for row in book["rows"] if row["headline"]],
        }
    keep("large", kept)


def large_tables(kept):
    """Parts of figures/large.md."""
    runs = [[n, r["date"], f"{r['minutes']:.1f}", str(r["rows"]), "<br>".join(r["failing"])] for n, r in kept.items()]
    rows = [(name, row) for name, r in kept.items() for row in r["verdicts"]]
    body = [[n, label(r), r["claimed"], r["measured"], resolution(r), r["verdict"]] for n, r in rows]
    said = f"The median resolution is {100 * np.median([row['resolution'] for _, row in rows]):.1f} %." if rows else ""
    head = ["notebook", "quantity", "predicted", "measured ± s.e.", "resolution", "verdict"]
    return {
        "large_runs": markdown_table(["notebook", "run on", "minutes", "rows", "not as they should be"], runs),
        "large_rows": f"{said}\n\n{markdown_table(head, body)}",
    }


def seeds(found, roots):
    """Say what failed under these roots, and keep it if they are all of `ROOTS`; returns the exit status.

    found : as in `tables.conclude`.
    """
    kept = {}
    for name in dict.fromkeys(task.name for task, *_ in found):
        runs = [(task.in_force["seed"], book, message) for task, book, message in found if task.name == name]
        failed = {str(root): " ".join(message.split()) for root, _, message in runs if message}
        books = [book for _, book, _ in runs if book]
        kept[name] = {"date": date.today().isoformat(), "roots": list(roots), "failed": failed}
        kept[name] |= pooled(books if len(books) == len(roots) > 1 else [])
    print(*seeds_tables(kept).values(), sep="\n\n")
    if tuple(roots) == ROOTS:
        keep("seeds", kept)
    else:
        print("not kept in figures/seeds.md, which is of the twenty roots of `make seeds`", file=sys.stderr)
    return int(any(record["failed"] for record in kept.values()))


def pooled(books):
    """Main results in the mean over roots: agreements in per cent of the effect off the claim, bounds as measured."""
    rows = {}
    for row in (row for book in books for row in book["rows"]):
        if row["headline"] and row["kind"] in ("agreement", "bound") and row.get("values", {}).get("se"):
            rows.setdefault(row["quantity"], []).append(row)
    found = {"headlines": [], "bounds": []}
    for quantity, each in rows.items():
        keys = ("measured", "claimed", "tolerance")
        measured, claimed, tolerance = np.transpose([[row["values"][key] for key in keys] for row in each])
        sharp = np.array([row["resolution"] for row in each])
        bound = each[0]["kind"] == "bound"
        values = measured if bound else 100 * (measured - claimed) * sharp / tolerance
        mean = str(Estimate(values.mean(), values.std(ddof=1) / np.sqrt(values.size)))
        told = {"bound": each[0]["claimed"], "mean": mean} if bound else {"off": mean}
        told |= {"quantity": quantity, "resolution": f"{100 * np.median(sharp):.2g} %"}
        found["bounds" if bound else "headlines"].append(told)
    return found


def seeds_tables(kept):
    """Parts of figures/seeds.md."""
    runs, body, bounds = [], [], []
    for name, r in kept.items():
        failed = "<br>".join(f"{root}: {text}" for root, text in r["failed"].items())
        runs.append([name, r["date"], str(len(r["failed"])), failed])
        body += [[name, row["quantity"], row["off"], row["resolution"]] for row in r["headlines"]]
        bounds += [[name, row["quantity"], row["bound"], row["mean"], row["resolution"]] for row in r["bounds"]]
    head, sharp = ["notebook", "quantity"], "resolution of one run"
    return {
        "seeds_runs": markdown_table(["notebook", "run on", "roots that fail", "root: what failed"], runs),
        "seeds_rows": markdown_table([*head, "off by, % of the effect", sharp], body),
        "seeds_bounds": markdown_table([*head, "bound", "mean over roots", sharp], bounds),
    }
