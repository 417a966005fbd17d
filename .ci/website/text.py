"""Markdown as text: what is linked and filled in."""

import re

# Headings, code, maths, links and addresses are left as they are.
_KEPT = re.compile(
    r"(?ms)^#[^\n]*|^(`{3,}|~{3,}).*?^\1[`~]*[ ]*$|`+[^`\n]+`+|\$\$.*?\$\$|\$[^$\n]+\$|!?\[[^\]]*\]\([^)]*\)|<[^>\n]+>|https?://\S+"
)
_MENTION = re.compile(r"\b[Nn]otebooks? \d\d(?:_\w+)?(?:(?:, | and | or | to )\d\d\b(?!\.\d))*|\*\*\d\d_\w+\*\*")
_TABLES = {"README": "verdicts"}  # pages that are not named like the file
_COMMENT = re.compile(r"(?s)<!-- *(.+?) *-->")


def linked(text, names, terms=None):
    """Markdown whose mentions of notebooks ("notebooks 13 and 14", "**13_staircase**") and arXiv numbers are links.

    names : the notebooks' names; a number that none of them begins with stays text.
    terms : {term: anchor} of the glossary; the first mention of each becomes a link, and it is taken out of `terms`.
    """
    words = "|".join(map(re.escape, sorted(terms or (), key=len, reverse=True)))
    known = re.compile(rf"\b({words})(?=s?\b)", re.IGNORECASE)
    by_number = {name[:2]: name for name in names}

    def link(match):
        name = by_number.get(re.search(r"\d\d", match[0])[0])
        return f"[{match[0]}](/notebooks/{name}.md)" if name else match[0]

    def mention(match):
        several = len(re.findall(r"\b\d\d\b", match[0])) > 1
        return re.sub(r"\b\d\d\b", link, match[0]) if several else link(match)

    def term(match):
        anchor = terms.pop(match[1].lower(), None)
        return f"[{match[0]}](/glossary.md#{anchor})" if anchor else match[0]

    def replaced(part):
        part = known.sub(term, part) if terms else part
        part = re.sub(r"\barXiv[: ](\d{4}\.\d{4,5})", r"[arXiv \1](https://arxiv.org/abs/\1)", part)
        return _MENTION.sub(mention, part)

    return _outside(text, replaced)


def pages(text):
    """Markdown whose links to notebooks, to `docs/` and to the tables in `figures/` lead to their pages."""
    text = re.sub(r"(\]\([^)\s]*)\.ipynb(?=[)#])", r"\1.md", text)
    text = re.sub(r"\]\((?:\.\./)?docs/(\w[\w-]*\.md)(?=[)#])", r"](/\1", text)
    text = text.replace("](../notebooks/", "](/notebooks/").replace("](../CONTRIBUTING.md", "](/CONTRIBUTING.md")
    return re.sub(r"\]\((?:\.\./)?figures/(\w+)\.md\)", lambda match: f"](/{_TABLES.get(match[1], match[1])}.md)", text)


def filled(text, value):
    """Markdown with each comment `<!-- name -->` replaced by `value(name)`."""
    return _COMMENT.sub(lambda match: value(match[1]), text)


def terms(glossary):
    """{term: anchor} of a glossary whose terms are headings of the third rank; one heading may name several."""
    heads = re.findall(r"(?m)^### (.+)$", glossary)
    anchors = {head: re.sub(r"[^\w -]", "", head).replace(" ", "-").lower() for head in heads}
    return {term.lower(): anchor for head, anchor in anchors.items() for term in head.split(", ")}


def _outside(text, function):
    parts, end = [], 0
    for match in _KEPT.finditer(text):
        parts += [function(text[end : match.start()]), match[0]]
        end = match.end()
    return "".join([*parts, function(text[end:])])
