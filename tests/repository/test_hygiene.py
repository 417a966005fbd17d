"""What every committed notebook owes its readers, and the README its table."""

import json
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from runner import project, tables
from runner.notebook import Notebook

ROOT = Path(__file__).parents[2]
PATHS = sorted((ROOT / "notebooks").glob("*.ipynb"))
PRESETS = tomllib.loads((ROOT / "notebooks/presets.toml").read_text(encoding="utf-8"))
FORBIDDEN = {
    "object representation": r"<[\w.]+( object)?( at)? 0x[0-9a-f]+>|<[\w.]*(Axes|Figure|Line2D|Text|module)\b[^>]*>",
    "path": r"(?<![\w/:.])/(home|root|tmp|work|usr|Users|private)/|[A-Za-z]:\\\\Users",
    "file name": r"\.(png|pdf|npz|json|gif)\b|\bfigures/",
    "timing": r"\b(Wall time|CPU times|it/s)\b",
}
LEDGERS = {book["notebook"]: book for book in tables.ledgers(ROOT / "figures")}


@pytest.fixture(params=PATHS, ids=lambda path: path.stem)
def path(request):
    return request.param


@pytest.fixture
def notebook(path):
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture
def cells(notebook):
    return notebook["cells"]


def code(cells):
    return [cell for cell in cells if cell["cell_type"] == "code"]


def text(cells):
    return [cell for cell in cells if cell["cell_type"] == "markdown"]


def source(cell):
    return "".join(cell["source"])


def outputs(cells):
    return [output for cell in code(cells) for output in cell["outputs"]]


def shown(output):
    """The text of an output that readers see: of a picture with its text fallback, nothing."""
    data = output.get("data", {})
    parts = [output.get("text", "")]
    if not any(kind.startswith("image/") for kind in data):
        parts += [value for kind, value in data.items() if kind.startswith("text/")]
    return "".join("".join(part) for part in parts)


def test_it_was_executed_from_top_to_bottom(cells):
    counts = [cell["execution_count"] for cell in code(cells) if source(cell).strip()]
    assert counts == list(range(1, len(counts) + 1))


def test_its_shape(cells):
    assert 10 <= len(cells) <= 45
    assert len(text(cells)) >= len(code(cells))
    for cell in code(cells):
        lines = [line for line in source(cell).splitlines() if line.strip()]
        assert len(lines) <= 20, f"cell {cell['id']} has {len(lines)} lines"


def test_it_begins_with_a_title_and_names_its_claim(cells):
    assert re.match(r"# \S+ \S+", source(cells[0]))


def test_its_parameters_are_one_cell_of_commented_literals(path, cells):
    tagged = [cell for cell in cells if "parameters" in cell["metadata"].get("tags", [])]
    assert len(tagged) == 1
    assert Notebook(path).parameters
    assert all("#" in line for line in source(tagged[0]).splitlines() if re.match(r"\w+\s*(:.*)?=", line))


def test_its_outputs_are_clean(cells):
    for output in outputs(cells):
        assert output["output_type"] != "error"
        assert output.get("name") != "stderr"
        for what in ("object representation", "path", "timing"):
            found = re.search(FORBIDDEN[what], shown(output))
            assert not found, f"{what} in an output: {found[0]}"


def test_its_cells_name_no_path_or_file(cells):
    for cell in cells:
        kinds = ("path", "file name") if cell["cell_type"] == "code" else ("path",)
        for what in kinds:
            found = re.search(FORBIDDEN[what], source(cell))
            assert not found, f"{what} in cell {cell['id']}: {found[0]}"


def test_it_is_scrubbed(notebook, cells):
    assert notebook["metadata"] == {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for cell in cells:
        assert set(cell["metadata"]) <= {"tags"}
        assert not re.fullmatch(r"[0-9a-f]{8}|[0-9a-f-]{32,36}", cell["id"]), f"{cell['id']} looks like a chance id"
    assert len({cell["id"] for cell in cells}) == len(cells)
    assert all(not output.get("metadata") for output in outputs(cells))


def test_it_ends_with_verdicts_and_points_on(path, cells):
    assert any(".conclude()" in source(cell) for cell in code(cells)[-4:])
    end = " ".join(source(cell) for cell in text(cells)[-2:])
    assert set(re.findall(r"(?<![\d.])(?:0\d|1[0-7])(?![.,]?\d)", end)) - {path.stem[:2]}, (
        "the end names no other notebook by number"
    )


def test_its_ledger_says_what_it_shows(path, cells):
    book = LEDGERS[path.stem]
    assert all(row["passed"] for row in book["rows"])
    assert any(row["control"] for row in book["rows"])
    assert book["parameters"] == json.loads(json.dumps(Notebook(path).parameters))
    everything = "".join(map(shown, outputs(cells)))
    for row in book["rows"]:
        assert row["measured"] in everything


def test_its_figures_are_there_and_no_others(path):
    book = LEDGERS[path.stem]
    stems = {file.stem for file in (ROOT / "figures").glob(f"{path.stem[:3]}*") if file.suffix != ".json"}
    assert stems == set(book["figures"])
    for stem in stems:
        for kind in ("png", "npz"):  # an animation has no PDF
            assert (ROOT / "figures" / f"{stem}.{kind}").stat().st_size < 2_000_000


def test_it_has_a_quick_preset_and_states_its_memory(path):
    assert PRESETS["quick"].get(path.stem)
    assert 0 < PRESETS["memory_gib"]["default"][path.stem] < 4


def test_presets_and_ledgers_belong_to_notebooks():
    names = {path.stem for path in PATHS}
    stated = [*PRESETS.get("quick", {}), *PRESETS.get("large", {})]
    stated += [name for table in PRESETS["memory_gib"].values() for name in table]
    assert set(stated) <= names
    assert set(LEDGERS) <= names


def test_the_tables_are_made_of_the_ledgers():
    books = tables.ledgers(ROOT / "figures")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert readme == project.TABLE.sub(
        lambda match: f"{match[1]}\n\n{tables.results_table(books)}\n\n{match[2]}", readme
    )
    assert len(project.TABLE.findall(readme)) == 1
    if books:
        full = (ROOT / "figures/README.md").read_text(encoding="utf-8")
        assert full == f"# All verdicts\n\n{tables.full_table(books)}\n"


def test_no_cell_is_exempt_from_comparison(path, cells):
    assert "NBVAL" not in path.read_text(encoding="utf-8")
    assert {tag for cell in cells for tag in cell["metadata"].get("tags", [])} == {"parameters"}


def test_nothing_large_is_committed():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split(
        "\n"
    )
    large = [
        name for name in filter(None, listed) if (ROOT / name).is_file() and (ROOT / name).stat().st_size > 2_000_000
    ]
    assert not large
