"""The command `python -m onestep`."""

import numpy as np
import pytest

from onestep import theory
from onestep.__main__ import main
from onestep.simulate.data import BeyondTheory

SMALL = ["--n", "120", "--d", "40", "--hidden", "60", "--ridge", "0.1", "--eta", "1", "4"]


@pytest.mark.slow
def test_an_activation_of_ones_own(capsys, tmp_path, monkeypatch):
    (tmp_path / "own_functions.py").write_text(
        "import numpy as np\nfrom onestep import hermite\n"
        "clip = hermite.Function(lambda z: np.clip(z, -1, 1), kinks=(-1, 1), name='clip')\n"
        "def growth(z):\n    return np.exp(z)\n"
        "def raised(z):\n    return np.tanh(z) + 0.5\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("onestep.own_problem._POINTS", 3)
    for search in ("best_step", "best_ridge"):  # which have tests of their own
        monkeypatch.setattr(theory, search, lambda p, *_: theory.Best(2.0, p.ridge, 0.5, False))
    assert main([*SMALL, "--activation", "own_functions:clip", "--trials", "0"]) == 0
    assert "activation clip, teacher 1 H1" in capsys.readouterr().out
    assert main([*SMALL, "--activation", "own_functions:growth"]) == 2
    assert "subtract 1.6487" in capsys.readouterr().err
    assert main([*SMALL, "--activation", "own_functions:raised", "--centre", "--trials", "0"]) == 0
    assert "activation raised, teacher 1 H1" in capsys.readouterr().out
    (tmp_path / "broken.py").write_text("f = 1 / 0")
    assert main([*SMALL, "--activation", "broken:f"]) == 2
    assert "--activation broken:f: ZeroDivisionError" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--activation", "tanh", "erf"], "--activation tanh erf: must be one name, or numbers"),
        (["--teacher", "no_such_module:f"], "--teacher no_such_module:f: ModuleNotFoundError: No module named"),
        (["--activation", "math:tanh"], "np.tanh, not math.tanh"),
        (["--ridge", "0"], "ridge = 0.0: must be a finite number > 0"),
        (["--n", "10000000", "--d", "3000000", "--hidden", "5000000"], "not enough memory"),
        (["--prepare", "whiten"], "--prepare whiten: belongs to --data"),
        (["--data", "/dev/null"], "--data /dev/null: must be an .npz file with X (and y)"),
        (["--save", "/dev/null/x"], "--save = '/dev/null/x': cannot be written"),
        (["--save", ""], "--save = '': must name a folder"),
        (["--n", "200", "--d", "30", "--hidden", "40", "--eta", "1e9"], "here for eta <= "),  # before the search
    ],
)
def test_bad_input_is_an_error_of_one_line(capsys, words, message):
    assert main(words) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.startswith("error: ")
    assert err.count("\n") == 1


def test_a_damaged_file_is_an_error_of_one_line(capsys, tmp_path):
    np.savez(tmp_path / "rows.npz", X=np.eye(50))
    whole = (tmp_path / "rows.npz").read_bytes()
    (tmp_path / "rows.npz").write_bytes(whole[: len(whole) // 2])
    assert main(["--data", str(tmp_path / "rows.npz")]) == 2
    assert "must be an .npz file with X (and y)" in capsys.readouterr().err
    np.savez(tmp_path / "rows.npz", X=np.eye(50), Y=np.ones(50))
    assert main(["--data", str(tmp_path / "rows.npz")]) == 2
    assert "holds Y and no y; labels must be named y" in capsys.readouterr().err


@pytest.mark.slow
def test_sizes_beyond_64_bits_are_predicted(capsys):
    assert main(["--n", "1e20", "--d", "3e19", "--hidden", "5e19", "--eta", "1e5", "--trials", "0"]) == 0
    assert "n = 100000000000000000000, d = 30000000000000000000" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["--n", "1.5"])
    assert "'1.5' is no whole number up to 1e30, such as 1000 or 1e26" in capsys.readouterr().err


def test_own_data_from_a_file(capsys, tmp_path):
    X = np.random.default_rng(0).standard_normal((90, 12)) + 3.0
    np.savez(tmp_path / "rows.npz", X=X, y=np.sign(X[:, 0] - 3.0))
    words = ["--data", str(tmp_path / "rows.npz"), "--n", "30", "--hidden", "20", "--trials", "3", "--eta", "2"]
    with pytest.warns(BeyondTheory, match="subtract the mean of each column"):
        assert main(words) == 0
    assert main([*words, "--prepare", "centre"]) == 0
    out = capsys.readouterr().out
    assert "d = 12, N = 20" in out
    assert "accuracy" in out
