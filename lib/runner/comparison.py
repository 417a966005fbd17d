"""How printed results are compared: numbers with a decimal point to a relative 1e-6, all else to the letter.

nbval compares so (`conftest.py`), and so does the runner (`reproduction`).
"""

import math
import re
from itertools import zip_longest

RELATIVE = 1e-6
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")


class NumericText(str):
    """Text that equals another if the words are the same and the numbers agree (see `same_text`)."""

    __hash__ = str.__hash__

    def __eq__(self, other):
        return same_text(str(self), str(other)) if isinstance(other, str) else NotImplemented

    def __ne__(self, other):
        return not self == other


def same_text(one, other):
    """Whether two texts have the same words and numbers that agree.

    Parameters
    ----------
    one, other : str
        Numbers with a decimal point or an exponent may differ by `RELATIVE`; whole numbers must be the same.
    """
    return one == other or first_difference(one, other) is None


def first_difference(one, other):
    """The first pair of numbers, or else of lines, in which two texts differ; None if they agree (see `same_text`)."""
    if _NUMBER.split(one) != _NUMBER.split(other):
        lines = zip_longest(one.splitlines(), other.splitlines(), fillvalue="")
        return next((pair for pair in lines if _NUMBER.split(pair[0]) != _NUMBER.split(pair[1])), (one, other))
    pairs = zip(_NUMBER.findall(one), _NUMBER.findall(other), strict=True)
    return next((pair for pair in pairs if not _same_number(*pair)), None)


def _same_number(one, other):
    if one.lstrip("+-").isdigit() or other.lstrip("+-").isdigit():
        return one == other
    return math.isclose(float(one), float(other), rel_tol=RELATIVE)
