"""Links and comments in Markdown."""

import re
from pathlib import Path

import pytest

from website import text

ROOT = Path(__file__).parents[2]
NAMES = ["13_staircase", "14_gains"]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("see notebook 14.", "see [notebook 14](/notebooks/14_gains.md)."),
        ("Notebook 13_staircase says", "[Notebook 13_staircase](/notebooks/13_staircase.md) says"),
        ("**13_staircase**", "[**13_staircase**](/notebooks/13_staircase.md)"),
        (
            "notebooks 13, 14 and 92",
            "notebooks [13](/notebooks/13_staircase.md), [14](/notebooks/14_gains.md) and 92",
        ),
        ("notebook 13, 0.5 and 14.5", "[notebook 13](/notebooks/13_staircase.md), 0.5 and 14.5"),
        ("notebook 92", "notebook 92"),
        ("[notebook 13](x.md) stays", "[notebook 13](x.md) stays"),
        ("`notebook 13` and $arXiv 2310.07891$", "`notebook 13` and $arXiv 2310.07891$"),
        ("```\nnotebook 13\n```\nnotebook 13", "```\nnotebook 13\n```\n[notebook 13](/notebooks/13_staircase.md)"),
        ("arXiv:2310.07891", "[arXiv 2310.07891](https://arxiv.org/abs/2310.07891)"),
        ("https://example.org/arXiv:2310.07891", "https://example.org/arXiv:2310.07891"),
    ],
)
def test_mentions_become_links(written, expected):
    assert text.linked(written, NAMES) == expected
    assert text.linked(expected, NAMES) == expected  # what is a link stays one


def test_the_first_mention_of_a_term_becomes_a_link():
    terms = text.terms("### growing rows\n\nthey\n\n### setting 1, setting 2\n")
    assert terms == {"growing rows": "growing-rows", **dict.fromkeys(["setting 1", "setting 2"], "setting-1-setting-2")}
    written = "# Growing rows\n\nTwo spikes, `growing rows`, Growing rows, growing rows."
    first = "Two spikes, `growing rows`, [Growing rows](/glossary.md#growing-rows), growing rows."
    assert text.linked(written, NAMES, terms) == f"# Growing rows\n\n{first}"
    assert set(terms) == {"setting 1", "setting 2"}


def test_links_to_notebooks_lead_to_pages():
    written = "[a](notebooks/06_a.ipynb) [b](07_b.ipynb#end) [c](../figures/README.md) [d](figures/seeds.md) `x.ipynb`"
    assert text.pages(written) == "[a](notebooks/06_a.md) [b](07_b.md#end) [c](/verdicts.md) [d](/seeds.md) `x.ipynb`"
    assert text.pages("[t](../docs/theory.md#x) [u](docs/zhou-ge.md)") == "[t](/theory.md#x) [u](/zhou-ge.md)"
    assert text.pages("[e](../notebooks/07_b.ipynb)") == "[e](/notebooks/07_b.md)"
    assert text.pages("[f](../CONTRIBUTING.md)") == "[f](/CONTRIBUTING.md)"


def test_tables_that_the_readme_links_to_have_a_page():
    written = text.pages((ROOT / "README.md").read_text(encoding="utf-8"))
    linked = re.findall(r"\]\(/([\w-]+\.md)\)", written)
    assert linked
    assert not [page for page in linked if not (ROOT / "docs" / page).is_file()]


def test_comments_are_replaced():
    assert text.filled("<!-- a --> and <!-- b\nc -->", lambda name: f"<{name}>") == "<a> and <b\nc>"
