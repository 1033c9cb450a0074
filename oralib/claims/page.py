"""Verdicts as a page of the book: a table in HTML, each row with a link to its explanation."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from oralib.claims.ledger import CORRECTED, FAILS, HOLDS, Verdict

_MARKS = {HOLDS: "holds", CORRECTED: "corrected", FAILS: "fails"}
_PLURAL = {HOLDS: "hold", CORRECTED: "hold with a correction", FAILS: "fail as stated"}


@dataclass(frozen=True, eq=False)
class Page:
    """A table of verdicts that a notebook shows by itself."""

    verdicts: Sequence[Verdict]

    @property
    def summary(self) -> str:
        """How many claims came out how, in one line."""
        counts = Counter(verdict.verdict for verdict in self.verdicts)
        said = ", ".join(
            f"{counts[word]} {_PLURAL[word] if counts[word] > 1 else word}"
            for word in (HOLDS, CORRECTED, FAILS)
            if counts[word]
        )
        surprises = sum(not verdict.as_expected for verdict in self.verdicts)
        ending = "as expected" if not surprises else f"{surprises} not as expected"
        claims = "claim" if len(self.verdicts) == 1 else "claims"
        return f"{len(self.verdicts)} {claims}: {said}; {ending}"

    def _repr_html_(self) -> str:
        rows = "\n".join(_row(verdict) for verdict in self.verdicts)
        head = "<tr><th>#</th><th>Place</th><th>Statement and evidence</th><th>Verdict</th></tr>"
        body = f"<thead>{head}</thead>\n<tbody>\n{rows}\n</tbody>"
        return (
            f'<table class="dataframe ledger">{body}</table>'  # as the theme knows tables of data
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
    if not verdict.as_expected:
        reason = "" if verdict.can_tell else ", and its check cannot tell right from wrong"
        text.append(f"     NOT AS EXPECTED: {claim.expected}{reason}")
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
    word = verdict.verdict if verdict.as_expected else f"{verdict.verdict} (not as expected)"
    return (
        f'<tr id="claim-{claim.number}"><td>{claim.number}</td>'
        f'<td><a href="{page}.html#{anchor}">{escape(claim.place)}</a></td>'
        f"<td>{text}</small></td>"
        f'<td class="{_MARKS[verdict.verdict]}">{escape(word)}</td></tr>'
    )
