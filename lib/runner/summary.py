"""What a run says of itself when it ends: verdicts, failures, cost, and whether it reproduces what is committed."""

import sys

from . import tables

MOST = 6  # differences named for one notebook


def outcome(planned, name, result):
    """One line on a notebook that has run."""
    if not result.run:
        return "FAILED"
    need = planned.project.memory(planned.preset, name)
    more = f" (notebooks/presets.toml states {need:g})" if result.run.peak_gib > need else ""
    budget = planned.project.seconds(planned.preset, name)
    over = f" (its budget is {budget:g})" if 0 < budget < result.run.cpu else ""
    parts = [f"{result.run.seconds:.0f} s", f"{result.run.cpu:.0f} CPU s{over}", f"{result.run.peak_gib:.2f} GiB{more}"]
    if planned.label == "default":
        parts.append("differs from what was there" if result.differences else "as before")
    return ", ".join(parts + [f"VERDICTS FAIL, kept in build/{planned.label}"] * bool(result.message))


def failures(planned, results):
    """What is wrong with each notebook: with those that ran, and with rows of the others when they did."""
    found = {name: result.message for name, result in results.items() if result.message}
    names = {notebook.name for notebook in planned.notebooks} - set(results)
    ledgers = tables.read_ledgers(planned.project.outputs(planned.label)[1])
    failing = {ledger["notebook"]: tables.failing(ledger) for ledger in ledgers if ledger["notebook"] in names}
    return {name: verdicts_fail(rows) for name, rows in failing.items() if rows} | found


def verdicts_fail(rows):
    """The message for a notebook whose rows, in words, are not as they should be."""
    return "\n  ".join(["these verdicts fail:", *rows])


def conclude(planned, results):
    """Print verdicts, failures, cost and where results lie; bring the tables up to date; return the exit status."""
    from onestep.report import HEAD, cells, plain_table

    wrong = failures(planned, results)
    ledgers = {ledger["notebook"]: ledger for ledger in tables.read_ledgers(planned.project.outputs(planned.label)[1])}
    finished = [ledgers[notebook.name] for notebook in planned.current()]
    lines = [("notebook", *HEAD)]
    lines += [(ledger["notebook"][:2], *line) for ledger in finished for line in cells(ledger["rows"])]
    print(plain_table(lines))
    for name, message in wrong.items():
        print(f"\n{name}: {message}", file=sys.stderr)
    if planned.label == "default":
        tables.update(planned.project)
    costs = [planned.manifest.entries[ledger["notebook"]] for ledger in finished]
    seeds = {each.name[:2]: (each.parameters | planned.values[each.name]).get("seed") for each in planned.notebooks}
    state = f"{len(wrong)} of {len(planned.notebooks)} notebooks FAILED" if wrong else "as they should be"
    print(f"\nroot seed by notebook: {', '.join(f'{number}: {seed}' for number, seed in seeds.items())}")
    print(f"{len(lines) - 1} verdicts, {state}; {sum(cost['cpu'] for cost in costs):.0f} CPU s of notebooks, ", end="")
    print(f"at most {max((cost['peak_gib'] for cost in costs), default=0.0):.1f} GiB in one")
    notebooks, figures = (path.relative_to(planned.project.root) for path in planned.project.outputs(planned.label))
    print(f"executed notebooks: {notebooks}/, figures and verdicts: {figures}/")
    if planned.label == "default":
        print(reproduction(results))
    return 1 if wrong else 0


def reproduction(results):
    """What the committed set's notebooks that ran say of the results that were there, the sentence that counts last."""
    lines = []
    same = [name for name, result in results.items() if result.run and not result.differences]
    for name, result in results.items():
        if result.differences:
            lines += [f"{name} differs from the results that were there, and is written anew:"]
            lines += [f"  {each}" for each in result.differences[:MOST]]
            lines += [f"  and {len(result.differences) - MOST} more"] * (len(result.differences) > MOST)
    if same and len(same) == len(results):
        lines.append(f"reproduces the committed figures: all {len(same)} that ran")
    elif results:
        lines.append(f"{len(same)} of the {len(results)} notebooks that ran reproduce the committed figures")
    else:
        lines.append("nothing had to run: the results are those of the last run")
    return "\n".join(lines)
