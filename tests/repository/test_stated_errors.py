"""The error that `theory.losses` states is that of the committed table, and holds on problems that were not fitted."""

import importlib.util
import json
from pathlib import Path

import pytest

from onestep import Problem, theory

FOLDER = Path(__file__).resolve().parents[2] / "calibration"
SPEC = importlib.util.spec_from_file_location("stated_errors", FOLDER / "stated_errors.py")
stated_errors = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(stated_errors)
ROWS = stated_errors.table()
COVERED = stated_errors.covered(ROWS)
FITTED, OTHERS = ([row for row in COVERED if stated_errors.fitted(row) is side] for side in (True, False))
NEW = [row for row in COVERED if int(row["problem"]) >= stated_errors.NEW]  # simulated after the fit


def test_the_constant_is_what_the_even_problems_below_the_new_ones_need():
    assert theory.every_step.ERROR - 0.11 < stated_errors.fit(FITTED) <= theory.every_step.ERROR


@pytest.mark.parametrize("stratum", stated_errors.STRATA)
def test_stated_errors_hold_on_problems_that_were_not_fitted(stratum):
    inside = stated_errors.STRATA[stratum]
    for rows in (OTHERS, NEW):
        part = [row for row in rows if inside(stated_errors.problem(row), float(row["eta"]))]
        assert rows is NEW or len(part) >= 45
        for loss in stated_errors.LOSSES if len(part) >= 45 else ():
            one, two = stated_errors.within(part, loss)
            assert one >= 0.65 and two >= 0.92, loss


def test_stated_errors_are_small():
    for rows in (FITTED, OTHERS):
        units = stated_errors.deviations(rows, "test")[2]
        assert 0.0005 < theory.every_step.ERROR * sorted(units)[len(units) // 2] < 0.01


def test_the_page_has_the_shares():
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert all(line in page for line in stated_errors.shares(ROWS))


@pytest.mark.parametrize(
    ("setting", "fields"), [(1, {"noise": 1.0}), (2, {"teacher": (0.0, 1.0, 2**-0.5)})], ids=["linear", "curved"]
)
def test_means_over_other_roots_lie_within_two_stated_errors(setting, fields):
    rows = json.loads((FOLDER.parent / "figures/seeds.json").read_text(encoding="utf-8"))["20_every_step_size"]
    (row,) = [row for row in rows["headlines"] if row["quantity"].startswith(f"setting {setting}: test error")]
    off, se = map(float, row["off"].split(" ± "))  # per cent, notebook 20, η = √n
    stated = 100 * theory.losses(Problem(380, 114, 190, **fields), [380**0.5]).rel_std.test[0]
    assert abs(off) <= 2 * (stated**2 + se**2) ** 0.5


@pytest.mark.parametrize("number", [5, 53, 102, 181, 224])
def test_predictions_of_the_table_are_the_library_s(number):
    mine = [row for row in ROWS if int(row["problem"]) == number]
    eta = [float(row["eta"]) for row in mine]
    fields = dict(zip(stated_errors.FIELDS, map(str, stated_errors.draw(number)), strict=True))
    assert fields.items() <= mine[0].items()
    for row, own in zip(mine, stated_errors.predicted(stated_errors.problem(mine[0]), eta), strict=True):
        for name, value in own.items():
            assert float(row[name]) == pytest.approx(float(value), rel=2e-4)
