"""What every committed notebook owes its readers."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from run_notebook import plan, presets

ROOT = Path(__file__).parents[2]
PATHS = sorted((ROOT / "notebooks").glob("*.ipynb"))
FORBIDDEN = {
    "rounding error of what vanishes": r"\d[\d.]*e-(1[6-9]|[2-9]\d)\b",  # another on each processor
    "object representation": r"<[\w.]+( object)?( at)? 0x[0-9a-f]+>|<[\w.]*(Axes|Figure|Line2D|Text|module)\b[^>]*>",
    "path": r"(?<![\w/:.])/(home|root|tmp|work|usr|Users|private)/|[A-Za-z]:\\Users",
    "file name": r"\.(png|pdf|npz|json|gif)\b|\bfigures/",
    "timing": r"\b(Wall time|CPU times|it/s)\b",
}


def source(cell):
    return "".join(cell["source"])


def text_of(output):
    """The text of an output that readers see: of a picture with its text fallback, nothing."""
    data = output.get("data", {})
    shown = [] if "image/png" in data else [value for kind, value in data.items() if kind.startswith("text/")]
    return "".join("".join(part) for part in [output.get("text", ""), *shown])


def check(path, root=ROOT):
    """Every rule for one executed notebook, with its ledger and its figures below root."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    cells = notebook["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    outputs = [output for cell in code for output in cell["outputs"]]
    counts = [cell["execution_count"] for cell in code if source(cell).strip()]
    assert counts == list(range(1, len(counts) + 1)), "run it with `make figures`, and commit what that writes"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    kept = {"kernelspec": kernel, "language_info": {"name": "python"}, "made": notebook["metadata"].get("made")}
    assert notebook["metadata"] == kept, "an editor's metadata"
    assert len({cell["id"] for cell in cells}) == len(cells) <= 35, "two cells have one id, or there are more than 35"
    for cell in cells:
        assert not re.fullmatch(r"[0-9a-f]{8}|[0-9a-f-]{32,36}", cell["id"]), f"{cell['id']} looks like a chance id"
        assert set(cell["metadata"]) <= {"tags"} and "NBVAL" not in source(cell), cell["id"]
        for what in ("path", "file name") if cell in code else ("path",):
            assert not (found := re.search(FORBIDDEN[what], source(cell))), f"{what} in cell {cell['id']}: {found[0]}"
    for cell in code:
        lines = [line for line in source(cell).splitlines() if line.strip()]
        most = 25 if re.search(r"plt\.subplots\(|\.conclude\(", source(cell)) else 15
        assert len(lines) <= most, f"cell {cell['id']} has {len(lines)} lines: at most {most}"
    for output in outputs:
        assert output["output_type"] not in ("error", "execute_result"), text_of(output)[:200]  # such as of a last line
        assert output.get("name") != "stderr", text_of(output)[:200]
        for what in ("object representation", "path", "timing", "rounding error of what vanishes"):
            assert not (found := re.search(FORBIDDEN[what], text_of(output))), f"{what} in an output: {found[0]}"
    (parameters,) = [cell for cell in cells if cell["metadata"].get("tags")]
    assert parameters["metadata"]["tags"] == ["parameters"]
    for line in source(parameters).splitlines():
        assert "#" in line or not re.match(r"\w+\s*(:.*)?=", line), f"parameter without a comment: {line}"
    assert re.match(r"# \d\d \S+ \S+", source(cells[0])), "the first cell must begin with a title: # NN · …"
    book = json.loads((root / f"figures/{path.stem}.json").read_text(encoding="utf-8"))
    stale = "is of another run than the notebook: commit both as `make figures` wrote them"
    everything = "".join(map(text_of, outputs))
    controlled = {row["of"] for row in book["rows"] if "of" in row}
    for row in book["rows"]:
        assert row["passed"] and row["measured"] in everything, f"{row['quantity']} fails, or its ledger {stale}"
        assert row["control"] or row["quantity"] in controlled, f"no control: {row}"
        sharp = row["resolution"] <= 0.1 or not row["headline"] or row["kind"] != "agreement"
        assert sharp, f"headline {row['quantity']}: resolution {row['resolution']:.0%}, at most 10 %"
    files = {file for file in (root / "figures").glob(f"{path.stem[:3]}*") if file.suffix != ".json"}
    assert {file.name for file in files} == {f"{stem}.{kind}" for stem in book["figures"] for kind in ("png", "npz")}
    assert all(file.stat().st_size < 2_000_000 for file in files)
    return book


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_it_keeps_the_rules(path):
    book, committed = check(path), plan("default", path.stem)
    made = json.loads(path.read_text(encoding="utf-8"))["metadata"].get("made")
    assert made == committed.made, "its code is not what made its results: run it with `make figures`"
    assert book["parameters"] == json.loads(json.dumps(committed.in_force)), "execute it again"
    assert presets()["quick"].get(path.stem), f"notebooks/presets.toml has no [quick.{path.stem}]"
    for label in ("quick", "large"):
        plan(label, path.stem)  # which refuses a parameter that the notebook does not have


def test_readers_are_led_from_each_to_the_next_and_find_it_in_the_lists():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    listed = re.search(r"(?s)## Notebooks, in reading order(.*?)\n## ", readme)[1]
    texts = [path.read_text(encoding="utf-8") for path in PATHS]
    for before, path in zip([None, *texts], PATHS, strict=False):
        assert f"[{path.stem}](notebooks/{path.name})" in listed, f"README's list of notebooks lacks {path.name}"
        assert path.stem in texts[0], f"the map in notebook 00 lacks {path.stem}"
        said = re.findall(r"Next: .*?(\d\d)", before) if before else [path.stem[:2]]
        assert said[-1:] == [path.stem[:2]], (
            f'the notebook before {path.name} must end with "Next: **{path.stem[:2]}**"'
        )


def test_presets_belong_to_notebooks():
    assert {name for part in presets().values() for name in part} <= {path.stem for path in PATHS}


def test_each_claim_has_one_row_of_its_own_in_the_table_of_claims():
    fronts = {}
    for path in PATHS:
        book = json.loads((ROOT / f"figures/{path.stem}.json").read_text(encoding="utf-8"))
        marked = [path.stem for row in book["rows"] if row.get("front")]
        fronts.setdefault(re.search(r"\b[BC]\d+\b", book["claim"])[0], []).extend(marked)
    assert fronts.pop("C5") == ["10_operator_norm", "11_growing_rows"]  # what holds of it, and what does not as printed
    assert fronts.pop("C6") == ["12_gaussian_equivalence"] * 2  # the other is C7's
    assert all(len(marked) == 1 for marked in fronts.values()), fronts


@pytest.mark.slow
def test_the_template_runs_and_keeps_the_rules(tmp_path):
    shutil.copytree(ROOT / "tools", tmp_path / "tools", ignore=shutil.ignore_patterns("__pycache__"))
    path = tmp_path / "notebooks/18_template.ipynb"
    for name in ("notebooks", "figures", "lib", "docs"):
        (tmp_path / name).mkdir()
    for name in ("docs/claims.md", "requirements.txt", "notebooks/presets.toml", "notebooks/reasons.toml"):
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "README.md").touch()
    path.write_text((ROOT / "docs/template.ipynb").read_text(encoding="utf-8").replace("NN", "18"), encoding="utf-8")
    assert not any(cell.get("outputs") for cell in json.loads(path.read_text(encoding="utf-8"))["cells"])
    subprocess.run([sys.executable, tmp_path / "tools/run.py"], check=True)
    check(path, tmp_path)
