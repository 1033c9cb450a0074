"""The steps that the accountant was told of have the ε that the training is said to have.

Formula: the ε of the told noise multipliers, rates and steps at the claim's δ. Limit: 2% above
the claimed ε, as accountants differ.
"""

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from math import inf

import numpy as np
from numpy.typing import NDArray

from oraudit.findings import Finding
from oraudit.records import Seen

__all__ = [
    "MARGIN",
    "MOST_KINDS",
    "NAME",
    "check",
    "epsilon_of",
    "epsilon_of_kinds",
    "told_epsilon",
]

NAME = "claim"

#: The claimed ε may be exceeded by this factor: accountants differ by less.
MARGIN = 1.02

#: With more kinds of steps than this, ε takes too long.
MOST_KINDS = 100


def check(seen: Seen) -> list[Finding]:
    if seen.claim is None:
        return []
    epsilon, delta = seen.claim
    stated = told_epsilon(seen, delta)
    if stated is None or stated <= MARGIN * epsilon:
        return []
    text = f"what the accountant was told is ε = {stated:.3g} at δ = {delta:g}, not {epsilon:g}"
    return [Finding(NAME, text, "less private", number=stated, limit=epsilon)]


def told_epsilon(seen: Seen, delta: float) -> float | None:
    """Return the ε of what the accountant was told; None if it is not known or takes too long."""
    return None if seen.rates is None else epsilon_of(seen.sigmas, seen.rates, delta)


def epsilon_of(
    sigmas: NDArray[np.float64], rates: NDArray[np.float64], delta: float
) -> float | None:
    """Return the ε of steps with these noise multipliers and rates; None if it takes too long."""
    if not len(sigmas):
        return None
    if (sigmas <= 0).any():
        return inf
    steps_of = Counter(zip(sigmas.tolist(), rates.tolist(), strict=True))
    kinds = [(sigma, rate, steps) for (sigma, rate), steps in steps_of.items()]
    return epsilon_of_kinds(kinds, delta)


def epsilon_of_kinds(kinds: Sequence[tuple[float, float, int]], delta: float) -> float | None:
    """Return the ε of steps by kinds (noise multiplier, rate, steps); None if it takes too long."""
    return None if len(kinds) > MOST_KINDS else _epsilon(tuple(sorted(kinds)), delta)


@lru_cache(maxsize=64)
def _epsilon(kinds: tuple[tuple[float, float, int], ...], delta: float) -> float:
    # Imported here: few audits need it, and it takes a second.
    from oralib.dpsgd.accounting import composed_epsilon

    return composed_epsilon(kinds, delta)
