"""A project with sample notebooks, for the runner to run."""

import json
import os
import threading
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import nbformat
import pytest

from runner import execution
from runner.__main__ import main

ONE_AT_A_TIME = threading.Lock()

PARAMETERS = """\
n = 20  # samples, ≥ 2, ≤ 1000
eta: float = 1.0  # step size η = n^α, > 0
sizes = [10, 20]  # sizes, ≥ 5
law = "gauss"  # name of the law
seed = 0  # root of all random streams, ≥ 0
"""

BODY = """\
import numpy as np

from onestep import report
from onestep.estimates import Estimate

x = np.arange(n) * eta
print("mean", x.mean())
"""

FIGURE = """\
import matplotlib.pyplot as plt

fig, ax = plt.subplots()
ax.plot(x)
report.save(fig, f"{number}_line", "A line that rises.", x=x)
"""

VERDICT = """\
v = report.Verdicts(f"{number}_sample", claim="C0: the mean", source="nowhere")
v.agrees("mean", (n - 1) / 2 * eta, Estimate(x.mean(), 0.1), control=("no mean", 0.0))
v.conclude()
"""


@dataclass(frozen=True)
class Sample:
    """A folder laid out as the repository is."""

    path: Path

    def __truediv__(self, name):
        return self.path / name

    def write(self, number="07", extra="", figure=False):
        """Write a notebook, with the code `extra` in the cell before its verdict; return its path.

        A figure nearly doubles the time that the notebook takes.
        """
        cells = [
            nbformat.v4.new_markdown_cell("# Sample", id="title"),
            nbformat.v4.new_code_cell(PARAMETERS, id="parameters", metadata={"tags": ["parameters"]}),
            nbformat.v4.new_code_cell(f"number = '{number}'\n{BODY}{FIGURE if figure else ''}", id="body"),
            nbformat.v4.new_code_cell(extra, id="extra"),
            nbformat.v4.new_code_cell(VERDICT, id="verdict"),
        ]
        path = self.path / "notebooks" / f"{number}_sample.ipynb"
        nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
        return path

    def run(self, *arguments):
        """What `python -m runner` with these arguments returns."""
        return main([*arguments], root=self.path)

    def run_here(self, *arguments):
        """The same without kernels or outputs, in a twentieth of the time: for what depends on neither."""
        with patch.object(execution, "execute", execute_here), patch("onestep.report.session.show"):
            return self.run(*arguments)

    def snapshot(self):
        """The bytes of every file outside `build`, by name."""
        files = [path for path in self.path.rglob("*") if path.is_file() and "build" not in path.parts]
        return {path.relative_to(self.path).as_posix(): path.read_bytes() for path in files}


def execute_here(source, parameters, in_force, figures, on_cell, stop, settings):
    """What `execution.execute` does, in this process."""
    notebook, names = nbformat.read(source, as_version=4), {}
    environment = {
        "ONESTEP_FIGURES": str(figures),
        "ONESTEP_LEDGER_ONLY": "1",
        "ONESTEP_PARAMETERS": json.dumps(in_force),
    }
    with ONE_AT_A_TIME, patch.dict(os.environ, environment | settings):
        for number, cell in enumerate(notebook.cells[1:], 1):
            try:
                exec(cell.source, names)
            except Exception as error:
                raise execution.NotebookFailed(f"cell {number} raised {type(error).__name__}: {error}") from error
            if cell.id == "parameters":
                names |= parameters
    return execution.Run(execution.scrub(notebook), 1.0, 1.0, 0.1)


@pytest.fixture
def project(tmp_path):
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "README.md").write_text("# x\n<!-- results:begin --><!-- results:end -->\nafter\n")
    return Sample(tmp_path)
