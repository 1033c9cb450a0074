"""What is held against what the accountant was told, a file for each check.

A check is a function of what was :class:`~oraudit.records.Seen` and returns what it finds. Their
order is that of causes: what comes first explains what comes later.
"""

from collections.abc import Callable

from oraudit.checks import clipped_sum, noise_size
from oraudit.findings import Finding
from oraudit.records import Seen

__all__ = ["CHECKS", "findings"]

#: All checks, causes before their consequences.
CHECKS: tuple[Callable[[Seen], list[Finding]], ...] = (
    clipped_sum.check,
    noise_size.check,
)


def findings(seen: Seen) -> list[Finding]:
    """What all checks find, in their order."""
    return [finding for check in CHECKS for finding in check(seen)]
