"""The comparison behind `make test` and "reproduces": on outputs that are right, drifted or wrong."""

import subprocess
import sys
from pathlib import Path

import nbformat
import numpy as np
import pytest

from same import arrays_differ

ROOT = Path(__file__).parents[2]
CELLS = [  # code, committed output, whether the comparison must accept it
    ("print('gain', 0.123456789 * (1 + 1e-9))", "gain 0.123456789\n", True),
    ("print('gain', 0.123456789 * (1 + 1e-3))", "gain 0.123456789\n", False),
    ("print('size', 1e-9)", "size 1.0000001e-09\n", True),
    ("print('off by', -0.5)", "off by 0.5\n", False),
    ("print('spikes 3')", "spikes 2\n", False),
    ("print('the claim holds')", "the claim fails\n", False),
    ("print()", "a line\n", False),
]


@pytest.mark.slow
def test_nbval_compares_so_with_the_project_s_own_conftest(tmp_path):
    (tmp_path / "conftest.py").write_text((ROOT / "conftest.py").read_text(encoding="utf-8"), encoding="utf-8")
    cells = [
        nbformat.v4.new_code_cell(code, execution_count=1, outputs=[nbformat.v4.new_output("stream", text=text)])
        for code, text, _ in CELLS
    ]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "00_hook.ipynb")
    command = [sys.executable, "-m", "pytest", "--nbval", "--nbval-current-env", "-q", "-rA", "-p", "no:cacheprovider"]
    command += ["-o", f"pythonpath={ROOT}/tools", str(tmp_path)]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    for number, (_, _, good) in enumerate(CELLS):
        assert f"{'PASSED' if good else 'FAILED'} 00_hook.ipynb::Cell {number}" in run.stdout, run.stdout
    assert run.returncode == 1
    assert run.stderr == ""  # kernels do not warn


def test_stored_arrays_may_differ_by_one_unit_of_their_six_digits(tmp_path):
    kept = {"x": np.array([1.00001, 200.0, np.nan]), "n": np.array([3]), "word": np.array("a")}
    np.savez(tmp_path / "old.npz", **kept)
    for change, found in (
        ({"x": kept["x"] * (1 + 1e-5)}, []),
        ({"x": kept["x"] + 1e-4}, []),  # below a millionth of the largest
        ({"x": kept["x"] * (1 + 3e-5)}, ["x"]),
        ({"n": np.array([4])}, ["n"]),
        ({"word": np.array("b"), "more": np.array(1)}, ["more", "word"]),
    ):
        np.savez(tmp_path / "new.npz", **kept | change)
        assert arrays_differ(tmp_path / "new.npz", tmp_path / "old.npz") == found
