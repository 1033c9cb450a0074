"""The accountant was told of every step that was done, of no other, and of the noise it had.

Formula: the steps that the accountant was told while the training ran, against those that were
seen; what it knew at the end of a step, against what it knew at the beginning of the next; and
the noise multiplier that it was told, against the optimizer's. Limit: equality.
"""

from oraudit.findings import Finding, Side
from oraudit.records import Seen

__all__ = ["check"]

NAME = "accountant"


def check(seen: Seen) -> list[Finding]:
    findings = []
    for event in seen.of_kind("accountant-forgot"):
        text = f"the accountant has lost {event.number:.0f} steps that it had been told"
        findings.append(Finding(NAME, text, "less private", step=event.step, number=event.number))
    if (counted := _counted(seen)) is not None and counted != seen.steps:
        side: Side = "less private" if counted < seen.steps else "safer"
        text = f"the accountant was told {counted} steps, {seen.steps} were done"
        findings.append(Finding(NAME, text, side, number=float(counted), limit=float(seen.steps)))
    if events := seen.of_kind("sigma-told"):
        first = events[0]
        used = float(first.what)
        stated = float(first.number or 0)
        side = "less private" if stated > used else "safer"
        text = (
            f"in {len(events)} of {seen.steps} steps, first {first.step}, the accountant was told "
            f"noise multiplier {stated:.4g}, the optimizer has {used:.4g}"
        )
        findings.append(Finding(NAME, text, side, step=first.step, number=stated, limit=used))
    if events := seen.of_kind("rate-told"):
        first = events[0]
        used = float(first.what)
        stated = float(first.number or 0)
        side = "less private" if stated < used else "safer"
        text = (
            f"in {len(events)} of {seen.steps} steps, first {first.step}, the accountant was told "
            f"rate {stated:.4g}, the training says {used:.4g}"
        )
        findings.append(Finding(NAME, text, side, step=first.step, number=stated, limit=used))
    return findings


def _counted(seen: Seen) -> int | None:
    """Return the number of steps that the accountant was told; None if nobody saw it."""
    events = seen.of_kind("accountant-told")
    return int(sum(event.number or 0 for event in events)) if events else None
