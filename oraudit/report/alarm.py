"""Warnings while a training runs, at the step that shows that it is not as stated."""

from collections.abc import Sequence

from oraudit.records import Batches, Event, Kind, Seen, Told

__all__ = ["ALARMING", "NotAsTold", "alarms"]

#: The kinds of events that warn at once, as they are exact; others wait for the report.
ALARMING: tuple[Kind, ...] = (
    "accountant-forgot",
    "apart-clip",
    "examples-mix",
    "ghost-norm",
    "late-parameter",
    "plain-step",
    "sigma-told",
    "unprivate-parameter",
)


class NotAsTold(UserWarning):
    """A training is not as its accountant was told."""


def alarms(event: Event, told: Sequence[Told]) -> list[str]:
    """Return what an event says, in the words of the report."""
    if event.kind not in ALARMING:
        return []
    # Imported here: checks load SciPy's distributions, which a training without alarms never needs.
    from oraudit.checks import findings

    nothing = Batches((), ())
    seen = Seen([], tuple(told), None, (), nothing, [event], None, None)
    return [f"{finding.text}: {finding.side}" for finding in findings(seen)]
