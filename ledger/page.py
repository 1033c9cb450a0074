"""Verdicts as text and as a page of the book: tiles, and a table in HTML that can be filtered."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

import pandas as pd

from ledger.entries import (
    CORRECTED,
    DEFINITION,
    FAILS,
    HOLDS,
    IMPLEMENTED,
    OURS,
    STATEMENT,
    Verdict,
)
from orabook import tables

_MARKS = {HOLDS: "holds", CORRECTED: "corrected", FAILS: "fails", IMPLEMENTED: "implemented"}
_PLURALS = {HOLDS: "hold", CORRECTED: "hold with a correction", FAILS: "fail as stated"}

#: The sorts of claims: one, and several.
_SORTS = {
    STATEMENT: ("statement", "statements"),
    DEFINITION: ("definition", "definitions"),
    OURS: ("claim of this book", "claims of this book"),
}

#: What can be shown alone, the first of them at first: the mark of its rows, and its button.
_FILTERS = {
    "open": "Fails or corrected",
    "all": "All rows",
    "holds": "Holds",
    "corrected": "With a correction",
    "fails": "Fails",
    "implemented": "Definitions",
    "ours": "This book's own",
}

_HEADS = ("#", "Place", "Statement", "Variants rejected", "Verdict")

#: The order of rows; definitions, which neither hold nor fail, come last.
_ORDER = (FAILS, CORRECTED, HOLDS, IMPLEMENTED)

#: Places that orabook.extensions.paper_statements links wherever they are mentioned.
_NUMBERED_STATEMENT = re.compile(
    r"\b(Definition|Theorem|Proposition|Lemma|Corollary|Algorithm)s? ([A-E]\.)?\d"
)


def typeset(text: str) -> str:
    """The text of a claim or of its evidence, typeset as in a book.

    >>> typeset("n=2, -0.5 against 5e-05, at r = 100000")
    'n = 2, −0.5 against 5 · 10⁻⁵, at r = 100,000'
    """
    text = re.sub(r"\b([a-z])=(?=\d)", r"\1 = ", text)
    text = re.sub(r"-?\d(\.\d+)?e-\d+", lambda match: tables.number(float(match[0])), text)
    text = re.sub(r"(?<![\w.])-(?=[\d∞]|inf\b)", "−", text)
    text = re.sub(r"\binf\b", "∞", text)
    text = re.sub(r"(?<![\d.,])\d{5,}(?![\d.])", lambda match: f"{int(match[0]):,}", text)
    return text.replace("<=", "≤").replace(">=", "≥").replace("Clopper-P", "Clopper–P")


def score(verdicts: Sequence[Verdict]) -> str:
    """How many mutants of how many claims were rejected, in one line.

    Examples
    --------
    >>> import ledger
    >>> score([ledger.find("1").verdict(mutants=True)])
    '4 variants: 4 rejected, 0 pass for a reason that their claims give, 0 missed'
    """
    rejected = sum(len(verdict.rejected) for verdict in verdicts)
    missed = sum(len(verdict.missed) for verdict in verdicts)
    excused = sum(len(verdict.passed) for verdict in verdicts) - missed
    needless = sum(len(verdict.needlessly_excused) for verdict in verdicts)
    counts = f"{rejected} rejected, {excused} pass for a reason that their claims give"
    counts = f"{rejected + excused + missed} variants: {counts}, {missed} missed"
    return counts + (f"; {needless} excused without need" if needless else "")


def lines(verdict: Verdict) -> str:
    """A verdict as text: a line with its place and statement, and its evidence below."""
    claim = verdict.claim
    text = [
        f"{claim.number:>3}  {verdict.verdict:<24}  {claim.place}: {typeset(claim.statement)}",
        f"     {claim.kind}: {typeset(verdict.evidence)}",
    ]
    if verdict.evidence_of_correction:
        correction, evidence = typeset(claim.correction), typeset(verdict.evidence_of_correction)
        text.append(f"     corrected: {correction} ({evidence})")
    if verdict.tried:
        text.append(f"     rejects {len(verdict.rejected)} of {verdict.tried} variants")
        text += [f"     passes: {_name(m.name)} ({m.excuse})" for m in verdict.passed if m.excuse]
    if verdict.finest:
        text.append(f"     {_fineness(verdict)}")
    if not verdict.as_expected:
        text.append(f"     NOT AS EXPECTED: {claim.expected}")
        if not verdict.accepted:
            text.append("     its check accepts no version")
        text += [f"     should be rejected: {_name(m.name)}" for m in verdict.missed]
        text += [f"     is rejected: {m.name} ({m.excuse})" for m in verdict.needlessly_excused]
    return "\n".join(text)


def _fineness(verdict: Verdict) -> str:
    """How fine the simulations of a check can tell."""
    changes = (f"{_name(part)} {percent:g}%" for part, percent in verdict.finest.items())
    return f"smallest changes that are rejected: {', '.join(changes)}"


def _name(variant: str) -> str:
    return variant.replace("_", " ")


@dataclass(frozen=True, eq=False)
class Page:
    """A table of verdicts that a notebook shows by itself.

    Examples
    --------
    >>> import ledger
    >>> Page([ledger.find("1").verdict()]).summary
    '1 definition implemented; as expected'
    """

    verdicts: Sequence[Verdict]

    def count(self, sort: str, word: str | None = None) -> int:
        """How many claims of a sort there are, or how many have this verdict."""
        words = [verdict.verdict for verdict in self.verdicts if verdict.claim.sort == sort]
        return len(words) if word is None else words.count(word)

    @property
    def frame(self) -> pd.DataFrame:
        """One row per claim, to be queried and saved; the variants are those that were tried."""
        return pd.DataFrame(
            {
                "number": verdict.claim.number,
                "label": verdict.claim.label,
                "kind": _SORTS[verdict.claim.sort][0],
                "place": verdict.claim.place,
                "statement": verdict.claim.statement,
                "verdict": verdict.verdict,
                "as_expected": verdict.as_expected,
                "check": verdict.claim.kind,
                "evidence": verdict.evidence,
                "variants_rejected": len(verdict.rejected),
                "variants_passed": len(verdict.passed),
            }
            for verdict in self.verdicts
        ).set_index("number")

    @property
    def summary(self) -> str:
        """How many claims have which verdict, in one line."""
        parts = []
        for sort, (one, several) in _SORTS.items():
            counts = {word: self.count(sort, word) for word in (IMPLEMENTED, *_PLURALS)}
            total = self.count(sort)
            claims = f"{total} {one if total == 1 else several}"
            if total and counts[IMPLEMENTED] == total:
                parts.append(f"{claims} implemented")
            elif total:
                words = (
                    f"{count} {_PLURALS.get(word, word) if count > 1 else word}"
                    for word, count in counts.items()
                    if count
                )
                parts.append(f"{claims}: {', '.join(words)}")
        surprises = sum(not verdict.as_expected for verdict in self.verdicts)
        ending = "as expected" if not surprises else f"{surprises} not as expected"
        return "; ".join([*parts, ending])

    def tiles(self, parts: Mapping[str, Sequence[int]]) -> "Tiles":
        """One link for each row, in groups: {title: numbers of claims}.

        Examples
        --------
        >>> import ledger
        >>> Page([ledger.find("1").verdict()]).tiles({"notions": [1]})
        <tiles of 1 definition implemented; as expected>
        """
        by_number = {verdict.claim.number: verdict for verdict in self.verdicts}
        return Tiles({part: [by_number[n] for n in numbers] for part, numbers in parts.items()})

    def _repr_html_(self) -> str:
        order = sorted(self.verdicts, key=lambda verdict: _ORDER.index(verdict.verdict))
        # The buttons hide rows with a style sheet alone: no script, no server.
        buttons = "\n".join(
            f'<input type="radio" name="ledger" id="ledger-{mark}"{" checked" * (mark == "open")}>'
            f'<label for="ledger-{mark}">{label}</label>'
            for mark, label in _FILTERS.items()
        )
        heads = "".join(f'<th scope="col">{head}</th>' for head in _HEADS)
        rows = "\n".join(map(_row, order))
        # "dataframe" is the theme's class of tables.
        return f"""<div class="ledger-box">
{buttons}
<table class="dataframe ledger"><thead><tr>{heads}</tr></thead>
<tbody>
{rows}
</tbody></table>
</div>"""

    def __repr__(self) -> str:
        return f"<{self.summary}>"

    def __str__(self) -> str:
        return "\n".join([*map(lines, self.verdicts), self.summary])


@dataclass(frozen=True, eq=False)
class Tiles:
    """Links to the rows of a :class:`Page`, coloured by their verdicts; they wrap on a phone."""

    groups: Mapping[str, Sequence[Verdict]]

    def _repr_html_(self) -> str:
        used = {verdict.verdict for group in self.groups.values() for verdict in group}
        marks = ((word, mark) for word, mark in _MARKS.items() if word in used)
        key = "".join(f'<span class="tile {mark}">{word}</span>' for word, mark in marks)
        groups = "\n".join(
            f"<dt>{escape(part)}</dt><dd>{''.join(map(_tile, group))}</dd>"
            for part, group in self.groups.items()
        )
        return f'<div class="ledger-tiles">\n<p>{key}</p>\n<dl>\n{groups}\n</dl>\n</div>'

    def __repr__(self) -> str:
        verdicts = [verdict for group in self.groups.values() for verdict in group]
        return f"<tiles of {Page(verdicts).summary}>"


def _tile(verdict: Verdict) -> str:
    number, words = verdict.claim.number, escape(f"{verdict.claim.place}: {verdict.verdict}")
    return (
        f'<a class="tile {_MARKS[verdict.verdict]}" href="#claim-{number}" '
        f'title="{words}" aria-label="{number}, {words}">{number}</a>'
    )


def _row(verdict: Verdict) -> str:
    claim, mark = verdict.claim, _MARKS[verdict.verdict]
    word = verdict.verdict if verdict.as_expected else f"{verdict.verdict} (not as expected)"
    ours = " ours" if claim.sort == OURS else ""
    score = f"{len(verdict.rejected)} of {verdict.tried}" if verdict.tried else ""
    return (
        f'<tr id="claim-{claim.number}" class="row-{mark}{ours}"><td>{claim.number}</td>'
        f"<td>{_place(claim.place, claim.explained)}</td><td>{_statement(verdict)}</td>"
        f'<td class="score">{score}</td><td class="{mark}">{word}</td></tr>'
    )


def _place(place: str, explained: str) -> str:
    """Where the paper has it, and a link to the page of this book unless that is linked anyway."""
    page, _, anchor = explained.partition("#")
    chapter = page.partition("-")[0]
    if chapter.isdecimal():
        name = f"Chapter {int(chapter)}"
    elif len(chapter) == 1:
        name = f"Appendix {chapter}"
    else:  # a page that goes beyond the paper; this one is "paper-check"
        name = "Above" if page == "paper-check" else page.replace("-", " ").capitalize()
    if _NUMBERED_STATEMENT.search(place) and name.startswith(("Chapter", "Appendix")):
        return escape(place)
    return f'{escape(place)}<br><a href="{page}.html#{anchor}">{name}</a>'


def _statement(verdict: Verdict) -> str:
    """Statement, correction and remark; what was computed, and with which variants, is folded."""
    claim = verdict.claim
    shown = [("statement", claim.statement)]
    if verdict.evidence_of_correction:
        shown.append(("correction", f"Corrected: {claim.correction}"))
    if claim.remark:
        shown.append(("evidence", claim.remark))
    folded = [f"{claim.kind[0].upper()}{claim.kind[1:]}: {verdict.evidence}."]
    if verdict.evidence_of_correction:
        folded.append(f"With the correction, {verdict.evidence_of_correction}.")
    if verdict.passed:
        accepted = "; ".join(f"{_name(m.name)} ({m.excuse})" for m in verdict.passed)
        folded.append(f"Accepted variants: {accepted}.")
    if verdict.rejected:
        folded.append(f"Rejected variants: {', '.join(_name(m.name) for m in verdict.rejected)}.")
    if verdict.finest:
        folded.append(f"By simulation, {_fineness(verdict)}.")
    html = [f'<p class="{name}">{_as_html(text)}</p>' for name, text in shown]
    computed = "".join(f"<p>{_as_html(text)}</p>" for text in folded)
    return f"{''.join(html)}<details><summary>What was computed</summary>{computed}</details>"


def _as_html(text: str) -> str:
    """The text typeset, with indices below and powers above the line.

    >>> _as_html("LRR_4, 2^(1−n), p^-1, X1 and log2 n")
    'LRR<sub>4</sub>, 2<sup>1−n</sup>, p<sup>−1</sup>, X<sub>1</sub> and log<sub>2</sub> n'
    """
    html = escape(typeset(text), quote=False)
    html = re.sub(r"\b(L?RR|XRR|W|c|E\*)_(ε\(M\)|\w+)", r"\1<sub>\2</sub>", html)
    html = re.sub(r"\b([XY])(\d)\b", r"\1<sub>\2</sub>", html)
    html = re.sub(r"\^\(([^()]*)\)|\^(−?\w)", lambda up: f"<sup>{up[1] or up[2]}</sup>", html)
    return html.replace("sqrt(", "√(").replace("log2", "log<sub>2</sub>")
