"""References to other pages of the book, as words, for the page of a run, which stands alone.

The words come from the sources of the book: titles of pages, sections, theorems and the like, and
numbers of figures, which the book counts through.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import nbformat

from orabook.builder.contents import contents

__all__ = ["Book", "book_at", "in_words", "labels_in"]

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
    """The titles and labels of the book, from its sources."""

    titles: dict[str, str]  # by the names of pages
    labels: dict[str, str]  # the words with which other pages mention a label


def book_at(root: Path) -> Book:
    """The titles and labels of the book with its contents in this folder."""
    titles: dict[str, str] = {}
    labels: dict[str, str] = {}
    figures = 0
    pages = [page for _, part in contents(root) for page in part]
    for place in pages:
        text = _text_of(root / place)
        page = Path(place).name
        heading = re.search(rf"^{_HEADING}", text, re.MULTILINE)
        title = heading["heading"].strip() if heading else page
        titles[page] = title
        for target in _TARGET.finditer(text):
            if target["section"]:
                labels[target["section"]] = _section_in_words(target["heading"] or "", title)
                continue
            figures += target["kind"] == "figure"
            labels[target["label"]] = _box_in_words(target, figures, title)
    return Book(titles, labels)


def _section_in_words(heading: str, page_title: str) -> str:
    section = heading.strip()
    is_part = section and section != page_title
    return f"“{section}” in *{page_title}*" if is_part else page_title


def _box_in_words(target: re.Match[str], figures: int, page_title: str) -> str:
    """The words for a figure, which is number ``figures`` of the book, or for a theorem."""
    kind = target["kind"]
    title = target["title"].strip()
    if kind == "figure":
        return f"Fig. {figures} in *{page_title}*"
    if target["label"].startswith("paper-"):  # they have the paper's own numbers
        return title.partition(" of the paper")[0] + " of the paper"
    name = kind.removeprefix("prf:").capitalize()
    name_and_title = f"{name} “{title}”" if title else name
    return f"{name_and_title} in *{page_title}*"


def _text_of(place: Path) -> str:
    """The Markdown of a page."""
    path = place.with_name(f"{place.name}.ipynb")
    if not path.exists():
        return place.with_name(f"{place.name}.md").read_text(encoding="utf-8")
    cells = nbformat.read(path, 4).cells
    return "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")


def in_words(markdown: str, book: Book, own: set[str]) -> str:
    """Put words for all references that lead to other pages; ``own`` labels stay.

    >>> book = Book({"which-bound": "Which bound?"}, {"thm-a": "Theorem “Half” in *Which bound?*"})
    >>> in_words("See {doc}`which-bound`, {doc}`it <which-bound>`, {prf:ref}`thm-a`.", book, set())
    'See Which bound?, it, Theorem “Half” in *Which bound?*.'
    >>> in_words("See {prf:ref}`thm-a`, [it](which-bound.ipynb).", book, {"thm-a"})
    'See {prf:ref}`thm-a`, it.'
    """

    def words_for(reference: re.Match[str]) -> str:
        if reference["shown"]:
            return reference[0]
        if reference["role"]:
            content = " ".join(reference["content"].split())
            explicit = re.fullmatch(r"(.*?) *<(.*)>", content)
            text, target = explicit.groups() if explicit else ("", content)
        else:
            text = reference["text"]
            target = reference["address"]
        page, label = _page_and_label(target, is_page=reference["role"] == "doc")
        if label in own:
            return reference[0]
        name = book.labels.get(label) or book.titles.get(page)
        if not name:
            return reference[0]
        return text.replace("%s", name) or name

    return _REFERENCE.sub(words_for, markdown)


def _page_and_label(target: str, *, is_page: bool) -> tuple[str, str]:
    """The page and the label to which a reference leads, either of them perhaps empty."""
    address, _, label = target.rpartition("#")
    page = Path(address or target).name
    if page.endswith((".ipynb", ".md")):
        return page.rpartition(".")[0], label
    return (page, label) if is_page else ("", target.removeprefix("#"))


def labels_in(markdown: str) -> set[str]:
    """The labels that a text defines.

    >>> sorted(labels_in("(sec-a)=\\n## A\\n\\n:::{figure}\\n:label: fig-b\\nWords.\\n:::"))
    ['fig-b', 'sec-a']
    """
    return {target["section"] or target["label"] for target in _TARGET.finditer(markdown)}
