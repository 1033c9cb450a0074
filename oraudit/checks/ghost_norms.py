"""Ghost clipping takes each example's own norm.

Formula: the norm of an example's gradient, computed independently, over the norm that ghost
clipping takes for it. Limit: 1%, which is more than rounding.
"""

from oraudit.findings import Finding, Side
from oraudit.records import Seen

__all__ = ["check"]

NAME = "ghost-norms"


def check(seen: Seen) -> list[Finding]:
    apart = seen.of_kind("ghost-norm")
    if not apart:
        return []
    worst = max(apart, key=lambda event: event.number or 0.0)
    ratio = worst.number or 0.0
    side: Side = "less private" if ratio > 1 else "side unknown"
    text = (
        f"the norm of an example's gradient is {ratio:.3g} times what ghost clipping takes for it"
    )
    return [Finding(NAME, text, side, step=worst.step, number=ratio, limit=1.0)]
