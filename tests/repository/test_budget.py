"""What a run of all notebooks may cost."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_notebook_has_a_budget():
    budgets = tomllib.loads((ROOT / "notebooks/presets.toml").read_text(encoding="utf-8"))["seconds"]["default"]
    assert set(budgets) == {path.stem for path in (ROOT / "notebooks").glob("*.ipynb")}
