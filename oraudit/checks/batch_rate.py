"""Batches hold as many examples as the told rate says.

Formula: the examples of all batches, a binomial number. Limit: its exact two-sided p-value; where
the rate changes from step to step, that of a binomial law with the same first three moments. A
smaller rate is safer only if the batches are those of Poisson sampling at this rate.
"""

import numpy as np
from numpy.typing import NDArray

from oraudit.checks import poisson_batches
from oraudit.checks.levels import SHARE, binomial_p
from oraudit.findings import Finding, Side
from oraudit.records import Seen

__all__ = ["NAME", "check", "total_p"]

NAME = "batch-rate"
TESTS = 1


def check(seen: Seen) -> list[Finding]:
    batches = poisson_batches.known_sizes(seen)
    if batches is None:
        return []
    sizes, rates, examples = batches
    if total_p(int(sizes.sum()), rates, examples) >= SHARE:
        return []
    held = float(sizes.sum() / (examples * len(sizes)))
    stated = float(rates.mean())
    side: Side = "less private" if held > stated else "side unknown"
    shared = poisson_batches.shared_share(seen)
    if held < stated and shared is not None and not poisson_batches.check(seen):
        side = "safer"
    text = f"batches hold {held:.3g} of the data; the accountant was told {stated:.3g}"
    return [Finding(NAME, text, side, number=held, limit=stated)]


def total_p(total: int, rates: NDArray[np.float64], examples: int) -> float:
    """The two-sided p-value of the number of examples in all batches."""
    mean = examples * rates.sum()
    variance = (examples * rates * (1 - rates)).sum()
    if variance <= 0:
        return float(total == round(mean))
    third = (examples * rates * (1 - rates) * (1 - 2 * rates)).sum()
    return float(binomial_p(total, mean, variance, third))
