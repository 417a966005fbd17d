import importlib.util
import linecache
import os
import shutil
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from onestep import Problem, hermite, simulate
from onestep.simulate import checkpoint

P = Problem(60, 20, 30, teacher=(0.0, 1.0, 0.5), noise=0.2)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("ONESTEP_KEEP", str(tmp_path / "kept"))
    return tmp_path / "kept"


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
    again = simulate.losses(P, [0.0, 2.0], trials=5, seed=1)
    assert len(calls) == 5
    np.testing.assert_array_equal(again.train[:3], first.train)
    np.testing.assert_array_equal(again.variates[:3], first.variates)
    assert not [path for path in folder.iterdir() if path.suffix != ".npz"]


@pytest.mark.parametrize(
    "change", [{"seed": 2}, {"seed": (1, 0)}, {"eta": [0.0, 3.0]}, {"p": P.replace(noise=0.1)}, {"redraws": 2}]
)
def test_anything_that_matters_is_in_the_key(monkeypatch, change):
    arguments = {"p": P, "eta": [0.0, 2.0], "seed": 1}
    simulate.losses(**arguments, trials=1)
    calls = count_draws(monkeypatch)
    simulate.losses(**(arguments | change), trials=1)
    assert len(calls) == 1


def test_a_changed_source_never_meets_old_results(monkeypatch):
    simulate.losses(P, 2.0, trials=1)
    monkeypatch.setattr(checkpoint, "_source", lambda: "another")
    calls = count_draws(monkeypatch)
    simulate.losses(P, 2.0, trials=1)
    assert len(calls) == 1


@pytest.mark.parametrize("changed", ["hermite.py", "problem.py", "simulate/network.py", "theory/units.py"])
def test_the_source_of_the_simulation_and_of_its_ground_is_in_the_key(tmp_path, monkeypatch, changed):
    copy = shutil.copytree(Path(checkpoint.__file__).parents[1], tmp_path / "onestep")

    def identity():
        spec = importlib.util.spec_from_file_location("onestep.checkpoint_copy", copy / "simulate/checkpoint.py")
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, "onestep.checkpoint_copy", module)
        spec.loader.exec_module(module)
        return module.store(partial(simulate.sweep, P, np.ones(2)), 0).key

    before = identity()
    assert identity() == before
    (copy / changed).write_text((copy / changed).read_text() + "\n# another formula\n")
    assert (identity() != before) == (not changed.startswith("theory"))


@pytest.mark.parametrize("damage", ["empty", "cut", "flipped", "foreign"])
def test_damaged_and_foreign_files_are_computed_anew(monkeypatch, folder, damage):
    first = simulate.losses(P, [0.0, 2.0], trials=2, seed=1)
    one, other = sorted(folder.iterdir())
    data = one.read_bytes()
    middle = len(data) // 2
    flipped = data[:middle] + bytes([data[middle] ^ 255]) + data[middle + 1 :]
    one.write_bytes({"empty": b"", "cut": data[:-40], "flipped": flipped, "foreign": other.read_bytes()}[damage])
    again = simulate.losses(P, [0.0, 2.0], trials=2, seed=1)
    np.testing.assert_array_equal(again.train, first.train)
    np.testing.assert_array_equal(again.test, first.test)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_said_and_leaves_nothing_behind(folder):
    store = checkpoint.Store(folder, "key")
    store.save(0, 1.0)
    (path,) = folder.iterdir()
    path.unlink()
    path.with_name(f".{path.stem}.{os.getpid()}.tmp").symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left on device"):
        store.save(0, np.zeros(10_000))
    assert not list(folder.iterdir())


def test_functions_without_a_name_are_not_kept(folder):
    own = P.replace(activation=hermite.Function(lambda z: np.tanh(z), name="own"))
    simulate.losses(own, 1.0, trials=1)
    simulate.repeat(lambda rng: rng.random(), 2, 0)
    assert not folder.exists()


def outside(rng):
    return rng.random()


@dataclass(frozen=True)
class Flat:
    averages = None

    def matrix(self, X, Z):
        return np.exp(-np.abs(X @ Z.T))


def test_what_is_made_outside_the_library_is_not_kept(folder):
    """Nothing in the key tells whether another module's function, or what it sees there, has changed."""
    simulate.repeat(outside, 2, 0)
    simulate.losses(P.replace(activation=hermite.Function(np.tanh, name="own")), 1.0, trials=1)
    simulate.baselines.kernel_ridge(P, Flat(), [1.0], trials=1)
    assert not folder.exists()


CELL = """
scale, shift, table = 2.0, [1, 2], {"a": Problem(60, 20, 30)}

def inner(x):
    return scale * x

def draw(more, rng, start=0.5):
    return np.array([inner(k) for k in shift]) + table["a"].n + more * rng.random() + start
"""


def session(text):
    """What a notebook cell of this text defines."""
    name = f"<cell {hash(text)}>"
    linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
    found = {"__name__": "__main__", "np": np, "Problem": Problem, "cannot": object()}
    exec(compile(text, name, "exec"), found)
    return found


def test_a_notebook_s_function_is_kept_with_all_it_refers_to(folder):
    draw = partial(session(CELL)["draw"], 3.0)
    first = simulate.repeat(draw, 2, 0)
    assert len(list(folder.iterdir())) == 2
    np.testing.assert_array_equal(simulate.repeat(draw, 2, 0), first)
    before = checkpoint.store(draw, 0).key
    assert checkpoint.store(partial(session(CELL)["draw"], 3.0), 0).key == before
    assert checkpoint.store(partial(session(CELL)["draw"], 4.0), 0).key != before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("2.0,", "3.0,"),
        ("[1, 2]", "[1, 3]"),
        ("(60,", "(61,"),
        ("scale * x", "x * scale"),
        ("=0.5", "=0.6"),
        ("+ m", "- m"),
    ],
)
def test_a_change_of_what_a_notebook_s_function_refers_to_is_another_key(old, new):
    assert CELL.count(old) == 1
    keys = [checkpoint.store(partial(session(text)["draw"], 3.0), 0).key for text in (CELL, CELL.replace(old, new))]
    assert keys[0] != keys[1]


@pytest.mark.parametrize("line", ["return cannot", "return draw(rng)"])
def test_a_notebook_s_function_that_cannot_be_named_is_not_kept(line):
    assert checkpoint.store(session(f"def draw(rng):\n    {line}\n")["draw"], 0) is None


def test_results_that_are_no_numbers_are_computed_anew(folder):
    draw = session("def draw(rng):\n    return Problem(60, 20, 30), rng.random()\n")["draw"]
    assert simulate.repeat(draw, 2, 0) == simulate.repeat(draw, 2, 0)
    assert not folder.exists()


def test_the_library_s_own_functions_are_kept():
    assert checkpoint.store(partial(simulate.sweep, P, np.ones(2)), 0) is not None


def test_nothing_is_kept_unless_asked_for(monkeypatch, folder):
    monkeypatch.delenv("ONESTEP_KEEP")
    simulate.losses(P, 1.0, trials=1)
    assert not folder.exists()
