"""A folder laid out as the repository is, with sample notebooks and the project's own tools to run them."""

import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

TOOLS = Path(__file__).parents[2] / "tools"
PARAMETERS = "n = 20  # samples\neta: float = 1.0  # step size η = n^α\nseed = 0  # root of all random streams"
BODY = """
import os, signal, time
import matplotlib.pyplot as plt
import numpy as np
from onestep import report
from onestep.estimates import Estimate
x = np.arange(n) * eta
print("mean", x.mean())"""
FIGURE = 'fig, ax = plt.subplots()\nreport.save(fig, f"{number}_line", "A line that rises.", x=x)'
PAGES = {
    "README.md": ["glance", "results"],
    "figures/README.md": ["off", "verdicts"],
    "figures/large.md": ["large_rows"],
}
END = """
v = report.Verdicts(f"{number}_sample", claim=f"C{number}: the mean", source="nowhere")
v.agrees("mean", (n - 1) / 2 * eta, Estimate(x.mean(), 0.1), front=True, control=("no mean", 0.0))
v.conclude()"""


class Project:
    def __init__(self, path):
        self.path = path

    def __truediv__(self, name):
        return self.path / name

    def write(self, number, extra="", figure=""):
        """Write a notebook, with the code `extra` before its verdict; return its path."""
        cells = [nbformat.v4.new_markdown_cell("# Sample", id="title")]
        parts = {"parameters": PARAMETERS, "body": f"number = '{number}'{BODY}", "figure": figure, "extra": extra}
        for name, source in [*parts.items(), ("end", END)]:
            cells.append(nbformat.v4.new_code_cell(source, id=name))
        cells[1].metadata = {"tags": ["parameters"]}
        path = self / f"notebooks/{number}_sample.ipynb"
        nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
        return path

    def start(self, *words, **options):
        command = [sys.executable, self / "tools/run.py", *words]
        return subprocess.Popen(
            command, text=True, **{"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT} | options
        )

    def run(self, *words):
        """(exit status, what was printed) of `tools/run.py` with these words."""
        with self.start(*words) as process:
            text = process.communicate(timeout=300)[0]
        return process.returncode, text

    def snapshot(self):
        """The bytes of every file outside `build`, by name."""
        files = [path for path in self.path.rglob("*") if path.is_file() and {"build", "tools"}.isdisjoint(path.parts)]
        return {path.relative_to(self.path).as_posix(): path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """(a project in which notebook 07 has run, what that printed)."""
    path = tmp_path_factory.mktemp("finished")
    for folder in ("notebooks", "figures", "docs", "lib"):
        (path / folder).mkdir()
    shutil.copytree(TOOLS, path / "tools", ignore=shutil.ignore_patterns("__pycache__"))
    (path / "requirements.txt").touch()
    (path / "docs/claims.md").write_text("| C7 | it | here | there | verified for n ≤ 20 |\n")
    (path / "notebooks/reasons.toml").touch()
    (path / "notebooks/presets.toml").write_text("[quick.07_sample]\nn = 6\n\n[seconds]\n08_sample = 100\n")
    for page, names in PAGES.items():
        (path / page).write_text("\n".join(f"<!-- {name}:begin -->\n<!-- {name}:end -->" for name in names))
    project = Project(path)
    project.write("07", figure=FIGURE)
    return project, project.run()


@pytest.fixture
def project(finished, tmp_path):
    """A copy of that project."""
    shutil.copytree(finished[0].path, tmp_path, dirs_exist_ok=True)
    return Project(tmp_path)
