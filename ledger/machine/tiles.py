"""A small map of all verdicts: a tile for each number, in rows by the sections of the paper.

A tile has the paper's own number and a sign for its verdict, and leads to the box of its statement
in the book.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import starmap

from ledger.machine.entries import (
    CORRECTED,
    FAILS,
    HOLDS,
    IMPLEMENTED,
    OURS,
    Claim,
    Verdict,
    own_place,
)
from ledger.machine.text import summary, typeset

__all__ = ["MARKS", "Place", "Tiles", "places_of"]

#: The verdicts as classes of the style sheet, and the signs on their tiles.
MARKS = {HOLDS: "holds", CORRECTED: "corrected", FAILS: "fails", IMPLEMENTED: "implemented"}
SIGNS = {HOLDS: "✓", CORRECTED: "✎", FAILS: "✗", IMPLEMENTED: "≔"}

#: The rows: sections and appendices of the paper in its order, and what this book adds.
_ROWS = (*"1234567ABCDE", OURS)

#: A place that begins with statements' own numbers: "Theorems 5.1 and C.1".
_STATEMENTS = re.compile(
    r"(Definition|Theorem|Proposition|Lemma|Corollary)s? (\w\.\d+(?:(?:, | and )\w\.\d+)*)"
)

#: A place that is numbered through the whole paper: "Figures 1 and 5".
_THROUGHOUT = re.compile(r"(Figure|Algorithm)s? (\d(?:(?:, | and )\d)*)")

#: Statements that the paper repeats; they have no box of their own, and share that of the first.
_REPEATED = ("A.17", "C.1", "C.5", "C.11")

#: A place in the text of the paper: "Section E.3.2", "Appendix B, closing remark".
_TEXT = re.compile(r"(?:Section|Appendix) ((\w)[\d.]*)")


@dataclass(frozen=True)
class Place:
    """The place of a tile: its row, and within it by kind and then by number."""

    row: str
    kind: int
    number: str
    #: The text on the tile.
    label: str
    #: The page of the book and the anchor on it to which the tile leads.
    target: str


def places_of(claim: Claim) -> list[Place]:
    """Return the places of a claim's tiles, one for each of the paper's numbers that it has.

    Numbered statements come first, then figures and algorithms, then claims of the text. A figure
    stands in the row of the chapter that shows it.

    Examples
    --------
    >>> import ledger
    >>> for number in (64, 69, 66, 84):
    ...     print([(place.row, place.label) for place in places_of(ledger.find(number))])
    [('E', 'E.5')]
    [('5', 'Fig. 1'), ('5', 'Fig. 5')]
    [('E', '§E.3.2')]
    [('ours', 'Worst case of full feedback')]
    >>> places_of(ledger.find(64))[0].target
    'E-adaptive-auditing#paper-proposition-e-5'
    """
    if claim.sort == OURS:
        label = claim.label.removeprefix("ours:").replace("-", " ").capitalize()
        return [Place(OURS, 0, f"{claim.number:04}", label, claim.explained)]
    statements = _STATEMENTS.match(claim.place)
    if statements:
        kind, numbers = statements.groups()
        return [_statement(kind, number, claim) for number in _listed(numbers)]
    throughout = _THROUGHOUT.match(claim.place)
    if throughout:
        kind, numbers = throughout.groups()
        chapter = claim.explained.lstrip("0")[0]
        return [
            Place(chapter, 1, number, f"{kind[:3]}. {number}", claim.explained)
            for number in _listed(numbers)
        ]
    text = _TEXT.match(claim.place)
    if text is None:
        raise ValueError(f"place must begin with a place of the paper, got {claim.place!r}")
    number, section = text.groups()
    return [Place(section, 2, number, f"§{number}", claim.explained)]


def _listed(numbers: str) -> list[str]:
    """Return the numbers of a list: "B.2, B.5 and E.1"."""
    return re.split(", | and ", numbers)


def _statement(kind: str, label: str, claim: Claim) -> Place:
    """Return the place of a numbered statement, which leads to its box."""
    section, number = label.split(".")
    place = claim.place if label in _REPEATED else f"{kind} {label}"
    return Place(section, 0, f"{number:>04}", label, own_place(place))


@dataclass(frozen=True, eq=False)
class Tiles:
    """Links to the statements in the book, with the colours and signs of their verdicts."""

    verdicts: Sequence[Verdict]

    @property
    def rows(self) -> dict[str, list[tuple[Place, Verdict]]]:
        """The verdicts with the places of their tiles, by row."""
        rows: dict[str, list[tuple[Place, Verdict]]] = {row: [] for row in _ROWS}
        for verdict in self.verdicts:
            for place in places_of(verdict.claim):
                rows[place.row].append((place, verdict))
        for row in rows.values():
            row.sort(key=lambda tile: (tile[0].kind, tile[0].number))
        return {name: row for name, row in rows.items() if row}

    def _repr_html_(self) -> str:
        verdicts = {verdict.verdict for verdict in self.verdicts}
        key = "".join(
            f'<span class="tile {mark}">{_sign(verdict)}{verdict}</span>'
            for verdict, mark in MARKS.items()
            if verdict in verdicts
        )
        rows = "\n".join(
            f"<dt>{escape(_title(name))}</dt><dd>{''.join(starmap(_tile, row))}</dd>"
            for name, row in self.rows.items()
        )
        return f'<div class="ledger-tiles">\n<p>{key}</p>\n<dl>\n{rows}\n</dl>\n</div>'

    def __repr__(self) -> str:
        return f"<tiles of {summary(self.verdicts)}>"


def _title(row: str) -> str:
    """The title of a row."""
    if row == OURS:
        return "This book's own"
    return f"Section {row}" if row.isdecimal() else f"Appendix {row}"


def _sign(verdict: str) -> str:
    """The sign of a verdict; a screen reader is told the verdict in words instead."""
    return f'<span aria-hidden="true">{SIGNS[verdict]} </span>'


def _tile(place: Place, verdict: Verdict) -> str:
    claim = verdict.claim
    page, _, anchor = place.target.partition("#")
    name = escape(f"{place.label}, {claim.place}: {verdict.verdict}")
    text = f"{claim.place}, {verdict.verdict}: {typeset(claim.statement)}"
    if verdict.verdict == CORRECTED:
        text = f"{text} Corrected: {typeset(claim.correction)}"
    title = escape(text)
    return (
        f'<a class="tile {MARKS[verdict.verdict]}" href="{page}.html#{anchor}" title="{title}" '
        f'aria-label="{name}">{_sign(verdict.verdict)}{escape(place.label)}</a>'
    )
