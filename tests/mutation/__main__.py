"""Which mistakes the unit tests notice: `python tests/mutation [module ...]`, about half an hour for all.

Every mutant in `mutants.toml` is one small mistake in one file of the library. For each the library is copied, the
mistake is made, and the unit tests run until the first failure: those of the module's own test file first, then those
where theory meets simulation, then all others. Prints what noticed each mutant, and the share noticed; exits 1 if that
is below 95 %.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
ENOUGH = 0.95


def main(wanted):
    mutants = tomllib.loads((HERE / "mutants.toml").read_text(encoding="utf-8"))["mutant"]
    mutants = [mutant for mutant in mutants if not wanted or any(mutant["file"].startswith(name) for name in wanted)]
    noticed = 0
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        shutil.copytree(ROOT / "lib", Path(folder, "lib"), ignore=shutil.ignore_patterns("__pycache__"))
        for number, mutant in enumerate(mutants, 1):
            test = try_one(Path(folder), mutant)
            noticed += bool(test)
            print(f"{number:3d} {mutant['file']:34s} {mutant['what']:60s} {test or 'SURVIVES'}", flush=True)
    print(f"{noticed} of {len(mutants)} noticed")
    return int(noticed < ENOUGH * len(mutants))


def try_one(folder, mutant):
    """The test that notices a mutant, or None."""
    path = folder / "lib" / mutant["file"]
    right = path.read_text(encoding="utf-8")
    if right.count(mutant["old"]) != 1:
        raise ValueError(
            f"{mutant['file']}: {mutant['old']!r} stands there {right.count(mutant['old'])} times, not once"
        )
    path.write_text(right.replace(mutant["old"], mutant["new"]), encoding="utf-8")
    try:
        for tests in test_files(mutant["file"]):
            if found := first_failure(folder, tests):
                return found
    finally:
        path.write_text(right, encoding="utf-8")
    return None


def test_files(file):
    """Groups of test files for a file of the library, the likeliest first."""
    package, *rest = Path(file).parts
    own = ROOT / "tests" / (Path(*rest[:-1]) if package == "onestep" else Path("runner")) / f"test_{rest[-1]}"
    everything = [ROOT / "tests" / name for name in ("theory", "simulate", "report")] + sorted(
        ROOT.glob("tests/test_*.py")
    )
    groups = [[own] if own.exists() else [], [ROOT / "tests/test_agreement.py"], everything]
    return [group for group in (groups if package == "onestep" else [[ROOT / "tests/runner"]]) if group]


def first_failure(folder, tests):
    """Name of the first test that fails with the library in `folder`, or None."""
    environment = {**os.environ, "PYTHONPATH": str(folder / "lib"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider", *map(str, tests)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    if done.returncode == 0:
        return None
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return failed[0].split()[1].split("/")[-1] if failed else f"exit {done.returncode}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
