"""The claims: a file for each subject of the paper or of this book, each a list of claims.

Importing a file enters its claims in the ledger, and importing this package all of them. No file
of claims imports another; what several of them need is in :mod:`ledger.cases`.
"""

from ledger.claims import (
    adaptive,
    assumptions,
    asymptotics,
    counting,
    counts_and_bounds,
    efficacy,
    exact_bound,
    feedback,
    gaps,
    limits,
    mechanisms_and_games,
    privacy_notions,
    simulations,
    tightness,
    validity,
)

__all__ = ["adaptive", "assumptions", "asymptotics", "counting", "counts_and_bounds", "efficacy"]
__all__ += ["exact_bound", "feedback", "gaps", "limits", "mechanisms_and_games", "privacy_notions"]
__all__ += ["simulations", "tightness", "validity"]
