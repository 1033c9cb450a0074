"""Warnings while a training runs: what is exact is told at the step that shows it."""

from collections.abc import Sequence

from oraudit.records import Batches, Event, Kind, Seen, Told

__all__ = ["ALARMING", "NotAsTold", "alarms"]

#: What is exact, and told at once; the rest waits for the end of the training.
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
    """What an event says, in the words of the report."""
    if event.kind not in ALARMING:
        return []
    # Checks load SciPy's distributions, which a training without alarms needs not.
    from oraudit.checks import findings

    nothing = Batches((), ())
    seen = Seen([], tuple(told), None, (), nothing, [event], None, None)
    return [f"{each.text}: {each.side}" for each in findings(seen)]
