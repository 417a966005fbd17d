"""Markdown as text: what is linked, filled in, cut out or escaped."""

import re

# Code, maths, links and addresses are left as they are.
_KEPT = re.compile(
    r"(?ms)^(`{3,}|~{3,}).*?^\1[`~]*[ ]*$|`+[^`\n]+`+|\$\$.*?\$\$|\$[^$\n]+\$|!?\[[^\]]*\]\([^)]*\)|<[^>\n]+>|https?://\S+"
)
_MENTION = re.compile(r"\b[Nn]otebooks? \d\d(?:_\w+)?(?:(?:, | and | or | to )\d\d\b(?!\.\d))*|\*\*\d\d_\w+\*\*")
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>$|#])")
_TABLES = {"README": "verdicts"}  # pages that are not named like the file
_PLACEHOLDER = re.compile(r"\{\{ *(.+?) *\}\}")


def linked(text, names):
    """Markdown whose mentions of notebooks ("notebooks 13 and 14", "**13_staircase**") and arXiv numbers are links.

    names : the notebooks' names; a number that none of them begins with stays text.
    """
    by_number = {name[:2]: name for name in names}

    def link(match):
        name = by_number.get(re.search(r"\d\d", match[0])[0])
        return f"[{match[0]}](/notebooks/{name}.md)" if name else match[0]

    def mention(match):
        several = len(re.findall(r"\b\d\d\b", match[0])) > 1
        return re.sub(r"\b\d\d\b", link, match[0]) if several else link(match)

    def replaced(part):
        part = re.sub(r"\barXiv[: ](\d{4}\.\d{4,5})", r"[arXiv \1](https://arxiv.org/abs/\1)", part)
        return _MENTION.sub(mention, part)

    return _outside(text, replaced)


def pages(text):
    """Markdown whose links to notebooks, to `docs/` and to the tables in `figures/` lead to their pages."""
    text = re.sub(r"(\]\([^)\s]*)\.ipynb(?=[)#])", r"\1.md", text)
    text = re.sub(r"\]\((?:\.\./)?docs/(\w[\w-]*\.md)(?=[)#])", r"](/\1", text)
    return re.sub(r"\]\(figures/(\w+)\.md\)", lambda match: f"](/{_TABLES.get(match[1], match[1])}.md)", text)


def filled(text, values):
    """Markdown with `{{ name }}` replaced by `values(name)`."""
    return _PLACEHOLDER.sub(lambda match: values(match[1]), text)


def section(text, title):
    """The body of the section of the second rank with this title; "" if there is none."""
    match = re.search(rf"(?ms)^## {re.escape(title)}\n(.*?)(?=^## |\Z)", text)
    return match[1].strip("\n") if match else ""


def escaped(text):
    """Text as Markdown that shows it as it is."""
    return _SPECIAL.sub(r"\\\1", text)


def _outside(text, function):
    parts, end = [], 0
    for match in _KEPT.finditer(text):
        parts += [function(text[end : match.start()]), match[0]]
        end = match.end()
    return "".join([*parts, function(text[end:])])
