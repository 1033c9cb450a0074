"""The noisy sum is a number: neither NaN nor infinite.

Exact. One example of NaN may turn a whole release into NaN, which shows that it was there.
"""

import numpy as np

from oraudit.findings import Finding
from oraudit.records import Seen

__all__ = ["check"]

NAME = "not-finite"


def check(seen: Seen) -> list[Finding]:
    if seen.noise is None:
        return []
    totals = (seen.noise.squares + seen.noise.sums).sum(1)
    broken = np.flatnonzero(~np.isfinite(totals))
    if not len(broken):
        return []
    first = int(broken[0]) + 1
    text = (
        f"the sum, or its noise, is not finite (NaN or infinite) in {len(broken)} of {seen.steps} "
        f"steps, first {first}"
    )
    return [Finding(NAME, text, "side unknown", step=first, number=float(len(broken)), limit=0.0)]
