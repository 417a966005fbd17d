"""Markdown as text: what is linked, filled in, cut out or escaped."""

import re

# Code, maths, links and addresses are left as they are.
_KEPT = re.compile(
    r"(?ms)^(`{3,}|~{3,}).*?^\1[`~]*[ ]*$|`+[^`\n]+`+|\$\$.*?\$\$|\$[^$\n]+\$|!?\[[^\]]*\]\([^)]*\)|<[^>\n]+>|https?://\S+"
)
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>$|#])")
_PLACEHOLDER = re.compile(r"\{\{ *(.+?) *\}\}")


def linked(text, names):
    """Markdown whose mentions of notebooks ("notebook 06", "**06_staircase**") and of arXiv numbers are links.

    names : the notebooks' names; a number that none of them begins with stays text.
    """
    by_number = {name[:2]: name for name in names}

    def notebook(match):
        name = by_number.get(match["number"])
        return f"[{match[0]}](/notebooks/{name}.md)" if name else match[0]

    def replaced(part):
        part = re.sub(r"\barXiv[: ](\d{4}\.\d{4,5})", r"[arXiv \1](https://arxiv.org/abs/\1)", part)
        part = re.sub(r"\b[Nn]otebook (?P<number>\d\d)(_\w+)?\b", notebook, part)
        return re.sub(r"\*\*(?P<number>\d\d)_\w+\*\*", notebook, part)

    return _outside(text, replaced)


def pages(text):
    """Markdown whose links to notebooks and to the table of all verdicts lead to their pages."""
    text = re.sub(r"(\]\([^)\s]*)\.ipynb(?=[)#])", r"\1.md", text)
    return text.replace("](figures/README.md)", "](/verdicts.md)")


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
