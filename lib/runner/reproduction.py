"""Whether a run reproduces the results that are there: those that agree keep their bytes, the others are named.

The last digits of results differ between processors. Text and verdicts are compared as nbval compares them
(`comparison`), stored numbers to one unit of the six digits that they keep, and pictures pixel by pixel.
"""

import io
import json
from base64 import b64decode
from itertools import zip_longest

import numpy as np

from .comparison import first_difference

SIXTH_DIGIT = 1.01e-5  # relative: stored numbers keep six digits, and the last of them may round either way
NOISE = 1e-6  # of an array's largest entry, or of what a row measures: what is left of terms that cancel
SHADE = 24  # of 255: antialiasing of a line that moved by less than a tenth of a pixel


def settle(name, old, new):
    """Compare a result with the one that is there.

    Parameters
    ----------
    name : str
        File name; its ending tells the kind: .ipynb, .json (a ledger), .npz or .png.
    old, new : bytes

    Returns
    -------
    kept : bytes
        `old` if all of it agrees; of a notebook, `new` with the outputs of `old` in the cells that agree.
    differences : list of str
        Where the results differ, with the new value and the old one. Empty if only code or text changed.
    """
    if old == new:
        return old, []
    kind = name.rpartition(".")[2]
    if kind == "ipynb":
        return _settle_notebook(old, new)
    differences = {"json": _ledgers, "npz": _arrays, "png": _pictures}[kind](old, new)
    return (new if differences else old), differences


def _settle_notebook(old, new):
    before = {cell["id"]: cell for cell in json.loads(old)["cells"]}
    book, differences = json.loads(new), []
    for cell in book["cells"]:
        committed = before.get(cell["id"], {})
        if cell["cell_type"] != "code" or committed.get("source") != cell["source"]:
            continue
        if difference := _outputs(committed["outputs"], cell["outputs"]):
            differences.append(f"cell {cell['id']}: {difference}")
        else:
            cell["outputs"] = committed["outputs"]
    return (json.dumps(book, indent=1, ensure_ascii=False, sort_keys=True) + "\n").encode(), differences


def _outputs(old, new):
    """The first difference of a cell's outputs, in words; None if all agree."""
    for one, other in zip_longest(new, old, fillvalue={}):
        parts, committed = _parts(one), _parts(other)
        if parts.keys() != committed.keys():
            return f"shows {', '.join(parts) or 'nothing'} where {', '.join(committed) or 'nothing'} was shown"
        for kind, value in parts.items():
            if kind == "image/png":
                if _pictures(b64decode(committed[kind]), b64decode(value)):
                    return "another picture"
            elif pair := first_difference(value, committed[kind]):
                return _against(*pair)
    return None


def _parts(output):
    """An output's texts and pictures, by MIME type or the name of the stream."""
    data = output.get("data", {}) | ({output["name"]: output["text"]} if "text" in output else {})
    return {kind: "".join(value) for kind, value in data.items()}


def _ledgers(old, new):
    one, other = json.loads(new), json.loads(old)
    rows, committed = ({row["quantity"]: row for row in book["rows"]} for book in (one, other))
    found = []
    for name in [*rows, *(name for name in committed if name not in rows)]:
        if name not in rows or name not in committed:
            found.append(f"row {name!r}: {'new' if name in rows else 'gone'}")
        elif pair := _values(rows[name], committed[name]):
            found.append(f"row {name!r}: {_against(*pair)}")
    for part in sorted((one.keys() | other.keys()) - {"rows"}):
        if pair := _values(one.get(part), other.get(part)):
            found.append(f"{part}: {_against(*pair)}")
    return found or ([] if list(rows) == list(committed) else ["the order of the rows"])


def _values(one, other, noise=0.0):
    """The first pair of parts in which two values of a ledger differ, or None.   noise : what floats may differ by."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        if "claimed" in one and type(one.get("measured")) is float:  # in one unit with se and tolerance
            noise = NOISE * abs(one["measured"])
        return next(filter(None, (_values(one[key], other[key], noise) for key in one)), None)
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return next(filter(None, map(_values, one, other)), None)
    if isinstance(one, str) and isinstance(other, str):
        return first_difference(one, other)
    if type(one) is type(other) is float:
        allowed = max(SIXTH_DIGIT * max(abs(one), abs(other)), noise)
        return None if abs(one - other) <= allowed else (one, other)
    return None if one == other else (one, other)


def _arrays(old, new):
    with np.load(io.BytesIO(new)) as one, np.load(io.BytesIO(old)) as other:
        found = [f"{name}: {'new' if name in one else 'gone'}" for name in sorted(set(one) ^ set(other))]
        for name in sorted(set(one) & set(other)):
            found += _entries(name, one[name], other[name])
    return found


def _entries(name, one, other):
    """What differs between two arrays, in words: nothing, or their shapes, or the first entry."""
    if one.shape != other.shape or one.dtype.kind != other.dtype.kind:
        return [f"{name}: {one.dtype} {one.shape} where {other.dtype} {other.shape} was stored"]
    same = one == other
    if one.dtype.kind in "fc" and one.size:
        largest = np.max(np.abs(other[np.isfinite(other)]), initial=0.0)
        same |= np.isclose(one, other, rtol=SIXTH_DIGIT, atol=NOISE * largest, equal_nan=True)
    if np.all(same):
        return []
    first = tuple(np.argwhere(~np.asarray(same))[0].tolist())
    return [f"{name}{list(first) if first else ''}: {_against(one[first], other[first])}"]


def _pictures(old, new):
    from PIL import Image, ImageSequence

    frames = []
    for data in (new, old):
        with Image.open(io.BytesIO(data)) as picture:
            frames.append([np.asarray(frame.convert("RGB"), dtype=int) for frame in ImageSequence.Iterator(picture)])
    one, other = frames
    if len(one) != len(other) or one[0].shape != other[0].shape:
        return ["another size"]
    off = max(np.abs(frame - committed).max() for frame, committed in zip(one, other, strict=True))
    return [f"a pixel differs by {off} of 255"] if off > SHADE else []


def _against(one, other):
    return f"{one} where {other} was found before"
