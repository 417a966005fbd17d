"""A project with two sample notebooks, for the site to be made of, and a browser for the finished pages."""

import base64
import json
from pathlib import Path

import numpy as np
import pytest

from onestep import report
from onestep.estimates import Estimate
from website import tools
from website.chromium import Chromium

CHECKS = Path(__file__).with_name("checks.js")

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
MENTIONS = "See notebook 07, [03](03_sample.ipynb#x), arXiv 2310.07891."
FINDING = "The drop |Δ| rises with n_0, as 2*n does."
TABLE = "| a | b |\n| --- | --- |\n| 1 | $x^2$ |"


def cell(kind, name, source, *outputs):
    return {"cell_type": kind, "id": name, "source": source, "metadata": {}, "outputs": list(outputs)}


def display(**data):
    data = {kind.replace("_", "/"): value for kind, value in data.items()}
    return {"output_type": "display_data", "data": data, "metadata": {}}


def stream(text):
    return {"output_type": "stream", "name": "stdout", "text": text}


def rows(number):
    verdicts = report.Verdicts(f"{number}_sample", claim=f"C{number}: the |mean|", source="a paper")
    verdicts.agrees("mean", 2.5, Estimate(2.4, 0.1), control=("as printed", 7.25))
    verdicts.at_least("lower end", 1.0, Estimate(2.4, 0.1))
    verdicts.consistent("formula", 2.5, 2.5, 0.1)
    return verdicts.rows


@pytest.fixture
def project(tmp_path):
    for folder in ("notebooks", "figures", "docs/static", "docs/templates", "lib/onestep"):
        (tmp_path / folder).mkdir(parents=True)
    for number in ("03", "07"):
        name, picture = f"{number}_sample", f"{number}_drop"
        figure = display(image_png=base64.b64encode(PIXEL).decode(), text_plain=f"{FINDING[:-1]} ({number}).")
        cells = [
            cell("markdown", "title", f"# {number} · Sample\n\n{MENTIONS}"),
            cell("code", "sum", "print(1)", stream("1\n"), display(text_markdown=TABLE, text_plain="a b")),
            cell("code", "draw", "draw()", figure),
            cell("code", "empty", ""),
        ]
        (tmp_path / f"notebooks/{name}.ipynb").write_text(json.dumps({"cells": cells}), encoding="utf-8")
        book = {"notebook": name, "claim": f"C{number}: the |mean|", "source": "a paper", "rows": rows(number)}
        book["figures"] = {picture: f"{FINDING[:-1]} ({number})."}
        (tmp_path / f"figures/{name}.json").write_text(json.dumps(book), encoding="utf-8")
        (tmp_path / f"figures/{picture}.png").write_bytes(PIXEL)
        np.savez(tmp_path / f"figures/{picture}.npz", x=1.0)
    files = {
        "docs/index.md": "# Front\n\n![](../figures/07_drop.png)\n\n<!-- tally --> <!-- not for readers -->\n",
        "docs/all.md": "# All\n\n<!-- gallery -->\n\n<!-- verdicts -->\n\n<!-- file README.md -->\n",
        "docs/glossary.md": "### sample\n\nWhat is drawn.\n",
        "docs/conf.py": "",
        "lib/onestep/__init__.py": '"""A library.\n\nproblem    what every call takes\n"""\n',
        "lib/onestep/problem.py": '"""Problems."""\n\n\ndef solve(x: int = 1):\n    """Solve x_1 | y."""\n',
        "README.md": "# x\n\n    make figures\n\n[all](figures/README.md)\n",
        "CONTRIBUTING.md": "# Contributing\n",
        "CITATION.cff": "",
        "LICENSE": "",
        "pyproject.toml": "[project]\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


@pytest.fixture(scope="module")
def browser():
    binary = tools.chromium()
    if not binary:
        pytest.exit("there is no Chromium or Chrome on the PATH; CHROMIUM can name one", returncode=1)
    with Chromium(binary) as browser:
        browser.call("Page.addScriptToEvaluateOnNewDocument", source=CHECKS.read_text(encoding="utf-8"))
        yield browser
