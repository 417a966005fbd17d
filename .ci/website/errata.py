"""The numbers that `docs/errata.md` quotes, computed at the project's reference point; nothing is typed in twice."""

from math import sqrt

from onestep import Problem, theory
from onestep.report import digits

REFERENCE = Problem(n=1000, d=300, N=500, ridge=0.01, activation="shifted_relu", noise=1.0)  # setting 1 of the slides
QUADRATIC = REFERENCE.replace(teacher=(0, 1, 1 / sqrt(2)), noise=0.0)  # setting 2


def numbers():
    """All of them by name, as floats."""
    right, printed = ([theory.gains(QUADRATIC, order, printed=p).test for order in (1, 2)] for p in (False, True))
    gaussian = QUADRATIC.replace(first_layer="gaussian")
    literal = [theory.gains(gaussian.replace(initial_output="full"), order).test for order in (1, 2)]
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
        "growth_ratio": ratio,
        "shrinks": 3 / (2 + (1 + ratio) ** 2),
        "form": forms[-4, -4],
        "form_common": forms[-2, -2],
        "at_threshold": theory.boundary(QUADRATIC, 2).train,
        "below_threshold": theory.gains(QUADRATIC, 1).train,
        "above_threshold": theory.gains(QUADRATIC, 2).train,
    }


def shown(value):
    """A number as the errata show it."""
    return digits(float(value))
