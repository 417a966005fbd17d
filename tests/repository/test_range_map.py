"""The errors that `theory.losses` states are those of the committed table, and hold on the half that was not fitted."""

import importlib.util
from pathlib import Path

import pytest

SPEC = importlib.util.spec_from_file_location(
    "range_map", Path(__file__).resolve().parents[2] / "calibration/range_map.py"
)
range_map = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(range_map)
ROWS = range_map.table()


def halves(loss):
    number, *data = range_map.deviations(range_map.covered(ROWS), loss)
    even = number % 2 == 0
    return [x[even] for x in data], [x[~even] for x in data]


@pytest.mark.parametrize(("loss", "constant"), range_map.CONSTANT.items())
def test_constants_are_the_fit_to_the_even_problems(loss, constant):
    assert float(f"{range_map.law(*halves(loss)[0]):.2g}") == constant


@pytest.mark.parametrize(("loss", "constant"), range_map.CONSTANT.items())
def test_the_law_holds_on_the_odd_problems(loss, constant):
    error, noise, fluctuation = halves(loss)[1]
    one, two, rms, _ = range_map.calibration(constant, error, noise, fluctuation)
    assert one > 0.6
    assert two > 0.88
    assert 0.8 < rms < 1.3


def test_no_error_is_stated_outside_the_calibrated_range():
    def found(rows, loss="test"):
        _, error, noise, _ = range_map.deviations(rows, loss)
        return range_map.law(error, noise, 1.0)

    inside = range_map.covered(ROWS)
    outside = [row for row in ROWS if row not in inside]
    assert found(inside) < 0.002
    assert found([row for row in outside if " " in row["activation"]]) > 0.03
    assert found([row for row in outside if " " not in row["activation"]]) > 0.004
    assert not any(" " in row["activation"] for row in inside)


def test_the_map_covers_the_table_and_is_on_the_page():
    lines = list(range_map.regions(ROWS))
    assert 0.9 * len(ROWS) < sum(int(line[2]) + int(line[5]) for line in lines) <= len(ROWS)
    page = (Path(range_map.__file__).parents[1] / "docs/use.md").read_text()
    for line in (*lines, *range_map.shares(ROWS)):
        assert f"| {' | '.join(line)} |" in page


def test_every_problem_of_the_table_is_that_of_its_number():
    assert len({row["problem"] for row in ROWS}) == len(ROWS) / 3 == range_map.PROBLEMS
    for number in range(0, range_map.PROBLEMS, 7):
        mine = [row for row in ROWS if row["problem"] == str(number)]
        for row, own in zip(mine, range_map.described(number), strict=True):
            assert {name: str(value) for name, value in own.items()}.items() <= row.items()


@pytest.mark.parametrize("number", [14, 53, 68, 139])
def test_predictions_of_the_table_are_the_library_s(number):
    mine = [row for row in ROWS if row["problem"] == str(number)]
    for row, own in zip(mine, range_map.predicted(number), strict=True):
        for name, value in own.items():
            assert float(row[name]) == pytest.approx(float(value), rel=2e-4)
