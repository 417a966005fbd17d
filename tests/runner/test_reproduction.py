"""What counts as the same result, what is said of another, and which bytes stay."""

import json
from base64 import b64encode
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from runner.reproduction import settle


def npz(**arrays):
    file = BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def png(*frames):
    file = BytesIO()
    first, *rest = (Image.fromarray(np.asarray(frame, dtype=np.uint8)) for frame in frames)
    first.save(file, "PNG", save_all=bool(rest), append_images=rest)
    return file.getvalue()


def ledger(measured=0.5, text="0.500 ± 0.1", name="gain", tolerance=1e-4, **more):
    values = {"claimed": 0.4, "measured": measured, "n": 3, "tolerance": tolerance}
    row = {"quantity": name, "measured": text, "values": values, "passed": True}
    return json.dumps({"claim": "C1", "rows": [row], **more}).encode()


GREY = np.full((4, 5, 3), 128)
X = np.array([1.0, 2.0, 1e-12, np.nan])


def stroke(level):
    picture = GREY.copy()
    picture[1, 2] = level
    return picture


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("a.npz", npz(x=X), npz(x=X * (1 + 1e-7))),
        ("a.npz", npz(x=X), npz(x=X * [1 + 9e-6, 1, 1e6, 1])),
        ("a.npz", npz(x=[1e3, 1e-4]), npz(x=[1e3, 2e-4])),
        ("a.png", png(GREY), png(stroke(140))),
        ("a.png", png(GREY, stroke(200)), png(stroke(130), stroke(190))),
        ("a.json", ledger(), ledger(0.5000001)),
        ("a.json", ledger(0.5), ledger(0.500004)),
        ("a.json", ledger(), ledger(text="0.5000001 ± 0.1")),
        ("a.json", ledger(tolerance=1e-4), ledger(tolerance=1.004e-4)),  # of a row that measures .5
    ],
)
def test_what_agrees_keeps_its_bytes(name, old, new):
    assert settle(name, old, new) == (old, [])


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("a.npz", npz(x=X), npz(x=X * [1, 1.0001, 1, 1]), "x[1]: 2.0002 where 2.0 was found before"),
        ("a.npz", npz(x=[1e-9, 1.1e-12]), npz(x=[1e-9, 1e-12]), "x[1]: 1e-12 where 1.1e-12 was found before"),
        ("a.npz", npz(x=X), npz(x=np.arange(4.0)), "x[0]: 0.0 where 1.0 was found before"),
        ("a.npz", npz(k=3), npz(k=4), "k: 4 where 3 was found before"),
        ("a.npz", npz(k=np.array("a")), npz(k=np.array("b")), "k: b where a was found before"),
        ("a.npz", npz(x=X), npz(x=X[:2]), "x: float64 (2,) where float64 (4,) was stored"),
        ("a.npz", npz(x=X), npz(x=X, y=1.0), "y: new"),
        ("a.npz", npz(x=X, y=1.0), npz(x=X), "y: gone"),
        ("a.png", png(GREY), png(stroke(160)), "a pixel differs by 32 of 255"),
        ("a.png", png(GREY), png(np.full((4, 6, 3), 128)), "another size"),
        ("a.png", png(GREY, stroke(1)), png(GREY, stroke(1), stroke(255)), "another size"),
        ("a.json", ledger(), ledger(0.5001), "row 'gain': 0.5001 where 0.5 was found before"),
        ("a.json", ledger(), ledger(text="0.5001 ± 0.1"), "row 'gain': 0.5001 where 0.500 was found before"),
        ("a.json", ledger(), ledger(tolerance=1.1e-4), "row 'gain': 0.00011 where 0.0001 was found before"),
        ("a.json", ledger(), ledger(claim="C2"), "claim: 2 where 1 was found before"),
    ],
)
def test_what_differs_is_named_and_written(name, old, new, said):
    assert settle(name, old, new) == (new, [said])


def test_rows_that_come_and_go_are_named():
    assert settle("a.json", ledger(), ledger(name="loss"))[1] == ["row 'loss': new", "row 'gain': gone"]


def notebook(**cells):
    """A notebook's bytes.   cells : (source, outputs) by id."""
    book = [
        {"cell_type": "code", "id": name, "source": [source], "outputs": outputs, "metadata": {}}
        for name, (source, outputs) in cells.items()
    ]
    text = json.dumps({"cells": book}, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    return text.encode()


def stream(text):
    return [{"output_type": "stream", "name": "stdout", "text": [text]}]


def drawn(level):
    data = {"image/png": b64encode(png(stroke(level))).decode(), "text/plain": "a line"}
    return [{"output_type": "display_data", "data": data, "metadata": {}}]


def test_a_notebook_keeps_the_outputs_that_agree():
    old = notebook(a=("one", stream("gain 0.5")), b=("two", stream("loss 0.25")), c=("draw", drawn(140)))
    last_digits = {"a": ("one", stream("gain 0.5000001")), "c": ("draw", drawn(150))}
    assert settle("a.ipynb", old, notebook(b=("two", stream("loss 0.25")), **last_digits)) != (old, [])
    new = notebook(a=last_digits["a"], b=("two", stream("loss 0.25")), c=last_digits["c"])
    assert settle("a.ipynb", old, new) == (old, [])
    new = notebook(a=last_digits["a"], b=("two", stream("loss 0.75")), c=last_digits["c"])
    kept, differences = settle("a.ipynb", old, new)
    assert differences == ["cell b: 0.75 where 0.25 was found before"]
    assert kept == notebook(a=("one", stream("gain 0.5")), b=("two", stream("loss 0.75")), c=("draw", drawn(140)))


def test_another_picture_in_a_notebook_is_named():
    assert settle("a.ipynb", notebook(c=("d", drawn(9))), notebook(c=("d", drawn(99))))[1] == [
        "cell c: another picture"
    ]


def test_changed_code_is_written_and_is_no_difference_of_results():
    old, new = notebook(a=("one", stream("1")), b=("two", [])), notebook(a=("eins", stream("2")), b=("two", []))
    assert settle("a.ipynb", old, new) == (new, [])
    fewer = settle("a.ipynb", notebook(a=("one", stream("1"))), notebook(a=("one", [])))[1]
    assert fewer == ["cell a: shows nothing where stdout was shown"]
