"""Verdicts as text and as a page of the book: tiles, and a table in HTML that can be filtered."""

import re
from collections import Counter
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
    Claim,
    Mutant,
    Verdict,
)
from orabook import tables

_MARKS = {HOLDS: "holds", CORRECTED: "corrected", FAILS: "fails", IMPLEMENTED: "implemented"}
_PLURAL = {HOLDS: "hold", CORRECTED: "hold with a correction", FAILS: "fail as stated"}
_KINDS = {STATEMENT: "statement", DEFINITION: "definition", OURS: "claim of this book"}

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

#: Places that the book links by itself wherever they are mentioned (orabook.extensions.paper_statements).
_NUMBERED = re.compile(
    r"\b(Definition|Theorem|Proposition|Lemma|Corollary|Algorithm)s? ([A-E]\.)?\d"
)


def typeset(text: str) -> str:
    """The plain text of a claim or of its evidence, typeset as in a book.

    >>> typeset("n=2, -0.5 against 5e-05, at r = 100000")
    'n = 2, −0.5 against 5 · 10⁻⁵, at r = 100,000'
    """
    text = re.sub(r"\b([a-z])=(?=\d)", r"\1 = ", text)
    text = re.sub(r"-?\d(\.\d+)?e-\d+", lambda found: tables.number(float(found[0])), text)
    text = re.sub(r"(?<![\w.])-(?=[\d∞]|inf\b)", "−", text)
    text = re.sub(r"\binf\b", "∞", text)
    text = re.sub(r"(?<![\d.,])\d{5,}(?![\d.])", lambda found: f"{int(found[0]):,}", text)
    return text.replace("<=", "≤").replace(">=", "≥").replace("Clopper-P", "Clopper–P")


def _as_html(text: str) -> str:
    """The same with indices below and powers above the line.

    >>> _as_html("LRR_4, 2^(1−n), p^-1, X1 and log2 n")
    'LRR<sub>4</sub>, 2<sup>1−n</sup>, p<sup>−1</sup>, X<sub>1</sub> and log<sub>2</sub> n'
    """
    html = escape(typeset(text), quote=False)
    html = re.sub(r"\b(L?RR|XRR|W|c|E\*)_(ε\(M\)|\w+)", r"\1<sub>\2</sub>", html)
    html = re.sub(r"\b([XY])(\d)\b", r"\1<sub>\2</sub>", html)
    html = re.sub(r"\^\(([^()]*)\)|\^(−?\w)", lambda up: f"<sup>{up[1] or up[2]}</sup>", html)
    return html.replace("sqrt(", "√(").replace("log2", "log<sub>2</sub>")


def score(verdicts: Sequence[Verdict]) -> str:
    """How many mutants of how many claims were rejected, in one line.

    Examples
    --------
    >>> import ledger
    >>> score([ledger.find("1").verdict(mutants=True)])
    '4 variants: 4 rejected, 0 pass for a reason that their claims give, 0 missed'
    """
    rejected = sum(len(verdict.rejected) for verdict in verdicts)
    excused = sum(len([m for m in verdict.passed if m.excuse]) for verdict in verdicts)
    missed = sum(len(verdict.missed) for verdict in verdicts)
    stale = sum(len(verdict.needlessly_excused) for verdict in verdicts)
    said = f"{rejected + excused + missed} variants: {rejected} rejected, {excused} pass for a "
    said += f"reason that their claims give, {missed} missed"
    return said + (f"; {stale} excused without need" if stale else "")


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
        return sum(
            verdict.claim.sort == sort and word in (None, verdict.verdict)
            for verdict in self.verdicts
        )

    @property
    def frame(self) -> pd.DataFrame:
        """One row per claim, to be queried and saved; the variants are those that were tried."""
        return pd.DataFrame(
            [
                {
                    "number": verdict.claim.number,
                    "label": verdict.claim.label,
                    "kind": _KINDS[verdict.claim.sort],
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
            ]
        ).set_index("number")

    @property
    def summary(self) -> str:
        """How many claims have which verdict, in one line."""
        parts = []
        for sort, name in _KINDS.items():
            found = Counter(v.verdict for v in self.verdicts if v.claim.sort == sort)
            total = sum(found.values())
            if sort == DEFINITION and set(found) == {IMPLEMENTED}:
                parts.append(f"{total} {name}{'s' * (total > 1)} implemented")
            elif total:
                said = ", ".join(
                    f"{found[word]} {_PLURAL.get(word, word) if found[word] > 1 else word}"
                    for word in (IMPLEMENTED, HOLDS, CORRECTED, FAILS)
                    if found[word]
                )
                plural = name.replace("claim", "claims") if sort == OURS else f"{name}s"
                parts.append(f"{total} {plural if total > 1 else name}: {said}")
        surprises = sum(not verdict.as_expected for verdict in self.verdicts)
        ending = "as expected" if not surprises else f"{surprises} not as expected"
        return "; ".join([*parts, ending])

    def tiles(self, parts: Mapping[str, Sequence[int]]) -> "Tiles":
        """One link for each row, in groups: {title: numbers of claims}.

        Examples
        --------
        >>> import ledger
        >>> Page([ledger.find("1").verdict()]).tiles({"notions": [1]})
        <1 tile: 1 implemented>
        """
        found = {verdict.claim.number: verdict for verdict in self.verdicts}
        return Tiles({part: [found[number] for number in all_] for part, all_ in parts.items()})

    def _repr_html_(self) -> str:
        # Definitions, which neither hold nor fail, come last.
        order = sorted(self.verdicts, key=lambda verdict: verdict.claim.sort == DEFINITION)
        rows = "\n".join(map(_row, order))
        heads = ("#", "Place", "Statement and evidence", "Variants rejected", "Verdict")
        head = "<tr>" + "".join(f'<th scope="col">{word}</th>' for word in heads) + "</tr>"
        body = f"<thead>{head}</thead>\n<tbody>\n{rows}\n</tbody>"
        # The buttons hide rows with a style sheet alone: no script, no server.
        buttons = "\n".join(
            f'<input type="radio" name="ledger" id="ledger-{mark}"{" checked" * (mark == "open")}>'
            f'<label for="ledger-{mark}">{label}</label>'
            for mark, label in _FILTERS.items()
        )
        return (
            f'<div class="ledger-box">\n{buttons}\n'
            f'<table class="dataframe ledger">{body}</table>\n</div>'  # the theme's table class
        )

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
        key = "".join(
            f'<span class="tile {mark}">{word}</span>'
            for word, mark in _MARKS.items()
            if word in used
        )
        lines = "\n".join(
            f"<dt>{escape(part)}</dt><dd>{''.join(map(_tile, group))}</dd>"
            for part, group in self.groups.items()
        )
        return f'<div class="ledger-tiles">\n<p>{key}</p>\n<dl>\n{lines}\n</dl>\n</div>'

    def __repr__(self) -> str:
        found = Counter(verdict.verdict for group in self.groups.values() for verdict in group)
        said = ", ".join(f"{found[word]} {word}" for word in _MARKS if found[word])
        total = sum(found.values())
        return f"<{total} tile{'s' * (total != 1)}: {said}>"


def _tile(verdict: Verdict) -> str:
    claim = verdict.claim
    words = escape(f"{claim.place}: {verdict.verdict}")
    return (
        f'<a class="tile {_MARKS[verdict.verdict]}" href="#claim-{claim.number}" '
        f'title="{words}" aria-label="{claim.number}, {words}">{claim.number}</a>'
    )


def lines(verdict: Verdict) -> str:
    """A verdict in plain text: a line with its place and statement, and its evidence below."""
    claim = verdict.claim
    text = [
        f"{claim.number:>3}  {verdict.verdict:<24}  {claim.place}: {typeset(claim.statement)}",
        f"     {claim.kind}: {typeset(verdict.evidence)}",
    ]
    if verdict.evidence_of_correction:
        correction, evidence = typeset(claim.correction), typeset(verdict.evidence_of_correction)
        text.append(f"     corrected: {correction} ({evidence})")
    if verdict.tried:
        total = len(verdict.rejected) + len(verdict.passed)
        text.append(f"     rejects {len(verdict.rejected)} of {total} variants")
        text += [f"     passes: {m.name} ({m.excuse})" for m in verdict.passed if m.excuse]
    if not verdict.as_expected:
        reasons = [f"     NOT AS EXPECTED: {claim.expected}"]
        if not verdict.accepted:
            reasons.append("     its check accepts no version")
        reasons += [f"     should be rejected: {m.name}" for m in verdict.missed]
        reasons += [f"     is rejected: {m.name} ({m.excuse})" for m in verdict.needlessly_excused]
        text += reasons
    return "\n".join(text)


def _row(verdict: Verdict) -> str:
    claim = verdict.claim
    kind = claim.kind[0].upper() + claim.kind[1:]
    text = [_paragraph("statement", claim.statement)]
    text.append(_paragraph("evidence", f"{kind}: {verdict.evidence}"))
    if verdict.evidence_of_correction:
        text.append(_paragraph("correction", f"Corrected: {claim.correction}"))
        text.append(_paragraph("evidence", f"Then: {verdict.evidence_of_correction}"))
    if claim.remark:
        text.append(_paragraph("evidence", claim.remark))
    if verdict.tried:
        text.append(_variants(verdict))
    word = verdict.verdict if verdict.as_expected else f"{verdict.verdict} (not as expected)"
    mark = _MARKS[verdict.verdict]
    ours = " ours" if claim.sort == OURS else ""
    total = len(verdict.rejected) + len(verdict.passed)
    tried = f"{len(verdict.rejected)} of {total}" if verdict.tried else ""
    return (
        f'<tr id="claim-{claim.number}" class="row-{mark}{ours}"><td>{claim.number}</td>'
        f"<td>{_place(claim)}</td>"
        f"<td>{''.join(text)}</td>"
        f'<td class="score">{tried}</td>'
        f'<td class="{mark}">{escape(word)}</td></tr>'
    )


def _paragraph(kind: str, text: str) -> str:
    return f'<p class="{kind}">{_as_html(text)}</p>'


def _place(claim: Claim) -> str:
    """Where the paper has it, and a link to the page of this book unless that is linked anyway."""
    page, _, anchor = claim.explained.partition("#")
    words = escape(claim.place)
    chapter = page.partition("-")[0]
    if chapter.isdecimal():
        name = f"Chapter {int(chapter)}"
    elif len(chapter) == 1:
        name = f"Appendix {chapter}"
    else:  # a page that goes beyond the paper; this one is "paper-check"
        name = "Above" if page == "paper-check" else page.replace("-", " ").capitalize()
    if _NUMBERED.search(claim.place) and name.startswith(("Chapter", "Appendix")):
        return words
    return f'{words}<br><a href="{page}.html#{anchor}">{name}</a>'


def _variants(verdict: Verdict) -> str:
    """The variants that pass, with their reasons, and the names of the others."""

    def name(mutant: Mutant) -> str:
        return _as_html(mutant.name.replace("_", " "))

    passed = "".join(
        f'<p class="evidence"><b>{name(m)}</b> passes: {_as_html(m.excuse)}.</p>'
        for m in verdict.passed
    )
    rejected = ", ".join(map(name, verdict.rejected))
    details = f"<details><summary>Rejected variants</summary>{rejected}</details>"
    return passed + (details if rejected else "")
