"""Which mistakes the unit tests notice: `python tools/mutation [beginning of a file's name ...]`, all in five minutes.

Every mutant in `mutants.toml` is one small mistake in one file of the library. For each the library is copied, the
mistake is made, and the unit tests run until the first failure: first those that the mutant names in `by`, or else the
one that noticed it when `README.md` was written, then those of the module's own test file, then all that `make unit`
runs; the runner's mistakes meet the runner's tests.
A test that hangs for ten minutes has noticed. In the end every test that noticed something runs on the library as it
is, and must pass there.

Prints what noticed each mutant, and how many of each file were noticed; a run over all mutants writes this to
`README.md`. Exits 1 if less than 95 % were noticed.
"""

import multiprocessing
import os
import shutil
import sys
import tempfile
import tomllib
from datetime import date
from importlib import import_module
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
ENOUGH = 0.95
PATIENCE = 600  # seconds
UNIT = [ROOT / "tests" / name for name in ("theory", "simulate", "report", "zhou_ge")]
UNIT += sorted(ROOT.glob("tests/test_*.py"))
LOADED = ("nbformat", "numpy", "scipy.interpolate", "scipy.optimize", "scipy.stats")  # before each fork
SLOW = [ROOT / "tests" / name for name in ("test_agreement.py", "simulate/test_cluster.py")]  # not in `make unit`


def main(wanted):
    mutants = read(HERE / "mutants.toml")
    for name in LOADED:
        import_module(name)
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
    print("\n".join(" | ".join(line) for line in counts(chosen)))
    if len(chosen) == len(mutants):
        (HERE / "README.md").write_text(report(chosen), encoding="utf-8")
    return int(sum(bool(mutant["noticed"]) for mutant in chosen) < ENOUGH * len(chosen))


def read(path):
    """The mutants, checked: each changes code that stands exactly once in its file into other code that compiles."""
    mutants = tomllib.loads(path.read_text(encoding="utf-8"))["mutant"]
    for mutant in mutants:
        if not {"file", "what", "old", "new"} <= set(mutant) <= {"file", "what", "old", "new", "by"}:
            raise ValueError(f"{mutant}: must have file, what, old and new, and may have by")
        source = (ROOT / "lib" / mutant["file"]).read_text(encoding="utf-8")
        where = f"{mutant['file']}: {mutant['old']!r}"
        if mutant["old"] == mutant["new"]:
            raise ValueError(f"{where}: new must be another text than old")
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


def groups(mutant, page=HERE / "README.md"):
    """Groups of tests for a mutant, the likeliest first.   page : where the test that noticed it last is looked up."""
    package, *rest = Path(mutant["file"]).parts
    inside = "runner" if package == "runner" else Path(*rest[:-1])
    own = ROOT / "tests" / inside / f"test_{rest[-1]}"
    everything = [ROOT / "tests/runner"] if package == "runner" else UNIT
    likely = mutant.get("by") or noticed_last(mutant, page.read_text(encoding="utf-8"))
    return [group for group in ([likely], [own.exists() and own], everything) if all(group)]


def noticed_last(mutant, text):
    """The test that a line of README.md names for this mutant, if there still is such a test."""
    for line in text.splitlines():
        cells = line[2:-2].split(" | ")
        if cells[:2] == [mutant["file"], mutant["what"]]:
            file, _, name = f"tests/{cells[2]}".partition("::")
            if (ROOT / file).exists() and f"def {name}(" in (ROOT / file).read_text(encoding="utf-8"):
                return f"{file}::{name}"
    return None


def first_failure(folder, tests):
    """The first test that fails with the library in `folder`, or None."""
    with tempfile.TemporaryFile("w+") as said:
        # A fork has numpy, scipy and pytest loaded: half the time of a new interpreter.
        child = multiprocessing.get_context("fork").Process(target=run_tests, args=(folder, tests, said.fileno()))
        child.start()
        child.join(PATIENCE)
        if child.is_alive():
            child.kill()
            return str(tests[0]).removeprefix(f"{ROOT}/")
        said.seek(0)
        text = said.read()
    failed = [line for line in text.splitlines() if line.startswith(("FAILED tests/", "ERROR tests/"))]
    if child.exitcode and not failed:
        raise RuntimeError(f"pytest ended with {child.exitcode} and no failed test:\n{text}")
    return failed[0].split(" ", 1)[1].split(" - ")[0] if failed else None


def run_tests(folder, tests, said):
    """In a process of its own: run tests with the library in `folder`; what pytest says goes to the file `said`."""
    os.dup2(said, 1)
    os.dup2(said, 2)
    os.chdir(ROOT)
    os.environ |= {"PYTHONPATH": str(folder / "lib"), "PYTHONPYCACHEPREFIX": str(folder / "compiled")}
    sys.path[:0] = [str(folder / "lib"), str(ROOT)]  # the root for tests that start processes of their own
    sys.pycache_prefix = str(folder / "compiled")
    options = ["-x", "-q", "--no-header", "-p", "no:cacheprovider", "-p", "no:nbval"]
    sys.exit(pytest.main([*options, *(f"--ignore={path}" for path in SLOW), *map(str, tests)]))


def counts(mutants):
    """Lines of a table: how many mutants of each file, and of all, were noticed."""
    lines = [("file", "noticed")]
    for file in [*dict.fromkeys(mutant["file"] for mutant in mutants), ""]:
        found = [bool(mutant["noticed"]) for mutant in mutants if mutant["file"] == file or not file]
        lines.append((file or "all", f"{sum(found)} of {len(found)}"))
    return lines


def table(head, *body):
    return "\n".join("| " + " | ".join(line).replace("\n", " ") + " |" for line in (head, ["---"] * len(head), *body))


def report(mutants):
    """The text of README.md."""
    body = []
    for mutant in mutants:
        test = (mutant["noticed"] or "nothing").replace("|", "\\|")
        body.append((mutant["file"], mutant["what"], test.removeprefix("tests/").split("[")[0]))
    return f"""# Mistakes that the unit tests notice

Written by `python tools/mutation` on {date.today().isoformat()}. Each mistake of `mutants.toml` was made alone, and
the unit tests ran until the first failure.

{table(*counts(mutants))}

{table(("file", "mistake", "first test that noticed"), *body)}
"""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
