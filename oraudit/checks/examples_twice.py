"""No example is in its batch more than once.

Exact: the fingerprints of each batch. If each fingerprint of every batch comes twice, the cause is
the training, not equal examples in the data.
"""

import math

import numpy as np

from oraudit.findings import Finding
from oraudit.records import Seen

__all__ = ["NAME", "check"]

NAME = "examples-twice"

#: With fewer different inputs in all, equal numbers of each may be chance.
FEWEST_INPUTS = 50


def check(seen: Seen) -> list[Finding]:
    times = 0
    inputs = 0
    for prints in seen.batches.fingerprints:
        if prints is None:
            return []
        _, counts = np.unique(prints, return_counts=True)
        times = math.gcd(times, *counts.tolist())
        inputs += len(counts)
    if times < 2 or inputs < FEWEST_INPUTS:
        return []
    text = f"each example is {times} times in its batch: it adds up to {times} C"
    return [Finding(NAME, text, "less private", number=float(times), limit=1.0)]
