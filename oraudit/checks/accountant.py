"""The accountant was told of every step that was done, and of no other.

Formula: the steps that the accountant was told while the training ran, against those that were
seen; and the noise multiplier of each. Limit: equality.
"""

from oraudit.findings import Finding, Side
from oraudit.records import Seen

NAME = "accountant"


def check(seen: Seen) -> list[Finding]:
    told = seen.of_kind("accountant-told")
    if not told:
        return []
    counted = int(sum(event.number or 0 for event in told))
    if counted == seen.steps:
        return []
    side: Side = "less private" if counted < seen.steps else "safer"
    text = f"the accountant was told {counted} steps, {seen.steps} were done"
    return [Finding(NAME, text, side, number=float(counted), limit=float(seen.steps))]
