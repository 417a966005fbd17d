"""What a notebook hands over: verdict rows in a ledger, figures in one style; and the tables made of all ledgers."""

import json
import math
import os
import re
from pathlib import Path

import numpy as np

# Okabe and Ito's palette, which colour-blind readers can tell apart; dark and light alternate for grey prints.
COLORS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#000000"]

_NAME = re.compile(r"\d\d_[a-z0-9_]+")
_HEAD = ["quantity", "claimed", "measured ± s.e.", "tolerance", "verdict"]
_PDF = {"CreationDate": None, "Creator": None, "Producer": None}  # else two runs differ
_saved = []  # names of the figures this session has written, for the ledger


def directory():
    """Folder that figures and ledgers go to: $ONESTEP_FIGURES if set, else the repository's `figures`."""
    chosen = os.environ.get("ONESTEP_FIGURES")
    path = Path(chosen) if chosen else Path(__file__).resolve().parents[2] / "figures"
    path.mkdir(parents=True, exist_ok=True)
    return path


def style():
    """Set the project's figure style: one font that ships with matplotlib, light grid, colours of `COLORS`."""
    import matplotlib

    matplotlib.rcParams.update(
        {
            "axes.axisbelow": True,
            "axes.grid": True,
            "axes.labelsize": 11,
            "axes.prop_cycle": matplotlib.cycler(color=COLORS),
            "axes.spines.right": False,
            "axes.spines.top": False,
            "axes.titlesize": 11,
            "errorbar.capsize": 2.5,
            "figure.constrained_layout.use": True,
            "figure.dpi": 120,
            "figure.figsize": (7.0, 4.0),
            "font.family": "DejaVu Sans",
            "font.size": 10,
            "grid.color": "#dddddd",
            "grid.linewidth": 0.6,
            "legend.fontsize": 9,
            "legend.frameon": False,
            "lines.linewidth": 1.8,
            "lines.markersize": 5,
            "mathtext.fontset": "dejavusans",
            "savefig.dpi": 150,
            "text.usetex": False,
        }
    )


def save(fig, name, **arrays):
    """Write a figure as `<name>.png` and `<name>.pdf`, and the numbers behind it as `<name>.npz`.

    Parameters
    ----------
    fig : matplotlib Figure
    name : the notebook's two-digit number, an underscore, and words in lower case: "07_gains"
    arrays : numbers, text or arrays of them, by name. Floats keep six significant digits, so that the files
        do not change with the last bits of another machine's arithmetic.

    The same figure and numbers give the same bytes. Raises ValueError for another kind of name, no arrays, or an array
    that would need pickle.
    """
    _check_name(name)
    if not arrays:
        raise ValueError(f"save({name!r}) got no arrays: give the numbers behind the figure by name")
    numbers = {key: _storable(key, value) for key, value in arrays.items()}
    stem = directory() / name
    fig.savefig(f"{stem}.png", metadata={"Software": None})
    fig.set_layout_engine("none")  # laid out by now; every later drawing would pay for it again
    fig.savefig(f"{stem}.pdf", metadata=_PDF)
    np.savez(f"{stem}.npz", parameters=json.dumps(_parameters(), sort_keys=True), **numbers)
    _remember(name)


def animate(fig, draw, frames, name, seconds=6.0, **arrays):
    """Show an animation; write it as `<name>.png`, an animated PNG, its last frame as `<name>.pdf`, its numbers as npz.

    Parameters
    ----------
    fig : matplotlib Figure
    draw : called with 0, 1, ..., frames - 1; draws that frame into fig
    name, arrays : as for `save`; a name of its own
    seconds : playing time of one round, > 0, before a second's rest on the last frame

    Browsers, and so notebooks and pages made of them, play it as it stands; others show the first frame.
    """
    from base64 import b64encode
    from io import BytesIO

    from IPython.display import display
    from PIL import Image

    _check_name(name)
    if not arrays or frames < 2 or not seconds > 0:
        raise ValueError(f"animate({name!r}) needs arrays, at least 2 frames, not {frames}, and seconds > 0")
    numbers = {key: _storable(key, value) for key, value in arrays.items()}
    pictures = []
    for k in range(frames):
        draw(k)
        fig.canvas.draw()
        pictures.append(Image.fromarray(np.asarray(fig.canvas.buffer_rgba())[..., :3]))
    palette = pictures[frames // 2].quantize(255)  # one palette for all: a quarter of the size
    pictures = [picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in pictures]
    durations = [1000 * seconds / frames] * (frames - 1) + [1000]
    file = BytesIO()
    pictures[0].save(file, "PNG", save_all=True, append_images=pictures[1:], duration=durations, loop=0)
    stem = directory() / name
    stem.with_suffix(".png").write_bytes(file.getvalue())
    fig.savefig(f"{stem}.pdf", metadata=_PDF)
    np.savez(f"{stem}.npz", parameters=json.dumps(_parameters(), sort_keys=True), **numbers)
    _remember(name)
    picture = b64encode(file.getvalue()).decode()
    display({"image/png": picture, "text/plain": f"{name}: {frames} frames"}, raw=True)


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
        _check_name(notebook)
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
            "parameters": _parameters(),
            "figures": sorted(name for name in _saved if name.startswith(number)),
            "rows": self.rows,
        }
        text = json.dumps(ledger, indent=1, sort_keys=True, ensure_ascii=False)
        (directory() / f"{self.notebook}.json").write_text(text + "\n", encoding="utf-8")
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
            "claimed": _rounded(claimed),
            "measured": _rounded(mean),
            "se": _rounded(se),
            "tolerance": _rounded(slack),
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

        body = _body(self.rows)
        plain = "\n".join(" | ".join(line) for line in [_HEAD, *body])
        display({"text/plain": plain, "text/markdown": markdown_table(_HEAD, body)}, raw=True)


def extrapolated(half, full):
    """(estimate, s.e.) of the limit n → ∞ from samples at n/2 and n, when the bias is of order 1/n: 2 m(n) - m(n/2).

    half, full : independent samples, one per trial (1-D, at least two each).
    """
    (small, error_small), (large, error_large) = (_mean_and_error("extrapolated", x, None) for x in (half, full))
    return 2 * large - small, math.hypot(2 * error_large, error_small)


def ledgers(folder):
    """All ledgers in `folder`, in the order of the notebooks."""
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(Path(folder).glob("[0-9][0-9]_*.json"))]


def results_table(books):
    """The README's table: the headline rows of every ledger in `books` (its first three rows where none is marked)."""
    head = ["claim", "source", "quantity", "predicted", "measured ± s.e.", "verdict"]
    body = []
    for book in books:
        rows = [row for row in book["rows"] if row["headline"]]
        rows = rows or [row for row in book["rows"] if not row["control"]][:3]
        claim, source = f"[{book['claim']}](notebooks/{book['notebook']}.ipynb)", book["source"]
        for row in rows:
            body.append([claim, source, _label(row), row["claimed"], row["measured"], row["verdict"]])
            claim = source = ""
    return markdown_table(head, body)


def full_table(books):
    """Every row of every ledger in `books`, one table per notebook."""
    parts = []
    for book in books:
        table = markdown_table(_HEAD, _body(book["rows"]))
        parts.append(f"## {book['claim']}\n\n{book['source']}; `{book['notebook']}`\n\n{table}")
    return "\n\n".join(parts)


def markdown_table(head, body):
    """A Markdown table; bars inside cells are escaped."""
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def describe(row):
    """One verdict row as a sentence for an error message or a terminal."""
    text = f"{_label(row)}: claimed {row['claimed']}, measured {row['measured']}, tolerance {row['tolerance']}"
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


def _body(rows):
    return [[_label(row), row["claimed"], row["measured"], row["tolerance"], row["verdict"]] for row in rows]


def _label(row):
    return f"control: {row['quantity']}" if row["control"] else row["quantity"]


def _verdict(passed, control):
    if control:
        return "fails, as it must" if passed else "HOLDS, BUT MUST NOT"
    return "holds" if passed else "FAILS"


def _check_name(name):
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(f"the name must be two digits, an underscore and lower-case words (07_gains), not {name!r}")


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


def _rounded(x, significant=6):
    return x if isinstance(x, int) else float(f"{x:.{significant}g}")


def _storable(key, value):
    array = np.asarray(value)
    if array.dtype.kind not in "biufcU":
        raise ValueError(f"array {key!r} must hold numbers or text, not {array.dtype} (it would need pickle)")
    if array.dtype.kind != "f":
        return array
    return np.array([_rounded(x) for x in array.flat], dtype=float).reshape(array.shape)


def _parameters():
    """The notebook's parameters as the runner announced them; empty in an interactive session."""
    return json.loads(os.environ.get("ONESTEP_PARAMETERS", "{}"))


def _remember(name):
    if name not in _saved:
        _saved.append(name)
