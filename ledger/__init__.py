"""A ledger of the paper's statements, each with a check and a computed verdict.

Statements (theorems, examples, measured claims) hold, hold with a correction, or fail as stated.
Definitions and algorithms cannot hold; they are implemented, and their properties are checked. The
other rows are what this book adds.

An obvious misprint is read as it was meant. A statement that is false as printed holds with a
correction if, once a condition, a constant, a number, a sign, a rule, a relation or a reason is put
right, what the paper concludes from it stands; if that is false too, the statement fails. It is
judged where the paper makes it; what happens elsewhere is a separate row of ours.

>>> import ledger
>>> ledger.find("prop:adaptive-ora-is-valid").verdict().verdict
'fails as stated'
"""

from difflib import get_close_matches
from importlib import import_module

from ledger.entries import (
    CORRECTED,
    DEFINITION,
    FAILS,
    HOLDS,
    IMPLEMENTED,
    OURS,
    STATEMENT,
    Claim,
    Verdict,
    claims,
)
from ledger.findings import Finding
from ledger.page import Page, score

__all__ = ["CORRECTED", "DEFINITION", "FAILS", "HOLDS", "IMPLEMENTED", "OURS", "STATEMENT"]
__all__ += ["Claim", "Finding", "Page", "Verdict", "claims", "find", "parts", "score"]

#: The modules of each idea, in the order in which the tiles of the book show them.
_PARTS = {
    "counts, bounds": ["counts_and_bounds"],
    "notions": ["privacy_notions"],
    "games": ["mechanisms_and_games"],
    "validity": ["validity", "asymptotics"],
    "gaps": ["gaps"],
    "efficacy": ["efficacy"],
    "tightness": ["tightness"],
    "counting": ["counting"],
    "adaptive": ["adaptive"],
    "experiments": ["simulations"],
    "this book": ["feedback", "exact_bound", "limits", "assumptions"],
}
_HOMES = {f"ledger.{module}": part for part, modules in _PARTS.items() for module in modules}
for _module in _HOMES:  # each adds its claims to the ledger
    import_module(_module)


def parts() -> dict[str, list[int]]:
    """The numbers of the claims by topic, including our own claims.

    Examples
    --------
    >>> parts()["notions"]
    [1, 8, 9, 19, 20, 75]
    """
    found: dict[str, list[int]] = {part: [] for part in _PARTS}
    for claim in claims():
        part = "this book" if claim.sort == OURS else _HOMES[claim.check.__module__]
        found[part].append(claim.number)
    return found


def find(name: str | int) -> Claim:
    """The claim with this label or number.

    Examples
    --------
    >>> find("1").number
    1
    >>> find(1).label == find("1").label
    True
    """
    for claim in claims():
        if str(name) in (claim.label, str(claim.number)):
            return claim
    labels = [claim.label for claim in claims()]
    close = get_close_matches(str(name), labels, n=3, cutoff=0.4)
    hint = f"; did you mean {' or '.join(close)}?" if close else ""
    allowed = f"the label of a claim, or a number from 1 to {claims()[-1].number}"
    raise ValueError(f"name must be {allowed}, got {name!r}{hint}")
