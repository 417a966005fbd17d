"""The front page: its size, its links, and its code."""

import re
from pathlib import Path

import numpy as np
import pytest

from onestep import own_problem, theory
from runner import tables

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SNIPPETS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_it_is_read_in_minutes():
    table = tables.PARTS["results"].search(README)[0]
    assert sum(any(c.isalnum() for c in word) for word in README.split()) <= 1500  # signs alone are no words
    assert 3 <= sum(line.startswith("|") for line in table.splitlines()) - 2 <= 25


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)]+)\)", README))))
def test_every_link_leads_somewhere(link):
    assert link.startswith("https://") or (ROOT / link).exists()


def test_every_notebook_is_in_the_map():
    assert {path.name for path in (ROOT / "notebooks").glob("[0-9]*.ipynb")} <= set(re.findall(r"(\w+\.ipynb)", README))


def numbers(text):
    """Those in brackets, line by line."""
    lists = re.findall(r"\[(.*?)\]", text)
    return [[float(number) for number in line.split()] for line in lists]


def test_the_four_claims_hold_in_the_lines_that_show_them(capsys):
    exec(compile(SNIPPETS[0], "README", "exec"), {})
    printed = capsys.readouterr().out
    assert "np." not in printed  # plain numbers
    norms, losses, stairs, errors = numbers(printed)
    quoted = numbers(re.search(r"```text\n(.*?)```", README, re.DOTALL)[1])
    assert np.concatenate(quoted) == pytest.approx(np.concatenate([norms, losses, stairs, errors]), abs=0.002)
    assert norms[1] < 0.3 * norms[0]  # F less F_1, and F less F_0, over √n
    assert max(losses) < 1.06 * min(losses)  # the network, F_1, and F_1 with Gaussian features
    assert stairs[0] > stairs[1] > stairs[2]
    assert errors[1] < 0.7 * errors[0]


def test_the_lines_for_a_problem_of_ones_own_run(capsys, monkeypatch):
    for search in ("best_step", "best_ridge"):  # which have tests of their own
        monkeypatch.setattr(theory, search, lambda p, *_: theory.Best(2.0, p.ridge, 1.0, 1.0, False))
    monkeypatch.setattr(own_problem, "_POINTS", 3)
    small = SNIPPETS[1].replace("n=1000, d=300, N=500", "n=100, d=30, N=50")
    assert small != SNIPPETS[1]
    exec(compile(small, "README", "exec"), {})
    assert "best step" in capsys.readouterr().out
