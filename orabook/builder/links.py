"""References to other pages of the book, as words: the page of a run has no other pages beside it.

What they say comes from the sources of the book: the titles of pages and sections, of theorems and
their like, and the numbers of figures, which the book counts through.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import nbformat

from orabook.builder.contents import contents

_HEADING = r"#{1,6} +(?P<heading>.+)"
_TARGET = re.compile(
    rf"^\((?P<section>[\w-]+)\)=\n+(?:{_HEADING})?"
    r"|^:::+\{(?P<kind>[\w:]+)\} *(?P<title>.*)\n(?:(?!:label:):.*\n)*:label: *(?P<label>\S+)",
    re.MULTILINE,
)

#: References and links; double backticks only show how to write one.
_REFERENCE = re.compile(
    r"(?P<shown>(?<!`)``(?!`).+?(?<!`)``(?!`))"
    r"|(?<!`)\{(?P<role>doc|ref|numref|prf:ref)\}`(?P<content>[^`]+)`"
    r"|(?<!!)\[(?P<text>[^\]\n]*)\]\((?P<address>[^)\s:]+)\)",
    re.DOTALL,
)


@dataclass(frozen=True)
class Book:
    """What the sources of the book say about its pages and labels."""

    titles: dict[str, str]  # by the names of pages
    labels: dict[str, str]  # how other pages mention what has a label


def book_at(root: Path) -> Book:
    """The titles and labels of the book with its contents in this folder."""
    titles: dict[str, str] = {}
    labels: dict[str, str] = {}
    figures = 0
    for place in (place for _, part in contents(root) for place in part):
        text = _text_of(root / place)
        page = Path(place).name
        heading = re.search(rf"^{_HEADING}", text, re.MULTILINE)
        titles[page] = heading["heading"].strip() if heading else page
        for found in _TARGET.finditer(text):
            where = f"in *{titles[page]}*"
            if label := found["section"]:
                section = (found["heading"] or "").strip()
                is_part = section and section != titles[page]
                labels[label] = f"“{section}” {where}" if is_part else titles[page]
                continue
            kind, title = found["kind"], found["title"].strip()
            if kind == "figure":
                figures += 1
                words = f"Fig. {figures} {where}"
            elif found["label"].startswith("paper-"):  # they have the paper's own numbers
                words = title.partition(" of the paper")[0] + " of the paper"
            else:
                name = kind.removeprefix("prf:").capitalize()
                words = f"{name} “{title}” {where}" if title else f"{name} {where}"
            labels[found["label"]] = words
    return Book(titles, labels)


def _text_of(place: Path) -> str:
    """The Markdown of a page."""
    path = place.with_name(f"{place.name}.ipynb")
    if not path.exists():
        return place.with_name(f"{place.name}.md").read_text(encoding="utf-8")
    cells = nbformat.read(path, 4).cells
    return "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")


def in_words(markdown: str, book: Book, own: set[str]) -> str:
    """A text with words for all references that lead to other pages; ``own`` labels stay.

    >>> book = Book({"which-bound": "Which bound?"}, {"thm-a": "Theorem “Half” in *Which bound?*"})
    >>> in_words("See {doc}`which-bound`, {doc}`it <which-bound>`, {prf:ref}`thm-a`.", book, set())
    'See Which bound?, it, Theorem “Half” in *Which bound?*.'
    >>> in_words("See {prf:ref}`thm-a`, [it](which-bound.ipynb).", book, {"thm-a"})
    'See {prf:ref}`thm-a`, it.'
    """

    def words(found: re.Match[str]) -> str:
        if found["shown"]:
            return found[0]
        if found["role"]:
            content = " ".join(found["content"].split())
            explicit = re.fullmatch(r"(.*?) *<(.*)>", content)
            said, target = explicit.groups() if explicit else ("", content)
        else:
            said, target = found["text"], found["address"]
        page, _, label = target.rpartition("#")
        page = Path(page or target).name
        if page.endswith((".ipynb", ".md")):
            page = page.rpartition(".")[0]
        elif found["role"] != "doc":
            label, page = target.removeprefix("#"), ""
        if label in own:
            return found[0]
        told = book.labels.get(label) or book.titles.get(page)
        return (said.replace("%s", told) or told) if told else found[0]

    return _REFERENCE.sub(words, markdown)


def labels_in(markdown: str) -> set[str]:
    """The labels that a text defines.

    >>> sorted(labels_in("(sec-a)=\\n## A\\n\\n:::{figure}\\n:label: fig-b\\nWords.\\n:::"))
    ['fig-b', 'sec-a']
    """
    return {found["section"] or found["label"] for found in _TARGET.finditer(markdown)}
