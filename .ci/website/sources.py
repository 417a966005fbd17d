"""All pages of the site as Markdown, in one folder that Sphinx reads."""

import json
import re
import shutil
import sys
import tomllib
from functools import cached_property, partial
from pathlib import Path

from runner.tables import ledgers

from . import errata, explorer, notebooks, reference, results, text

LINKED = ("CITATION.cff", "LICENSE")  # files that pages link to


class Sources:
    """What the pages are made of, under the project's root; `missing` collects what they ask for in vain."""

    def __init__(self, root):
        self.root = Path(root)
        self.missing = []

    @cached_property
    def notebooks(self):
        """The notebooks' paths by name."""
        return {path.stem: path for path in sorted((self.root / "notebooks").glob("[0-9][0-9]_*.ipynb"))}

    @cached_property
    def books(self):
        """The ledgers of these notebooks, in their order. Raises ValueError for one missing or without findings."""
        books = {book["notebook"]: book for book in ledgers(self.root / "figures")}
        for name in self.notebooks:
            if not isinstance(books.get(name, {}).get("figures"), dict):
                raise ValueError(f"{name} has no ledger in figures/ that says what its figures show: execute it")
        return [books[name] for name in self.notebooks]

    @cached_property
    def findings(self):
        """What each committed figure shows, by its name."""
        return {name: finding for book in self.books for name, finding in book["figures"].items()}

    @cached_property
    def numbers(self):
        return errata.numbers()

    @cached_property
    def explorer(self):
        return explorer.data()

    @cached_property
    def project(self):
        return tomllib.loads((self.root / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    @cached_property
    def version(self):
        """`onestep.__version__`, read and not imported."""
        text = (self.root / "lib/onestep/__init__.py").read_text(encoding="utf-8")
        return re.search(r'(?m)^__version__ = "(.+)"$', text)[1]

    def value(self, asked, page=""):
        """What stands in place of `{{ asked }}` on this page of `docs/`."""
        kind, _, rest = asked.partition(" ")
        if kind == "figure":
            return self._figure(rest, page)
        if kind == "rows":
            return self._rows(rest)
        if kind == "file":
            return (self.root / rest).read_text(encoding="utf-8").rstrip("\n")
        if kind == "erratum":
            return self._erratum(rest)
        if kind == "row":
            return self._row(*rest.split(" ", 1))
        if kind == "readme":
            return self._readme(rest)
        if asked == "explorer departures":
            return self.explorer["departures"]
        if asked == "gallery":
            titles = {name: notebooks.title(path) for name, path in self.notebooks.items()}
            return results.gallery(self.books, titles)
        if asked == "verdicts":
            return results.verdicts(self.books)
        if asked == "tally":
            return results.tally(self.books)
        if asked in self.numbers:
            return errata.shown(self.numbers[asked])
        raise ValueError(f"{{{{ {asked} }}}}: nothing is known by this name")

    def pages(self):
        """All pages' Markdown by path, and the pictures that they show beside the figures."""
        pages, pictures = {}, {}
        for path in sorted((self.root / "docs").rglob("*.md")):
            name = path.relative_to(self.root / "docs").as_posix()
            page = text.filled(path.read_text(encoding="utf-8"), partial(self.value, page=name))
            pages[name] = text.linked(text.pages(page), self.notebooks)
        for book, (name, path) in zip(self.books, self.notebooks.items(), strict=True):
            pages[f"notebooks/{name}.md"], found = notebooks.page(path, book, self.notebooks)
            pictures |= {f"notebooks/{file}": data for file, data in found.items()}
        for name, page in reference.pages(self.root / "lib" / "onestep").items():
            pages[f"reference/{name}.md"] = text.linked(page, self.notebooks)
        contributing = (self.root / "CONTRIBUTING.md").read_text(encoding="utf-8")
        pages["CONTRIBUTING.md"] = text.linked(text.pages(contributing), self.notebooks)
        return pages, pictures

    def write(self, target, **known):
        """Write all that Sphinx reads into the folder `target`; `known` goes to `docs/conf.py` by `site.json`."""
        shutil.copytree(self.root / "docs", target, dirs_exist_ok=True)
        shutil.copytree(self.root / "figures", target / "figures", ignore=shutil.ignore_patterns("*.md", "*.json"))
        for folder in ("notebooks", "reference"):
            (target / folder).mkdir()
        for file in (*LINKED, *(f"notebooks/{name}.ipynb" for name in self.notebooks)):
            shutil.copy2(self.root / file, target / file)
        pages, pictures = self.pages()
        for name, page in pages.items():
            (target / name).write_text(page, encoding="utf-8")
        for name, data in pictures.items():
            (target / name).write_bytes(data)
        if "explorer.md" in pages:
            (target / "static/explorer/data.js").write_text(
                f"const EXPLORER = {self.explorer['page']};\n", encoding="utf-8"
            )
        known |= {"version": self.version, "urls": self.project.get("urls", {})}
        (target / "site.json").write_text(json.dumps(known), encoding="utf-8")

    def _figure(self, name, page):
        if name not in self.findings:
            self._miss(f"no ledger names the figure {name}")
            return ""
        return results.figure(name, self.findings[name], f"{Path(page).stem}-{results.anchor(name)}")

    def _rows(self, asked):
        """The verdicts on some of `numbers`: "right ones" or "right ones not wrong ones"."""
        right, wrong = ([self.numbers[name] for name in part.split()] for part in asked.partition(" not ")[::2])
        table = results.judged(self.books, right, wrong)
        if not table:
            self._miss(f"no verdict is about {asked}")
        return table

    def _erratum(self, name):
        """A script of `docs/errata` and what it prints."""
        script, output = ((self.root / f"docs/errata/{name}.{kind}").read_text("utf-8") for kind in ("py", "txt"))
        return f"```python\n{script}```\n\nIt prints:\n\n```text\n{output}```"

    def _row(self, number, wanted):
        """Two cells of a table, claimed and found, of a notebook's first verdict whose quantity contains `wanted`."""
        for row in (row for book in self.books if book["notebook"][:2] == number for row in book["rows"]):
            if wanted in row["quantity"] and not row["control"]:
                return " | ".join(text.escaped(row[part]) for part in ("claimed", "measured"))
        self._miss(f"notebook {number} has no verdict on {wanted!r}")
        return " | "

    def _readme(self, title):
        body = text.section((self.root / "README.md").read_text(encoding="utf-8"), title)
        if not body:
            self._miss(f"README.md has no section {title!r}")
        return text.pages(body)

    def _miss(self, what):
        self.missing.append(what)
        print(f"warning: {what}", file=sys.stderr)
