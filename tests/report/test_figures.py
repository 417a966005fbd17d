"""Verdict rows, ledgers, stored numbers and tables."""

import json

import matplotlib.pyplot as plt
import numpy as np
import pytest
from PIL import Image

from onestep import report


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("ONESTEP_FIGURES", str(tmp_path))
    monkeypatch.setattr(report.session, "saved", [])
    return tmp_path


def test_saved_files_are_the_same_bytes_each_time(folder):
    def save():
        report.style()
        fig, ax = plt.subplots()
        ax.plot([1, 2, 3], label="theory")
        ax.legend()
        report.save(fig, "07_picture", x=np.linspace(0, 1, 5), label="theory")
        plt.close(fig)
        return {path.name: path.read_bytes() for path in folder.iterdir()}

    with plt.rc_context():
        first = save()
        assert save() == first
    assert sorted(first) == ["07_picture.npz", "07_picture.pdf", "07_picture.png"]
    assert b"Software" not in first["07_picture.png"]
    assert b"CreationDate" not in first["07_picture.pdf"]


def test_animations_are_the_same_bytes_each_time_and_play(folder, capsys):
    fig, ax = plt.subplots(figsize=(2, 2), dpi=50)
    drawn = []

    def draw(k):
        drawn.append(k)
        ax.clear()
        ax.plot([0, 1], [0, k])

    def animate(frames=4):
        report.animate(fig, draw, frames, "07_moving", seconds=1.0, x=1.0)
        return {path.name: path.read_bytes() for path in folder.iterdir()}

    first = animate()
    assert animate() == first
    assert sorted(first) == ["07_moving.npz", "07_moving.pdf", "07_moving.png"]
    assert drawn == [0, 1, 2, 3] * 2
    with Image.open(folder / "07_moving.png") as picture:
        assert picture.n_frames == 4
        assert picture.info["loop"] == 0
    with pytest.raises(ValueError, match="at least 2 frames"):
        animate(frames=1)
    plt.close(fig)


def test_stored_numbers_carry_their_parameters_and_six_digits(folder, monkeypatch):
    monkeypatch.setenv("ONESTEP_PARAMETERS", '{"n": 100}')
    numbers = np.array([0.0, 1 / 3, -1e-300 / 3, 2e300 / 3, np.nan, np.inf])
    fig = plt.figure()
    report.save(fig, "07_picture", x=numbers, n=np.array([3, 4]), drift=numbers * (1 + 1e-12))
    plt.close(fig)
    with np.load(folder / "07_picture.npz", allow_pickle=False) as stored:
        assert json.loads(str(stored["parameters"])) == {"n": 100}
        np.testing.assert_allclose(stored["x"], numbers, rtol=1e-5)
        np.testing.assert_array_equal(stored["x"], stored["drift"])
        np.testing.assert_array_equal(stored["n"], [3, 4])


def test_save_refuses_what_it_cannot_keep(folder):
    fig = plt.figure()
    with pytest.raises(ValueError, match="no arrays"):
        report.save(fig, "07_picture")
    with pytest.raises(ValueError, match="pickle"):
        report.save(fig, "07_picture", x=np.array([None]))
    with pytest.raises(ValueError, match="two digits"):
        report.save(fig, "figures/07.png", x=1.0)
    plt.close(fig)
    assert list(folder.iterdir()) == []


def test_results_go_to_figures_where_the_session_runs(tmp_path, monkeypatch):
    monkeypatch.delenv("ONESTEP_FIGURES")
    monkeypatch.chdir(tmp_path)
    assert report.directory().resolve() == tmp_path / "figures"
    assert (tmp_path / "figures").is_dir()
