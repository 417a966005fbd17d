"""What a clone weighs, and what a run of all notebooks may cost."""

import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WHOLE = 12_000_000  # bytes of all tracked files


def test_the_tree_is_small():
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    files = [ROOT / name for name in filter(None, listed.split("\0"))]
    if not files:
        pytest.skip("no clone of the repository")
    sizes = {path.relative_to(ROOT).as_posix(): path.stat().st_size for path in files if path.is_file()}
    longest = sorted(sizes, key=sizes.get)[-5:]
    assert sum(sizes.values()) < WHOLE, f"{sum(sizes.values()):,} bytes; the largest files are {longest}"


def test_every_notebook_has_a_budget():
    budgets = tomllib.loads((ROOT / "notebooks/presets.toml").read_text(encoding="utf-8"))["seconds"]["default"]
    assert {path.stem for path in (ROOT / "notebooks").glob("*.ipynb")} <= set(budgets)
