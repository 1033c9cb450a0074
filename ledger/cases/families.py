"""Mechanisms of any size, with exposed elements that can be counted without a table."""

from dataclasses import dataclass
from functools import cache
from math import inf
from typing import Any

import numpy as np
from scipy import stats

from ledger.machine.findings import Function
from oralib import channel, p
from oralib.mechanisms import Count

__all__ = ["SIZE", "Family", "families"]

#: The number of elements that stands for the limit: even its logarithm is large.
SIZE = 2**20_000


@cache
def families() -> dict[str, "Family"]:
    """The families by name."""
    members = {
        "LRR_1": Family(1.0, 1.0, 1.0, lambda n: (1, _capped(n), 1.0)),
        "XOR": Family(inf, inf, 0.0, lambda n: (1, 1, 0.0)),
        "one worst, all others at 98%": Family(1.0, 1.0, 0.98, lambda n: (1, 1, 1.0)),
        "one worst, all others at 99%": Family(1.0, 1.0, 0.99, lambda n: (1, 1, 1.0)),
        "log n named": Family(inf, inf, 0.0, lambda n: (1, n.bit_length() - 1, 1.0)),
    }
    for q in (0.25, 0.98, 1 - 1e-9):
        members[f"AON, p = {q}"] = Family(inf, inf, 0.0, lambda n, q=q: (_capped(n), 1, q))
    for number in (1, 2, 30, 500, 9999):
        members[f"{number} named"] = Family(
            inf, inf, 0.0, lambda n, number=number: (1, number, 1.0)
        )
    for s in (2, 4):
        members[f"CIS_{s}"] = Family(
            inf, inf, 0.0, lambda n, s=s: (s, _capped(n // s), _exposure_of_a_set(s))
        )
    return members


def _capped(n: int) -> int:
    """n, but at most 10^15: more elements make no difference."""
    return min(n, 10**15)


@cache
def _exposure_of_a_set(s: int) -> float:
    """The probability that a count of s elements gives all of them away."""
    table = channel(Count(), s)
    return float(table.probability[np.isinf(table.privacy_loss).all(axis=1)].sum())


@dataclass(frozen=True)
class Family:
    """A mechanism for each n: groups of elements are exposed independently, all others are not."""

    epsilon: float
    #: The losses of exposed and of other elements.
    exposed: float
    rest: float
    #: From n to the size of a group, the number of groups, and the chance of exposure.
    groups: Function

    def at_least(self, n: int, loss: float, number: Any) -> Any:
        """P[at least ``number`` elements have at least this loss]."""
        if loss <= self.rest:
            return np.where(np.asarray(number) <= n, 1.0, 0.0)
        if loss > self.exposed:
            return np.where(np.asarray(number) <= 0, 1.0, 0.0)
        size, groups, chance_of_one = self.groups(n)
        return stats.binom.sf(np.ceil(np.asarray(number) / size) - 1, groups, chance_of_one)

    def mean_number(self, n: int, loss: float) -> float:
        """The mean number of elements with at least this loss."""
        if loss <= self.rest:
            return float(_capped(n))
        size, groups, chance_of_one = self.groups(n)
        return size * groups * chance_of_one if loss <= self.exposed else 0.0

    def efficacy(self, n: int, k: int) -> float:
        """E*_k: the k most exposed elements are guessed (Theorem 5.2)."""
        share = self.at_least(n, self.exposed, np.arange(1, k + 1)).sum() / k
        return float(share * p(self.exposed) + (1 - share) * p(self.rest))
