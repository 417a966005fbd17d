"""What the build makes of the library for the explorer."""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.polynomial import chebyshev

from onestep import theory
from onestep.hermite import NAMED
from website import explorer

PAGE = Path(__file__).parents[2] / "docs/explorer.md"


@pytest.mark.parametrize("name", explorer.ACTIVATIONS)
def test_the_series_give_coefficients_at_every_scale(name):
    found, f = explorer.activation(name), NAMED[name]
    R = np.geomspace(1, 6, 50)
    at = (2 / R - 1 - 1 / found["largest"]) / (1 - 1 / found["largest"])
    values = [chebyshev.chebval(at, series) if series else 0 * R for series in found["series"]]
    off = np.abs(np.array(values[:-1]) - (f.normalized(explorer.DEGREES, R) / R[:, None]).T)
    assert off[:12].max() < 1e-7
    assert values[-1] == pytest.approx(f.moments(0.0, R)[2] / R**2, rel=1e-9)


def test_suggestions_are_problems_within_the_formulas_reach():
    for setting in explorer.SUGGESTIONS.values():
        p = explorer.problem(setting)
        assert p.n == round(10 ** setting["digits"])
        assert 0 < setting["alpha"] < explorer.reach(p) < 0.5
        steps = float(p.n) ** np.array([explorer.reach(p) - 1e-9, explorer.reach(p) + 1e-6])
        theory.losses(p, steps[0], method="spiked")
        with pytest.raises(ValueError, match="good to 1 %"):
            theory.losses(p, steps[1], method="spiked")


def test_the_page_offers_each_suggestion():
    text = PAGE.read_text(encoding="utf-8")
    assert [name for name in explorer.SUGGESTIONS if f'data-try="{name}"' not in text] == []


def test_cached_values_are_not_computed_again(tmp_path, monkeypatch):
    made = []
    monkeypatch.setattr(explorer, "CACHE", tmp_path / "build/explorer.json")
    monkeypatch.setattr(explorer, "every_step", lambda setting: made.append(setting) or {})
    monkeypatch.setattr(explorer, "contour", lambda setting: [])
    monkeypatch.setattr(explorer, "departures", lambda: "table")
    first = explorer.data()
    assert explorer.data() == first
    assert len(made) == len(explorer.SUGGESTIONS)
    assert set(json.loads(first["page"])["activations"]) == set(explorer.ACTIVATIONS)
    explorer.CACHE.write_text(json.dumps(first | {"key": "another"}), encoding="utf-8")
    explorer.data()
    assert len(made) == 2 * len(explorer.SUGGESTIONS)
