"""The errata: their scripts print what is committed beside them, and their numbers are the library's."""

import re
import subprocess
import sys
from math import sqrt
from pathlib import Path

import pytest

from onestep import Problem, theory
from onestep.report import digits

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted((ROOT / "docs/errata").glob("*.py"))
TEXT = (ROOT / "docs/errata.md").read_text(encoding="utf-8")
REFERENCE = Problem(n=1000, d=300, N=500, ridge=0.01, activation="shifted_relu", noise=1.0)  # setting 1 of the slides
QUADRATIC = REFERENCE.replace(teacher=(0, 1, 1 / sqrt(2)), noise=0.0)  # setting 2
DECIMAL = re.compile(r"-?\d+\.\d+")
NUMBER = re.compile(r"<!-- (\w+) -->(-?[\d.]+\d)")  # with a name, as the page has it


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_script_is_short_needs_numpy_alone_and_prints_what_is_committed(script):
    lines = [line for line in script.read_text(encoding="utf-8").splitlines() if line.strip()]
    assert [line for line in lines if "import" in line] == ["import numpy as np"] and len(lines) <= 25
    run = subprocess.run([sys.executable, "-I", script], capture_output=True, text=True, encoding="utf-8", check=True)
    expected = script.with_suffix(".txt").read_text(encoding="utf-8")
    assert DECIMAL.sub("", run.stdout) == DECIMAL.sub("", expected)
    for value, claimed in zip(DECIMAL.findall(run.stdout), DECIMAL.findall(expected), strict=True):
        last = 1.01 * 10.0 ** -len(claimed.partition(".")[2])  # rounding may differ between machines
        assert float(value) == pytest.approx(float(claimed), abs=last), run.stdout
    found = {word: float(value) for word, value in re.findall(r"(?m)^(\w+) +([\d.]+)", expected)}
    if found.keys() >= {"simulated", "corrected", "printed"}:
        error = float(re.search(r"simulated .*± ([\d.]+)", expected)[1])
        assert abs(found["simulated"] - found["corrected"]) < 3 * error
        assert abs(found["simulated"] - found["printed"]) > 5 * error


def test_every_script_is_on_the_page():
    assert set(re.findall(r"<!-- (\w+):begin -->", TEXT)) == {path.stem for path in SCRIPTS}


def computed():
    """The numbers that the page marks with a name, by the library."""
    right, printed = ([theory.gains(QUADRATIC, order, printed=p).test for order in (1, 2)] for p in (False, True))
    gaussian = QUADRATIC.replace(first_layer="gaussian")
    slides = gaussian.replace(initial_output="full")
    literal = [theory.gains(slides, order).test for order in (1, 2)]
    whole = theory.gains(slides, 2, growing_rows=True).test
    ratio = theory.growth_ratio(QUADRATIC)
    at = theory.traces(QUADRATIC)
    tau = QUADRATIC.psi / QUADRATIC.phi * at.df
    common = theory.random_features.common_part(QUADRATIC, at)
    return {
        "untrained": theory.untrained_limit(REFERENCE).test,
        "gain_1": right[0],
        "gain_1_printed": printed[0],
        "gain_2_more": right[1] - right[0],
        "gain_2_more_printed": printed[1] - printed[0],
        "gain_2": right[1],
        "gain_2_network": theory.gains(QUADRATIC, 2, growing_rows=True).test,
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
        "form": tau,
        "form_common": tau + (1 - tau) * common / (1 + common) / 3,
        "at_threshold": theory.untrained_limit(QUADRATIC).train
        - theory.staircase.spiked(QUADRATIC.scaled(10**300), 1e75, order=2).train,
        "below_threshold": theory.gains(QUADRATIC, 1).train,
        "above_threshold": theory.gains(QUADRATIC, 2).train,
    }


def test_the_numbers_are_the_library_s_and_the_formulas_lead_from_printed_to_right():
    numbers, p, t = computed(), QUADRATIC, theory.traces(QUADRATIC)
    assert dict(NUMBER.findall(TEXT)) == {name: digits(float(value)) for name, value in numbers.items()}
    ratio = p.phi / p.psi
    assert numbers["gain_1"] == pytest.approx(numbers["gain_1_printed"] * ratio / t.m1**2)
    assert numbers["gain_2_more"] == pytest.approx(numbers["gain_2_more_printed"] * ratio)
    stair = (numbers["gain_2_network"] - numbers["gain_1"]) / numbers["gain_2_more"]
    assert numbers["shrinks"] == pytest.approx(stair)
    variance = p.student.slope_second_moment - p.student.linear**2
    assert numbers["growth_ratio"] == pytest.approx(p.phi * p.label_power * variance / (p.student.linear**2 * p.D))
    assert numbers["form"] == pytest.approx((1 - p.ridge * t.m1 / ratio) / ratio)
    assert 0 < numbers["form"] < numbers["form_common"] < 1
    assert numbers["cosine"] == pytest.approx(1 / sqrt(REFERENCE.D))


def test_gains_hold_for_every_order_by_the_derivative_on_the_page():
    p, step = QUADRATIC, 1e-4
    below, above = (theory.gains(p.replace(ridge=ridge), 2).train / ridge for ridge in (p.ridge - step, p.ridge + step))
    gain = -((p.phi / p.psi) ** 2) / theory.traces(p).m1 ** 2 * (above - below) / (2 * step)
    assert theory.gains(p, 2).test == pytest.approx(gain, rel=1e-4)
