"""Verdict rows: what is claimed, what was measured, whether they agree; shown in a table and kept in a ledger."""

import json
import math

import numpy as np

from . import session

HEAD = ["quantity", "claimed", "measured ± s.e.", "tolerance", "verdict"]


class Verdicts:
    """The verdict rows of one notebook; `conclude` shows them, keeps them in a ledger and fails if one of them fails.

    Parameters
    ----------
    notebook : the notebook's name, "07_test_error_gains"
    claim : the claim in a few words, with its number: "C9: ..."
    source : where the claim is made

    Each method below adds one row. `measured` is either samples, one per trial (1-D, at least two: their mean and
    standard error are used), or a mean together with its standard error `se` (0 for a number without noise). The
    tolerance is `z` standard errors plus `allowance`, a finite-size allowance in the units of the quantity. Rows marked
    `headline=True` are shown in the README (the first three where a notebook marks none).
    A value that is not a finite number raises ValueError.
    """

    def __init__(self, notebook, claim, source):
        session.check_name(notebook)
        self.notebook, self.claim, self.source = notebook, claim, source
        self.rows = []

    def agrees(self, quantity, predicted, measured, se=None, allowance=0.0, z=3.0, headline=False):
        """|measured − predicted| ≤ z·se + allowance."""
        self._compare("=", quantity, predicted, measured, se, allowance, z, headline=headline)

    def at_most(self, quantity, bound, measured, se=None, z=3.0, headline=False):
        """measured + z·se ≤ bound: the noise counts against the claim."""
        self._compare("≤", quantity, bound, measured, se, 0.0, z, headline=headline)

    def at_least(self, quantity, bound, measured, se=None, z=3.0, headline=False):
        """measured − z·se ≥ bound: the noise counts against the claim."""
        self._compare("≥", quantity, bound, measured, se, 0.0, z, headline=headline)

    def control(self, quantity, predicted, measured, se=None, allowance=0.0, z=3.0, headline=False):
        """Negative control: something broken on purpose, for which `agrees` must fail."""
        self._compare("=", quantity, predicted, measured, se, allowance, z, control=True, headline=headline)

    def control_at_most(self, quantity, bound, measured, se=None, z=3.0, headline=False):
        """Negative control: something broken on purpose, for which `at_most` must fail."""
        self._compare("≤", quantity, bound, measured, se, 0.0, z, control=True, headline=headline)

    def control_at_least(self, quantity, bound, measured, se=None, z=3.0, headline=False):
        """Negative control: something broken on purpose, for which `at_least` must fail."""
        self._compare("≥", quantity, bound, measured, se, 0.0, z, control=True, headline=headline)

    def check(self, quantity, claimed, measured, passed, headline=False):
        """A yes-or-no fact; `claimed` and `measured` are texts, the second one made from computed values."""
        if not isinstance(passed, bool | np.bool_):
            raise ValueError(f"{quantity}: passed must be True or False, not {passed!r}")
        self._add(quantity, claimed, measured, "exact", bool(passed), False, headline)

    def conclude(self):
        """Show the table, write the ledger, and raise AssertionError with the failing rows if there are any.

        Raises ValueError without a negative control: a set of checks that nothing could fail shows nothing.
        """
        if not any(row["control"] for row in self.rows):
            raise ValueError(f"{self.notebook} has no negative control among its {len(self.rows)} verdicts")
        self._show()
        number = self.notebook[:3]
        ledger = {
            "notebook": self.notebook,
            "claim": self.claim,
            "source": self.source,
            "parameters": session.parameters(),
            "figures": sorted(name for name in session.saved if name.startswith(number)),
            "rows": self.rows,
        }
        text = json.dumps(ledger, indent=1, sort_keys=True, ensure_ascii=False)
        (session.directory() / f"{self.notebook}.json").write_text(text + "\n", encoding="utf-8")
        failing = [row for row in self.rows if not row["passed"]]
        if failing:
            raise AssertionError("; ".join(describe(row) for row in failing))

    def _compare(self, sign, quantity, claimed, measured, se, allowance, z, control=False, headline=False):
        claimed = _finite(quantity, "the claimed value", claimed)
        allowance = _finite(quantity, "allowance", allowance)
        z = _finite(quantity, "z", z)
        if allowance < 0 or z <= 0:
            raise ValueError(f"{quantity}: allowance must be ≥ 0 and z > 0, not {allowance} and {z}")
        mean, se = _mean_and_error(quantity, measured, se)
        slack = z * se + allowance
        excess = {"=": abs(mean - claimed) - slack, "≤": mean + slack - claimed, "≥": claimed + slack - mean}[sign]
        agrees = excess <= 0
        shown_claim = digits(claimed) if sign == "=" else f"{sign} {digits(claimed)}"
        shown_value = digits(mean) + (f" ± {digits(se, 2)}" if se > 0 else "")
        terms = [f"{z:g} s.e."] * (se > 0) + [digits(allowance, 2)] * (allowance > 0)
        tolerance = " + ".join(terms) or "exact"
        self._add(quantity, shown_claim, shown_value, tolerance, agrees != control, control, headline)
        self.rows[-1]["values"] = {
            "claimed": session.rounded(claimed),
            "measured": session.rounded(mean),
            "se": session.rounded(se),
            "tolerance": session.rounded(slack),
        }

    def _add(self, quantity, claimed, measured, tolerance, passed, control, headline):
        if any(row["quantity"] == quantity and row["control"] == control for row in self.rows):
            raise ValueError(f"{self.notebook} already has a verdict on {quantity!r}")
        self.rows.append(
            {
                "quantity": quantity,
                "claimed": claimed,
                "measured": measured,
                "tolerance": tolerance,
                "verdict": _verdict(passed, control),
                "passed": bool(passed),
                "control": control,
                "headline": headline,
            }
        )

    def _show(self):
        from IPython.display import display

        body = cells(self.rows)
        plain = "\n".join(" | ".join(line) for line in [HEAD, *body])
        display({"text/plain": plain, "text/markdown": markdown_table(HEAD, body)}, raw=True)


def extrapolated(half, full):
    """(estimate, s.e.) of the limit n → ∞ from samples at n/2 and n, when the bias is of order 1/n: 2 m(n) - m(n/2).

    half, full : independent samples, one per trial (1-D, at least two each).
    """
    (small, error_small), (large, error_large) = (_mean_and_error("extrapolated", x, None) for x in (half, full))
    return 2 * large - small, math.hypot(2 * error_large, error_small)


def markdown_table(head, body):
    """A Markdown table; bars inside cells are escaped."""
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def describe(row):
    """One verdict row as a sentence for an error message or a terminal."""
    text = f"{label(row)}: claimed {row['claimed']}, measured {row['measured']}, tolerance {row['tolerance']}"
    if "values" in row:
        values = row["values"]
        text += f", off by {digits(abs(values['measured'] - values['claimed']), 2)}"
        text += f" where {digits(values['tolerance'], 2)} is allowed"
    return f"{text}: {row['verdict']}"


def digits(x, significant=4):
    """A number as text with a fixed count of significant digits; whole numbers given as integers stay whole."""
    if isinstance(x, int | np.integer):
        return str(x)
    if x == 0:
        return "0"
    text = f"{x:#.{significant}g}"
    if "e" in text and 1 <= abs(x) < 1e7:
        text = str(round(float(text)))
    return text.rstrip(".")


def cells(rows):
    """The table's cells, one list per row, in the order of `HEAD`."""
    return [[label(row), row["claimed"], row["measured"], row["tolerance"], row["verdict"]] for row in rows]


def label(row):
    """A row's name as tables show it."""
    return f"control: {row['quantity']}" if row["control"] else row["quantity"]


def _verdict(passed, control):
    if control:
        return "fails, as it must" if passed else "HOLDS, BUT MUST NOT"
    return "holds" if passed else "FAILS"


def _finite(quantity, what, value):
    number = np.asarray(value)
    if number.shape != () or number.dtype.kind not in "iuf" or not np.isfinite(number):
        raise ValueError(f"{quantity}: {what} must be one finite number, not {value!r}")
    return number.item()


def _mean_and_error(quantity, measured, se):
    samples = np.asarray(measured)
    if samples.ndim == 0:
        if se is None:
            raise ValueError(f"{quantity}: a single measured value needs its standard error se (0 if it has no noise)")
        se = _finite(quantity, "se", se)
        if se < 0:
            raise ValueError(f"{quantity}: se must be ≥ 0, not {se}")
        return _finite(quantity, "measured", measured), se
    if se is not None:
        raise ValueError(f"{quantity}: give either samples or a mean with se, not both")
    if samples.ndim != 1 or len(samples) < 2 or samples.dtype.kind not in "iuf" or not np.isfinite(samples).all():
        raise ValueError(f"{quantity}: samples must be at least two finite numbers in one dimension, not {measured!r}")
    return samples.mean().item(), (samples.std(ddof=1) / math.sqrt(len(samples))).item()
