"""How Sphinx makes pages of the Markdown that `.ci/website` assembles; it runs in the folder of those sources."""

import json
from pathlib import Path

import onestep

_site = json.loads(Path(__file__).with_name("site.json").read_text(encoding="utf-8"))

project = "onestep"
author = copyright = "the onestep maintainers"
version = release = onestep.__version__
extensions = ["myst_parser", "sphinx.ext.mathjax", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "website.reference"]
default_role = "py:obj"  # in docstrings: code, and a link where it names something of the library
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_typehints = "none"  # docstrings put types into words
napoleon_use_ivar = True
# notebooks choose the ranks of their headings; some results, such as Losses, have one name in several modules
suppress_warnings = ["myst.header", "ref.python"]

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_dmath_double_inline = True  # notebooks set formulas off inside a paragraph as well
myst_heading_anchors = 3
add_module_names = False
toc_object_entries_show_parents = "hide"
python_maximum_signature_line_length = 70  # longer ones get a line for each argument

html_theme = "furo"
html_title = "One gradient step"
html_baseurl = _site["urls"].get("Documentation", "")
html_favicon = "static/favicon.svg"
html_static_path = ["static"]  # copied as it is: a page with JavaScript of its own keeps it there
templates_path = ["templates"]
html_css_files = ["site.css"]
html_js_files = [("site.js", {"defer": "defer"})]
html_copy_source = False
html_use_index = html_domain_indices = False
html_theme_options = {
    "top_of_page_buttons": [],
    "light_css_variables": {"color-brand-primary": "#00568a", "color-brand-content": "#0067a6"},
    "dark_css_variables": {"color-brand-primary": "#7cc4f0", "color-brand-content": "#7cc4f0"},
}
html_context = {"base": html_baseurl}
if "Repository" in _site["urls"]:
    _link = {"name": "Repository", "url": _site["urls"]["Repository"], "html": "Repository", "class": ""}
    html_theme_options["footer_icons"] = [_link]

mathjax4_config = {
    # Long equations go on in a new line; what cannot be broken scrolls.
    "output": {"displayOverflow": "linebreak"},
    # Nothing is fetched while a page is read: no speech from a worker, but MathML for screen readers.
    "options": {
        "enableMenu": False,
        "enableEnrichment": False,
        "enableSpeech": False,
        "enableBraille": False,
        "enableExplorer": False,
        "menuOptions": {"settings": {"enrich": False, "speech": False, "braille": False, "assistiveMml": True}},
    },
}
if _site["mathjax"]:
    mathjax_path = "mathjax/tex-chtml.js"
    mathjax4_config["loader"] = {"load": ["a11y/assistive-mml"], "paths": {"fonts": "[mathjax]"}}
