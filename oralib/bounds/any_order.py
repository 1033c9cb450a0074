"""The any-order bound for (ε, δ)-DP, for guessers with full feedback and a number fixed in advance.

The p-value is f + n δ c: f is the probability of v or more right of r guesses without a leak, and
:mod:`oralib.bounds.crossing` finds c. For v = 1 and v = r it equals the exact p-value.
"""

from dataclasses import dataclass
from math import ceil, sqrt
from typing import ClassVar

import numpy as np

from oralib.bounds.counts import Counts
from oralib.bounds.crossing import LARGEST_WALK, crossing_constants
from oralib.bounds.exact import exact_p_value
from oralib.bounds.rule import Audits, Rule, pure_is_proved
from oralib.bounds.search import by_search
from oralib.ground import arguments
from oralib.ground.binomial import odds
from oralib.ground.jit import formula, jit
from oralib.ground.types import Array

__all__ = ["AnyOrder", "any_order_p_value"]


@formula
def _p_value(v: int, r: int, epsilon: float, leak: float, least_b: float) -> tuple[float, float]:
    """Return the p-value before it is capped at 1, and its derivative in ε."""
    if leak == 0 or v <= 1 or v == r:
        return exact_p_value(v, r, epsilon, leak, least_b)
    step = 1e-6
    value = any_order_p_value(v, r, epsilon, leak)
    return value, (any_order_p_value(v, r, epsilon + step, leak) - value) / step


@jit
def any_order_p_value(v: int, r: int, epsilon: float, leak: float) -> float:
    """Return f + c n δ for v or more right of r guesses in any order, 1 < v < r.

    A walk that is far ahead of the line counts as having met it.
    """
    q, qc = odds(epsilon)
    line = np.empty(r + 1, dtype=np.int64)
    for t in range(r + 1):
        line[t] = min(v, max(1, ceil(v - q * (r - t) + 8 * sqrt(r * q * qc) + 50)))
    f, c = crossing_constants(line, epsilon)
    return f + c * leak


_bounds, _p_values = by_search(_p_value)


@dataclass(frozen=True)
class AnyOrder(Rule):
    """The any-order bound for (ε, δ)-DP, for a number of guesses fixed in advance.

    It is proved for all feedback except that of all other coins, since it allows for the best use
    of a leak after any history. There are at most 200,000 guesses. For δ = 0 it is
    :class:`oralib.bounds.Pure`.

    >>> round(AnyOrder().lower_bound(75, 100, n=1000, delta=1e-4), 6)
    0.690088
    >>> round(AnyOrder().p_value(75, 100, epsilon=0.5, n=1000, delta=1e-4), 6)
    0.008533
    """

    name: ClassVar[str] = "any-order bound"

    def proved_for(self, counts: Counts, delta: float) -> bool:
        return pure_is_proved(counts) and (delta == 0 or counts.r_fixed)

    def bounds(self, audits: Audits) -> Array:
        return _bounds(audits.v, audits.r, audits.beta, audits.leak)

    def p_values(self, audits: Audits, epsilon: Array) -> Array:
        return _p_values(audits.v, audits.r, epsilon, audits.leak)

    def check(self, audits: Audits) -> None:
        if (audits.leak > 0).any():
            arguments.integers("r", audits.r, 0, LARGEST_WALK)
