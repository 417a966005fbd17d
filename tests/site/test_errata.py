"""The numbers that the errata quote."""

import re
from math import sqrt
from pathlib import Path

import pytest

from onestep import theory
from website import errata
from website.sources import Sources

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/errata.md").read_text(encoding="utf-8")


def test_every_script_is_shown_with_what_it_prints():
    shown = set(re.findall(r"\{\{ erratum (\w+) \}\}", TEXT))
    assert shown == {path.stem for path in (ROOT / "docs/errata").glob("*.py")}
    assert "print(" in Sources(ROOT).value("erratum equation_3")
    assert "It prints:\n\n```text\nprinted " in Sources(ROOT).value("erratum equation_3")


@pytest.fixture(scope="module")
def numbers():
    return errata.numbers()


def test_the_page_uses_all_of_them_and_no_others(numbers):
    asked = set()
    for placeholder in re.findall(r"\{\{ *(.+?) *\}\}", TEXT):
        if not placeholder.startswith(("figure ", "erratum ")):
            asked |= set(placeholder.removeprefix("rows ").split()) - {"not"}
    assert asked == set(numbers)


def test_the_formulas_on_the_page_lead_from_printed_to_right(numbers):
    p, t = errata.QUADRATIC, theory.traces(errata.QUADRATIC)
    ratio = p.phi / p.psi
    assert numbers["gain_1"] == pytest.approx(numbers["gain_1_printed"] * ratio / t.m1**2)
    assert numbers["gain_2_more"] == pytest.approx(numbers["gain_2_more_printed"] * ratio)
    assert numbers["gain_2"] == pytest.approx(numbers["gain_1"] + numbers["gain_2_more"])


def test_gains_hold_for_every_order_by_the_derivative_on_the_page(numbers):
    p, step = errata.QUADRATIC, 1e-4
    t = theory.traces(p)
    below, above = (theory.gains(p.replace(ridge=ridge), 2).train / ridge for ridge in (p.ridge - step, p.ridge + step))
    slope = (above - below) / (2 * step)
    assert numbers["gain_2"] == pytest.approx(-((p.phi / p.psi) ** 2) / t.m1**2 * slope, rel=1e-4)


def test_the_second_stair_shrinks_by_the_factor_on_the_page(numbers):
    stair = (numbers["gain_2_network"] - numbers["gain_1"]) / numbers["gain_2_more"]
    assert numbers["shrinks"] == pytest.approx(stair)
    p = errata.QUADRATIC
    variance = p.student.slope_second_moment - p.student.linear**2
    assert numbers["growth_ratio"] == pytest.approx(p.phi * p.label_power * variance / (p.student.linear**2 * p.D))


def test_gaussian_rows_by_the_formula_on_the_page(numbers):
    p = errata.QUADRATIC
    c2 = p.student.coefficients(2)[2]

    def stair(ridge):
        """Δ_2 - Δ_1 over λ with the 3 replaced."""
        m1 = theory.traces(p.replace(ridge=ridge)).m1
        scale = p.psi / p.phi
        tau = scale * (1 - ridge * scale * m1)
        three = 2 + 1 / (1 + scale * m1 * (1 - tau) * 2 * c2**2 / p.psi)
        return 4 * scale * m1 * p.target.linear**4 * p.target.coefficients(2)[2] ** 2 / (three * p.D**2)

    step = 1e-5
    slope = (stair(p.ridge + step) - stair(p.ridge - step)) / (2 * step)
    gain = -((p.phi / p.psi) ** 2) / theory.traces(p).m1 ** 2 * slope
    assert numbers["gain_2_more_gaussian"] == pytest.approx(gain, rel=1e-4)


def test_forms_and_thresholds_lie_where_the_page_says(numbers):
    p, t = errata.QUADRATIC, theory.traces(errata.QUADRATIC)
    scale = p.psi / p.phi
    assert numbers["form"] == pytest.approx(scale * (1 - p.ridge * scale * t.m1))
    assert 0 < numbers["form"] < numbers["form_common"] < 1
    assert numbers["below_threshold"] < numbers["at_threshold"] < numbers["above_threshold"]
    assert numbers["cosine"] == pytest.approx(1 / sqrt(errata.REFERENCE.D))
    assert numbers["cosine_full"] < numbers["cosine"]


def test_numbers_are_shown_with_four_digits():
    assert errata.shown(0.29577) == "0.2958"
    assert errata.shown(445.5535) == "445.6"


def test_the_missing_factor_has_the_values_on_the_page():
    for ridge, shown in ((0.01, "1506 times"), (0.1, "25 times"), (0.3, "3.6 times"), (1.0, ".40 times")):
        p = errata.REFERENCE.replace(ridge=ridge)
        factor = p.phi / (p.psi * theory.traces(p).m1 ** 2)
        printed = theory.gains(p, 1, printed=True).test
        assert printed * factor == pytest.approx(theory.gains(p, 1).test)
        assert shown in TEXT
        assert 1 / factor == pytest.approx(float(shown.split()[0]), rel=0.01)
