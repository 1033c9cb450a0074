"""The limits of bounds and estimates as the number of independent guesses grows."""

from collections.abc import Sequence
from functools import cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from ledger.cases.counts import chance
from ledger.machine.comparisons import tends
from ledger.machine.findings import Finding, all_of
from oralib import Channel
from oralib.bounds import epsilon_estimate, epsilon_lower_bound

__all__ = ["bounds_tend", "chance_above", "likely_counts", "success_of_all"]


def success_of_all(table: Channel) -> float:
    """The probability that the better guess of a table's only element is right."""
    assert table.n == 1
    return table.optimal_efficacy()


def likely_counts(success: float, r: int) -> NDArray[np.int64]:
    """The ends of a range that has V ~ Bin(r, success) with probability above 0.999, r large."""
    spread = 3.5 * np.sqrt(r * success * (1 - success))
    return np.clip(np.round(r * success + np.array([-spread, spread])), 0, r).astype(np.int64)


@cache
def _likely_bounds(success: float, r: int, beta: float) -> tuple[float, float]:
    """The ends of a range that has the bound of r guesses with probability above 0.999."""
    low, high = epsilon_lower_bound(likely_counts(success, r), r, beta=beta)
    return float(low), float(high)


def bounds_tend(
    success: float, limit: float, betas: Sequence[float] = (0.01, 0.05, 0.5)
) -> Finding:
    """Find whether the bounds of more and more guesses tend to a limit in probability, at every β.

    Each guess is right with probability ``success``. Bounds are computed for up to a million
    million guesses: there all but one in a thousand are within 1e-4 of the limit.
    """
    findings = []
    for beta, end in product(betas, (0, 1)):
        bounds = [_likely_bounds(success, r, beta)[end] for r in (10**6, 10**9, 10**12)]
        findings.append(tends(bounds, limit, 1e-4))
    return all_of(*findings)


def chance_above(success: float, threshold: float, r: int) -> float:
    """P[estimate of r guesses > threshold], each of them right with probability ``success``."""
    return chance(success, r, lambda v: epsilon_estimate(v, r) > threshold)
