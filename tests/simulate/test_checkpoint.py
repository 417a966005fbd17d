import itertools
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from onestep import Problem, simulate
from onestep.simulate import replicates

P = Problem(60, 20, 30, teacher=(0.0, 1.0, 0.5), noise=0.2)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("ONESTEP_KEEP", str(tmp_path / "kept"))
    session(monkeypatch)
    return tmp_path / "kept"


def session(monkeypatch, key="code-and-sources"):
    """As a new process running this code would begin."""
    monkeypatch.setenv("ONESTEP_KEEP_KEY", key)
    monkeypatch.setattr(replicates, "_calls", itertools.count())


def count_draws(monkeypatch):
    calls, usual = [], simulate.every_step.draw
    monkeypatch.setattr(
        simulate.every_step, "draw", lambda *args, **options: calls.append(1) or usual(*args, **options)
    )
    return calls


def test_what_is_kept_is_not_drawn_again_and_is_the_same(monkeypatch, folder):
    calls = count_draws(monkeypatch)
    first = simulate.losses(P, [0.0, 2.0], trials=3, seed=1)
    assert (len(calls), len(list(folder.iterdir()))) == (3, 3)
    session(monkeypatch)
    again = simulate.losses(P, [0.0, 2.0], trials=5, seed=1)
    assert len(calls) == 5
    np.testing.assert_array_equal(again.train[:3], first.train)
    np.testing.assert_array_equal(again.variates[:3], first.variates)


def test_another_call_and_other_code_draw_their_own(monkeypatch):
    simulate.losses(P, 2.0, trials=1)
    calls = count_draws(monkeypatch)
    simulate.losses(P, 2.0, trials=1)
    assert len(calls) == 1
    session(monkeypatch, "other-code")
    simulate.losses(P, 2.0, trials=1)
    assert len(calls) == 2
    session(monkeypatch)
    simulate.losses(P, 2.0, trials=1)
    simulate.losses(P, 2.0, trials=1)
    assert len(calls) == 2


def nested(rng):
    """A replicate that repeats something itself."""
    return sum(simulate.repeat(lambda inner: inner.standard_normal(), 2, int(rng.integers(99)), jobs=1))


def in_a_thread(rng):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(nested, rng).result()


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("replicate", [nested, in_a_thread])
def test_what_a_replicate_repeats_is_kept_with_it_alone(monkeypatch, folder, replicate, jobs):
    first = simulate.repeat(replicate, 4, 3, jobs=jobs)
    assert len(list(folder.iterdir())) == 4
    for trial in (1, 2):  # as if a run had been killed
        (folder / f"code-and-sources-0-{trial}").unlink()
    session(monkeypatch)
    assert simulate.repeat(replicate, 4, 3, jobs=jobs) == first


@pytest.mark.parametrize("damage", ["empty", "cut", "flipped", "foreign"])
def test_damaged_and_foreign_files_are_computed_anew(monkeypatch, folder, damage):
    first = simulate.losses(P, [0.0, 2.0], trials=2, seed=1)
    one, other = sorted(folder.iterdir())
    data = one.read_bytes()
    middle = len(data) // 2
    flipped = data[:middle] + bytes([data[middle] ^ 255]) + data[middle + 1 :]
    one.write_bytes({"empty": b"", "cut": data[:-40], "flipped": flipped, "foreign": other.read_bytes()}[damage])
    session(monkeypatch)
    calls = count_draws(monkeypatch)
    again = simulate.losses(P, [0.0, 2.0], trials=2, seed=1)
    assert len(calls) == 1
    np.testing.assert_array_equal(again.train, first.train)
    np.testing.assert_array_equal(again.test, first.test)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_said_and_leaves_nothing_behind(monkeypatch, folder):
    folder.mkdir()
    (folder / f".code-and-sources-0-0.{os.getpid()}").symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left on device"):
        simulate.losses(P, 1.0, trials=1)
    session(monkeypatch)
    assert simulate.losses(P, 1.0, trials=1).train.size == 1
    assert [path.name for path in folder.iterdir()] == ["code-and-sources-0-0"]


@pytest.mark.parametrize("missing", ["ONESTEP_KEEP", "ONESTEP_KEEP_KEY"])
def test_nothing_is_kept_unless_asked_for(monkeypatch, folder, missing):
    monkeypatch.delenv(missing)
    simulate.losses(P, 1.0, trials=1)
    assert not folder.exists()
