"""The finished pages in a headless Chromium with the network cut: `make site-test`, not part of `make test`.

Every page is opened on a phone's screen and on a desktop's, from disk, as a reader without a network has it.
"""

from pathlib import Path
from urllib.parse import unquote, urldefrag, urlparse

import pytest

ROOT = Path(__file__).parents[2]
SITE = ROOT / "build/site"
PAGES = sorted(path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html") if "_static" not in path.parts)
SCREENS = {"phone": (390, 844, True), "desktop": (1280, 900, False)}
SLIDE = "new Promise((done) => setTimeout(done, 500))"  # what a menu takes to slide in
BAD = {"Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded", "Network.loadingFailed"}


@pytest.fixture(scope="module")
def found(browser):
    """What the checks say of each page on each screen: {(page, screen): {"wrong", "anchors", "links"}}."""
    return {}


def show(browser, page, screen):
    browser.size(*SCREENS[screen])
    browser.open((SITE / page).as_uri())


def test_there_are_pages():
    assert "index.html" in PAGES
    assert sum(page.startswith("notebooks/") for page in PAGES) == len(list((ROOT / "notebooks").glob("[0-9]*.ipynb")))


@pytest.mark.parametrize("screen", SCREENS)
@pytest.mark.parametrize("page", PAGES)
def test_page(browser, found, page, screen):
    show(browser, page, screen)
    result = found[page, screen] = browser.run("siteTest.check()")
    wrong = result["wrong"] + list(mishaps(browser.events))
    for scheme in ("dark", "light"):
        browser.scheme(scheme)
        wrong += [f"contrast ({scheme}) {what}" for what in browser.run("siteTest.contrast()")]
    assert not wrong, "\n".join(wrong)


def mishaps(events):
    """Errors, what did not load, and what was asked of the network."""
    for event in events:
        if event["method"] in BAD:
            yield f"{event['method']}: {str(event['params'])[:600]}"
        if event["method"] == "Network.requestWillBeSent":
            url = event["params"]["request"]["url"]
            if urlparse(url).scheme not in ("file", "data"):
                yield f"a request to {url}"


BROKEN = """<!doctype html><title>x</title><body style="background: #fff"><article>
<p style="color: #999">too faint to read</p><p>raw $x^2$ and | a | b |</p><p>| a | b |</p>
<img src="gone.png" alt="14_gains"><a href="#x"></a><span class="math">\\(y\\)</span><p style="width: 3000px">wide
<div style="width: 100px; overflow: auto"><table style="width: 900px"><tr><td>cell</td></tr></table></div></article>
<script src="https://example.org/x.js"></script><script>console.error("oh"); missing()</script>"""


def test_the_checks_find_what_is_wrong(browser, tmp_path):
    page = tmp_path / "broken.html"
    page.write_text(BROKEN)
    browser.size(*SCREENS["phone"])
    browser.open(page.as_uri())
    wrong = [*browser.run("siteTest.check()")["wrong"], *browser.run("siteTest.contrast()"), *mishaps(browser.events)]
    for part in (
        "gone.png does not load",
        "is no sentence",
        "without a name",
        "not typeset: \\(y\\)",
        "shown raw: $x^2$",
        "shown raw: | a | b |",
        "the page is wider",
        "a table wider than the page: cell",
        "no favicon",
        "no description",
        "no og:title",
        "2.85, 153,153,153 on 255,255,255: too faint",
        "a request to https://example.org/x.js",
        "missing is not defined",
        "'oh'",
    ):
        assert part in "\n".join(wrong)


def test_every_link_leads_somewhere(found):
    assert {page for page, _ in found} == set(PAGES)
    dead = set()
    for (page, _), result in found.items():
        for link in result["links"]:
            address, anchor = urldefrag(link)
            parts = urlparse(address)
            if parts.scheme != "file":
                assert parts.scheme in ("http", "https", "mailto"), link
                continue
            path = Path(unquote(parts.path))
            target = path.relative_to(SITE).as_posix() if path.is_relative_to(SITE) and path.is_file() else None
            reachable = target and (not anchor or target not in PAGES or anchor_of(found, target, unquote(anchor)))
            if not reachable:
                dead.add(f"{page}: {link}")
    assert not dead, "\n".join(sorted(dead))


def anchor_of(found, page, anchor):
    return anchor in found[page, "desktop"]["anchors"]


def drawer(browser, name):
    """Whether one of the drawers, the menu or the page's contents, lies on the screen."""
    box = f"document.querySelector('.{name}').getBoundingClientRect()"
    return browser.run(f"{box}.left >= 0 && {box}.right <= innerWidth && {box}.width > 0")


def press(browser, selector):
    """Click where something is to be seen, as a finger would, and wait for what slides in."""
    browser.click(*browser.run(f"siteTest.middle('{selector}')"))
    browser.run(SLIDE)


@pytest.mark.parametrize(
    ("button", "name"), [(".nav-overlay-icon", "sidebar-drawer"), (".toc-header-icon", "toc-drawer")]
)
def test_menus_open_and_close_on_a_phone(browser, button, name):
    show(browser, next(page for page in PAGES if page.startswith("notebooks/")), "phone")
    assert not drawer(browser, name)
    press(browser, button)
    assert drawer(browser, name)
    browser.click(*((380, 700) if name == "sidebar-drawer" else (10, 700)))
    browser.run(SLIDE)
    assert not drawer(browser, name)


def test_the_menu_leads_to_a_page_on_a_phone(browser):
    show(browser, "index.html", "phone")
    press(browser, ".nav-overlay-icon")
    browser.events.clear()
    browser.click(*browser.run("siteTest.middle('.sidebar-tree a')"))  # the page that slides is about to be left
    browser.wait("Page.loadEventFired")
    assert browser.run("location.pathname") != (SITE / "index.html").as_posix()


@pytest.mark.parametrize("screen", SCREENS)
def test_search_finds_pages(browser, screen):
    show(browser, "index.html", screen)
    if screen == "phone":
        press(browser, ".nav-overlay-icon")
    press(browser, "input[name=q]")
    browser.events.clear()
    browser.type("staircase")
    browser.wait("Page.loadEventFired")
    results = browser.run("siteTest.results()")
    assert len(results) >= 3
    for link in results:
        assert Path(unquote(urlparse(link).path)).is_relative_to(SITE)
        assert Path(unquote(urlparse(link).path)).is_file()
