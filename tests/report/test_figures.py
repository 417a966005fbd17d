"""Verdict rows, ledgers, stored numbers and tables."""

import json

import matplotlib.pyplot as plt
import numpy as np
import pytest

from onestep import report
from onestep.estimates import Estimate


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("ONESTEP_FIGURES", str(tmp_path))
    monkeypatch.setattr(report.session, "saved", {})
    return tmp_path


def test_saved_files_are_the_same_bytes_each_time(folder):
    def save():
        report.style()
        fig, ax = plt.subplots()
        ax.plot([1, 2, 3], label="theory")
        ax.legend()
        report.save(fig, "07_picture", "Three points on a line.", x=np.linspace(0, 1, 5), label="theory")
        return {path.name: path.read_bytes() for path in folder.iterdir()}

    with plt.rc_context():
        first = save()
        assert save() == first
    assert sorted(first) == ["07_picture.npz", "07_picture.png"]
    assert b"Software" not in first["07_picture.png"]


def test_stored_numbers_carry_their_parameters_and_six_digits(folder, monkeypatch):
    monkeypatch.setenv("ONESTEP_PARAMETERS", '{"n": 100}')
    numbers = np.array([0.0, 1 / 3, -1e-300 / 3, 2e300 / 3, np.nan, np.inf])
    fig = plt.figure()
    report.save(
        fig, "07_picture", "Three points on a line.", x=numbers, n=np.array([3, 4]), drift=numbers * (1 + 1e-12)
    )
    plt.close(fig)
    with np.load(folder / "07_picture.npz", allow_pickle=False) as stored:
        assert json.loads(str(stored["parameters"])) == {"n": 100}
        np.testing.assert_allclose(stored["x"], numbers, rtol=1e-5)
        np.testing.assert_array_equal(stored["x"], stored["drift"])
        np.testing.assert_array_equal(stored["n"], [3, 4])


def test_save_refuses_what_it_cannot_keep(folder):
    fig = plt.figure()
    with pytest.raises(ValueError, match="no arrays"):
        report.save(fig, "07_picture", "Nothing at all.")
    with pytest.raises(ValueError, match="finding = 'line'"):
        report.save(fig, "07_picture", "line", x=1.0)
    with pytest.raises(ValueError, match="pickle"):
        report.save(fig, "07_picture", "Three points on a line.", x=np.array([None]))
    for arrays in ({"x": Estimate(1.0, 0.1), "x_se": 1.0}, {"parameters": 1.0}):
        with pytest.raises(ValueError, match=r"'(x_se|parameters)': must have another name"):
            report.save(fig, "07_picture", "Three points on a line.", **arrays)
    with pytest.raises(ValueError, match="two digits"):
        report.save(fig, "figures/07.png", "Nothing at all.", x=1.0)
    plt.close(fig)
    assert list(folder.iterdir()) == []


def test_results_go_to_figures_where_the_session_runs(tmp_path, monkeypatch):
    monkeypatch.delenv("ONESTEP_FIGURES")
    monkeypatch.chdir(tmp_path)
    assert report.directory().resolve() == tmp_path / "figures"
    assert (tmp_path / "figures").is_dir()
    for folder in ("clone/lib/onestep", "clone/notebooks"):  # in a clone they leave the committed ones alone
        (tmp_path / folder).mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "clone/notebooks")
    assert report.directory() == tmp_path / "clone/build/figures"


def test_estimates_are_stored_with_their_standard_errors(folder):
    fig, ax = plt.subplots()
    rows = [[Estimate(1.0, 0.1), Estimate(2.0, 0.2)], [Estimate(3.0, 0.3), Estimate(4.0, 0.4)]]
    report.points(ax, [1, 2], rows[0])
    report.save(fig, "07_estimates", "Two points.", gain=rows, both=Estimate(np.ones(3), np.zeros(3)), plain=[1.0, 2.0])
    stored = np.load(folder / "07_estimates.npz")
    assert stored["gain"].tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert stored["gain_se"].tolist() == [[0.1, 0.2], [0.3, 0.4]]
    assert stored["both_se"].shape == (3,)
    assert "plain_se" not in stored
