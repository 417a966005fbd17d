"""Tables of results: made of the ledgers that notebooks write, and of records of runs that are too long to repeat.

README.md, figures/README.md    headline rows, and all rows, of the committed set
docs/*.md                       what pages quote: see `documents`
figures/large.md                headline rows at the large preset; records in figures/large.json
figures/seeds.md                what fails under other roots; records in figures/seeds.json

A record has its date and the digest of what it is of, so that a notebook that has changed since is recognised: the code
and parameters of a large run; for other roots, the rows that the default run prints.
"""

import json
import os
import platform
import re
from datetime import date
from pathlib import Path

import numpy as np
import scipy

from onestep.estimates import Estimate
from onestep.report import describe, folded, label, markdown_table, resolution

from . import documents
from .files import write_atomically, write_if_changed
from .notebook import digest

ROOTS = (*range(101, 111), *range(201, 211))  # the other roots, fixed before any of them was run
FEWEST = 10  # of them, from the first on, make a record
PARTS = {part: re.compile(rf"(?s)(<!-- {part}:begin -->).*?(<!-- {part}:end -->)") for part in ("glance", "results")}


def update(project):
    """Bring the README's table of results up to date, and those in `figures/`."""
    existing = {notebook.name for notebook in project.notebooks()}
    ledgers = [ledger for ledger in read_ledgers(project.root / "figures") if ledger["notebook"] in existing]
    page = all_verdicts(ledgers, read_records(project.root, "large"))
    write_if_changed(project.root / "figures" / "README.md", page)
    readme = project.root / "README.md"
    if readme.exists():
        write_if_changed(readme, filled(project.root, readme.read_text(encoding="utf-8"), ledgers))
    documents.update(project.root, ledgers)
    for name in ("large", "seeds"):
        _show_records(project, name)


def filled(root, text, ledgers):
    """The README's text with what is made of the ledgers in its places."""
    claims = root / "docs" / "claims.md"
    made = {"results": results_table(ledgers) if ledgers else ""}
    if claims.exists() and ledgers:
        made["glance"] = glance(
            ledgers, claims.read_text(encoding="utf-8"), read_records(root, "large"), read_records(root, "seeds")
        )
    for part, content in made.items():
        text = PARTS[part].sub(lambda match, content=content: f"{match[1]}\n\n{content}\n\n{match[2]}", text)
    return text


def read_ledgers(folder):
    """All ledgers in `folder`, in the order of the notebooks."""
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(Path(folder).glob("[0-9][0-9]_*.json"))]


def failing(ledger):
    """The rows of a ledger that are not as they should be, in words."""
    return [describe(row) for row in ledger["rows"] if not row["passed"]]


def results_table(ledgers):
    """The README's table: for each claim the headline row that came closest to failing, with its first control."""
    body = []
    for about in by_claim(ledgers):
        rows = [(row, ledger) for ledger in about for row in measured(ledger)]
        row, ledger = max(rows, key=lambda pair: strain(pair[0]))
        verdict = "" if row["passed"] else f" **{row['verdict']}**"
        links = " ".join(f"[{b['notebook'][:2]}](notebooks/{b['notebook']}.ipynb)" for b in about)
        source = f" ({about[0]['source'].split(';')[0]})".replace(" (this project)", "")  # which its label B says
        claim = f"{about[0]['claim']}{source} {links}"
        quantity = re.sub(r"[:,]? (simulated|drawn) / predicted", ", ratio", label(row))
        body.append(
            [claim, quantity, row["claimed"], row["measured"] + verdict, resolution(row), control_of(row, ledger)]
        )
    head = ["claim, source, notebooks", "row closest to failing", "predicted", "measured ± s.e.", "resolution"]
    return re.sub(r"(?<!\\)( ?)\|( ?)", "|", markdown_table([*head, "rejected control"], body))  # bars are no words


def by_claim(ledgers):
    """Ledgers that share a claim's label, in lists."""
    groups = []
    for ledger in ledgers:
        labels = set(re.findall(r"\b[BC]\d+\b", ledger["claim"])) or {ledger["claim"]}
        shared = next((group for group in groups if group[0] & labels), None)
        if shared:
            shared[0].update(labels)
            shared[1].append(ledger)
        else:
            groups.append((labels, [ledger]))
    return [about for _, about in groups]


def measured(ledger):
    """Headline rows of a ledger that have a control, or its first three measurements where none is marked."""
    rows = [row for row in ledger["rows"] if row["kind"] in ("agreement", "bound")]
    rows = [row for row in rows if row["headline"]] or rows[:3]
    return [row for row in rows if control_of(row, ledger)] or rows


def strain(row):
    """How close a row is to failing: its distance from what is claimed over its tolerance; more for one that fails."""
    values = row.get("values")
    if not row["passed"] or row["kind"] != "agreement" or not values:
        return np.inf if not row["passed"] else 0.0
    return abs(values["measured"] - values["claimed"]) / values["tolerance"]


def control_of(row, ledger):
    """The name of the first control of a row."""
    names = [other["quantity"] for other in ledger["rows"] if other["control"]]
    return next((name[len(row["quantity"]) + 2 :] for name in names if name.startswith(f"{row['quantity']}: ")), "")


def glance(ledgers, claims, large, seeds):
    """How many claims have which status, how many rows there are, how small an error they would notice, what fails.

    claims : the text of `docs/claims.md`, whose tables state a status in their last column.
    large, seeds : the records of `figures/large.json` and of `figures/seeds.json`.
    """
    found = re.findall(r"(?m)^\| [BC]\d+ \|.*\| ([^|]+) \|$", claims)
    kinds = ("verified after correction", "verified", "not reproduced", "partly verified")
    counted = {kind: sum(status.split(" for ")[0].split(";")[0] == kind for status in found) for kind in kinds}
    rows = [row for ledger in ledgers for row in ledger["rows"]]
    controls = sum(row["control"] for row in rows)
    sharp = [row["resolution"] for row in rows if row["headline"] and not row["control"]]
    said = [f"{number} {kind}" for kind, number in counted.items() if number]
    large = {ledger["notebook"]: large[ledger["notebook"]] for ledger in ledgers if ledger["notebook"] in large}
    failed = {name: len(found["failing"]) for name, found in large.items() if found["failing"]}
    places = ", ".join(f"[{name[:2]}](notebooks/{name}.ipynb)" for name in sorted(failed))
    return "\n".join(
        [
            f"- {len(found)} [claims](docs/claims.md): {', '.join(said)}.",
            f"- {len(ledgers)} notebooks, {len(rows) - controls} tests with {controls} controls that they must reject; "
            f"{sum(not row['passed'] for row in rows)} fail.",
            f"- Headline rows would notice an error of {100 * np.median(sharp):.1f} % (median), "
            f"{100 * max(sharp):.1f} % at most.",
            f"- Runs under [other seeds](figures/seeds.md) in which a row fails: "
            f"{sum(len(found['failed']) for found in seeds.values())} of "
            f"{sum(found['roots'] for found in seeds.values())}.",
            f"- At larger sizes, in {len(large)} notebooks, {sum(failed.values())} of "
            f"{sum(found['rows'] for found in large.values())} fail"
            + (f", in {places}: [what and why](docs/large.md)." if failed else "."),
        ]
    )


def all_verdicts(ledgers, large):
    """`figures/README.md`: every row of `ledgers`, a table for each, and which rows fail in the records `large`."""
    parts = [
        "# All verdicts",
        "*Claimed* is the predicted or printed value, or a bound. *Tolerance* is how far the measured value may lie "
        "from it: standard errors, an allowance for what is not noise, or both. *Resolution* is the smallest relative "
        "error that the row detects. A *control* is the claim made false on purpose, with the wrong value or "
        "measurement; the row must reject it.",
    ]
    for ledger in ledgers:
        table = markdown_table(*folded(ledger["rows"]))
        parts.append(f"## {ledger['claim']}\n\n{ledger['source']}; `{ledger['notebook']}`\n\n{table}")
        parts += [
            f"At larger sizes this row fails: {row}." for row in large.get(ledger["notebook"], {}).get("failing", ())
        ]
    return "\n\n".join(parts) + "\n"


def read_records(root, name):
    """{notebook: record} of `figures/<name>.json`; empty if there is no such file yet."""
    path = root / "figures" / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def keep_records(project, name, found, parts):
    """Keep each record in `found` that differs from the one kept in any of these `parts`, and show all of them."""
    kept = read_records(project.root, name)
    for notebook, now in found.items():
        if notebook not in kept or any(now[part] != kept[notebook][part] for part in parts):
            kept[notebook] = now
    text = json.dumps(kept, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    write_atomically(project.root / "figures" / f"{name}.json", text.encode())
    _show_records(project, name)


def _show_records(project, name):
    if records := read_records(project.root, name):
        page = {"large": large_page, "seeds": seeds_page}[name]
        write_if_changed(project.root / "figures" / f"{name}.md", page(project, records))


def record_large(project, manifest):
    """Keep what the large runs of notebooks as they stand found, and show it."""
    found = {ledger["notebook"]: ledger for ledger in read_ledgers(project.outputs("large")[1])}
    kept = {}
    for notebook in project.notebooks():
        name, overrides = notebook.name, project.values("large", notebook.name)
        entry = manifest.entries.get(name, {})
        if name in found and entry.get("key") == notebook.key(overrides, project.environment):
            kept[name] = _large_entry(found[name], entry, notebook.code(overrides))
    keep_records(project, "large", kept, ("code", "verdicts", "failing"))


def _large_entry(ledger, entry, code):
    versions = f"Python {platform.python_version()}, numpy {np.__version__}, scipy {scipy.__version__}"
    return {
        "code": code,
        "date": date.today().isoformat(),
        "failing": failing(ledger),
        "gib": round(entry["peak_gib"], 1),
        "machine": f"{os.cpu_count()} cores, {versions}",
        "minutes": round(entry["seconds"] / 60, 1),
        "rows": len(ledger["rows"]),
        "verdicts": [row for row in ledger["rows"] if row["headline"]],
    }


def large_page(project, kept):
    """`figures/large.md`.   kept : as in `figures/large.json`."""
    notebooks = project.notebooks()
    runs, body, edited = _large_rows(project, notebooks, kept)
    machines = sorted({found["machine"] for found in kept.values()})
    verdicts = [row for found in kept.values() for row in found["verdicts"] if row["kind"] == "agreement"]
    versions = "Each is a result of the notebook as it stands."
    if edited:
        versions = (
            "Each is a result of the notebook as it stood on the date given. The code or parameters of "
            f"{len(edited)} of them ({', '.join(edited)}) are others today; these have not run again at this preset."
        )
    parts = [
        "# The precise table",
        f"What `make figures PRESET=large` finds: larger sizes, more replicates. {len(kept)} of {len(notebooks)} "
        f"notebooks have run, {sum(found['minutes'] for found in kept.values()):.0f} minutes of them in all, two at a "
        f"time ({'; '.join(machines)}). Median resolution of their {len(verdicts)} headline agreement rows: "
        f"{100 * np.median([row['resolution'] for row in verdicts]) if verdicts else np.nan:.1f} %.",
        versions,
        markdown_table(["notebook", "run on", "minutes", "GiB", "rows", "not as they should be"], runs),
        "## Headline rows",
        markdown_table(
            ["notebook", "quantity", "predicted", "measured ± s.e.", "resolution", "by default", "verdict"], body
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _large_rows(project, notebooks, kept):
    """Lines of the runs and of their headline rows, and the numbers of the notebooks that are others today."""
    usual = {
        (ledger["notebook"], row["quantity"]): resolution(row)
        for ledger in read_ledgers(project.root / "figures")
        for row in ledger["rows"]
        if not row["control"]
    }
    runs, body, edited = [], [], []
    for notebook in notebooks:
        name, found = f"**{notebook.name}**", kept.get(notebook.name)
        if not found:
            runs.append([name, "not yet", "", "", "", ""])
            continue
        if found["code"] != notebook.code(project.values("large", notebook.name)):
            edited.append(notebook.name[:2])
        numbers = [f"{found[name]:.1f}" for name in ("minutes", "gib")]
        runs.append([name, found["date"], *numbers, str(found["rows"]), "<br>".join(found["failing"])])
        for row in found["verdicts"]:
            ours = [resolution(row), usual.get((notebook.name, row["quantity"]), "")]
            body.append([name, label(row), row["claimed"], row["measured"], *ours, row["verdict"]])
            name = ""
    return runs, body, edited


def seeds_found(name, runs, failed, count):
    """Record of one notebook, but for date and ledger: its roots, its rows, what failed by root, and pooled headlines.

    runs : its ledger under each of the `count` roots at which it ran to its end.
    failed : {(root, notebook): message}.
    """
    lines = {str(root): " ".join(text.split()) for (root, failing), text in failed.items() if failing == name}
    rows = len(runs[0]["rows"]) if runs else 0
    return {"roots": count, "rows": rows, "failed": lines, "headlines": pooled(runs, count)}


def pooled(runs, count):
    """How far the mean over roots is from what is claimed, for each headline agreement row of one notebook.

    runs : its ledgers; a row counts if all of the `count` roots have it. Returns a list of {"quantity", "off",
    "resolution"}, texts: the mean of (measured - claimed)/effect in per cent, and the median resolution of one run.
    """
    rows = {}
    for ledger in runs:
        for row in ledger["rows"]:
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


def record_seeds(project, found):
    """Keep what the first of the `ROOTS` found of notebooks, and show it.   found : {notebook: its `seeds_found`}."""
    today, now = date.today().isoformat(), rows_printed(project)
    records = {name: record | {"ledger": now.get(name), "date": today} for name, record in found.items()}
    keep_records(project, "seeds", records, ("ledger", "roots", "rows", "failed", "headlines"))


def not_to_record(project, runs, found):
    """{notebook: why what was found of it is no new record}.   runs : {notebook: its ledgers}.   found : {notebook: …}.

    It ran with other rows than its committed ledger has, or under fewer roots than the record of the same rows.
    """
    committed = {ledger["notebook"]: ledger for ledger in read_ledgers(project.root / "figures")}
    names = {name: [row["quantity"] for row in ledger["rows"]] for name, ledger in committed.items()}
    printed, kept, reasons = rows_printed(project), read_records(project.root, "seeds"), {}
    for name, record in found.items():
        old = kept.get(name, {"roots": 0, "ledger": None})
        if any([row["quantity"] for row in ledger["rows"]] != names.get(name) for ledger in runs.get(name, ())):
            reasons[name] = f"as figures/{name}.json has other rows: run it at default first"
        elif old["roots"] > record["roots"] and old["ledger"] == printed.get(name):
            reasons[name] = f"as figures/seeds.json has {old['roots']} roots of the same rows: run it under as many"
    return reasons


def rows_printed(project):
    """{notebook: digest of what the rows of its committed ledger print}.

    While its default run prints the same rows, what other roots found of a notebook stands, whatever moved in the code.
    """
    parts = ("quantity", "claimed", "measured", "tolerance")
    printed = {
        ledger["notebook"]: [[row[part] for part in parts] for row in ledger["rows"]]
        for ledger in read_ledgers(project.root / "figures")
    }
    return {name: digest(json.dumps(rows, ensure_ascii=False).encode()) for name, rows in printed.items()}


def seeds_table(found, states=None):
    """What failed under other roots, one line per notebook.

    found : {notebook: its `seeds_found`}.   states : {notebook: when it was run}.
    """
    body = []
    for name, entry in found.items():
        lines = "<br>".join(f"{root}: {message}" for root, message in entry["failed"].items())
        line = [str(entry["roots"]), str(entry["rows"]), str(len(entry["failed"])), lines]
        body.append([name, *([states[name]] if states else []), *line])
    return markdown_table(
        ["notebook", *(["run on"] if states else []), "roots", "rows", "roots that fail", "root: what failed"], body
    )


def seeds_page(project, kept):
    """`figures/seeds.md`.   kept : as in `figures/seeds.json`."""
    notebooks, printed = [notebook.name for notebook in project.notebooks()], rows_printed(project)
    kept = {name: kept[name] for name in notebooks if name in kept}
    states = {
        name: record["date"] + ("" if record["ledger"] == printed.get(name) else "; changed since")
        for name, record in kept.items()
    }
    missing = [name for name in notebooks if name not in kept]
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
        f"What notebooks do at their default sizes under {FEWEST} or more of the roots "
        f"{', '.join(map(str, ROOTS))}: {len(kept)} of {len(notebooks)} have run"
        + (f"; not yet {', '.join(missing)}. " if missing else ". ")
        + f"Of these {sum(entry['roots'] for entry in kept.values())} runs "
        f"{sum(len(entry['failed']) for entry in kept.values())} had a row that failed.",
        seeds_table(kept, states),
        "## Headline rows, pooled",
        "A row of one run notices an error as large as its resolution, the mean over ten roots a third of that, over "
        "twenty less than a fourth. Here is how far that mean lies from what is claimed, in per cent of the effect "
        "that the row is about, with its standard error. What stands out is what theory or extrapolation leaves "
        "out at these sizes.",
        summary,
        markdown_table(["notebook", "quantity", "off by, % of the effect", "resolution of one run"], body),
    ]
    return "\n\n".join(parts) + "\n"
