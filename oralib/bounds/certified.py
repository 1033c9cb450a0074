"""The certified anytime bound for (ε, δ)-DP: it holds whenever guessing stops.

Some right guesses are discounted, and β is made a little smaller. The anytime bound of the
remaining guesses is rounded down to a multiple of 0.001. It is reported only if it has a
certificate: right guesses of an (ε, δ)-DP mechanism meet the line of this bound with probability at
most β. Otherwise the next smaller multiple is tried. The chapter *Making adaptive auditing valid*
has the proof.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, floor
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from oralib.bounds.anytime import (
    anytime_bounds,
    anytime_is_proved,
    anytime_line,
    significance,
)
from oralib.bounds.columns import for_distinct_rows, one_by_one
from oralib.bounds.counts import Counts
from oralib.bounds.crossing import LARGEST_WALK, crossing_constants
from oralib.bounds.rule import Audits, Rule
from oralib.ground import arguments
from oralib.ground.types import Array

__all__ = ["Certified", "certificate", "discounts"]


@dataclass(frozen=True)
class Certified(Rule):
    """The certified anytime bound for (ε, δ)-DP, whenever guessing stops.

    It is proved for any feedback but that of all other coins, and for any reason to stop: for each
    bound that is reported, a computation has checked how often it can fail. It is a multiple of
    0.001, and there are at most 200,000 elements. For δ = 0 it is :class:`oralib.bounds.Anytime`.

    >>> Certified().lower_bound(731, 1000, n=1000, delta=1e-5)
    0.772
    >>> round(Certified().p_value(731, 1000, epsilon=0.7, n=1000, delta=1e-5), 6)
    0.001111
    """

    name: ClassVar[str] = "certified anytime bound"

    def proved_for(self, counts: Counts, delta: float) -> bool:
        return anytime_is_proved(counts)

    def bounds(self, audits: Audits) -> Array:
        leaks = audits.leak > 0
        level = _levels(audits.leak, audits.beta)
        discount = for_distinct_rows(_discounts, audits.r, audits.leak, audits.beta)
        bounds = anytime_bounds(np.maximum(audits.v - discount, 0), audits.r, level)
        if leaks.any():
            columns = (audits.n[leaks], audits.leak[leaks], audits.beta[leaks])
            bounds[leaks] = for_distinct_rows(_certified, bounds[leaks], *columns)
        return bounds

    def p_values(self, audits: Audits, epsilon: Array) -> Array:
        columns = (audits.v, audits.r, audits.n, epsilon, audits.leak, audits.planned, audits.beta)
        return for_distinct_rows(_p_values, *columns)

    def check(self, audits: Audits) -> None:
        if (audits.leak > 0).any():
            arguments.integers("n", audits.n, 0, LARGEST_WALK)


@one_by_one
def _certified(bound: float, n: int, leak: float, beta: float) -> float:
    """Return the largest multiple of 0.001, at most ``bound``, that has a certificate."""

    def has_certificate(first: int, last: int) -> bool:
        f, c = certificate(first, n, leak, beta, last)
        return f + c * leak <= beta

    for thousandths in range(floor(bound * 1000), 0, -1):
        first = thousandths // 10 * 10
        if has_certificate(first, first + 9) or has_certificate(thousandths, thousandths):
            return thousandths / 1000
    return 0.0


@lru_cache(maxsize=4096)
def certificate(
    first: int, n: int, leak: float, beta: float, last: int | None = None
) -> tuple[float, float]:
    """Return (f, c) for n guesses and the line on which the bound reaches ``first`` thousandths.

    They are for mechanisms of a privacy level up to ``last`` thousandths. As the lines of larger
    bounds are not below this one, all bounds from ``first`` to ``last`` share the certificate.
    """
    line = anytime_line(n, first / 1000 - 1e-9, _level(leak, beta))
    line += discounts(np.arange(n + 1), leak, beta)
    return crossing_constants(line, (first if last is None else last) / 1000)


@one_by_one
def _p_values(
    v: int, r: int, n: int, epsilon: float, leak: float, planned: float, beta: float
) -> float:
    """Return the p-value of counts, with as many right guesses taken away as for a bound.

    What is left is significant at some level, and so are the counts on a line. The p-value is the
    limit on how often right guesses meet that line, or for δ = 0 the level itself, which is at
    least that.
    """
    steps = np.arange(n + 1)
    discount = discounts(steps, planned, beta) if leak > 0 else np.zeros_like(steps)
    level = significance(v - int(discount[r]), r, epsilon)
    if level >= 1 or leak == 0:
        return level
    # A little more, so that rounding does not put these counts below their own line.
    line = anytime_line(n, epsilon, level * (1 + 1e-9)) + discount
    f, c = crossing_constants(line, epsilon)
    return min(1.0, f + c * leak)


def discounts(steps: Array, leak: float, beta: float) -> NDArray[np.int64]:
    """Return the right guesses to take away after each number of guesses.

    Any numbers are valid that do not rise; these lost least in a numerical search.
    """
    ratio = min(leak / beta, 1e6)  # by which all guesses are taken away
    last = max(1, ceil(ratio**2 / 5 + 10 * ratio))
    first = max(0, ceil(ratio / 2 - 0.25))
    return -(-first * np.maximum(last - steps, 0) // last)


@one_by_one
def _discounts(r: int, leak: float, beta: float) -> float:
    return int(discounts(np.array(r), leak, beta))


def _level(leak: float, beta: float) -> float:
    """Return the part of β for the anytime bound; the rest pays for leaks."""
    return beta - min(leak / 4, beta / 20)


_levels = one_by_one(_level)
