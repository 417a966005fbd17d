"""Three pages of the built site in headless Chromium, as a reader without a network sees them; `make site` runs it."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from urllib.parse import unquote

import pytest

pytestmark = pytest.mark.slow
SITE = Path(__file__).parents[1] / "build/site"
PAGES = ["docs/index.html", "docs/theory.html", "notebooks/13_staircase_training_loss.html"]


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """(page as the browser has made it, what it says on its console) of an address."""
    names = [os.environ.get("CHROMIUM"), "chromium", "chromium-browser", "google-chrome"]
    binary = next(filter(None, map(shutil.which, filter(None, names))), None)
    if not binary or not SITE.exists():
        pytest.skip(f"NOT RUN: {'build/site is not built' if binary else 'there is no Chromium or Chrome'}")
    flags = "--headless --no-sandbox --disable-gpu --disable-background-networking --disable-component-update".split()
    flags += [
        "--enable-logging=stderr",
        "--virtual-time-budget=30000",
        f"--user-data-dir={tmp_path_factory.mktemp('x')}",
    ]

    def show(address):
        command = [binary, *flags, "--dump-dom", address]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        return done.stdout, re.findall("CONSOLE.*", done.stderr)

    if "<html" not in show("about:blank")[0]:
        pytest.skip(f"NOT RUN: {binary} does not start")
    return show


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_no_error_its_figures_and_its_formulas(browser, page):
    text, console = browser((SITE / page).as_uri())
    assert not console
    pictures = re.findall(r'<img[^>]*alt="([^"]*)"[^>]*src="([^"]+)"', text)
    assert pictures or "theory" in page
    for alternative, source in pictures:
        assert " " in alternative, f"{source}: its alternative text is no sentence"
        assert (SITE / page).parent.joinpath(unquote(source)).stat().st_size > 0
    assert "<mjx-container" in text
    assert not re.search(r'class="math[^>]*>\s*\\[([]', text), "a formula is not typeset"
