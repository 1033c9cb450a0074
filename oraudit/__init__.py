"""Audits of real training runs: is what ran what the accountant was told?

>>> import oraudit
>>> audit = oraudit.Audit(examples=600)
>>> audit.result().status
'cannot tell'
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oraudit.canaries.expect import expect
    from oraudit.canaries.mislabelled import mislabelled
    from oraudit.neighbour_test.pure import neighbours_of
    from oraudit.neighbour_test.pytorch import neighbours
    from oraudit.report import Result
    from oraudit.scores.audit import audit_counts, audit_guesses, audit_scores
    from oraudit.ways.loop.audit import Audit
    from oraudit.ways.opacus.attach import attach
    from oraudit.ways.opacus.watch import watch

__all__ = [
    "Audit",
    "Result",
    "attach",
    "audit_counts",
    "audit_guesses",
    "audit_scores",
    "expect",
    "mislabelled",
    "neighbours",
    "neighbours_of",
    "watch",
]

#: Names are imported when they are asked for: pytest loads this package in every project's tests,
#: and a loop in NumPy needs no PyTorch.
_HOMES = {
    "Audit": "oraudit.ways.loop.audit",
    "Result": "oraudit.report",
    "attach": "oraudit.ways.opacus.attach",
    "audit_counts": "oraudit.scores.audit",
    "audit_guesses": "oraudit.scores.audit",
    "audit_scores": "oraudit.scores.audit",
    "expect": "oraudit.canaries.expect",
    "mislabelled": "oraudit.canaries.mislabelled",
    "neighbours": "oraudit.neighbour_test.pytorch",
    "neighbours_of": "oraudit.neighbour_test.pure",
    "watch": "oraudit.ways.opacus.watch",
}


def __getattr__(name: str) -> Any:
    """A public name, whose module is imported now."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
