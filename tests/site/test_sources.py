"""All pages: those of a sample project, and what this project's own ask for."""

import json
import re
from pathlib import Path

import pytest

from website import notebooks, reference
from website.sources import Sources

ROOT = Path(__file__).parents[2]
ARXIV = re.compile(r"arXiv[ :]*(\d{4}\.\d{4,5})")


@pytest.fixture
def pages(project):
    return Sources(project).pages()


def test_all_pages_are_there_and_written(project):
    target = project / "build"
    target.mkdir()
    Sources(project).write(target, mathjax=True)
    pages = {path.relative_to(target).as_posix() for path in target.rglob("*.md")}
    own = {"CONTRIBUTING.md", "all.md", "glossary.md", "index.md", "reference/index.md"}
    assert pages == own | {"notebooks/03_sample.md", "notebooks/07_sample.md"}
    index = (target / "index.md").read_text()
    assert "2 notebooks end in 8 verdicts, 2 of them negative controls: all are as they should be." in index
    assert "<!--" not in index
    assert "    make figures\n" in (target / "all.md").read_text()
    assert json.loads((target / "site.json").read_text()) == {"mathjax": True, "urls": {}}
    for file in ("conf.py", "LICENSE", "notebooks/03_sample.ipynb", "figures/07_drop.npz"):
        assert (target / file).is_file()
    assert not list((target / "figures").glob("*.json"))


def test_a_ledger_that_is_missing_or_without_findings_is_an_error(project):
    path = project / "figures/03_sample.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"figures": ["03_drop"]}))
    with pytest.raises(ValueError, match="03_sample has no ledger"):
        Sources(project).pages()
    path.unlink()
    with pytest.raises(ValueError, match="03_sample has no ledger"):
        Sources(project).pages()


def test_a_notebook_as_a_page(pages):
    page = pages["notebooks/03_sample.md"]
    head = '---\ndescription: "C03: the |mean|. Source: a paper."\nimage: 03_drop\n---\n\n# 03 · Sample\n\n'
    links = "[notebook 07](/notebooks/07_sample.md), [03](03_sample.md#x), [arXiv 2310.07891](https://arxiv.org/abs/"
    assert page.startswith(head + "See " + links)
    assert (
        "\n\n[Download 03_sample.ipynb](03_sample.ipynb)\n\n````{code-block} python\n:class: input\n\nprint(1)" in page
    )
    assert "\n\n````{code-block} none\n:class: output\n\n1\n````\n\n" in page
    assert "\n\n| a | b |\n| --- | --- |\n| 1 | $x^2$ |\n\n" in page


def test_a_public_repository_offers_to_view_and_to_run():
    ways = notebooks._ways("03_x.ipynb", "https://github.com/who/what")
    assert "(https://github.com/who/what/blob/HEAD/notebooks/03_x.ipynb)" in ways
    assert "(https://mybinder.org/v2/gh/who/what/HEAD?labpath=notebooks/03_x.ipynb)" in ways


def test_a_figure_has_its_finding_as_text_and_caption(pages):
    for page, name in (("notebooks/03_sample.md", "figure-03-drop"), ("index.md", "index-figure-07-drop")):
        finding = f"The drop |Δ| rises with n_0, as 2*n does ({name[-7:-5]})."
        escaped = finding.replace("|", r"\|").replace("_", r"\_").replace("*", r"\*")
        assert f':::{{figure}} /figures/{name[-7:-5]}_drop.png\n:alt: "{finding}"\n' in pages[page]
        assert f":name: {name}\n\n{escaped}\n:::" in pages[page]


@pytest.mark.parametrize("kind", ["text/html", "image/png"])
def test_an_output_of_another_kind_or_a_picture_that_no_ledger_knows_is_an_error(project, kind):
    path = project / "notebooks/03_sample.ipynb"
    content = json.loads(path.read_text())
    content["cells"][1]["outputs"] = [{"output_type": "display_data", "data": {kind: "x"}}]
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=rf"03_sample.ipynb, cell sum: an output of kind \['{kind}'\]"):
        Sources(project).pages()


def test_the_gallery_shows_every_figure_with_data_and_place(pages):
    for number in ("03", "07"):
        assert f"## {number} · Sample" in pages["all.md"]
        assert f":name: gallery-figure-{number}-drop" in pages["all.md"]
        assert f"[in the notebook](/notebooks/{number}_sample.md#figure-{number}-drop)" in pages["all.md"]
        assert f"[data (.npz)](/figures/{number}_drop.npz)" in pages["all.md"]


def test_verdicts_show_the_main_rows_and_fold_the_rest(pages):
    assert "## C07: the \\|mean\\|\n\na paper; [07_sample](/notebooks/07_sample.md)" in pages["all.md"]
    main, rest = pages["all.md"].split("<details><summary>All 4 rows</summary>")[:2]
    assert "| lower end |" in main
    assert "| formula |" not in main
    assert "| formula |" in rest
    assert "as printed: 7.250, rejected" in rest


def test_the_reference_has_every_module_of_the_library():
    pages = "".join(reference.pages(ROOT / "lib/onestep").values())
    for path in (ROOT / "lib/onestep").rglob("[a-z]*.py"):
        assert f"automodule:: {'.'.join(path.relative_to(ROOT / 'lib').with_suffix('').parts)}\n" in pages


def test_docstrings_become_restructured_text():
    lines = "Solve x_1 | y_.\n\n    x = `a`*2\n\nParameters\n----------\nx, y : two|numbers\n    a_".split("\n")
    reference.prepared(None, "function", "a.f", None, None, lines)
    text = "\n".join(lines)
    raises = ["", "Raises", "------", "ValueError for bad x."]
    reference.prepared(None, "function", "a.f", None, None, raises)
    assert raises[-2:] == ["ValueError", "    for bad x."]
    assert "Solve x_1 \\| y\\_.\n\n::\n\n    x = `a`*2\n" in text
    assert "\nx, y\n    two\\|numbers\n    a\\_" in text


def test_every_term_names_a_place():
    text = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
    terms = text.split("\n### ")[1:]
    assert len(terms) > 40
    assert [term for term in terms if not re.search(r"[Nn]otebooks? \d\d|\]\((verdicts|theory)\.md\)", term)] == []
    assert sorted(terms, key=lambda term: term.splitlines()[0].lower()) == terms


def test_every_paper_cited_is_in_the_bibliography():
    listed = set(ARXIV.findall((ROOT / "docs/bibliography.md").read_text(encoding="utf-8")))
    places = [ROOT / "README.md", ROOT / "CITATION.cff", *(ROOT / "docs").glob("*.md")]
    places += [*(ROOT / "notebooks").glob("*.ipynb"), *(ROOT / "lib").rglob("*.py")]
    cited = {number for path in places for number in ARXIV.findall(path.read_text(encoding="utf-8"))}
    assert cited <= listed


def test_every_page_is_on_the_menu():
    index = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    menu = "\n".join(re.findall(r"(?ms)^```\{toctree\}\n(.*?)^```", index)).split()
    assert {path.stem for path in (ROOT / "docs").glob("*.md")} - {"index"} <= set(menu)
