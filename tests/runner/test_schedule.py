"""The runner: what it refuses, what it leaves behind, and what it does not do twice."""

import json
import os
import re
import signal
import subprocess
import sys
import termios
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat
import numpy as np
import pytest

from onestep.checks import available_gib
from runner.execution import NotebookFailed
from runner.project import only_run

ROOT = Path(__file__).parents[2]
RUN = "import sys; from runner.__main__ import main; sys.exit(main(sys.argv[2:], root=sys.argv[1]))"


def test_a_run_writes_notebook_figures_ledger_and_table(project, capsys):
    path = project.write(figure=True)
    assert project.run() == 0
    out = capsys.readouterr().out
    assert "2 verdicts, as they should be" in out
    assert "root seed by notebook: 07: 0" in out
    names = {f"figures/07_line.{kind}" for kind in ("npz", "png")}
    names |= {"README.md", "figures/README.md", "figures/07_sample.json", "notebooks/07_sample.ipynb"}
    assert set(project.snapshot()) == names
    text = (project / "README.md").read_text()
    assert "[07](notebooks/07_sample.ipynb)|mean|9.500|9.500 ± 0.10|4.3 %|no mean|" in text
    assert text.endswith("<!-- results:end -->\nafter\n")
    ledger = json.loads((project / "figures/07_sample.json").read_text())
    assert ledger["parameters"] == {"n": 20, "eta": 1.0, "sizes": [10, 20], "law": "gauss", "seed": 0}
    assert ledger["figures"] == {"07_line": "A line that rises."}
    book = nbformat.read(path, as_version=4)
    assert [cell.id for cell in book.cells] == ["title", "parameters", "body", "extra", "verdict"]
    assert book.cells[1].metadata == {"tags": ["parameters"]}
    assert book.cells[2].outputs[0].text == "mean 9.5\n"
    assert set(book.metadata) == {"kernelspec", "language_info"}
    assert all(set(cell.metadata) <= {"tags"} for cell in book.cells)
    assert str(project.path) not in path.read_text()


def test_two_runs_give_the_same_bytes_and_a_third_has_nothing_to_do(project, capsys):
    project.write(figure=True)
    project.run()
    first = project.snapshot()
    (project / "build/manifest/default.json").unlink()
    project.run()
    assert project.snapshot() == first
    assert "07_sample: starts" in capsys.readouterr().out
    assert project.run() == 0
    assert "07_sample: starts" not in capsys.readouterr().out
    assert project.snapshot() == first


def test_what_changed_runs_again(project, capsys):
    path = project.write()
    project.run_here()
    changes = [
        lambda: (project / "figures/07_sample.json").unlink(),
        lambda: edit(path, "eta: float = 1.0", "eta: float = 2.0"),
        lambda: edit(path, "# Sample", "# X"),
    ]
    for change in changes:
        change()
        capsys.readouterr()
        assert project.run_here() == 0
        assert "07_sample: starts" in capsys.readouterr().out


def test_last_digits_of_another_processor_leave_the_committed_bytes(project, capsys):
    path = project.write(figure=True)
    project.run()
    capsys.readouterr()
    first = project.snapshot()
    edit(path, '"mean 9.5\\n"', '"mean 9.5000001\\n"')
    edit(project / "figures/07_sample.json", '"measured": 9.5,', '"measured": 9.50001,')
    with np.load(project / "figures/07_line.npz") as stored:
        np.savez(project / "figures/07_line.npz", **{**stored, "x": stored["x"] * (1 + 1e-7)})
    other = project.snapshot()
    assert {name for name in first if first[name] != other[name]} == {
        "notebooks/07_sample.ipynb",
        "figures/07_sample.json",
        "figures/07_line.npz",
    }
    (project / "build/manifest/default.json").unlink()
    project.run()
    assert capsys.readouterr().out.endswith("reproduces the committed figures: all 1 that ran\n")
    assert project.snapshot() == other
    project.run()
    assert "nothing had to run" in capsys.readouterr().out


def test_other_results_are_named_and_written(project, capsys):
    path = project.write()
    project.run()
    first = project.snapshot()
    edit(path, '"mean 9.5\\n"', '"mean 9.6\\n"')
    edit(project / "figures/07_sample.json", '"measured": 9.5,', '"measured": 9.6,')
    (project / "build/manifest/default.json").unlink()
    capsys.readouterr()
    project.run()
    out = capsys.readouterr().out
    assert "07_sample differs from the results that were there, and is written anew:\n" in out
    assert "figures/07_sample.json, row 'mean': 9.5 where 9.6 was found before\n" in out
    assert "notebooks/07_sample.ipynb, cell body: 9.5 where 9.6 was found before\n" in out
    assert out.endswith("0 of the 1 notebooks that ran reproduce the committed figures\n")
    assert project.snapshot() == first


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_figures_no_longer_made_go_away(project):
    path = project.write(extra='(report.directory() / "07_line.png").touch()')
    project.run_here()
    other = project / "figures/08_other.png"
    other.write_bytes(b"")
    path.write_text(path.read_text().replace("_line", "_curve"))
    project.run_here()
    assert not (project / "figures/07_line.png").exists()
    assert (project / "figures/07_curve.png").exists()
    assert other.exists()


def test_failed_runs_leave_everything_as_it_was_and_the_others_go_on(project, capsys):
    failures = {
        "07": ("1 / 0", "raised ZeroDivisionError"),
        "08": ("n = 3", "mean: claimed 1.000, measured 9.500"),
        "09": ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "its kernel was ended"),
    }
    for number in failures:
        project.write(number)
    assert project.run_here() == 0
    for number, (extra, _) in failures.items():
        project.write(number, extra)
    before = project.snapshot()
    project.write("10")
    assert project.run() == 1
    captured = capsys.readouterr()
    for number, (_, said) in failures.items():
        (message,) = re.findall(rf"(?ms)^{number}_sample: (.*?)(?:\n\n|\Z)", captured.err)
        assert said in message
    assert "3 of 4 notebooks FAILED" in captured.out
    after = project.snapshot()
    assert {name: data for name, data in after.items() if name in before and "README" not in name} == {
        name: data for name, data in before.items() if "README" not in name
    }
    assert "figures/10_sample.json" in after
    assert not [name for name in after if name.endswith(".tmp")]


def test_presets_and_settings_never_touch_the_committed_set(project, capsys):
    project.write()
    (project / "notebooks/presets.toml").write_text("[quick.07_sample]\nn = 6\n")
    project.run_here()
    before = project.snapshot()
    assert project.run_here("--preset", "quick") == 0
    assert "2.500 ± 0.10" in capsys.readouterr().out
    assert project.run("7", "--set", "n=8", "--set", "eta=2") == 0
    captured = capsys.readouterr()
    assert "7.000 ± 0.10" in captured.out
    assert not captured.err  # a comment that holds an "=" confuses nobody
    assert project.snapshot() == before
    assert (project / "build/quick/figures/07_sample.json").exists()
    custom = nbformat.read(project / "build/custom/notebooks/07_sample.ipynb", as_version=4)
    assert custom.cells[2].id == "injected-parameters"


def test_a_run_whose_verdict_fails_is_kept_outside_the_committed_set_and_marked(project, capsys):
    project.write("07", "n = 3 if eta > 1 else n")
    assert project.run_here() == 0
    before = project.snapshot()
    for _ in range(2):  # the second time nothing runs, and the failure is still told
        assert project.run("--set", "eta=2") == 1
        captured = capsys.readouterr()
        assert "mean: claimed 2.000, measured 19.00" in captured.err
        assert "FAILED" in captured.out
    assert project.snapshot() == before
    ledger = json.loads((project / "build/custom/figures/07_sample.json").read_text())
    assert [row["passed"] for row in ledger["rows"]] == [False, True]
    custom = (project / "build/custom/notebooks/07_sample.ipynb").read_text()
    assert "FAILS" in custom


def test_a_notebook_that_concludes_nothing_does_not_pass(project, capsys):
    path = project.write()
    path.write_text(path.read_text().replace("v.conclude()", "pass"))
    assert project.run_here() == 1
    assert "it wrote no ledger" in capsys.readouterr().err
    assert not (project / "figures").exists() or not list((project / "figures").glob("07*"))


def test_other_roots_are_run_and_their_failures_reported_row_by_row(project, capsys):
    project.write("07", "n = 3 if seed == 102 else n; 1 / (seed - 103)")
    project.write("08")
    project.run_here("08")
    before = project.snapshot()
    assert project.run_here("--seeds", "101") == 0
    capsys.readouterr()
    assert project.run_here("--seeds", "101", "102", "103") == 1
    out = capsys.readouterr().out
    (line,) = [line for line in out.splitlines() if line.startswith("| 07_sample")]
    assert line.startswith("| 07_sample | 3 | 2 | 2 | 102: these verdicts fail: mean: claimed 1.000, measured 9.500")
    assert "103: cell 3 raised" in line
    assert "ZeroDivisionError" in line
    assert "| 08_sample | 3 | 2 | 0 |  |" in out
    assert project.snapshot() == before


def test_the_table_of_other_seeds_is_kept_notebook_by_notebook(project, monkeypatch, capsys):
    monkeypatch.setattr("runner.tables.ROOTS", (101, 102, 104))
    monkeypatch.setattr("runner.tables.FEWEST", 2)
    project.write("07", "n = 3 if seed == 102 else n")
    project.write("08")
    table = project / "figures/seeds.md"
    project.run_here("08", "--seeds", "101", "102")
    assert "08_sample: not recorded, as figures/08_sample.json has other rows" in capsys.readouterr().err
    assert not table.exists()
    project.run_here()
    project.run_here("08", "--seeds", "101", "102")
    assert "1 of 2 have run" in table.read_text()
    project.run_here("07", "--seeds", "101", "102")
    assert "2 of 2 have run" in table.read_text()
    assert "| 2 | 2 | 1 | 102: these verdicts fail" in table.read_text()
    assert "Of these 4 runs 1 had" in table.read_text()
    before = project.snapshot()
    project.run_here("--seeds", "101", "102")
    project.run_here("--seeds", "101", "103")
    project.run_here("--seeds", "101", "102", "--preset", "quick")
    project.run_here("--seeds", "101")
    assert project.snapshot() == before
    project.write("08", "another = 1")
    project.run_here("08")
    assert "changed since" not in table.read_text()
    project.write("08", "x = x + 0.01")
    project.run_here("08")
    (line,) = [line for line in table.read_text().splitlines() if line.startswith("| 08_sample")]
    assert "; changed since |" in line
    assert "changed since" not in table.read_text().replace(line, "")


def test_fewer_roots_of_the_same_rows_replace_no_record(project, monkeypatch, capsys):
    monkeypatch.setattr("runner.tables.FEWEST", 2)
    project.write("07")
    project.write("08")
    project.run_here()
    project.run_here("07", "--seeds", "101", "102", "103")
    before = project.snapshot()
    capsys.readouterr()
    assert project.run_here("--seeds", "101", "102") == 0
    error = capsys.readouterr().err
    assert "07_sample: not recorded, as figures/seeds.json has 3 roots of the same rows" in error
    assert "08_sample" not in error
    kept = json.loads((project / "figures/seeds.json").read_text())
    assert kept["07_sample"] == json.loads(before["figures/seeds.json"])["07_sample"]
    assert kept["08_sample"]["roots"] == 2
    project.write("07", "x = x + 0.01")
    project.run_here("07")
    project.run_here("07", "--seeds", "101", "102")
    assert json.loads((project / "figures/seeds.json").read_text())["07_sample"]["roots"] == 2


def test_other_roots_of_one_notebook_say_nothing_of_the_others(project, monkeypatch, capsys):
    monkeypatch.setattr("runner.tables.FEWEST", 2)
    for number in ("07", "08"):
        project.write(number)
    project.run_here()
    project.run_here("--seeds", "101", "102")
    path = project.write("08")
    edit(path, '\\"mean\\", (n', '\\"average\\", (n')
    project.run_here("08")
    capsys.readouterr()
    assert project.run_here("07", "--seeds", "101", "102") == 0
    assert not capsys.readouterr().err


def test_what_cannot_be_written_or_reached_is_said_before_starting(project, capsys, monkeypatch):
    project.write()
    monkeypatch.setattr("onestep.simulate.replicates.PATIENCE", 0.2)
    assert project.run("--scheduler", "tcp://127.0.0.1:9") == 2
    assert "scheduler tcp://127.0.0.1:9: does not answer" in capsys.readouterr().err
    (project / "figures").write_text("in the way")
    assert project.run() == 2
    assert "figures': cannot be written: File exists" in capsys.readouterr().err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("name", ["figures/07_sample.json", "notebooks/07_sample.ipynb", "README.md"])
def test_a_full_disk_is_said_and_the_next_run_ends_well(project, capsys, name):
    project.write()
    before = project.snapshot()
    target = project / name
    target.parent.mkdir(exist_ok=True)
    target.with_name(f".{target.name}.tmp").symlink_to("/dev/full")
    assert project.run_here() == 2
    error = capsys.readouterr().err
    assert error.startswith("error: [Errno 28] No space left on device")
    assert "what had finished is kept" in error
    left = project.snapshot()
    assert left.get(name) == before.get(name)
    assert not [each for each in left if each.endswith(".tmp")]
    assert project.run_here() == 0
    assert {"figures/07_sample.json", "figures/README.md"} <= set(project.snapshot())


def test_a_folder_that_cannot_be_used_is_said(project, capsys):
    project.write()
    (project / "build").write_text("in the way")
    assert project.run() == 2
    assert "build'; what had finished is kept" in capsys.readouterr().err


def test_a_second_run_waits_for_the_first(project, capsys):
    project.write()
    with ThreadPoolExecutor(1) as pool:
        with only_run(project / "build"):
            second = pool.submit(project.run_here)
            wait_for(lambda: "waiting for another run in this folder" in capsys.readouterr().err)
            assert not second.done()
        assert second.result(60) == 0
    assert (project / "figures/07_sample.json").exists()


def test_a_large_run_states_its_cost_and_keeps_replicates(project, capsys):
    extra = "from onestep import Problem, simulate; simulate.losses(Problem(n, 6, 4), 1.0, trials=3, seed=seed)"
    project.write("07", extra)
    (project / "notebooks/presets.toml").write_text("[large.07_sample]\nn = 30\n[minutes.large]\n07_sample = 8\n")
    assert project.run_here("--preset", "large") == 0
    out = capsys.readouterr().out
    assert out.startswith("preset large: results go to build/large")
    assert "1 notebook to run, two at a time, about 8 min, at most 1.0 GiB: 07" in out
    assert "executed notebooks: build/large/notebooks/, figures and verdicts: build/large/figures/" in out
    kept = sorted((project / "build/replicates").iterdir())
    assert len(kept) == 3
    project.run_here()
    assert sorted((project / "build/replicates").iterdir()) == kept  # the default run keeps nothing
    project.write("07", f"{extra}; x = 1")
    project.run_here("--preset", "large")
    assert len(sorted((project / "build/replicates").iterdir())) == 6


def test_the_precise_table_states_what_large_runs_found_and_what_changed_since(project):
    for number in ("07", "08"):
        project.write(number)
    (project / "notebooks/presets.toml").write_text("[large.07_sample]\nn = 30\n")
    project.run_here("--preset", "large", "07")
    table = (project / "figures/large.md").read_text()
    assert "1 of 2 notebooks have run" in table
    assert "| **08_sample** | not yet |" in table
    assert "Each is a result of the notebook as it stands." in table
    before = (project / "figures/large.json").read_bytes()
    project.run_here("--preset", "large", "07")
    assert (project / "figures/large.json").read_bytes() == before
    project.write("07", "another = 1")
    project.run_here("--tables")
    assert "The code or parameters of 1 of them (07) are others today" in (project / "figures/large.md").read_text()


def test_a_terminal_shows_one_line_with_the_time_left(project):
    project.write("07")
    (project / "notebooks/presets.toml").write_text("[large.07_sample]\nn = 30\n[minutes.large]\n07_sample = 8\n")
    own, terminal = os.openpty()
    termios.tcsetwinsize(terminal, (24, 80))
    command = [sys.executable, "-c", RUN, str(project.path), "--preset", "large"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "lib")}
    with subprocess.Popen(command, env=environment, stderr=terminal, stdout=subprocess.DEVNULL) as process:
        assert process.wait(120) == 0
    screen = os.read(own, 1 << 16).decode()
    os.close(terminal)
    os.close(own)
    assert re.search(r" 0 %\|.*\| 00:00, about \? left", screen)
    assert re.search(r" [1-9]\d %\|.*\| \d\d:\d\d, about \d\d:\d\d left", screen)
    assert "\n" not in screen


def test_an_earlier_run_or_the_budget_states_how_long_the_next_takes(project, capsys, monkeypatch):
    monkeypatch.setattr("runner.execution.execute", never)
    project.write()
    assert "about" not in announcement(project, capsys, None)
    (project / "notebooks/presets.toml").write_text("[seconds.default]\n07_sample = 40\n")
    assert "about 40 s" in announcement(project, capsys, None)
    assert "about 5 min, at most 1.0 GiB: 07" in announcement(project, capsys, 300.0)


def announcement(project, capsys, cpu):
    """What a run says if another notebook took this long before, or none did."""
    path = project / "build/manifest/default.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"07_sample": {"key": "another", "files": {}, "cpu": cpu}} if cpu else {}))
    project.run()
    return capsys.readouterr().out


def test_a_folder_without_notebooks_is_said_to_be_no_clone(project, capsys):
    assert project.run("00") == 2
    assert "run this from a clone of the repository" in capsys.readouterr().err


def test_too_little_memory_is_said_before_starting(project, capsys):
    project.write()
    (project / "notebooks/presets.toml").write_text("[memory_gib.large]\n07_sample = 1e6\n")
    assert project.run("--preset", "large") == 2
    error = capsys.readouterr().err
    assert "07_sample needs about 1000000.0 GiB of memory at preset large" in error
    (free,) = re.findall(r"; ([\d.]+) GiB are free", error)
    assert float(free) == pytest.approx(available_gib(), rel=0.3)
    assert not (project / "build/large").exists()


@pytest.mark.parametrize(
    ("largest", "said"), [(0.4, "two at a time, about 6 min"), (0.6, "one at a time, about 12 min")]
)
def test_notebooks_that_do_not_fit_together_run_one_by_one(project, capsys, monkeypatch, largest, said):
    for number in ("07", "08", "09"):
        project.write(number)
    lines = ["[memory_gib.default]", "07_sample = 0.1", f"08_sample = {largest}", f"09_sample = {largest}"]
    lines += ["[minutes.default]", *(f"{number}_sample = 4" for number in ("07", "08", "09"))]
    (project / "notebooks/presets.toml").write_text("\n".join(lines))
    monkeypatch.setattr("onestep.checks.available_gib", lambda: 1.0)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    monkeypatch.setattr("runner.execution.execute", never)
    assert project.run() == 1
    assert said in capsys.readouterr().out


def never(*_):
    raise NotebookFailed("not today")


def test_an_interrupted_run_keeps_what_had_finished_and_ends_its_kernels(project):
    project.write("07")
    project.write("08", "import os, time\nprint(os.getpid(), file=open('pid', 'w'))\ntime.sleep(60)")
    # A shell that starts jobs in the background has them ignore interrupts, which the test inherits and must undo.
    command = f"import signal; signal.signal(signal.SIGINT, signal.default_int_handler); {RUN}"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "lib")}
    with subprocess.Popen(
        [sys.executable, "-c", command, str(project.path)], env=environment, stderr=subprocess.PIPE, text=True
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


def test_a_notebook_that_was_changed_while_it_ran_is_left_alone(project, capsys):
    path = project / "notebooks/07_sample.ipynb"
    project.write("07", f"with open({str(path)!r}, 'a') as file:\n    file.write(' ')")
    assert project.run_here() == 1
    assert "07_sample: it was changed while it ran" in capsys.readouterr().err
    assert path.read_text().endswith(" ")
    assert not (project / "figures/07_sample.json").exists()


@pytest.mark.parametrize("more", [["--set", "n=3"], ["--scheduler", "tcp://127.0.0.1:9"]])
def test_options_that_other_roots_would_not_heed_are_refused(project, capsys, more):
    with pytest.raises(SystemExit):
        project.run("--seeds", "5", *more)
    assert "--seeds takes no" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        project.run("--tables", *more)
    assert "--tables goes alone" in capsys.readouterr().err


def test_a_crash_does_not_show_the_verdicts_of_another_run(project, capsys):
    project.write("07", "assert n != 8")
    assert project.run_here("--set", "n=9") == 0
    assert "holds" in capsys.readouterr().out
    assert project.run_here("--set", "n=8") == 1
    assert "holds" not in capsys.readouterr().out


def wait_for(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)
