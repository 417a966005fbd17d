"""The comparison behind `make test`: run on a notebook whose committed outputs are right, drifted or wrong."""

import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from runner.comparison import NumericText

ROOT = Path(__file__).parents[2]

CELLS = [  # code, committed output, whether the comparison must accept it
    ("print('gain 0.123456789')", "gain 0.123456789\n", True),
    ("print('gain', 0.123456789 * (1 + 1e-9))", "gain 0.123456789\n", True),
    ("print('gain', 0.123456789 * (1 + 1e-3))", "gain 0.123456789\n", False),
    ("print('spikes 3')", "spikes 3\n", True),
    ("print('spikes 3')", "spikes 2\n", False),
    ("print('the claim holds')", "the claim fails\n", False),
    ("print('1.0 2.0')", "1.0\n", False),
    ("print()", "a line\n", False),
]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """Exit status and text of pytest on a notebook made of CELLS, with the project's own conftest."""
    folder = tmp_path_factory.mktemp("hook")
    (folder / "conftest.py").write_text((ROOT / "conftest.py").read_text(encoding="utf-8"), encoding="utf-8")
    cells = [
        nbformat.v4.new_code_cell(code, execution_count=1, outputs=[nbformat.v4.new_output("stream", text=text)])
        for code, text, _ in CELLS
    ]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), folder / "00_hook.ipynb")
    command = [sys.executable, "-m", "pytest", "--nbval", "--nbval-current-env", "-q", "-rA", "-p", "no:cacheprovider"]
    return subprocess.run([*command, str(folder)], cwd=folder, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("number", range(len(CELLS)))
def test_comparison(outcomes, number):
    expected = "PASSED" if CELLS[number][2] else "FAILED"
    assert f"{expected} 00_hook.ipynb::Cell {number}" in outcomes.stdout, outcomes.stdout


def test_failure_reaches_the_exit_status(outcomes):
    assert outcomes.returncode == 1
    assert f"{sum(not good for *_, good in CELLS)} failed" in outcomes.stdout.splitlines()[-1]


def test_kernels_do_not_warn(outcomes):
    assert outcomes.stderr == ""


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("a 1.000001", "a 1.0000015", True),
        ("a 1.00001", "a 1.00003", False),
        ("a -0.5", "a 0.5", False),
        ("1e-9", "1.0000001e-9", True),
        ("1e-9", "2e-9", False),
        ("n = 10", "n = 10.0", False),
        ("n = 10", "n = 11", False),
        ("one 1.5", "two 1.5", False),
        ("900 of 900 recover", "450 of 900 recover", False),
        ("900 of 900 recover", "899 of 900 recover", False),
    ],
)
def test_numeric_text(one, other, same):
    assert (NumericText(one) == NumericText(other)) is same
    assert (NumericText(one) != NumericText(other)) is not same
