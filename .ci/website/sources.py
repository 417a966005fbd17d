"""All pages of the site as Markdown, in one folder that Sphinx reads."""

import json
import re
import shutil
import tomllib
from functools import cached_property, partial
from pathlib import Path

from runner.tables import read_ledgers, read_records

from . import explorer, notebooks, reference, results, text, tools

FIGURE_LINE = re.compile(r"(?m)^!\[[^\]]*\]\(\.\./figures/(\w+)\.png\)$")
LINKED = ("CITATION.cff", "LICENSE")  # files that pages link to


class Sources:
    """What the pages are made of, under the project's root."""

    def __init__(self, root):
        self.root = Path(root)

    @cached_property
    def notebooks(self):
        """The notebooks' paths by name."""
        return {path.stem: path for path in sorted((self.root / "notebooks").glob("[0-9][0-9]_*.ipynb"))}

    @cached_property
    def books(self):
        """The ledgers of these notebooks, in their order. Raises ValueError for one missing or without findings."""
        books = {book["notebook"]: book for book in read_ledgers(self.root / "figures")}
        for name in self.notebooks:
            if not isinstance(books.get(name, {}).get("figures"), dict):
                raise ValueError(f"{name} has no ledger in figures/ that says what its figures show: execute it")
        return [books[name] for name in self.notebooks]

    @cached_property
    def findings(self):
        """What each committed figure shows, by its name."""
        return {name: finding for book in self.books for name, finding in book["figures"].items()}

    @cached_property
    def urls(self):
        """The project's addresses by name."""
        project = tomllib.loads((self.root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        return project.get("urls", {})

    @cached_property
    def explorer(self):
        return explorer.data()

    @cached_property
    def terms(self):
        """The glossary's terms, each with the anchor of its heading."""
        path = self.root / "docs/glossary.md"
        return text.terms(path.read_text(encoding="utf-8")) if path.exists() else {}

    def value(self, asked):
        """What stands in place of `<!-- asked -->` on a page of `docs/`; nothing for any other comment."""
        if asked.startswith("file "):
            return (self.root / asked.removeprefix("file ")).read_text(encoding="utf-8").rstrip("\n")
        if asked == "pdf":
            return '<a href="theory.pdf">This page as PDF</a>' if tools.chromium() else ""
        if asked == "explorer departures":
            return self.explorer["departures"]
        if asked == "gallery":
            titles = {name: notebooks.title(path) for name, path in self.notebooks.items()}
            return results.gallery(self.books, titles)
        if asked == "verdicts":
            return results.verdicts(self.books, read_records(self.root, "large"))
        return results.tally(self.books) if asked == "tally" else ""

    def pages(self):
        """All pages' Markdown by path."""
        pages = {}
        for path in sorted((self.root / "docs").rglob("*.md")):
            name = path.relative_to(self.root / "docs").as_posix()
            page = text.filled(path.read_text(encoding="utf-8"), self.value)
            page = FIGURE_LINE.sub(partial(self._figure, path.stem), page)
            pages[name] = text.linked(text.pages(page), self.notebooks)
        for book, (name, path) in zip(self.books, self.notebooks.items(), strict=True):
            pages[f"notebooks/{name}.md"] = notebooks.page(path, book, self.notebooks, dict(self.terms), self.urls)
        for name, page in reference.pages(self.root / "lib" / "onestep").items():
            pages[f"reference/{name}.md"] = page
        contributing = (self.root / "CONTRIBUTING.md").read_text(encoding="utf-8")
        pages["CONTRIBUTING.md"] = text.linked(text.pages(contributing), self.notebooks)
        return pages

    def write(self, target, mathjax):
        """Write all that Sphinx reads into the folder `target`; mathjax : whether a copy lies there."""
        shutil.copytree(self.root / "docs", target, dirs_exist_ok=True)
        shutil.copytree(self.root / "figures", target / "figures", ignore=shutil.ignore_patterns("*.md", "*.json"))
        for folder in ("notebooks", "reference"):
            (target / folder).mkdir()
        for file in (*LINKED, *(f"notebooks/{name}.ipynb" for name in self.notebooks)):
            shutil.copy2(self.root / file, target / file)
        pages = self.pages()
        for name, page in pages.items():
            (target / name).write_text(page, encoding="utf-8")
        if "explorer.md" in pages:
            data = f"const EXPLORER = {self.explorer['page']};\n"
            (target / "static/explorer/data.js").write_text(data, encoding="utf-8")
        known = {"mathjax": mathjax, "urls": self.urls}
        (target / "site.json").write_text(json.dumps(known), encoding="utf-8")

    def _figure(self, page, match):
        """A figure that stands alone in a line, with its finding as caption."""
        name = match[1]
        return results.figure(name, self.findings[name], f"{page}-{results.anchor(name)}")
