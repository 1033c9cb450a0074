"""Every step has noise by what the accountant was told.

Formula: the told noise multiplier. Limit: above 0.
"""

import numpy as np

from oraudit.findings import Finding
from oraudit.records import Seen

__all__ = ["check"]

NAME = "no-noise-told"


def check(seen: Seen) -> list[Finding]:
    without = np.flatnonzero(seen.sigmas <= 0)
    if not len(without):
        return []
    first = int(without[0]) + 1
    text = f"{len(without)} of {seen.steps} steps, first {first}: no noise is stated (multiplier 0)"
    return [Finding(NAME, text, "less private", step=first, number=0.0, limit=0.0)]
