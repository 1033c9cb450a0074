"""Verdicts as text and as a page of the book: a table in HTML that can be filtered."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from oralib.claims.ledger import (
    CORRECTED,
    DEFINITION,
    FAILS,
    HOLDS,
    IMPLEMENTED,
    OURS,
    STATEMENT,
    Verdict,
)

_MARKS = {HOLDS: "holds", CORRECTED: "corrected", FAILS: "fails", IMPLEMENTED: "implemented"}
_PLURAL = {HOLDS: "hold", CORRECTED: "hold with a correction", FAILS: "fail as stated"}
_KINDS = {STATEMENT: "statement", DEFINITION: "definition", OURS: "claim of this book"}

#: What can be shown alone: a name for the mark of its rows, and what its button says.
_FILTERS = {
    "all": "All",
    "holds": "Holds",
    "corrected": "With a correction",
    "fails": "Fails",
    "implemented": "Definitions",
    "ours": "This book's own",
}


def score(verdicts: Sequence[Verdict]) -> str:
    """How many mutants of how many claims were rejected, in one line."""
    rejected = sum(len(verdict.rejected) for verdict in verdicts)
    excused = sum(len([m for m in verdict.passed if m.excuse]) for verdict in verdicts)
    missed = sum(len(verdict.missed) for verdict in verdicts)
    stale = sum(len(verdict.needlessly_excused) for verdict in verdicts)
    said = f"{rejected + excused + missed} variants: {rejected} rejected, {excused} pass for a "
    said += f"reason that their claims give, {missed} missed"
    return said + (f"; {stale} excused without need" if stale else "")


@dataclass(frozen=True, eq=False)
class Page:
    """A table of verdicts that a notebook shows by itself."""

    verdicts: Sequence[Verdict]

    def count(self, sort: str, word: str | None = None) -> int:
        """How many claims of a sort there are, or came out in this way."""
        return sum(
            verdict.claim.sort == sort and word in (None, verdict.verdict)
            for verdict in self.verdicts
        )

    @property
    def summary(self) -> str:
        """How many claims came out how, in one line."""
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

    def _repr_html_(self) -> str:
        rows = "\n".join(_row(verdict) for verdict in self.verdicts)
        head = "<tr><th>#</th><th>Place</th><th>Statement and evidence</th><th>Verdict</th></tr>"
        body = f"<thead>{head}</thead>\n<tbody>\n{rows}\n</tbody>"
        # The buttons hide rows by a style sheet alone: no script, no server.
        buttons = "\n".join(
            f'<input type="radio" name="ledger" id="ledger-{mark}"{" checked" * (mark == "all")}>'
            f'<label for="ledger-{mark}">{label}</label>'
            for mark, label in _FILTERS.items()
        )
        return (
            f'<div class="ledger-box">\n{buttons}\n'
            f'<table class="dataframe ledger">{body}</table>\n</div>'  # as the theme knows tables
        )

    def __repr__(self) -> str:
        return f"<{self.summary}>"

    def __str__(self) -> str:
        return "\n".join([*map(lines, self.verdicts), self.summary])


def lines(verdict: Verdict) -> str:
    """A verdict in plain text: a line with its place and statement, and its evidence below."""
    claim = verdict.claim
    text = [
        f"{claim.number:>3}  {verdict.verdict:<24}  {claim.place}: {claim.statement}",
        f"     {claim.kind}: {verdict.evidence}",
    ]
    if verdict.evidence_of_correction:
        text.append(f"     corrected: {claim.correction} ({verdict.evidence_of_correction})")
    if verdict.tried:
        text.append(f"     {verdict.sharpness}")
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
    page, _, anchor = claim.explained.partition("#")
    text = f"{escape(claim.statement)}<br><small>{escape(claim.kind)}: {escape(verdict.evidence)}"
    if verdict.evidence_of_correction:
        text += (
            f"</small><br><em>{escape(claim.correction)}</em><br>"
            f"<small>{escape(verdict.evidence_of_correction)}"
        )
    if verdict.tried:
        text += f"<br>Its check {escape(verdict.sharpness)}{_variants(verdict)}"
    if claim.remark:
        text += f"<br>{escape(claim.remark)}"
    word = verdict.verdict if verdict.as_expected else f"{verdict.verdict} (not as expected)"
    mark = _MARKS[verdict.verdict]
    ours = " ours" if claim.sort == OURS else ""
    return (
        f'<tr id="claim-{claim.number}" class="row-{mark}{ours}"><td>{claim.number}</td>'
        f'<td><a href="{page}.html#{anchor}">{escape(claim.place)}</a></td>'
        f"<td>{text}</small></td>"
        f'<td class="{mark}">{escape(word)}</td></tr>'
    )


def _variants(verdict: Verdict) -> str:
    """The variants that pass, with their reasons, and the names of the others."""
    said = "".join(f"; <b>{escape(m.name)}</b> passes: {escape(m.excuse)}" for m in verdict.passed)
    rejected = ", ".join(escape(m.name) for m in verdict.rejected)
    details = f"<details><summary>Rejected variants</summary>{rejected}</details>"
    return said + "." + (details if rejected else "")
