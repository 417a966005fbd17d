"""What a clone weighs, and what a run of all notebooks may cost."""

import subprocess
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
WHOLE = 12_000_000  # bytes of all tracked files
LARGEST = 2_000_000  # bytes of one of them


def test_the_tree_is_small():
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    sizes = {name: (ROOT / name).stat().st_size for name in listed.split("\0") if (ROOT / name).is_file()}
    largest = {name: sizes[name] for name in sorted(sizes, key=sizes.get)[-5:]}
    assert 0 < sum(sizes.values()) < WHOLE, f"{sum(sizes.values()):,} bytes; the largest files are {largest}"
    assert max(sizes.values()) <= LARGEST, f"the largest files are {largest}"


def test_every_notebook_has_a_budget():
    budgets = tomllib.loads((ROOT / "notebooks/presets.toml").read_text(encoding="utf-8"))["seconds"]["default"]
    assert {path.stem for path in (ROOT / "notebooks").glob("*.ipynb")} <= set(budgets)
