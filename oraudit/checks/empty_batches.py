"""Empty batches are trained on, too: their noise is part of what the accountant counts.

Formula: the probability that no batch is empty. Limit: the share of this check.
"""

import math

import numpy as np

from oraudit.checks.levels import SHARE
from oraudit.checks.poisson_batches import known_sizes
from oraudit.findings import Finding
from oraudit.records import Seen

__all__ = ["check"]

NAME = "empty-batches"
TESTS = 1


def check(seen: Seen) -> list[Finding]:
    batches = known_sizes(seen)
    if batches is None:
        return []
    sizes, rates, examples = batches
    if (sizes == 0).any() or (rates >= 1).any():
        return []
    empty = (1 - rates) ** examples
    none_empty = math.exp(np.log1p(-empty).sum())
    if none_empty >= SHARE:
        return []
    expected = float(empty.sum())
    text = (
        f"no batch of {len(sizes)} is empty, where {expected:.0f} would be: empty batches are "
        "left out, and their noise with them"
    )
    return [Finding(NAME, text, "less private", number=0.0, limit=expected)]
