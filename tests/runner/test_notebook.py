"""The runner: what it refuses, what it leaves behind, and what it does not do twice."""

import json
from pathlib import Path

import pytest

from runner.project import Project

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--preset", "huge"], "no preset 'huge': choose quick, default, large"),
        (["03"], "no notebook's name begins with '03'; there are 07_sample"),
        (["--set", "m=3"], "07_sample has no parameter 'm'; it has n, eta, sizes, law"),
        (["--set", "n=2.5"], "parameter n must be a whole number like its default 20, not 2.5"),
        (["--set", "n=many"], "parameter n must be a whole number like its default 20, not 'many'"),
        (["--set", "n=True"], "parameter n must be a whole number"),
        (["--set", "n=1"], "parameter n must be ≥ 2, not 1"),
        (["--set", "n=1001"], "parameter n must be ≤ 1000, not 1001"),
        (["--set", "eta=0"], "parameter eta must be > 0, not 0"),
        (["--set", "eta=nan"], "parameter eta must be a number"),
        (["--set", "sizes=[10, 4]"], "parameter sizes must be ≥ 5, not [10, 4]"),
        (["--set", "sizes=[10, 'x']"], "parameter sizes must be a list of int"),
        (["--set", "sizes=10"], "parameter sizes must be a list of int"),
        (["--set", "law=3"], "parameter law must be a text"),
    ],
)
def test_bad_requests_are_refused_before_anything_runs(project, capsys, arguments, message):
    project.write()
    before = project.snapshot()
    assert project.run(*arguments) == 2
    assert message in capsys.readouterr().err
    assert project.snapshot() == before


def test_ranges_hold_for_numbers_in_lists_of_lists(project, capsys):
    path = project.write()
    old, new = "sizes = [10, 20]", "sizes = [[10], [20, 30]]"
    text = path.read_text().replace(old, new)
    assert new in text
    path.write_text(text)
    assert project.run("--set", "sizes=[[10], [4]]") == 2
    assert "parameter sizes must be ≥ 5, not [[10], [4]]" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("source", "message"),
    [("n = m", "must be a literal"), ("n, m = 1, 2", "not `name = value`"), ("print(1)", "not `name = value`")],
)
def test_parameters_must_be_plain_assignments(project, capsys, source, message):
    path = project.write()
    path.write_text(
        path.read_text().replace(json.dumps('law = "gauss"  # name of the law\n'), json.dumps(source + "\n"))
    )
    assert project.run("--set", "n=3") == 2
    assert message in capsys.readouterr().err


def test_ranges_and_defaults_agree_in_the_committed_notebooks():
    project = Project(ROOT)
    for book in project.notebooks():
        book.check(book.parameters)
        for preset in ("quick", "large"):
            book.check(project.presets.get(preset, {}).get(book.name, {}))
