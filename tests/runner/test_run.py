"""`tools/run.py`: what it refuses, what it leaves behind, and what it does not do twice."""

import fcntl
import json
import os
import pty
import re
import signal
import termios
import time
from pathlib import Path

import nbformat
import numpy as np
import pytest

pytestmark = pytest.mark.slow


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_a_run_writes_notebook_figures_ledger_and_tables(finished):
    project, (status, text) = finished
    assert status == 0
    assert "2 rows (1 holds, 1 control rejected): as they should be" in text
    ledger = json.loads((project / "figures/07_sample.json").read_text())
    assert ledger["parameters"] == {"n": 20, "eta": 1.0, "seed": 0}
    assert ledger["figures"] == {"07_line": "A line that rises."}
    assert {"figures/07_line.npz", "figures/07_line.png", "figures/README.md"} <= project.snapshot().keys()
    assert "| mean | 9.500 | 9.50 ± 0.10 | 4.1 s.e. | 4.3 % |" in (project / "figures/README.md").read_text()
    book = nbformat.read(project / "notebooks/07_sample.ipynb", as_version=4)
    assert [cell.id for cell in book.cells] == ["title", "parameters", "body", "figure", "extra", "end"]
    assert book.cells[2].outputs[0].text == "mean 9.5\n"
    assert set(book.metadata) == {"kernelspec", "language_info", "made"}
    assert all(set(cell.metadata) <= {"tags"} for cell in book.cells)


def test_a_second_run_has_nothing_to_do_and_what_was_changed_runs_again(project):
    first = project.snapshot()
    assert project.run() == (0, "nothing had to run: the results are those of the last run\n")
    assert project.snapshot() == first
    (project / "figures/07_line.png").unlink()
    edit(project / "notebooks/07_sample.ipynb", "# Sample", "# Other")
    assert project.run("notebooks/07_sample.ipynb")[1].count("07_sample: starts") == 1
    left = project.snapshot()
    assert left.keys() == first.keys()
    assert {name for name in first if first[name] != left[name]} == {"notebooks/07_sample.ipynb"}


def test_last_digits_of_another_processor_leave_the_committed_bytes(project):
    edit(project / "notebooks/07_sample.ipynb", '"mean 9.5\\n"', '"mean 9.5000001\\n"')
    with np.load(project / "figures/07_line.npz") as stored:
        np.savez(project / "figures/07_line.npz", **{**stored, "x": stored["x"] * (1 + 1e-7)})
    before = project.snapshot()
    assert project.run()[1].endswith("reproduces the committed figures: all 1 that ran\n")
    assert project.snapshot() == before


def test_a_picture_is_written_anew_where_the_code_changed_though_no_result_did(project):
    edit(project / "notebooks/07_sample.ipynb", "plt.subplots()", "plt.subplots(subplot_kw={'title': 'other'})")
    before = project.snapshot()
    assert project.run()[1].endswith("reproduces the committed figures: all 1 that ran\n")
    after = project.snapshot()
    assert {name for name in before if before[name] != after[name]} == {
        "figures/07_line.png",
        "notebooks/07_sample.ipynb",
    }


def test_other_results_are_named_and_written(project):
    first = project.snapshot()
    edit(project / "notebooks/07_sample.ipynb", '"mean 9.5\\n"', '"mean 9.6\\n"')
    np.savez(project / "figures/07_line.npz", x=np.arange(21.0))
    text = project.run()[1]
    assert "07_sample: " in text and "differs from the results that were there, and is written anew:\n" in text
    assert "  cell body: mean 9.5 where mean 9.6 was found before\n" in text
    assert "  07_line.npz: x differs\n" in text
    assert text.endswith("0 of the 1 notebooks that ran reproduce the committed figures\n")
    assert project.snapshot() == first


def test_failed_runs_leave_everything_as_it_was_and_the_others_go_on(project):
    failures = {
        "07": ("1 / 0", "cell 3, which begins '1 / 0', raised ZeroDivisionError"),
        "08": ("n = 3", "mean: claimed 1.000, measured 9.50"),
        "09": ("os.kill(os.getpid(), signal.SIGKILL)", "its kernel was ended from outside"),
        "10": ("os.kill(os.getppid(), signal.SIGKILL)", "its process ended early"),
        "11": ("report.Verdicts.conclude = lambda self: None", "it wrote no ledger"),
        "12": ("open('12_sample.ipynb', 'a').write(' ')", "it or the library was changed while it ran"),
        "14": ("report.save(plt.figure(), '07_line', 'No line.', x=x)", "it saved 07_line.npz, 07_line.png: the names"),
    }
    for number, (extra, _) in failures.items():
        project.write(number, extra)
        ledger = {"notebook": f"{number}_sample", "claim": "C1", "source": "", "figures": {}, "rows": []}
        (project / f"figures/{number}_sample.json").write_text(json.dumps(ledger))
    project.write("13")
    before = project.snapshot()
    status, text = project.run("--jobs", "2")
    assert status == 1 and "Traceback" not in text
    assert "8 to run: 08, " in text  # the longest first
    for number, (_, said) in failures.items():
        assert re.search(rf"(?m)^{number}_sample: .*(\n  .*)?{re.escape(said)}", text), text
    assert "7 of 8 notebooks FAILED" in text
    after = project.snapshot()
    mine = [name for name in before if re.search(r"/(0\d|10|11)_", name)]
    assert [name for name in mine if before[name] != after[name]] == []
    assert "figures/13_sample.json" in after


def test_presets_and_settings_never_touch_the_committed_set(project):
    project.write("08", "n = 3 if eta > 1 else n; assert ('ONESTEP_KEEP' in os.environ) == (n == 30)")
    with open(project / "notebooks/presets.toml", "a") as file:
        file.write("[large.08_sample]\nn = 30\n")
    before = project.snapshot()
    assert "2.50 ± 0.10" in project.run("--preset", "quick", "07")[1]
    for _ in range(2):  # the second time nothing runs, and the failure is still told
        status, text = project.run("08", "--set", "n=8", "eta=2.0")
        assert status == 1
        assert "mean: claimed 2.000, measured 7.00" in text
    assert "starts" not in text
    assert project.snapshot() == before
    assert (project / "build/custom/notebooks/08_sample.ipynb").exists()
    assert project.run("--preset", "large", "08")[0] == 0
    assert "| 08_sample | mean | 14.50 | 14.50 ± 0.10 | 2.8 % | holds |" in (project / "figures/large.md").read_text()


def test_other_roots_are_run_and_their_failures_reported(project):
    project.write("07", "n = 3 if seed == 102 else n; 1 / (seed - 103)")
    before = project.snapshot()
    status, text = project.run("--seeds", "101", "102", "103")
    assert status == 1
    (line,) = [line for line in text.splitlines() if line.startswith("| 07_sample")]
    assert re.search(r"\| 2 \| 102: mean: claimed 1.000, measured 9.50.*<br>103: cell 4.* ZeroDivisionError", line)
    assert "not kept in figures/seeds.md" in text
    assert project.snapshot() == before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--preset", "qiuck"], "invalid choice: 'qiuck'"),
        (["21"], "no notebook's name begins with '21'; there are 07_sample, 08_broken"),
        (["07", "--set", "m=1"], "07_sample has no parameter m; it has n, eta, seed"),
        (["07", "--set", "n"], "n: must be name=value"),
        (["07", "--set", "eta=word"], "eta=word: must be name=value without spaces, a number or a list where"),
        (["07", "--set", "eta=1,", "seed=3"], "eta=1,: must be name=value without spaces"),
        (["08"], "notebooks/08_broken.ipynb is missing or damaged"),
        (["--jobs", "0"], "--jobs takes a whole number >= 1"),
        (["--seeds", "-1"], "--seeds takes whole numbers >= 0"),
        (["07", "--set", "n=1", "--seeds", "1"], "not allowed with argument --set"),
    ],
)
def test_what_cannot_be_done_is_said_before_starting(project, words, said):
    (project / "notebooks/08_broken.ipynb").write_text('{"cells": [\n<<<<<<<')
    status, text = project.run(*words)
    assert status == 2
    assert said in text
    assert "starts" not in text and "Traceback" not in text


def test_two_notebooks_of_one_number_are_refused(project):
    (project / "notebooks/07_other.ipynb").write_text("{}")
    status, text = project.run()
    assert (status, "two notebooks have one number" in text) == (2, True)


def test_a_damaged_ledger_is_named_and_written_anew(project):
    ledger = project / "figures/07_sample.json"
    whole = ledger.read_text()
    project.write("08")
    ledger.write_text(whole[:50])
    status, text = project.run("08")
    assert status == 2
    assert "figures/07_sample.json is missing or damaged" in text and "Traceback" not in text
    assert project.run()[0] == 0
    assert ledger.read_text() == whole
    arrays = next((project / "figures").glob("07_*.npz"))
    arrays.write_bytes(arrays.read_bytes()[:-40])
    status, text = project.run()
    assert status == 0
    assert f"{arrays.name}: was damaged" in text and "Traceback" not in text


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="NOT RUN: needs a device that is always full")
def test_a_full_disk_is_said_and_the_next_run_ends_well(project):
    project.write("08")
    project.write("09")
    for name in ("notebooks/.08_sample.ipynb.tmp", "figures/.README.md.tmp"):
        (project / name).symlink_to("/dev/full")
    before = project.snapshot()
    status, text = project.run()
    assert status == 2
    assert "08_sample: FAILED, [Errno 28] No space left on device; its earlier results stand" in text
    assert "error: [Errno 28] No space left on device; what had finished is kept" in text
    changed = {name for name, data in project.snapshot().items() if before.get(name) != data}
    assert changed == {"figures/09_sample.json", "notebooks/09_sample.ipynb"}
    assert project.run()[0] == 0
    assert "`08_sample`" in (project / "figures/README.md").read_text()


def test_a_second_run_waits_for_the_first(project):
    with open(project / "build/lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        process = project.start()
        assert process.stdout.readline() == "waiting for another run in this folder to finish\n"
    assert "nothing had to run" in process.communicate(timeout=300)[0]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_keeps_what_had_finished_and_ends_its_kernels(project, how):
    project.write("07", "x = x + 0.01")
    project.write("08", "print(os.getpid(), file=open('pid', 'w', 1)); time.sleep(60)")
    pid, stamp = project / "notebooks/pid", project / "build/default/07_sample.done"
    before = stamp.read_text()
    # A shell that starts jobs in the background has them ignore interrupts, which the test inherits and must undo.
    process = project.start(preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
    wait_for(lambda: stamp.read_text() != before and pid.exists() and pid.read_text())
    process.send_signal(how)
    assert "interrupted; what had finished is kept" in process.communicate(timeout=300)[0]
    assert process.returncode == 130
    wait_for(lambda: not Path(f"/proc/{pid.read_text().strip()}").exists())
    assert not (project / "figures/08_sample.json").exists()
    assert list((project / "build/default").iterdir()) == [stamp]
    status, text = project.run("07")  # the tables are still those of the run before
    assert status == 0 and "starts" not in text
    assert "| mean | 9.500 | 9.51 ± 0.10 |" in (project / "figures/README.md").read_text()
    assert "nothing had to run" in project.run("07")[1]


def test_a_terminal_shows_one_line_with_the_time_left(project):
    project.write("07", "time.sleep(1.5)")
    own, terminal = pty.openpty()
    termios.tcsetwinsize(terminal, (24, 80))
    with project.start(stderr=terminal) as process:
        assert process.wait(300) == 0
    screen = os.read(own, 1 << 16).decode()
    assert re.search(r" [1-9]\d %\|.*\| \d\d:\d\d, about \d\d:\d\d left", screen)


def wait_for(condition):
    deadline = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)
