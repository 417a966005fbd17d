"""Which mistakes the unit tests notice: `python tools/mutation [beginning of a file's name ...]`, all in ten minutes.

Every mutant in `mutants.toml` is one small mistake in one file of the library. For each the library is copied, the
mistake is made, and the unit tests run until the first failure: first those that the mutant names in `by`, if it does,
then those of the module's own test file, then all that `make unit` runs; the runner's mistakes meet the runner's tests.
A test that hangs for ten minutes has noticed. In the end every test that noticed something runs on the library as it
is, and must pass there.

Prints what noticed each mutant, and the share noticed of each of the two lists ("audit", "new"); a run over all mutants
writes this to `README.md`. Exits 1 if less than 95 % of either list was noticed.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from datetime import date
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
ENOUGH = 0.95
PATIENCE = 600  # seconds
LISTS = ("audit", "new")
UNIT = [ROOT / "tests" / name for name in ("theory", "simulate", "report", "zhou_ge")]
UNIT += sorted(ROOT.glob("tests/test_*.py"))
SLOW = [ROOT / "tests" / name for name in ("test_agreement.py", "simulate/test_cluster.py")]  # not in `make unit`


def main(wanted):
    mutants = read(HERE / "mutants.toml")
    chosen = [mutant for mutant in mutants if not wanted or mutant["file"].startswith(tuple(wanted))]
    if not chosen:
        sys.exit(f"no mutant's file begins with {' or '.join(wanted)}")
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        folder = Path(folder)
        shutil.copytree(ROOT / "lib", folder / "lib", ignore=shutil.ignore_patterns("__pycache__"))
        for number, mutant in enumerate(chosen, 1):
            mutant["noticed"] = try_one(folder, mutant, number)
            found = mutant["noticed"] or "SURVIVES"
            print(f"{number:3d} {mutant['file']:35s} {mutant['what']:72s} {found}", flush=True)
        noticing = sorted({mutant["noticed"] for mutant in chosen if mutant["noticed"]})
        if noticing and (wrong := first_failure(folder, noticing)):
            sys.exit(f"{wrong} fails on the library as it is, so that it notices nothing")
    print("\n".join(" | ".join(line) for line in shares(chosen)))
    if len(chosen) == len(mutants):
        (HERE / "README.md").write_text(report(chosen), encoding="utf-8")
    return int(any(share(part) < ENOUGH for part in parts(chosen).values()))


def read(path):
    """The mutants, checked: each changes code that stands exactly once in its file into other code that compiles."""
    mutants = tomllib.loads(path.read_text(encoding="utf-8"))["mutant"]
    for mutant in mutants:
        if not {"list", "file", "what", "old", "new"} <= set(mutant) <= {"list", "file", "what", "old", "new", "by"}:
            raise ValueError(f"{mutant}: must have list, file, what, old and new, and may have by")
        source = (ROOT / "lib" / mutant["file"]).read_text(encoding="utf-8")
        where = f"{mutant['file']}: {mutant['old']!r}"
        if mutant["list"] not in LISTS or mutant["old"] == mutant["new"]:
            raise ValueError(f"{where}: list must be one of {LISTS}, and new another text than old")
        if source.count(mutant["old"]) != 1:
            raise ValueError(f"{where} stands there {source.count(mutant['old'])} times, not once")
        compile(source.replace(mutant["old"], mutant["new"]), mutant["file"], "exec")
    return mutants


def try_one(folder, mutant, number):
    """The test that notices a mutant, or None."""
    path = folder / "lib" / mutant["file"]
    right, before = path.read_text(encoding="utf-8"), path.stat().st_mtime
    path.write_text(right.replace(mutant["old"], mutant["new"]), encoding="utf-8")
    os.utime(path, (number, number))  # a time of its own, so that no compiled file of another text is taken for it
    try:
        return next(filter(None, (first_failure(folder, tests) for tests in groups(mutant))), None)
    finally:
        path.write_text(right, encoding="utf-8")
        os.utime(path, (before, before))


def groups(mutant):
    """Groups of tests for a mutant, the likeliest first."""
    package, *rest = Path(mutant["file"]).parts
    inside = "runner" if package == "runner" else Path(*rest[:-1])
    own = ROOT / "tests" / inside / f"test_{rest[-1]}"
    everything = [ROOT / "tests/runner"] if package == "runner" else UNIT
    return [group for group in ([mutant.get("by")], [own.exists() and own], everything) if all(group)]


def first_failure(folder, tests):
    """The first test that fails with the library in `folder`, or None."""
    compiled = {"PYTHONPATH": str(folder / "lib"), "PYTHONPYCACHEPREFIX": str(folder / "compiled")}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider", "-p", "no:nbval"]
    command += [f"--ignore={path}" for path in SLOW] + list(map(str, tests))
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=os.environ | compiled, capture_output=True, text=True, timeout=PATIENCE
        )
    except subprocess.TimeoutExpired:
        return str(tests[0]).removeprefix(f"{ROOT}/")
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    if done.returncode and not failed:
        raise RuntimeError(f"pytest ended with {done.returncode} and no failed test:\n{done.stdout}{done.stderr}")
    return failed[0].split(" ", 1)[1].split(" - ")[0] if failed else None


def parts(mutants):
    """The mutants of each list that has any."""
    return {name: found for name in LISTS if (found := [mutant for mutant in mutants if mutant["list"] == name])}


def share(mutants):
    return sum(bool(mutant["noticed"]) for mutant in mutants) / len(mutants)


def shares(mutants):
    """Lines of a table: of each file's mutants, and of all, how many each list's were noticed."""
    lines = [("file", *LISTS)]
    for file in [*dict.fromkeys(mutant["file"] for mutant in mutants), ""]:
        found = parts([mutant for mutant in mutants if mutant["file"] == file or not file])
        counts = [
            f"{sum(bool(mutant['noticed']) for mutant in part)} of {len(part)}" if (part := found.get(name)) else ""
            for name in LISTS
        ]
        lines.append((file or "all", *counts))
    return lines


def table(head, *body):
    return "\n".join("| " + " | ".join(line).replace("\n", " ") + " |" for line in (head, ["---"] * len(head), *body))


def report(mutants):
    """The text of README.md."""
    body = []
    for mutant in mutants:
        test = (mutant["noticed"] or "nothing").replace("|", "\\|")
        body.append((mutant["file"], mutant["list"], mutant["what"], test.removeprefix("tests/").split("[")[0]))
    return f"""# Mistakes that the unit tests notice

Written by `python tools/mutation` on {date.today().isoformat()}. Each mistake of `mutants.toml` was made alone, and
the unit tests ran until the first failure. "audit": mistakes of an earlier list, of which the tests of then missed two
in five; "new": mistakes in younger code.

{table(*shares(mutants))}

{table(("file", "list", "mistake", "first test that noticed"), *body)}
"""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
