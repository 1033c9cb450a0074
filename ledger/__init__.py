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

from ledger.machine import entries
from ledger.machine.entries import (
    CORRECTED,
    DEFINITION,
    FAILS,
    HOLDS,
    IMPLEMENTED,
    OURS,
    STATEMENT,
    Claim,
    Verdict,
)
from ledger.machine.findings import Finding
from ledger.machine.page import Page
from ledger.machine.text import score

__all__ = ["CORRECTED", "DEFINITION", "FAILS", "HOLDS", "IMPLEMENTED", "OURS", "STATEMENT"]
__all__ += ["Claim", "Finding", "Page", "Verdict", "claims", "find", "score"]

import_module("ledger.claims")  # enters all claims in the ledger


# Readers call `ledger.claims()`, so from here on the function has the name of the folder. Its files
# are imported as before: `from ledger.claims import gaps`.
def claims() -> list[Claim]:
    """All claims, in the order of their numbers.

    Examples
    --------
    >>> [claim.number for claim in claims()][:3]
    [1, 2, 3]
    """
    return entries.claims()


def find(name: str | int) -> Claim:
    """The claim with this label or number.

    Examples
    --------
    >>> find("1").number
    1
    >>> find(1).label == find("1").label
    True
    """
    everything = claims()
    for claim in everything:
        if str(name) in (claim.label, str(claim.number)):
            return claim
    close = get_close_matches(str(name), [claim.label for claim in everything], n=3, cutoff=0.4)
    hint = f"; did you mean {' or '.join(close)}?" if close else ""
    raise ValueError(
        f"name must be the label of a claim, or a number from 1 to {everything[-1].number}, "
        f"got {name!r}{hint}"
    )
