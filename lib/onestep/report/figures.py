"""Figures in one style, each with the numbers behind it."""

import json
from base64 import b64encode
from io import BytesIO

import numpy as np

from .. import checks
from ..estimates import Estimate, mean
from . import session

# Okabe and Ito's palette, which colour-blind readers can tell apart; dark and light alternate for grey prints.
COLORS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#000000"]
NOTEBOOK_DPI = 80  # of the pictures inside notebooks; the files have `savefig.dpi`
_RESERVED = {"file", "parameters", "allow_pickle"}  # names that numpy's savez or this module uses


def style():
    """Set the project's figure style: one font that ships with matplotlib, light grid, colours of `COLORS`.

    Figures appear where they are saved, and not half-drawn at the end of a cell.
    """
    import matplotlib
    from matplotlib import pyplot

    pyplot.switch_backend(matplotlib.get_backend())  # loaded now, for a notebook's backend turns interactive mode on
    matplotlib.interactive(False)
    matplotlib.rcParams.update(settings())


def settings():
    """The style as matplotlib's settings, for `matplotlib.rc_context`."""
    import matplotlib

    return {
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
        "savefig.dpi": 120,
        "text.usetex": False,
    }


def save(fig, name, finding, **arrays):
    """Show a figure and write it as `<name>.png`, with the numbers behind it as `<name>.npz`; then close it.

    name : the notebook's two-digit number, an underscore, and words in lower case: "14_gains".
    finding : what the figure shows, in one sentence: its alternative text.
    **arrays : numbers, text or arrays of them, by name. Floats keep six significant digits, so that the files
        do not change with the last bits of another machine's arithmetic. Estimates, and lists of them, are stored as
        two arrays: the values, and the standard errors under the same name with `_se`.

    The same figure and numbers give the same bytes.
    """
    from matplotlib import pyplot

    session.check_name(name)
    if not isinstance(finding, str) or " " not in finding.strip():
        raise ValueError(f"{name}: finding = {finding!r}: must say in a sentence what the figure shows")
    if not arrays:
        raise ValueError(f"{name}: got no arrays: give the numbers behind the figure by name")
    numbers, stem, picture = _numbers(arrays), session.directory() / name, _png(fig)
    fig.set_layout_engine("none")  # laid out by now; the next drawing would pay for it again
    smaller = _png(fig, dpi=NOTEBOOK_DPI)
    pyplot.close(fig)
    archive = BytesIO()
    np.savez_compressed(archive, parameters=json.dumps(session.parameters(), sort_keys=True), **numbers)
    checks.write(stem.with_suffix(".png"), picture)
    checks.write(stem.with_suffix(".npz"), archive.getvalue())
    session.saved[name] = finding
    session.show({"image/png": b64encode(smaller).decode(), "text/plain": finding})


def points(ax, x, estimate, **style):
    """Draw an Estimate, a list of them, or the mean of samples (trials, k), with error bars; black dots if unstyled."""
    parts = _parts(estimate)
    value, se = parts if parts else (mean(estimate).value, mean(estimate).se)
    ax.errorbar(x, value, se, **({"fmt": "o", "color": "black"} | style))


def _parts(value):
    """Values and standard errors of an Estimate or of nested lists of Estimates; None for anything else."""
    if isinstance(value, Estimate):
        return value.value, value.se
    if not isinstance(value, list | tuple) or not value:
        return None
    parts = [_parts(part) for part in value]
    return None if any(part is None for part in parts) else tuple(map(list, zip(*parts, strict=True)))


def _numbers(arrays):
    """The arrays to store, with Estimates as two: the values, and the standard errors under the name with `_se`."""
    found = {}
    for key, value in arrays.items():
        parts = _parts(value)
        taken = {key} & _RESERVED or ({f"{key}_se"} & arrays.keys() if parts else None)
        if taken:
            raise ValueError(f"array {min(taken)!r}: must have another name, this one is in use")
        found |= {key: value} if parts is None else {key: parts[0], f"{key}_se": parts[1]}
    return {key: _storable(key, value) for key, value in found.items()}


def log_ticks(ax, x=None, *, y=None):
    """Logarithmic scales with ticks at plain numbers and nowhere else, on the axes for which values are given."""
    for name, values in (("x", x), ("y", y)):
        if values is not None:
            ax.set(**{f"{name}scale": "log"})
            axis = getattr(ax, f"{name}axis")
            axis.set_ticks(values, [f"{value:g}" for value in values])
            axis.set_ticks([], minor=True)


def _png(fig, **options):
    file = BytesIO()
    fig.savefig(file, format="png", metadata={"Software": None}, **options)
    return file.getvalue()


def _storable(key, value):
    array = np.asarray(value)
    if array.dtype.kind not in "biufcU":
        raise ValueError(f"array {key!r} must hold numbers or text, not {array.dtype} (it would need pickle)")
    if array.dtype.kind != "f":
        return array
    return np.array([session.rounded(x) for x in array.flat], dtype=float).reshape(array.shape)
