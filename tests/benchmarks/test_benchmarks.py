"""Every benchmark runs at a tiny size, and the page that `make bench` wrote has all its parts."""

import importlib.util
import json
import re
from itertools import pairwise
from pathlib import Path

import allocation
import bench_every_step
import bench_growth
import bench_operator_norm
import bench_profile
import bench_runner
import bench_sweep
import bench_theory
import bench_threestage
import nbformat
import numpy as np
import pytest
import timing

from onestep import Problem, theory
from runner.project import Project

FOLDER = Path(__file__).parents[2] / "benchmarks"
P = Problem(80, 24, 40, teacher=(0.0, 1.0, 0.5), noise=0.5)
SOFT = P.replace(activation="softplus")


@pytest.fixture(scope="module")
def program():
    spec = importlib.util.spec_from_file_location("benchmarks_main", FOLDER / "__main__.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("rows", "count"),
    [
        (lambda: bench_sweep.rows(P, points=2), 3),
        (lambda: bench_operator_norm.rows(SOFT), 1),
        (lambda: bench_every_step.rows(P, points=2), 2),
        (lambda: bench_threestage.rows(samples=100, share=10.0), 2),
    ],
    ids=["sweep", "operator_norm", "every_step", "threestage"],
)
def test_ratios_are_lines_of_one_table(rows, count):
    found = rows()
    assert len(found) == count
    for line in found:
        assert len(line) == len(timing.HEAD)
        assert re.fullmatch(r"\d+(\.\d)? [×%]", line[3])


def test_the_least_flops_are_those_of_the_products_and_factors():
    n, d, N = 200, 60, 100
    whole = 8 * n * d * N + 4 * d * N**2 + 3 * (n * N**2 + N**3 / 3)
    assert bench_sweep.flops(Problem(n, d, N), 3) == whole
    assert bench_sweep.flops(Problem(N, d, n), 1) == 8 * n * d * N + 4 * d * n**2 + (N * n * N + N**3 / 3)


def test_growth_ends_with_fitted_exponents():
    n = np.array([100, 200, 400])
    body = bench_growth.lines(n, np.transpose([1e-9 * n**3, 1e-6 * n**2, 1e-9 * n**2, [0.5] * 3]))
    assert [line[0] for line in body] == ["100", "200", "400", "exponent"]
    assert body[-1][1:] == ["3.00", "2.00", "2.00", "0.00"]


def test_growth_is_measured_in_processes_of_their_own():
    head, body = bench_growth.table((60, 120))
    assert [line[0] for line in body] == ["60", "120", "exponent"]
    assert {len(line) for line in body} == {len(head)}


def test_every_call_of_theory_has_its_line():
    head, body = bench_theory.table(P)
    assert len(body) == len(bench_theory.calls(P))
    assert {len(line) for line in body} == {len(head)}


def test_nothing_is_kept_between_calls():
    theory.traces(P)
    bench_theory.forget()
    assert theory.random_features._traces.cache_info().currsize == 0


def test_the_runner_s_share_is_stated_where_it_is_on_record(tmp_path):
    assert "is not on record" in bench_runner.text(tmp_path, 1)
    manifest = tmp_path / "build" / "manifest" / "default.json"
    manifest.parent.mkdir(parents=True)
    manifest.write_text(json.dumps({"a": {"seconds": 60.0}, "b": {"seconds": 30.0}, "c": {"seconds": 20.0}}))
    page = bench_runner.text(tmp_path, 1)
    assert "The 3 of the default set took 110 s" in page
    assert "end after 60 s, with 92 % of the places taken" in page


def test_the_allocation_states_what_a_minute_buys():
    name, *numbers = allocation.line("a", 50.0, 60.0, np.array([0.02, 0.04, 0.1]))
    assert numbers == ["50", "60", "3", "4 %", "10 %", "2.8 %", "240"]
    text = allocation.page([[name, *numbers]], [["a", "gain", "4 %", "60"]], np.array([0.02, 0.04, 0.1]))
    assert "| a | gain | 4 % | 60 |" in text
    assert "1 notebooks, 60 CPU s of a budget of 50" in text
    assert "3 headline rows, median resolution 4 %, worst 10 %" in text


def test_the_allocation_is_of_the_whole_set(tmp_path, capsys):
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / "07_sample.ipynb").write_text("{}")
    assert allocation.main(tmp_path, tmp_path) == 2
    assert "not run in this folder: 07_sample" in capsys.readouterr().err
    (tmp_path / "build" / "manifest").mkdir(parents=True)
    (tmp_path / "build" / "manifest" / "default.json").write_text('{"07_sample": {"cpu": 12.0}}')
    (tmp_path / "figures").mkdir()
    row = {"quantity": "gain", "headline": True, "kind": "agreement", "resolution": 0.03}
    ledger = {"notebook": "07_sample", "rows": [row, {**row, "quantity": "loss", "headline": False}]}
    (tmp_path / "figures" / "07_sample.json").write_text(json.dumps(ledger))
    assert allocation.main(tmp_path, tmp_path) == 0
    text = (tmp_path / "allocation.md").read_text(encoding="utf-8")
    assert "| 07_sample | gain | 3 % | 12 |" in text
    assert "loss" not in text


def test_no_notebook_takes_more_than_its_budget():
    text = (FOLDER / "allocation.md").read_text(encoding="utf-8")
    lines = re.findall(r"^\| (\d\d_\w+) \| (\d+) \| (\d+) \|", text, re.M)
    assert lines and {name for name, *_ in lines} <= {book.name for book in Project(FOLDER.parent).notebooks()}
    over = {name: f"{took} CPU s of {budget}" for name, budget, took in lines if int(took) > int(budget)}
    assert not over, f"these notebooks exceed their budgets: {over}"


def test_a_notebook_is_profiled_with_its_replicates(tmp_path):
    body = (
        "from onestep import Problem, report, simulate\n"
        "simulate.losses(Problem(n, 20, 30), 1.0, trials=2)\nreport.table(['n'], [[n]])"
    )
    cells = [
        nbformat.v4.new_code_cell("n = 5  # samples", id="parameters", metadata={"tags": ["parameters"]}),
        nbformat.v4.new_code_cell(body, id="body"),
    ]
    path = tmp_path / "07_sample.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    total, head, lines = bench_profile.table(path, {"n": 60}, count=400)
    assert total > 0
    assert {len(line) for line in lines} == {len(head)}
    calls = {line[0]: line[1] for line in lines}
    assert calls["`onestep/simulate/every_step.py: sweep`"] == "2"


@pytest.mark.parametrize(
    ("value", "text"), [(12.345, "12.3 s"), (123.4, "123 s"), (0.01234, "12.3 ms"), (2e-5, "20 µs")]
)
def test_times_have_three_digits(value, text):
    assert timing.seconds(value) == text


def outline(text):
    """Headings, and heads of tables."""
    lines = text.splitlines()
    heads = [line for line, after in pairwise(lines) if after.startswith("| --- |")]
    return [line for line in lines if line.startswith("#") or line in heads]


def test_the_committed_page_has_all_its_parts(program):
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    calls = (bench_theory.HEAD, [])
    empty = program.page("", [], (bench_growth.HEAD, []), calls, "", (1.0, bench_profile.HEAD, []))
    assert outline(text) == outline(empty)
    assert re.search(r"Measured on \d{4}-\d\d-\d\d: \d+ cores \(.+\), \d+ GiB, .+, Python 3\.", text)
    assert re.search(r"\| exponent( \| -?\d\.\d\d){4} \|", text)
    for size in bench_growth.SIZES:
        assert f"| {size} |" in text
    for call in bench_theory.calls(bench_theory.PROBLEM):
        assert f"| `{call}` |" in text
    assert len(re.findall(r"\d [×%] \| (?:10 ×|3 ×|25 ×|80 %) \|", text)) == 4
