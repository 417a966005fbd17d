"""What README and docs show: code that runs as it is written, links that lead somewhere, tables that are up to date."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import onestep
import ratios
import tables

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(  # Python, or a command; and what it prints, if that is shown below it
    r"(?:```python\n(.*?)```|^ {4}\.venv/bin/python (-m onestep [^\n]+)\n|`\.venv/bin/python (-m onestep [^`]+)`)"
    r"(?:\n+```text\n(.*?)\n```)?",
    re.DOTALL | re.MULTILINE,
)
DECIMAL = re.compile(r"-?\d*\.\d+")


def text_of(name):
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("page", ["README.md", "docs/plain.md", "docs/use.md"])
def test_code_and_commands_run_as_they_are_written(page, tmp_path):
    """Each by itself, in the order of the page and in one folder."""
    printed = {}
    for code, *commands, shown in BLOCK.findall(text_of(page)):
        called = "curve()\n" * ("interact(" in code)  # which only shows the errors of the function it calls
        (tmp_path / "block.py").write_text(code + called, encoding="utf-8")
        words = "".join(commands).split() or ["block.py"]
        environment = os.environ | {"MPLBACKEND": "agg"}
        run = subprocess.run([sys.executable, *words], cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        printed["".join(commands) or code] = run.stdout.strip()
        if shown:
            assert DECIMAL.sub("", run.stdout.strip()) == DECIMAL.sub("", shown)
            for value, claimed in zip(DECIMAL.findall(run.stdout), DECIMAL.findall(shown), strict=True):
                last = 10.0 ** -len(claimed.partition(".")[2])  # which another processor may round otherwise
                assert float(value) == pytest.approx(float(claimed), abs=1.01 * last), run.stdout
    assert len(printed) > (page != "docs/plain.md")  # which is one block
    same = {text for what, text in printed.items() if "digits" in what}
    assert len(same) == (page == "docs/use.md")  # the digits of scikit-learn, by either way


def test_links_of_the_front_page_lead_somewhere():
    for link in re.findall(r"\]\(([^)#]+)", text_of("README.md")):
        assert link.startswith("https://") or (ROOT / link).exists(), link


def test_tables_and_quotations_are_up_to_date():
    stale = [path.name for path, text in tables.pages().items() if text != path.read_text(encoding="utf-8")]
    assert not stale, f"{stale}: run `.venv/bin/python tools/tables.py`"


def test_notebooks_and_the_list_of_claims_have_the_same_labels():
    lines = re.findall(r"(?m)^\| ([BC]\d+) \| .+ \| .+ \| ([\w, ]+) \| (.+) \|$", text_of("docs/claims.md"))
    places = {label: names.split(", ") for label, names, _ in lines}
    assert len(places) == len(lines)
    for label, _, status in lines:
        assert status.startswith(("verified for ", "verified after correction", "partly ", "not reproduced")), label
    books = {
        book["notebook"]: set(re.findall(r"\b[BC]\d+\b", book["claim"])) for book in tables.ledgers(ROOT / "figures")
    }
    assert {name for names in places.values() for name in names} == set(books)
    for name, stated in books.items():
        listed = {label for label, names in places.items() if name in names}
        assert stated and stated <= listed, f"{name} states {stated}; docs/claims.md gives it {listed}"


def test_one_version_is_cited():
    assert f"\nversion: {onestep.__version__}\n" in text_of("CITATION.cff")
    assert f"version = {{{onestep.__version__}}}" in text_of("docs/use.md")


@pytest.mark.slow
def test_the_benchmark_runs_at_a_small_size():
    small = onestep.Problem(60, 20, 30)
    assert [line[-1].endswith(" ×") for line in ratios.rows(small, small)] == [True] * 3
