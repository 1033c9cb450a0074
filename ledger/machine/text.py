"""Verdicts as text, and numbers and words typeset as in a book."""

import re
from collections.abc import Sequence

from ledger.machine.entries import (
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

__all__ = ["SORTS", "count", "fineness", "lines", "score", "spaced", "summary", "typeset"]

#: The sorts of claims: the word for one, and for several.
SORTS = {
    STATEMENT: ("statement", "statements"),
    DEFINITION: ("definition", "definitions"),
    OURS: ("claim of this book", "claims of this book"),
}

#: The verdicts of several claims, in the order of the summary.
_PLURALS = {HOLDS: "hold", CORRECTED: "hold with a correction", FAILS: "fail as stated"}


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


def lines(verdict: Verdict) -> str:
    """A verdict as text: a line with its place and statement, and its evidence below."""
    claim = verdict.claim
    text = [
        f"{claim.number:>3}  {verdict.verdict:<24}  {claim.place}: {typeset(claim.statement)}",
        f"     {claim.kind}: {typeset(verdict.evidence)}",
    ]
    if verdict.evidence_of_correction:
        evidence = typeset(verdict.evidence_of_correction)
        text.append(f"     corrected: {typeset(claim.correction)} ({evidence})")
    if verdict.tried:
        text.append(f"     rejects {len(verdict.rejected)} of {verdict.tried} variants")
        excused = [mutant for mutant in verdict.passed if mutant.excuse]
        text += [f"     passes: {spaced(mutant.name)} ({mutant.excuse})" for mutant in excused]
    if verdict.finest:
        text.append(f"     {fineness(verdict)}")
    if not verdict.as_expected:
        text.append(f"     NOT AS EXPECTED: {claim.expected}")
        if not verdict.accepted:
            text.append("     its check accepts no version")
        text += [f"     should be rejected: {spaced(mutant.name)}" for mutant in verdict.missed]
        for mutant in verdict.needlessly_excused:
            text.append(f"     is rejected: {mutant.name} ({mutant.excuse})")
    return "\n".join(text)


def fineness(verdict: Verdict) -> str:
    """The smallest changes of numbers that the simulations of a check reject, as text."""
    changes = (f"{spaced(part)} {percent:g}%" for part, percent in verdict.finest.items())
    return f"smallest changes that are rejected: {', '.join(changes)}"


def spaced(variant: str) -> str:
    """The name of a variant in words."""
    return variant.replace("_", " ")


def score(verdicts: Sequence[Verdict]) -> str:
    """The numbers of variants that were rejected or passed, in one line.

    Examples
    --------
    >>> import ledger
    >>> score([ledger.find("1").verdict(mutants=True)])
    '4 variants: 4 rejected, 0 pass for a reason that their claims give, 0 missed'
    """
    rejected = sum(len(verdict.rejected) for verdict in verdicts)
    passed = sum(len(verdict.passed) for verdict in verdicts)
    missed = sum(len(verdict.missed) for verdict in verdicts)
    needless = sum(len(verdict.needlessly_excused) for verdict in verdicts)
    line = (
        f"{rejected + passed} variants: {rejected} rejected, {passed - missed} pass for a reason "
        f"that their claims give, {missed} missed"
    )
    return f"{line}; {needless} excused without need" if needless else line


def count(verdicts: Sequence[Verdict], sort: str, verdict: str | None = None) -> int:
    """The number of claims of a sort, or of those with a verdict."""
    names = [item.verdict for item in verdicts if item.claim.sort == sort]
    return len(names) if verdict is None else names.count(verdict)


def summary(verdicts: Sequence[Verdict]) -> str:
    """The numbers of claims with each verdict, in one line.

    Examples
    --------
    >>> import ledger
    >>> summary([ledger.find("1").verdict()])
    '1 definition implemented; as expected'
    """
    parts = []
    for sort, (one, several) in SORTS.items():
        total = count(verdicts, sort)
        claims = f"{total} {one if total == 1 else several}"
        if total and count(verdicts, sort, IMPLEMENTED) == total:
            parts.append(f"{claims} implemented")
        elif total:
            parts.append(f"{claims}: {', '.join(_counted(verdicts, sort))}")
    surprises = sum(not verdict.as_expected for verdict in verdicts)
    parts.append(f"{surprises} not as expected" if surprises else "as expected")
    return "; ".join(parts)


def _counted(verdicts: Sequence[Verdict], sort: str) -> list[str]:
    """Each verdict that claims of a sort have, with their number."""
    phrases = []
    for verdict in (IMPLEMENTED, *_PLURALS):
        number = count(verdicts, sort, verdict)
        if number == 1:
            phrases.append(f"1 {verdict}")
        elif number > 1:
            phrases.append(f"{number} {_PLURALS.get(verdict, verdict)}")
    return phrases
