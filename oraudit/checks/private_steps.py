"""The weights move in private steps only, and nothing else of the model moves at all.

Exact: changes of weights, buffers and parameters that the way in saw between private steps, or in
a step but not by it. Changes that may be post-processing of earlier releases are not accused, such
as averages, projections and best weights; nor is a buffer, unless it is a running statistic of the
batches, as BatchNorm's.
"""

from collections.abc import Sequence

from oraudit.findings import Finding
from oraudit.records import Event, Seen

__all__ = ["check"]

NAME = "private-steps"

#: What to pass as ``allow=`` where weights are changed between steps on purpose.
OUTSIDE = "weights-outside"

#: What to pass as ``allow=`` where a buffer changes that holds nothing of the data.
BUFFERS = "buffers-outside"

#: The buffers in which layers keep statistics of batches.
STATISTICS = ("running_mean", "running_var")


def check(seen: Seen) -> list[Finding]:
    findings = []
    if plain := seen.of_kind("plain-step"):
        text = f"the optimizer steps without the private step, {len(plain)} times"
        findings.append(Finding(NAME, text, "less private", step=plain[0].step))
    if late := seen.of_kind("late-parameter"):
        text = (
            f"{_named(late)} joined the model after make_private, and no private optimizer has it"
        )
        findings.append(Finding(NAME, text, "less private", step=late[0].step))
    if loose := seen.of_kind("unprivate-parameter"):
        text = f"{_named(loose)} changes, and no private optimizer has it: it gets no noise"
        findings.append(Finding(NAME, text, "less private", step=loose[0].step))
    buffers = seen.of_kind("buffer-changed")
    statistics = [event for event in buffers if event.what.endswith(STATISTICS)]
    if statistics:
        text = f"the buffer {_named(statistics)} changes, not by a private step: it gets no noise"
        findings.append(Finding(NAME, text, "less private", step=statistics[0].step))
    elif buffers:
        text = (
            f"the buffer {_named(buffers)} changes, not by a private step; if it holds nothing of "
            f"the data but what private steps released, pass allow=({BUFFERS!r},)"
        )
        findings.append(Finding(BUFFERS, text, "side unknown", allowed_by=BUFFERS))
    if outside := seen.of_kind("outside-step"):
        text = (
            "weights change between private steps; if that is post-processing (an average, a "
            f"projection, best weights restored), pass allow=({OUTSIDE!r},)"
        )
        first = outside[0].step
        findings.append(Finding(OUTSIDE, text, "side unknown", step=first, allowed_by=OUTSIDE))
    return findings


def _named(events: Sequence[Event]) -> str:
    """Return the name in the first event, and how many other names there are."""
    names = list(dict.fromkeys(event.what for event in events))
    return f"{names[0]} and {len(names) - 1} more" if len(names) > 1 else names[0]
