"""Verdicts as a page of the book: a map of tiles, and a table in HTML that can be filtered."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import pandas as pd

from ledger.machine.entries import CORRECTED, FAILS, HOLDS, IMPLEMENTED, OURS, Verdict
from ledger.machine.text import SORTS, count, fineness, lines, spaced, summary, typeset
from ledger.machine.tiles import MARKS, Tiles

__all__ = ["Page"]

#: The buttons above the table, by the marks of the rows that they show; the first is on at first.
_FILTERS = {
    "open": "Fails or corrected",
    "all": "All rows",
    "holds": "Holds",
    "corrected": "With a correction",
    "fails": "Fails",
    "implemented": "Definitions",
    "ours": "This book's own",
}

#: The heads of the table's columns.
_HEADS = ("#", "Place", "Statement", "Variants rejected", "Verdict")

#: The order of rows; definitions, which neither hold nor fail, come last.
_ORDER = (FAILS, CORRECTED, HOLDS, IMPLEMENTED)

#: Places that orabook.extensions.paper_statements links wherever they are mentioned.
_NUMBERED_STATEMENT = re.compile(
    r"\b(Definition|Theorem|Proposition|Lemma|Corollary|Algorithm)s? ([A-E]\.)?\d"
)


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

    def count(self, sort: str, verdict: str | None = None) -> int:
        """The number of claims of a sort, or of those with a verdict."""
        return count(self.verdicts, sort, verdict)

    @property
    def frame(self) -> pd.DataFrame:
        """A row for each claim, to be queried and saved; the variants are those that were tried."""
        return pd.DataFrame(
            {
                "number": verdict.claim.number,
                "label": verdict.claim.label,
                "kind": SORTS[verdict.claim.sort][0],
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
        """The numbers of claims with each verdict, in one line."""
        return summary(self.verdicts)

    def tiles(self) -> Tiles:
        """A small map of the verdicts, in rows by the sections of the paper.

        Examples
        --------
        >>> import ledger
        >>> Page([ledger.find("1").verdict()]).tiles()
        <tiles of 1 definition implemented; as expected>
        """
        return Tiles(self.verdicts)

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


def _row(verdict: Verdict) -> str:
    claim = verdict.claim
    mark = MARKS[verdict.verdict]
    text = verdict.verdict if verdict.as_expected else f"{verdict.verdict} (not as expected)"
    ours = " ours" if claim.sort == OURS else ""
    score = f"{len(verdict.rejected)} of {verdict.tried}" if verdict.tried else ""
    return (
        f'<tr id="claim-{claim.number}" class="row-{mark}{ours}"><td>{claim.number}</td>'
        f"<td>{_place(claim.place, claim.explained)}</td><td>{_statement(verdict)}</td>"
        f'<td class="score">{score}</td><td class="{mark}">{text}</td></tr>'
    )


def _place(place: str, explained: str) -> str:
    """The place in the paper, with a link to the page of this book unless it is linked anyway."""
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
    open_parts = [("statement", claim.statement)]
    if verdict.evidence_of_correction:
        open_parts.append(("correction", f"Corrected: {claim.correction}"))
    if claim.remark:
        open_parts.append(("evidence", claim.remark))
    folded = [f"{claim.kind[0].upper()}{claim.kind[1:]}: {verdict.evidence}."]
    if verdict.evidence_of_correction:
        folded.append(f"With the correction, {verdict.evidence_of_correction}.")
    if verdict.passed:
        accepted = "; ".join(f"{spaced(m.name)} ({m.excuse})" for m in verdict.passed)
        folded.append(f"Accepted variants: {accepted}.")
    if verdict.rejected:
        folded.append(f"Rejected variants: {', '.join(spaced(m.name) for m in verdict.rejected)}.")
    if verdict.finest:
        folded.append(f"By simulation, {fineness(verdict)}.")
    html = [f'<p class="{name}">{_as_html(text)}</p>' for name, text in open_parts]
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
