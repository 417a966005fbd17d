"""Links, placeholders and escapes in Markdown."""

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


def test_links_to_notebooks_lead_to_pages():
    written = "[a](notebooks/06_a.ipynb) [b](07_b.ipynb#end) [c](figures/README.md) [d](figures/seeds.md) `x.ipynb`"
    assert text.pages(written) == "[a](notebooks/06_a.md) [b](07_b.md#end) [c](/verdicts.md) [d](/seeds.md) `x.ipynb`"
    assert text.pages("[t](../docs/theory.md#x) [u](docs/zhou-ge.md)") == "[t](/theory.md#x) [u](/zhou-ge.md)"


def test_tables_that_the_readme_links_to_have_a_page():
    written = text.pages((ROOT / "README.md").read_text(encoding="utf-8"))
    linked = re.findall(r"\]\(/([\w-]+\.md)\)", written)
    assert linked
    assert not [page for page in linked if not (ROOT / "docs" / page).is_file()]


def test_placeholders_are_filled():
    assert text.filled("{{ a }} and {{b c}}", lambda name: f"<{name}>") == "<a> and <b c>"


def test_a_section_keeps_its_layout():
    readme = "# x\n\n## One\n\n    code\n\ntext\n\n### Inner\n\n## Two\n\nend\n"
    assert text.section(readme, "One") == "    code\n\ntext\n\n### Inner"
    assert text.section(readme, "Two") == "end"
    assert text.section(readme, "Three") == ""


def test_escaped_text_means_itself():
    assert text.escaped("a_b *c* |d| $e$ [f] <g>") == r"a\_b \*c\* \|d\| \$e\$ \[f\] \<g\>"
