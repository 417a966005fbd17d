"""The error that `theory.losses` states is kept by the problems of the committed table, simulated before and after."""

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import stated_errors
from onestep import Problem, hermite, theory

FOLDER = Path(stated_errors.__file__).parent
table = cache(stated_errors.table)


@cache
def parts():
    return stated_errors.parts(stated_errors.covered(table()))


@pytest.mark.parametrize("stratum", stated_errors.STRATA)
def test_stated_errors_hold_in_every_stratum(stratum):
    for rows in parts():
        part, judged = stated_errors.stratum(rows, stratum)
        assert judged or rows is not parts()[1]
        for loss in stated_errors.LOSSES if judged else ():
            one, two = stated_errors.within(part, loss)
            assert one >= 0.65 and two >= 0.92, loss


def test_stated_errors_are_not_much_larger_than_needed_and_small():
    assert max(map(stated_errors.needed, parts())) > 0.7
    for rows in parts():
        stated = sorted(stated_errors.deviations(rows, "test")[2])
        assert 0.0005 < stated[len(stated) // 2] < 0.01


@pytest.mark.parametrize("part", range(5))
def test_what_is_judged_is_what_the_library_states(part):
    rows = parts()[part][:3]
    found = theory.losses(stated_errors.problem(rows[0]), [float(row["eta"]) for row in rows]).rel_std
    for loss in stated_errors.LOSSES:
        stated = stated_errors.deviations(rows, loss)[2]
        assert getattr(found, loss) == pytest.approx((stated**2 + 1e-8) ** 0.5, rel=1e-3)  # and what quadrature leaves


def test_the_page_has_the_shares():
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert all(line in page for line in stated_errors.shares(table()))


SINE = hermite.Function(np.sin, np.cos, name="sin")
HEADLINES = {  # of notebooks whose problems are covered: their problems and steps, over whose ratios the row is a mean
    ("20_every_step_size", "setting 1: test error"): [(Problem(380, 114, 190, noise=1.0), 380**0.5)],
    ("20_every_step_size", "setting 2: test error"): [(Problem(380, 114, 190, teacher=(0.0, 1.0, 2**-0.5)), 380**0.5)],
    ("23_coherence", "case of Cui et al.: test error"): [
        (Problem(3 * d, d, d, 0.1 / 3, "tanh", SINE, readout=[1.0], step_samples=20 * d), 3 * d**0.5)
        for d in (50, 100, 200)
    ],
}


@pytest.mark.parametrize(("notebook", "quantity"), HEADLINES)
def test_means_over_other_roots_lie_within_two_stated_errors(notebook, quantity):
    rows = json.loads((FOLDER.parent / "figures/seeds.json").read_text(encoding="utf-8"))[notebook]["headlines"]
    (row,) = [row for row in rows if row["quantity"].startswith(quantity)]
    off, se = map(float, row["off"].split(" ± "))  # per cent of the prediction
    stated = 100 * np.mean([theory.losses(*case).rel_std.test for case in HEADLINES[notebook, quantity]])
    assert abs(off) <= 2 * (stated**2 + se**2) ** 0.5


@pytest.mark.parametrize("number", [5, 53, 102, 181, 224, 301, 341, 381, 441])
def test_predictions_of_the_table_are_the_library_s(number):
    mine = [row for row in table() if int(row["problem"]) == number]
    eta = [float(row["eta"]) for row in mine]
    for row, own in zip(mine, stated_errors.predicted(stated_errors.problem(mine[0]), eta), strict=True):
        for name, value in own.items():
            assert float(row[name]) == pytest.approx(float(value), rel=2e-4)
