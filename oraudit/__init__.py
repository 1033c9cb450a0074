"""Audits of real training runs: did the training do what the accountant was told?

- ``Audit`` is for a training loop of your own, in NumPy, PyTorch or JAX: you call it in each step.
- ``attach`` is for a training with Opacus whose private optimizer you have.
- ``watch`` is for a training with Opacus that stays as it is: you run it inside a block.
- ``neighbours`` is for one step in PyTorch: how far does one example move the release?
- ``neighbours_of`` asks the same of a step that is a pure function, as in JAX.
- ``audit_scores``, ``audit_guesses`` and ``audit_counts`` are for results from elsewhere.
- ``mislabelled`` makes canaries, and ``expect`` says beforehand what canaries can show.

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

#: The modules of the public names, which are imported when a name is asked for: pytest loads this
#: package as a plugin, by fixtures.py, in every project's tests, and a loop in NumPy needs no
#: PyTorch.
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
    """Return a public name, whose module is imported now."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
