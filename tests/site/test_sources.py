"""All pages: those of a sample project, and what this project's own ask for."""

import json
import re
from pathlib import Path, PurePosixPath
from posixpath import normpath

import pytest

from website import notebooks, results
from website.sources import Sources

ROOT = Path(__file__).parents[2]
ARXIV = re.compile(r"arXiv[ :]*(\d{4}\.\d{4,5})")


def links(page, markdown):
    """Where a page's own links lead: paths from the root of the sources, with their anchors."""
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"(?ms)^```.*?^```|`[^`\n]*`|\$[^$\n]*\$", "", markdown)):
        if not re.match(r"\w+:", target):
            path, _, anchor = target.partition("#")
            where = normpath(PurePosixPath(page).parent / path) if path else page
            yield (path.lstrip("/") if path.startswith("/") else where), anchor


def dead(root, pages, pictures):
    """Links that lead to no page, no picture, no file and no anchor that a page states."""
    stated = {page: set(re.findall(r"(?m)^\((\S+)\)=$|^:name: (\S+)$", markdown)) for page, markdown in pages.items()}
    stated = {page: {name for pair in names for name in pair} for page, names in stated.items()}
    for page, markdown in pages.items():
        for path, anchor in links(page, markdown):
            if path not in {*pages, *pictures} and not (root / path).is_file():
                yield f"{page}: {path}"
            elif anchor and anchor not in stated[path]:
                yield f"{page}: {path}#{anchor}"


def test_all_pages_are_there(project):
    pages, pictures = Sources(project).pages()
    assert set(pages) == {
        "CONTRIBUTING.md",
        "all.md",
        "index.md",
        "notebooks/03_sample.md",
        "notebooks/07_sample.md",
        "reference/index.md",
    }
    assert set(pictures) == {f"notebooks/{number}-draw-1.png" for number in ("03", "07")}
    assert "{{" not in "".join(pages.values())
    assert "2 notebooks end in 8 verdicts, 2 of them negative controls: all are as they should be." in pages["index.md"]
    assert "    make figures\n" in pages["all.md"]


def test_a_link_to_nowhere_would_be_found(project):
    found = set(dead(project, *Sources(project).pages()))
    wrong = {f"notebooks/{number}_sample.md: notebooks/03_sample.md#x" for number in ("03", "07")}
    assert found == wrong | {"all.md: verdicts.md"}


def test_files_are_written(project):
    target = project / "build"
    target.mkdir()
    Sources(project).write(target, mathjax=True)
    assert json.loads((target / "site.json").read_text()) == {"mathjax": True, "urls": {}, "version": "1.0"}
    for file in ("conf.py", "LICENSE", "notebooks/03_sample.ipynb", "notebooks/03-draw-1.png", "figures/07_drop.npz"):
        assert (target / file).is_file()
    assert not list((target / "figures").glob("*.json"))


def test_what_is_missing_is_told_and_not_fatal(project, capsys):
    (project / "docs/index.md").write_text("{{ figure 09_gone }}{{ readme Gone }}{{ rows gain_1 }}")
    sources = Sources(project)
    assert sources.pages()[0]["index.md"] == ""
    assert sources.missing == [
        "no ledger names the figure 09_gone",
        "README.md has no section 'Gone'",
        "no verdict is about gain_1",
    ]
    assert "warning: no ledger names the figure 09_gone" in capsys.readouterr().err


def test_an_unknown_placeholder_is_an_error(project):
    (project / "docs/index.md").write_text("{{ what }}")
    with pytest.raises(ValueError, match="what"):
        Sources(project).pages()


def test_a_ledger_that_is_missing_or_without_findings_is_an_error(project):
    path = project / "figures/03_sample.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"figures": ["03_drop"]}))
    with pytest.raises(ValueError, match="03_sample has no ledger"):
        Sources(project).pages()
    path.unlink()
    with pytest.raises(ValueError, match="03_sample has no ledger"):
        Sources(project).pages()


def test_a_notebook_as_a_page(project):
    page = Sources(project).pages()[0]["notebooks/03_sample.md"]
    head = '---\ndescription: "C03: the |mean|. Source: a paper."\nimage: 03_drop\n---\n\n# 03 · Sample\n\n'
    links = (
        "See [notebook 07](/notebooks/07_sample.md), [03](03_sample.md#x), [arXiv 2310.07891](https://arxiv.org/abs/"
    )
    assert page.startswith(head + links)
    assert "\n\n```{code-block} python\n:class: input\n\nprint(1)\n```\n\n" in page
    assert "\n\n```{code-block} none\n:class: output\n\n1\n```\n\n" in page
    assert "\n\n| a | b |\n| --- | --- |\n| 1 | $x^2$ |\n\n" in page
    assert "](03-draw-1.png)" in page


def test_a_figure_has_its_finding_as_text_and_caption(project):
    page = Sources(project).pages()[0]["notebooks/03_sample.md"]
    finding = "The drop |Δ| rises with n_0, as 2*n does (03)."
    assert f':::{{figure}} /figures/03_drop.png\n:alt: "{finding}"\n:target: ../_images/03_drop.png\n' in page
    assert ":name: figure-03-drop\n\nThe drop \\|Δ\\| rises with n\\_0, as 2\\*n does (03).\n:::" in page


def test_code_with_fences_in_it_stays_whole():
    assert notebooks._fenced("a\n```\nb", "python").startswith("````{code-block}")


def test_an_output_of_another_kind_is_an_error(project):
    path = project / "notebooks/03_sample.ipynb"
    content = json.loads(path.read_text())
    content["cells"][1]["outputs"] = [{"output_type": "display_data", "data": {"text/html": "<b>x</b>"}}]
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=r"03_sample.ipynb, cell sum: an output of kind \['text/html'\]"):
        Sources(project).pages()


def test_the_gallery_shows_every_figure_with_data_and_place(project):
    page = Sources(project).pages()[0]["all.md"]
    for number in ("03", "07"):
        assert f"## {number} · Sample" in page
        assert f":name: gallery-figure-{number}-drop" in page
        assert f"[in the notebook](/notebooks/{number}_sample.md#figure-{number}-drop)" in page
        assert f"[data (.npz)](/figures/{number}_drop.npz)" in page


def test_verdicts_show_the_main_rows_and_fold_the_rest(project):
    page = Sources(project).pages()[0]["all.md"]
    assert "## C07: the \\|mean\\|\n\na paper; [07_sample](/notebooks/07_sample.md)" in page
    main, rest = page.split("<details><summary>All 4 rows</summary>")[:2]
    assert "| lower end |" in main
    assert "control: mean: as printed" not in main
    assert "control: mean: as printed" in rest


def test_rows_are_found_by_what_they_claim(project):
    books = Sources(project).books
    table = results.judged(books, [2.501], [7.25])
    assert table.count("| mean ([0") == 2
    assert table.count("| formula ([0") == 2
    assert table.count("| control: mean: as printed ([0") == 2
    assert "lower end" not in table
    assert "control" not in results.judged(books, [2.5, 7.25])
    assert results.judged(books, [3.0], [2.5]) == ""


@pytest.fixture(scope="module")
def own():
    """This project's sources with their pages."""
    sources = Sources(ROOT)
    return sources, *sources.pages()


def test_own_pages_ask_for_nothing_in_vain(own):
    assert own[0].missing == []


def test_own_links_lead_somewhere(own):
    assert not set(dead(ROOT, *own[1:]))


def test_own_terms_name_a_notebook(own):
    text = own[1]["glossary.md"].partition(":::{glossary}")[2]
    terms = re.split(r"\n\n(?=\S)", text.strip().removesuffix(":::").strip())
    assert len(terms) > 30
    for term in terms:
        assert re.search(r"\]\(/notebooks/\d\d_|\]\(verdicts\.md\)", term), term


def test_every_paper_cited_is_in_the_bibliography(own):
    listed = set(ARXIV.findall((ROOT / "docs/bibliography.md").read_text(encoding="utf-8")))
    places = [ROOT / "README.md", ROOT / "CITATION.cff", *(ROOT / "docs").glob("*.md")]
    places += [*(ROOT / "notebooks").glob("*.ipynb"), *(ROOT / "lib").rglob("*.py")]
    cited = {number for path in places for number in ARXIV.findall(path.read_text(encoding="utf-8"))}
    assert cited <= listed


def test_every_page_is_on_the_menu(own):
    menu = "\n".join(re.findall(r"(?ms)^```\{toctree\}\n(.*?)^```", own[1]["index.md"])).split()
    assert {path.stem for path in (ROOT / "docs").glob("*.md")} - {"index"} <= set(menu)
