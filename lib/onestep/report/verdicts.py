"""Verdict rows: what is claimed, what was measured, whether they agree and how small an error the row would notice.

Tolerances are Student's t with the row's own degrees of freedom, at a level so small that, while samples are nearly
normal, the agreements of all notebooks together raise a false alarm in at most one run of a hundred; standard errors
widened by a bad fit make one likelier. The tolerance over the effect that the row is about is its `resolution`: an
agreement notices an error of this size every other time, one twice as large nearly always. A bound has to be shown: a
false one passes as rarely as an alarm is raised, a true one every other time if it holds by its resolution.

At the sizes of `PRESET=quick` noise may hide what a row is about. There a bound that is neither shown nor refuted, a
control that is not rejected and a row none of whose controls is are "not judged at quick"; what is refuted fails.
"""

import json

import numpy as np
from scipy import special

from .. import checks, estimates
from ..estimates import Estimate
from . import session

FALSE_ALARMS = 0.01  # chance that a run of all notebooks fails some agreement although every claim is exactly true
ROWS = 250  # the rows that share it: an upper bound on those with noise, controls aside, in all notebooks
LEVEL = FALSE_ALARMS / ROWS
CAP = 0.1  # largest allowance, as a share of the effect: what needs more is not tested by such a row
HEAD = ["quantity", "claimed", "measured ± s.e.", "tolerance", "resolution", "verdict"]
UNJUDGED = "not judged at quick"
KINDS = {"agreement": "holds", "bound": "holds", "control": "control rejected"}


class Verdicts:
    """The verdict rows of one notebook; `conclude` shows them, keeps them in a ledger and fails if one of them fails.

    Parameters
    ----------
    notebook : its name, such as "14_test_error_gains"
    claim : the claim in a few words, with its number
    source : where it is made

    Notes
    -----
    Each method below adds one row, named by `quantity`. `measured` is an `Estimate` or the samples it is the mean of,
    one per trial (1-D, at least two). The tolerance is t·s.e. at `LEVEL`, in `agrees` plus `allowance`, a finite-size
    allowance in the quantity's units, from theory or from other data than those it judges, at most `CAP` of the effect.
    `scale` is the effect: the claimed value unless stated, and to be stated where that is 0. Rows marked
    `headline=True`, the main results, are followed over other seeds and at larger sizes; the row marked `front=True`,
    one of them, stands for the claim in docs/claims.md. Numbers that are not finite raise ValueError.

    `control` is the row's negative control, the claim broken on purpose: a pair `(name, wrong)` or a list of pairs.
    `wrong` is a number, which takes the claimed value's place, or samples or an `Estimate` of a broken experiment,
    which take the place of `measured`. The control passes if the row rejects `wrong` significantly: `wrong` must lie
    beyond the allowance by t·s.e. on the wrong side of the claim, so that noise can only keep a control from passing.
    """

    def __init__(self, notebook, claim, source):
        session.check_name(notebook)
        self.notebook, self.claim, self.source = notebook, claim, source
        self.rows = []

    def agrees(
        self, quantity, claimed, measured, *, allowance=0.0, scale=None, headline=False, front=False, control=()
    ):
        """|measured − claimed| ≤ t·s.e. + allowance."""
        marks = _marks(headline, front)
        self._test("agreement", "=", quantity, claimed, measured, allowance, scale, marks, control)

    def at_most(self, quantity, bound, measured, *, scale=None, headline=False, front=False, control=()):
        """measured + t·s.e. ≤ bound: the noise counts against the claim."""
        self._test("bound", "≤", quantity, bound, measured, 0.0, scale, _marks(headline, front), control)

    def at_least(self, quantity, bound, measured, *, scale=None, headline=False, front=False, control=()):
        """measured − t·s.e. ≥ bound: the noise counts against the claim."""
        self._test("bound", "≥", quantity, bound, measured, 0.0, scale, _marks(headline, front), control)

    def succeeds(self, quantity, rate, successes, *, headline=False, front=False, control=()):
        """The chance of success is at least `rate`, by Clopper and Pearson's lower bound at `LEVEL`.

        successes are (trials,), True or False. In a control, `wrong` is the successes of a broken experiment: Clopper
        and Pearson's upper bound must lie below `rate`. The resolution is the share of successes less its lower bound.
        """
        rate = _finite(quantity, "rate", rate)
        if not 0 < rate < 1:
            raise ValueError(f"{quantity}: rate = {rate!r}: must lie between 0 and 1")
        row, lower, upper = _binomial(quantity, rate, successes)
        marks, reach = _marks(headline, front), np.mean(successes) - lower
        self._add("bound", quantity, row | marks, lower >= rate, upper < rate, reach)
        for name, wrong in _pairs(quantity, control):
            row, _, upper = _binomial(quantity, rate, wrong)
            row |= {"of": quantity, "name": name} | _marks()
            self._add("control", f"{quantity}: {name}", row, upper < rate, False, 0.0)

    def conclude(self):
        """Show the table, write the ledger, and raise AssertionError with the failing rows if there are any.

        Raises ValueError without rows, or if one has no negative control. Under another preset than the default
        failing rows raise nothing, as the runner judges by the ledger.
        """
        if not self.rows:
            raise ValueError(f"{self.notebook} has no verdicts")
        for row in (row for row in self.rows if not row["control"]):
            controls = {other["verdict"] for other in self.rows if other.get("of") == row["quantity"]}
            if not controls:
                raise ValueError(f"{self.notebook}: {row['quantity']!r} has no negative control")
            if controls == {UNJUDGED} and row["passed"]:
                row["verdict"] = UNJUDGED
        head, body = folded(self.rows)
        plain = "\n".join(map(" | ".join, [head, *body]))
        session.show({"text/plain": plain, "text/markdown": markdown_table(head, body)})
        ledger = {
            "notebook": self.notebook,
            "claim": self.claim,
            "source": self.source,
            "parameters": session.parameters(),
            "figures": {name: finding for name, finding in session.saved.items() if name.startswith(self.notebook[:3])},
            "rows": self.rows,
        }
        text = json.dumps(ledger, indent=1, sort_keys=True, ensure_ascii=False)
        checks.write(session.directory() / f"{self.notebook}.json", f"{text}\n".encode())
        failing = [row for row in self.rows if not row["passed"]]
        if failing and session.preset() == "default":
            raise AssertionError("; ".join(describe(row) for row in failing))

    def _test(self, kind, sign, quantity, claimed, measured, allowance, scale, marks, control=()):
        claimed = _finite(quantity, "the claimed value", claimed)
        found = _estimate(quantity, measured)
        allowance = _finite(quantity, "allowance", allowance)
        scale = abs(claimed) if scale is None else _finite(quantity, "scale", scale)
        if not scale > 0:
            raise ValueError(f"{quantity}: scale = {scale:g}: must be > 0, and be given where the claimed value is 0")
        if kind != "control" and not 0 <= allowance <= CAP * scale * (1 + 1e-9):
            raise ValueError(f"{quantity}: allowance {allowance:.3g}: must be from 0 to {CAP:g} of {scale:.3g}")
        reach = float(found.reach(LEVEL))
        above, below = found.value - claimed, claimed - found.value
        off = {"=": max(above, below), "≤": above, "≥": below}[sign] - allowance  # > 0 on the wrong side of the claim
        if kind == "control":
            passed, refuted = off > reach, False
        else:
            passed, refuted = off <= (reach if sign == "=" else -reach), off > reach
        row = {
            "claimed": ("" if sign == "=" else f"{sign} ") + digits(claimed),
            "measured": shown(found),
            "tolerance": _allowed(found, reach, allowance),
            "values": {
                "claimed": session.rounded(claimed),
                "measured": session.rounded(found.value),
                "se": session.rounded(found.se),
                "dof": session.rounded(found.dof) if np.isfinite(found.dof) else None,
                "tolerance": session.rounded(reach + allowance),
            },
        }
        self._add(kind, quantity, row | marks, passed, refuted, (reach + allowance) / scale)
        before = len(self.rows) - 1
        try:
            for name, wrong in _pairs(quantity, control):
                what = "measured" if isinstance(wrong, Estimate) or np.ndim(wrong) else "claimed"
                pair = (claimed, wrong) if what == "measured" else (wrong, measured)
                self._test("control", sign, f"{quantity}: {name}", *pair, allowance, scale, _marks())
                self.rows[-1] |= {"of": quantity, "name": name, "wrong": what}
        except ValueError:
            del self.rows[before:]  # the row can be tried again
            raise

    def _add(self, kind, quantity, row, passed, refuted, resolution):
        if any(other["quantity"] == quantity and other["control"] == (kind == "control") for other in self.rows):
            raise ValueError(f"{self.notebook} already has a verdict on {quantity!r}")
        wrong = "HOLDS, BUT MUST NOT" if kind == "control" else "FAILS"
        unjudged = session.preset() == "quick" and not passed and not refuted
        row |= {
            "quantity": quantity,
            "kind": kind,
            "control": kind == "control",
            "resolution": session.rounded(float(resolution), 2),
            "verdict": UNJUDGED if unjudged else KINDS[kind] if passed else wrong,
            "passed": bool(passed or unjudged),
        }
        self.rows.append(row)


def markdown_table(head, body):
    """A Markdown table of texts, a list of lines under a head; bars inside cells are escaped."""
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def table(head, body):
    """Show a table in a notebook; cells are texts, whole numbers, numbers (four digits) or Estimates."""
    body = [[cell if isinstance(cell, str) else shown(cell) for cell in line] for line in body]
    session.show({"text/plain": plain_table([head, *body]), "text/markdown": markdown_table(head, body)})


def plain_table(lines):
    """Lines of texts, the head first, as a table for a terminal, its columns aligned."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    padded = ("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)
    return "\n".join(line.rstrip() for line in padded)


def describe(row):
    """One verdict row as a sentence for an error message or a terminal."""
    text = f"{label(row)}: claimed {row['claimed']}, measured {row['measured']}, tolerance {row['tolerance']}"
    if "values" in row:
        values = row["values"]
        text += f", off by {digits(abs(values['measured'] - values['claimed']), 2)}"
        text += f" where {digits(values['tolerance'], 2)} is allowed"
    return f"{text}: {row['verdict']}"


def shown(number):
    """A number as text, an Estimate with its standard error."""
    if not isinstance(number, Estimate):
        return digits(number)
    return str(number) if number.se > 0 else digits(number.value)


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
    """The table's cells, one list per row, in the order of `HEAD`; a control has no resolution of its own."""
    return [
        [label(row), row["claimed"], row["measured"], row["tolerance"], resolution(row), row["verdict"]] for row in rows
    ]


def folded(rows):
    """Head and lines of the table of `rows`: the controls given with a row stand in a last column beside it."""
    given = {}
    for row in rows:
        if "of" in row:
            given.setdefault(row["of"], []).append(_outcome(row))
    kept = [row for row in rows if "of" not in row]
    lines = [[*line, "; ".join(given.get(row["quantity"], ()))] for row, line in zip(kept, cells(kept), strict=True)]
    return [*HEAD, "control"], lines


def _outcome(row):
    """A control in words: what was broken, the wrong value or measurement, and whether it was rejected."""
    wrong = row["claimed"] if row.get("wrong") == "claimed" else row["measured"]
    return f"{row['name']}: {wrong}, {row['verdict'].removeprefix('control ')}"


def resolution(row):
    """The resolution of a row of the ledger as tables show it, "" for a control and for what has no noise."""
    share = 0 if row["control"] else 100 * row["resolution"]
    return "" if not share else f"{share:.2g} %" if share < 10 else f"{share:.0f} %"


def label(row):
    """The name of a row of the ledger as tables show it."""
    return f"control: {row['quantity']}" if row["control"] else row["quantity"]


def _marks(headline=False, front=False):
    """What a row of the ledger says of its place in pages."""
    return {"headline": bool(headline or front)} | ({"front": True} if front else {})


def _pairs(quantity, control):
    """A row's controls as a list of pairs (name, wrong)."""
    pairs = [control] if (isinstance(control, tuple) and control) or not np.iterable(control) else list(control)
    if not all(isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str) for pair in pairs):
        raise ValueError(f"{quantity}: control = {control!r}: must be a pair (name, wrong) or a list of such pairs")
    return pairs


def _binomial(quantity, rate, successes):
    """A row's cells for a claim on a chance of success, with Clopper and Pearson's lower and upper bound."""
    successes = np.asarray(successes)
    if successes.ndim != 1 or len(successes) < 2 or not np.isin(successes, (0, 1)).all():
        raise ValueError(f"{quantity}: successes must be True or False, two or more of them")
    count, trials = int(successes.sum()), successes.size
    lower = special.betaincinv(count, trials - count + 1, LEVEL) if count else 0.0
    upper = special.betainccinv(count + 1, trials - count, LEVEL) if count < trials else 1.0
    row = {"claimed": f"≥ {rate:g}", "measured": f"{count} of {trials}", "tolerance": "exact binomial"}
    return row, lower, upper


def _allowed(found, reach, allowance):
    """A row's tolerance in words; a standard error that a bad fit has widened says so."""
    terms = [f"{reach / found.se:.1f} s.e."] if found.se else []
    if found.se and found.chi2 > found.spare:
        terms[-1] += f" (widened, χ² {digits(found.chi2, 2)} on {found.spare})"
    terms += [digits(allowance, 2)] if allowance else []
    return " + ".join(terms) or "exact"


def _finite(quantity, what, value):
    number = np.asarray(value)
    if number.shape != () or number.dtype.kind not in "iuf" or not np.isfinite(number):
        raise ValueError(f"{quantity}: {what} must be one finite number, not {value!r}")
    return number.item()


def _estimate(quantity, measured):
    if not isinstance(measured, Estimate):
        if np.ndim(measured) != 1:
            raise ValueError(f"{quantity}: measured must be samples in one dimension or an Estimate, not {measured!r}")
        try:
            found = estimates.mean(measured)
        except ValueError as error:
            raise ValueError(f"{quantity}: {error}") from None
        if found.se <= 1e-12 * abs(found.value):
            raise ValueError(f"{quantity}: all samples are {found.value:.6g}: without noise give Estimate(value, 0.0)")
        return Estimate(float(found.value), float(found.se), float(found.dof))
    value, se = (_finite(quantity, what, getattr(measured, what)) for what in ("value", "se"))
    dof = np.asarray(measured.dof).item()
    if se < 0 or not dof > 0:
        raise ValueError(f"{quantity}: se and dof must be ≥ 0 and > 0, not {se} and {dof}")
    return Estimate(value, se, dof, float(measured.chi2), int(measured.spare))
