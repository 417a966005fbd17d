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
    for output, before in zip_longest(new, old, fillvalue={}):
        parts, committed = _parts(output), _parts(before)
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
    ledger, before = json.loads(new), json.loads(old)
    rows, committed = ({row["quantity"]: row for row in book["rows"]} for book in (ledger, before))
    found = []
    for name in [*rows, *(name for name in committed if name not in rows)]:
        if name not in rows or name not in committed:
            found.append(f"row {name!r}: {'new' if name in rows else 'gone'}")
        elif pair := _values(rows[name], committed[name]):
            found.append(f"row {name!r}: {_against(*pair)}")
    for part in sorted((ledger.keys() | before.keys()) - {"rows"}):
        if pair := _values(ledger.get(part), before.get(part)):
            found.append(f"{part}: {_against(*pair)}")
    return found or ([] if list(rows) == list(committed) else ["the order of the rows"])


def _values(new, old, noise=0.0):
    """The first pair of parts in which two values of a ledger differ, or None.   noise : what floats may differ by."""
    if isinstance(new, dict) and isinstance(old, dict) and new.keys() == old.keys():
        if "claimed" in new and type(new.get("measured")) is float:  # in the unit of se and tolerance
            noise = NOISE * abs(new["measured"])
        return next(filter(None, (_values(new[key], old[key], noise) for key in new)), None)
    if isinstance(new, list) and isinstance(old, list) and len(new) == len(old):
        return next(filter(None, map(_values, new, old)), None)
    if isinstance(new, str) and isinstance(old, str):
        return first_difference(new, old)
    if type(new) is type(old) is float:
        allowed = max(SIXTH_DIGIT * max(abs(new), abs(old)), noise)
        return None if abs(new - old) <= allowed else (new, old)
    return None if new == old else (new, old)


def _arrays(old, new):
    with np.load(io.BytesIO(new)) as arrays, np.load(io.BytesIO(old)) as before:
        found = [f"{name}: {'new' if name in arrays else 'gone'}" for name in sorted(set(arrays) ^ set(before))]
        for name in sorted(set(arrays) & set(before)):
            found += _entries(name, arrays[name], before[name])
    return found


def _entries(name, new, old):
    """What differs between two arrays, in words: nothing, or their shapes, or the first entry."""
    if new.shape != old.shape or new.dtype.kind != old.dtype.kind:
        return [f"{name}: {new.dtype} {new.shape} where {old.dtype} {old.shape} was stored"]
    same = new == old
    if new.dtype.kind in "fc" and new.size:
        largest = np.max(np.abs(old[np.isfinite(old)]), initial=0.0)
        same |= np.isclose(new, old, rtol=SIXTH_DIGIT, atol=NOISE * largest, equal_nan=True)
    if np.all(same):
        return []
    first = tuple(np.argwhere(~np.asarray(same))[0].tolist())
    return [f"{name}{list(first) if first else ''}: {_against(new[first], old[first])}"]


def _pictures(old, new):
    from PIL import Image, ImageSequence

    frames = []
    for data in (new, old):
        with Image.open(io.BytesIO(data)) as picture:
            frames.append([np.asarray(frame.convert("RGB"), dtype=int) for frame in ImageSequence.Iterator(picture)])
    fresh, committed = frames
    if len(fresh) != len(committed) or fresh[0].shape != committed[0].shape:
        return ["another size"]
    off = max(np.abs(one - other).max() for one, other in zip(fresh, committed, strict=True))
    return [f"a pixel differs by {off} of 255"] if off > SHADE else []


def _against(new, old):
    return f"{new} where {old} was found before"
