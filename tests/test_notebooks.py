"""The runner: what it refuses, what it leaves behind, and what it does not do twice."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest

from onestep import execution, notebooks

ROOT = Path(__file__).parents[1]

PARAMETERS = """\
n = 20  # samples, ≥ 2, ≤ 1000
eta: float = 1.0  # step size, > 0
sizes = [10, 20]  # sizes, ≥ 5
law = "gauss"  # name of the law
"""

BODY = """\
import matplotlib.pyplot as plt
import numpy as np

from onestep import report

x = np.arange(n) * eta
print("mean", x.mean())
fig, ax = plt.subplots()
ax.plot(x)
report.save(fig, f"{number}_line", x=x)
"""

VERDICT = """\
v = report.Verdicts(f"{number}_sample", claim="C0: the mean", source="nowhere")
v.agrees("mean", (n - 1) / 2 * eta, x.mean(), se=0.1)
v.control("no mean", 0.0, x.mean(), se=0.1)
v.conclude()
"""


def write(project, number="07", extra=""):
    cells = [
        nbformat.v4.new_markdown_cell("# Sample", id="title"),
        nbformat.v4.new_code_cell(PARAMETERS, id="parameters", metadata={"tags": ["parameters"]}),
        nbformat.v4.new_code_cell(f"number = '{number}'\n{BODY}", id="body"),
        nbformat.v4.new_code_cell(extra, id="extra"),
        nbformat.v4.new_code_cell(VERDICT, id="verdict"),
    ]
    path = project / "notebooks" / f"{number}_sample.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    return path


@pytest.fixture
def project(tmp_path):
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "README.md").write_text("# x\n<!-- results:begin --><!-- results:end -->\nafter\n")
    return tmp_path


def snapshot(project):
    files = [path for path in project.rglob("*") if path.is_file() and "build" not in path.parts]
    return {path.relative_to(project).as_posix(): path.read_bytes() for path in files}


def run(project, *arguments):
    return notebooks.main([*arguments], root=project)


def test_a_run_writes_notebook_figures_ledger_and_table(project, capsys):
    path = write(project)
    assert run(project) == 0
    assert "all 2 verdicts" in capsys.readouterr().out
    names = {f"figures/07_line.{kind}" for kind in ("npz", "pdf", "png")}
    names |= {"README.md", "figures/README.md", "figures/07_sample.json", "notebooks/07_sample.ipynb"}
    assert set(snapshot(project)) == names
    text = (project / "README.md").read_text()
    assert "| [C0: the mean](notebooks/07_sample.ipynb) | nowhere | mean | 9.500 | 9.500 ± 0.10 | holds |" in text
    assert text.endswith("<!-- results:end -->\nafter\n")
    ledger = json.loads((project / "figures/07_sample.json").read_text())
    assert ledger["parameters"] == {"n": 20, "eta": 1.0, "sizes": [10, 20], "law": "gauss"}
    assert ledger["figures"] == ["07_line"]
    book = nbformat.read(path, as_version=4)
    assert [cell.id for cell in book.cells] == ["title", "parameters", "body", "extra", "verdict"]
    assert book.cells[1].metadata == {"tags": ["parameters"]}
    assert book.cells[2].outputs[0].text == "mean 9.5\n"
    assert set(book.metadata) == {"kernelspec", "language_info"}
    assert all(set(cell.metadata) <= {"tags"} for cell in book.cells)
    assert str(project) not in path.read_text()


def test_two_runs_give_the_same_bytes_and_a_third_has_nothing_to_do(project, capsys):
    write(project)
    run(project)
    first = snapshot(project)
    (project / "build/manifest/default.json").unlink()
    run(project)
    assert snapshot(project) == first
    assert "07_sample  " in capsys.readouterr().out
    assert run(project) == 0
    assert "07_sample  " not in capsys.readouterr().out
    assert snapshot(project) == first


def test_tables_alone_can_be_brought_up_to_date(project):
    write(project)
    run(project)
    after = (project / "README.md").read_text()
    (project / "README.md").write_text(after.replace("| holds |", "| merged badly |"))
    (project / "build/manifest/default.json").unlink()
    assert run(project, "--tables") == 0
    assert (project / "README.md").read_text() == after
    assert not (project / "build/manifest/default.json").exists()


@pytest.mark.parametrize("change", ["figure", "source", "text"])
def test_what_changed_runs_again(project, capsys, change):
    path = write(project)
    run(project)
    if change == "figure":
        (project / "figures/07_line.png").unlink()
    else:
        text = path.read_text()
        path.write_text(
            text.replace(*(("eta: float = 1.0", "eta: float = 2.0") if change == "source" else ("# Sample", "# X")))
        )
    capsys.readouterr()
    assert run(project) == 0
    assert "07_sample  " in capsys.readouterr().out


def test_library_and_lock_are_part_of_the_key(project):
    write(project)
    (book,) = notebooks.Project(project).notebooks()
    bare = notebooks.Project(project).environment
    (project / "requirements.txt").write_text("numpy==0\n")
    assert notebooks.Project(project).environment != bare
    assert book.key({}, "one") != book.key({}, "two")
    assert book.key({}, "one") != book.key({"n": 3}, "one")


def test_figures_no_longer_made_go_away(project):
    path = write(project)
    run(project)
    other = project / "figures/08_other.png"
    other.write_bytes(b"")
    path.write_text(path.read_text().replace("_line", "_curve"))
    run(project)
    assert not (project / "figures/07_line.png").exists()
    assert (project / "figures/07_curve.png").exists()
    assert other.exists()


@pytest.mark.parametrize("extra", ["1 / 0", "n = 3", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"])
def test_a_failed_run_leaves_everything_as_it_was_and_the_others_go_on(project, capsys, extra):
    write(project, "07")
    assert run(project) == 0
    write(project, "07", extra)
    before = snapshot(project)
    write(project, "08")
    assert run(project) == 1
    captured = capsys.readouterr()
    expected = {"1 / 0": "ZeroDivisionError", "n = 3": "mean: claimed 1.000, measured 9.500"}.get(
        extra, "kernel was ended"
    )
    assert expected in captured.err
    assert "1 of 2 notebooks FAILED" in captured.out
    after = snapshot(project)
    assert {name: data for name, data in after.items() if name in before and "README" not in name} == {
        name: data for name, data in before.items() if "README" not in name
    }
    assert "figures/08_sample.json" in after
    assert not [name for name in after if name.endswith(".tmp")]


def test_presets_and_settings_never_touch_the_committed_set(project, capsys):
    write(project)
    (project / "notebooks/presets.toml").write_text("[quick.07_sample]\nn = 6\n")
    run(project)
    before = snapshot(project)
    assert run(project, "--preset", "quick") == 0
    assert "2.500 ± 0.10" in capsys.readouterr().out
    assert run(project, "7", "--set", "n=8", "--set", "eta=2") == 0
    assert "7.000 ± 0.10" in capsys.readouterr().out
    assert snapshot(project) == before
    assert (project / "build/quick/figures/07_line.png").exists()
    custom = nbformat.read(project / "build/custom/notebooks/07_sample.ipynb", as_version=4)
    assert custom.cells[2].id == "injected-parameters"


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
    write(project)
    before = snapshot(project)
    assert run(project, *arguments) == 2
    assert message in capsys.readouterr().err
    assert snapshot(project) == before


def test_too_little_memory_is_said_before_starting(project, capsys):
    write(project)
    (project / "notebooks/presets.toml").write_text("[memory_gib.large]\n07_sample = 1e6\n")
    assert run(project, "--preset", "large") == 2
    error = capsys.readouterr().err
    assert "07_sample needs about 1000000.0 GiB of memory at preset large" in error
    assert f"{execution.available_gib():.0f}"[:1].isdigit()
    assert not (project / "build/large").exists()


@pytest.mark.parametrize(
    ("source", "message"),
    [("n = m", "must be a literal"), ("n, m = 1, 2", "not `name = value`"), ("print(1)", "not `name = value`")],
)
def test_parameters_must_be_plain_assignments(project, capsys, source, message):
    path = write(project)
    path.write_text(path.read_text().replace(json.dumps('law = "gauss"  # name of the law\n'), json.dumps(source)))
    assert run(project, "--set", "n=3") == 2
    assert message in capsys.readouterr().err


def test_an_interrupted_run_keeps_what_had_finished_and_ends_its_kernels(project):
    write(project, "07")
    write(project, "08", "import os, time\nprint(os.getpid(), file=open('pid', 'w'))\ntime.sleep(60)")
    # A shell that starts jobs in the background has them ignore interrupts, which the test inherits and must undo.
    command = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from onestep.notebooks import main; sys.exit(main([], root=sys.argv[1]))"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "lib")}
    with subprocess.Popen(
        [sys.executable, "-c", command, str(project)], env=environment, stderr=subprocess.PIPE, text=True
    ) as process:
        pid = project / "notebooks/pid"
        wait_for(lambda: (project / "build/manifest/default.json").exists() and pid.exists() and pid.read_text())
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "interrupted" in error
    wait_for(lambda: not Path(f"/proc/{pid.read_text().strip()}").exists())
    assert set(json.loads((project / "build/manifest/default.json").read_text())) == {"07_sample"}
    assert (project / "figures/07_sample.json").exists()
    assert not (project / "figures/08_sample.json").exists()


def wait_for(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


def test_ranges_and_defaults_agree_in_the_committed_notebooks():
    project = notebooks.Project(ROOT)
    assert set(project.presets["longest_first"]) <= {book.name for book in project.notebooks()}
    for book in project.notebooks():
        book.check(book.parameters)
        for preset in ("quick", "large"):
            book.check(project.presets.get(preset, {}).get(book.name, {}))
