"""Builds the web site (`python -m website`): pages that need no network, made of notebooks, ledgers and `docs/`.

__main__   the command: tools, sources, Sphinx
tools      what the site needs beyond the project: Sphinx and MathJax, each in a folder of its own in `build`
sources    all pages as Markdown in `build/site-source`
notebooks  one executed notebook as a page
results    gallery and verdicts, from the ledgers
explorer   what docs/explorer.md needs of the library, beside the formulas that its own JavaScript has
reference  the library's pages, whose docstrings Sphinx reads
text       Markdown as text: links and placeholders
chromium   a headless browser, for PDF files and the test of the finished pages
"""
