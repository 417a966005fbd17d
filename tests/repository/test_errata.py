"""The numbers that the errata quote."""

import re
from math import sqrt
from pathlib import Path

import pytest

from onestep import Problem, theory
from onestep.report import digits
from runner import documents

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/errata.md").read_text(encoding="utf-8")
REFERENCE = Problem(n=1000, d=300, N=500, ridge=0.01, activation="shifted_relu", noise=1.0)  # setting 1 of the slides
QUADRATIC = REFERENCE.replace(teacher=(0, 1, 1 / sqrt(2)), noise=0.0)  # setting 2


def computed():
    """The numbers that the page marks with a name, by the library."""
    right, printed = ([theory.gains(QUADRATIC, order, printed=p).test for order in (1, 2)] for p in (False, True))
    gaussian = QUADRATIC.replace(first_layer="gaussian")
    slides = gaussian.replace(initial_output="full")
    literal = [theory.gains(slides, order).test for order in (1, 2)]
    whole = theory.gains(slides, 2, growing_rows=True).test
    network = theory.gains(QUADRATIC, 2, growing_rows=True)
    ratio = theory.growth_ratio(QUADRATIC)
    forms = theory.forms(QUADRATIC, 1)
    return {
        "untrained": theory.untrained_limit(REFERENCE).test,
        "gain_1": right[0],
        "gain_1_printed": printed[0],
        "gain_2_more": right[1] - right[0],
        "gain_2_more_printed": printed[1] - printed[0],
        "gain_2": right[1],
        "gain_2_network": network.test,
        "cosine": REFERENCE.rho,
        "cosine_full": REFERENCE.replace(initial_output="full").rho,
        "gain_2_more_gaussian": theory.gains(gaussian, 2).test - theory.gains(gaussian, 1).test,
        "gain_1_literal": literal[0],
        "gain_2_more_literal": literal[1] - literal[0],
        "gain_2_slides": whole,
        "gain_2_slides_F": literal[1],
        "gain_2_less": whole - literal[1],
        "growth_ratio": ratio,
        "shrinks": 3 / (2 + (1 + ratio) ** 2),
        "form": forms[-4, -4],
        "form_common": forms[-2, -2],
        "at_threshold": theory.boundary(QUADRATIC, 2).train,
        "below_threshold": theory.gains(QUADRATIC, 1).train,
        "above_threshold": theory.gains(QUADRATIC, 2).train,
    }


@pytest.fixture(scope="module")
def numbers():
    return computed()


def test_every_script_is_on_the_page():
    quoted = set(re.findall(r"<!-- erratum (\w+):begin -->", TEXT))
    assert quoted == {path.stem for path in (ROOT / "docs/errata").glob("*.py")}


def test_each_number_on_the_page_is_the_library_s(numbers):
    assert dict(documents.NUMBER.findall(TEXT)) == {name: digits(float(value)) for name, value in numbers.items()}


def test_the_formulas_on_the_page_lead_from_printed_to_right(numbers):
    p, t = QUADRATIC, theory.traces(QUADRATIC)
    ratio = p.phi / p.psi
    assert numbers["gain_1"] == pytest.approx(numbers["gain_1_printed"] * ratio / t.m1**2)
    assert numbers["gain_2_more"] == pytest.approx(numbers["gain_2_more_printed"] * ratio)
    assert numbers["gain_2"] == pytest.approx(numbers["gain_1"] + numbers["gain_2_more"])


def test_gains_hold_for_every_order_by_the_derivative_on_the_page(numbers):
    p, step = QUADRATIC, 1e-4
    t = theory.traces(p)
    below, above = (theory.gains(p.replace(ridge=ridge), 2).train / ridge for ridge in (p.ridge - step, p.ridge + step))
    slope = (above - below) / (2 * step)
    assert numbers["gain_2"] == pytest.approx(-((p.phi / p.psi) ** 2) / t.m1**2 * slope, rel=1e-4)


def test_the_second_stair_shrinks_by_the_factor_on_the_page(numbers):
    stair = (numbers["gain_2_network"] - numbers["gain_1"]) / numbers["gain_2_more"]
    assert numbers["shrinks"] == pytest.approx(stair)
    p = QUADRATIC
    variance = p.student.slope_second_moment - p.student.linear**2
    assert numbers["growth_ratio"] == pytest.approx(p.phi * p.label_power * variance / (p.student.linear**2 * p.D))


def test_gaussian_rows_by_the_formula_on_the_page(numbers):
    p = QUADRATIC
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
    p, t = QUADRATIC, theory.traces(QUADRATIC)
    scale = p.psi / p.phi
    assert numbers["form"] == pytest.approx(scale * (1 - p.ridge * scale * t.m1))
    assert 0 < numbers["form"] < numbers["form_common"] < 1
    assert numbers["below_threshold"] < numbers["at_threshold"] < numbers["above_threshold"]
    assert numbers["cosine"] == pytest.approx(1 / sqrt(REFERENCE.D))
    assert numbers["cosine_full"] < numbers["cosine"]


def test_the_missing_factor_has_the_values_on_the_page():
    for ridge, quoted in ((0.01, "1506 times"), (0.1, "25 times"), (0.3, "3.6 times"), (1.0, ".40 times")):
        p = REFERENCE.replace(ridge=ridge)
        factor = p.phi / (p.psi * theory.traces(p).m1 ** 2)
        printed = theory.gains(p, 1, printed=True).test
        assert printed * factor == pytest.approx(theory.gains(p, 1).test)
        assert quoted in TEXT
        assert 1 / factor == pytest.approx(float(quoted.split()[0]), rel=0.01)
