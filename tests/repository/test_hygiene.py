"""What every committed notebook owes its readers, and the README its table."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from runner import project, tables
from runner.__main__ import main
from runner.notebook import Notebook

ROOT = Path(__file__).parents[2]
PATHS = sorted((ROOT / "notebooks").glob("*.ipynb"))
PRESETS = tomllib.loads((ROOT / "notebooks/presets.toml").read_text(encoding="utf-8"))
FORBIDDEN = {
    "rounding error of what vanishes": r"\d[\d.]*e-(1[6-9]|[2-9]\d)\b",  # another on each processor
    "object representation": r"<[\w.]+( object)?( at)? 0x[0-9a-f]+>|<[\w.]*(Axes|Figure|Line2D|Text|module)\b[^>]*>",
    "path": r"(?<![\w/:.])/(home|root|tmp|work|usr|Users|private)/|[A-Za-z]:\\Users",
    "file name": r"\.(png|pdf|npz|json|gif)\b|\bfigures/",
    "timing": r"\b(Wall time|CPU times|it/s)\b",
}
LEDGERS = {book["notebook"]: book for book in tables.read_ledgers(ROOT / "figures")}


@pytest.fixture(params=PATHS, ids=lambda path: path.stem)
def path(request):
    return request.param


@pytest.fixture
def book(path):
    assert path.stem in LEDGERS, f"{path.stem} has no ledger in figures/: run it with `make figures`"
    return LEDGERS[path.stem]


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


def text_of(output):
    """The text of an output that readers see: of a picture with its text fallback, nothing."""
    data = output.get("data", {})
    parts = [output.get("text", "")]
    if not any(kind.startswith("image/") for kind in data):
        parts += [value for kind, value in data.items() if kind.startswith("text/")]
    return "".join("".join(part) for part in parts)


def test_it_was_executed_from_top_to_bottom(cells):
    counts = [cell["execution_count"] for cell in code(cells) if source(cell).strip()]
    assert counts == list(range(1, len(counts) + 1)), "run it with `make figures`, and commit what that writes"


def test_its_shape(cells):
    assert len(cells) <= 35, f"{len(cells)} cells: at most 35 make one claim"
    for cell in code(cells):
        lines = [line for line in source(cell).splitlines() if line.strip()]
        allowed = 25 if re.search(r"plt\.subplots\(|\.conclude\(", source(cell)) else 15
        assert len(lines) <= allowed, f"cell {cell['id']} has {len(lines)} lines: at most {allowed}"


def test_it_begins_with_a_title_and_names_its_claim(cells):
    assert re.match(r"# \S+ \S+", source(cells[0])), "the first cell must begin with a title: # NN · …"


def test_its_parameters_are_one_cell_of_commented_literals(path, cells):
    tagged = [cell for cell in cells if "parameters" in cell["metadata"].get("tags", [])]
    assert len(tagged) == 1, f"{len(tagged)} cells are tagged parameters: must be one"
    assert Notebook(path).parameters, "the cell tagged parameters assigns nothing"
    for line in source(tagged[0]).splitlines():
        assert "#" in line or not re.match(r"\w+\s*(:.*)?=", line), f"parameter without a comment: {line}"


def test_its_outputs_are_clean(cells):
    for output in outputs(cells):
        assert output["output_type"] != "error", "a cell raised an error"
        assert output.get("name") != "stderr", f"a cell wrote to stderr: {text_of(output)[:200]}"
        for what in ("object representation", "path", "timing", "rounding error of what vanishes"):
            found = re.search(FORBIDDEN[what], text_of(output))
            assert not found, f"{what} in an output: {found[0]}"


def test_its_cells_name_no_path_or_file(cells):
    for cell in cells:
        kinds = ("path", "file name") if cell["cell_type"] == "code" else ("path",)
        for what in kinds:
            found = re.search(FORBIDDEN[what], source(cell))
            assert not found, f"{what} in cell {cell['id']}: {found[0]}"


def test_it_is_scrubbed(notebook, cells):
    scrubbed = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    assert notebook["metadata"] == scrubbed, "its metadata are an editor's: run it with `make figures`"
    for cell in cells:
        assert set(cell["metadata"]) <= {"tags"}, f"cell {cell['id']} has metadata other than tags"
        assert not re.fullmatch(r"[0-9a-f]{8}|[0-9a-f-]{32,36}", cell["id"]), f"{cell['id']} looks like a chance id"
    assert len({cell["id"] for cell in cells}) == len(cells), "two cells have one id"
    assert all(not output.get("metadata") for output in outputs(cells))


def test_it_ends_with_verdicts_and_points_on(path, cells):
    assert any(".conclude()" in source(cell) for cell in code(cells)[-4:]), "no conclude() in its last cells of code"
    end = " ".join(source(cell) for cell in text(cells)[-2:])
    others = {other.stem[:2] for other in PATHS} - {path.stem[:2]}
    assert others & set(re.findall(r"(?<![\d.])\d\d(?![.,]?\d)", end)), "the end names no other notebook by number"


def test_its_ledger_says_what_it_shows(path, cells, book):
    for row in book["rows"]:
        assert row["passed"], f"this verdict fails: {row['quantity']}"
    assert any(row["control"] for row in book["rows"]), "no row is a negative control"
    stale = "is of another run than the notebook: commit both as `make figures` wrote them"
    assert book["parameters"] == json.loads(json.dumps(Notebook(path).parameters)), f"its ledger {stale}"
    everything = "".join(map(text_of, outputs(cells)))
    for row in book["rows"]:
        assert row["measured"] in everything, f"its ledger {stale}: {row['quantity']}"


def test_each_row_has_a_control_where_rows_carry_them(book):
    controlled = {row["of"] for row in book["rows"] if "of" in row}
    if controlled:
        measured = {row["quantity"] for row in book["rows"] if row["kind"] in ("agreement", "bound")}
        assert measured <= controlled, f"rows without a control: {measured - controlled}"


def test_its_headlines_would_notice_ten_per_cent(book):
    for row in book["rows"]:
        if row["headline"] and row["kind"] == "agreement":
            assert row["resolution"] <= 0.1, f"{row['quantity']}: resolution {row['resolution']:.0%}"


def test_its_figures_are_there_and_no_others(path, book):
    folder = path.parents[1] / "figures"
    stems = {file.stem for file in folder.glob(f"{path.stem[:3]}*") if file.suffix != ".json"}
    assert stems == set(book["figures"]), "the figures of its ledger and those in figures/ differ"
    for stem in stems:
        for kind in ("png", "npz"):  # an animation has no PDF
            assert (folder / f"{stem}.{kind}").stat().st_size < 2_000_000, f"{stem}.{kind} is larger than 2 MB"


def test_it_has_a_quick_preset_and_states_its_memory(path):
    assert PRESETS["quick"].get(path.stem), f"notebooks/presets.toml has no [quick.{path.stem}]"
    stated = PRESETS["memory_gib"]["default"].get(path.stem, 0)
    assert 0 < stated < 4, f"notebooks/presets.toml: memory_gib.default of {path.stem} must be between 0 and 4"


def test_the_template_runs_and_passes_the_same_checks(tmp_path):
    path = tmp_path / "notebooks/18_template.ipynb"
    path.parent.mkdir()
    path.write_text((ROOT / "docs/template.ipynb").read_text(encoding="utf-8").replace("NN", "18"), encoding="utf-8")
    fresh = json.loads(path.read_text(encoding="utf-8"))["cells"]
    assert not outputs(fresh), "the template is committed without outputs"
    assert main([], root=tmp_path) == 0
    notebook, (book,) = json.loads(path.read_text(encoding="utf-8")), tables.read_ledgers(tmp_path / "figures")
    cells = notebook["cells"]
    for check in (
        test_it_was_executed_from_top_to_bottom,
        test_its_shape,
        test_it_begins_with_a_title_and_names_its_claim,
        test_its_outputs_are_clean,
        test_its_cells_name_no_path_or_file,
    ):
        check(cells)
    for check in (
        test_its_parameters_are_one_cell_of_commented_literals,
        test_it_ends_with_verdicts_and_points_on,
        test_no_cell_is_exempt_from_comparison,
    ):
        check(path, cells)
    test_it_is_scrubbed(notebook, cells)
    test_its_headlines_would_notice_ten_per_cent(book)
    test_each_row_has_a_control_where_rows_carry_them(book)
    test_its_ledger_says_what_it_shows(path, cells, book)
    test_its_figures_are_there_and_no_others(path, book)


def test_presets_and_ledgers_belong_to_notebooks():
    names = {path.stem for path in PATHS}
    stated = [*PRESETS.get("quick", {}), *PRESETS.get("large", {})]
    stated += [name for table in PRESETS["memory_gib"].values() for name in table]
    assert set(stated) <= names
    assert set(LEDGERS) <= names


def test_the_tables_are_made_of_the_ledgers():
    books = tables.read_ledgers(ROOT / "figures")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert readme == tables.filled(ROOT, readme, books)
    assert all(len(part.findall(readme)) == 1 for part in tables.PARTS.values())
    if books:
        full = (ROOT / "figures/README.md").read_text(encoding="utf-8")
        assert full == tables.all_verdicts(books, tables.read_records(ROOT, "large"))


def test_the_table_of_other_seeds_is_made_of_its_records():
    """A record of the rows that stand knows every headline; of a notebook that prints other rows, the page says so."""
    kept = json.loads((ROOT / "figures/seeds.json").read_text(encoding="utf-8"))
    place = project.Project(ROOT)
    assert (ROOT / "figures/seeds.md").read_text(encoding="utf-8") == tables.seeds_page(place, kept)
    assert set(kept) <= {notebook.name for notebook in place.notebooks()}
    assert sum(len(found["failed"]) for found in kept.values()) <= 1
    printed = tables.rows_printed(place)
    for name, found in kept.items():
        if found.get("ledger") != printed[name]:
            continue
        recorded = {row["quantity"] for row in found["headlines"]}
        for row in LEDGERS[name]["rows"]:
            if row["headline"] and row["kind"] == "agreement" and row["values"].get("se"):
                assert row["quantity"] in recorded, f"{name} has a headline row that the record lacks"


def test_the_precise_table_is_made_of_its_records():
    kept = json.loads((ROOT / "figures/large.json").read_text(encoding="utf-8"))
    place = project.Project(ROOT)
    assert (ROOT / "figures/large.md").read_text(encoding="utf-8") == tables.large_page(place, kept)
    assert set(kept) <= {path.stem for path in PATHS}
    for name, found in kept.items():
        parts = {"code": str, "date": str, "machine": str, "minutes": float, "gib": float, "rows": int}
        parts |= {"failing": list, "verdicts": list}
        assert {part: type(value) for part, value in found.items()} == parts, name
        assert re.fullmatch(r"[0-9a-f]{64}", found["code"]), f"{name}: not a digest"
        assert 0 < len(found["verdicts"]) <= found["rows"]
        for row in found["verdicts"]:
            assert row["headline"] and {*row, "values"} == {*LEDGERS[name]["rows"][0], "values"}


def test_no_cell_is_exempt_from_comparison(path, cells):
    assert "NBVAL" not in path.read_text(encoding="utf-8"), "no cell may be exempt from the comparison"
    tags = {tag for cell in cells for tag in cell["metadata"].get("tags", [])}
    assert tags == {"parameters"}, f"tags {tags}: only the parameters cell has one"


def test_the_list_of_mistakes_fits_the_library():
    """Each changes code that stands exactly once in its file."""
    mutants = tomllib.loads((ROOT / "tools/mutation/mutants.toml").read_text(encoding="utf-8"))["mutant"]
    lost = [m for m in mutants if (ROOT / "lib" / m["file"]).read_text(encoding="utf-8").count(m["old"]) != 1]
    assert not lost
