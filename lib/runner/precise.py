"""The precise table: headline rows at the large preset, kept in `figures/large.json`, shown in `figures/large.md`.

A large run takes an hour and more; what it found stays here.
"""

import os
import platform
from datetime import date

import numpy as np
import scipy

from onestep.report import label, markdown_table, resolution

from . import records
from .project import write_if_changed
from .tables import failing, ledgers


def record(project, manifest):
    """Keep what the large runs of notebooks as they stand found, and show it."""
    found = {book["notebook"]: book for book in ledgers(project.outputs("large")[1])}
    kept = {}
    for notebook in project.notebooks():
        name, overrides = notebook.name, _overrides(project, notebook.name)
        entry = manifest.entries.get(name, {})
        if name not in found or entry.get("key") != notebook.key(overrides, project.environment):
            continue
        kept[name] = _entry(found[name], entry, notebook.code(overrides))
    records.update(project.root / "figures" / "large.json", kept, ("code", "verdicts", "failing"))
    show(project)


def _entry(book, entry, code):
    versions = f"Python {platform.python_version()}, numpy {np.__version__}, scipy {scipy.__version__}"
    return {
        "code": code,
        "date": date.today().isoformat(),
        "failing": failing(book),
        "gib": round(entry["peak_gib"], 1),
        "machine": f"{os.cpu_count()} cores, {versions}",
        "minutes": round(entry["seconds"] / 60, 1),
        "rows": len(book["rows"]),
        "verdicts": [row for row in book["rows"] if row["headline"]],
    }


def show(project):
    """Write `figures/large.md` anew, if a large run ever was."""
    kept = records.read(project.root / "figures" / "large.json")
    if kept:
        write_if_changed(project.root / "figures" / "large.md", text(project, kept))


def text(project, kept):
    """`figures/large.md`.   kept : as in `figures/large.json`."""
    notebooks = project.notebooks()
    usual = {
        (book["notebook"], row["quantity"]): resolution(row)
        for book in ledgers(project.root / "figures")
        for row in book["rows"]
        if not row["control"]
    }
    runs, body = [], []
    for notebook in notebooks:
        found = kept.get(notebook.name)
        state = records.state(found, notebook.code(_overrides(project, notebook.name)))
        if not found:
            runs.append([f"**{notebook.name}**", state, "", "", "", ""])
            continue
        numbers = [f"{found[name]:.1f}" for name in ("minutes", "gib")]
        runs.append([f"**{notebook.name}**", state, *numbers, str(found["rows"]), "<br>".join(found["failing"])])
        name = f"**{notebook.name}**"
        for row in found["verdicts"]:
            ours = [resolution(row), usual.get((notebook.name, row["quantity"]), "")]
            body.append([name, label(row), row["claimed"], row["measured"], *ours, row["verdict"]])
            name = ""
    machines = sorted({found["machine"] for found in kept.values()})
    verdicts = [row for found in kept.values() for row in found["verdicts"] if row["kind"] == "agreement"]
    parts = [
        "# The precise table",
        f"What `make figures PRESET=large` finds: larger sizes, more replicates. {len(kept)} of {len(notebooks)} "
        f"notebooks have run, {sum(found['minutes'] for found in kept.values()):.0f} minutes of them in all, two at a "
        f"time ({'; '.join(machines)}). Median resolution of their {len(verdicts)} headline agreement rows: "
        f"{100 * np.median([row['resolution'] for row in verdicts]) if verdicts else np.nan:.1f} %.",
        markdown_table(["notebook", "run on", "minutes", "GiB", "rows", "not as they should be"], runs),
        "## Headline rows",
        markdown_table(
            ["notebook", "quantity", "predicted", "measured ± s.e.", "resolution", "by default", "verdict"], body
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _overrides(project, name):
    return project.presets.get("large", {}).get(name, {})
