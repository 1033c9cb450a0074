"""The balanced bound, for coins that balance: exactly half of the elements were included.

Such coins depend on each other, so the other bounds do not hold. The proof flips the coins of right
guesses one after the other, those guessed "included" and those guessed "left out" in proportion to
their numbers, and each flip changes the size of the included set by one.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import inf, log
from typing import ClassVar

import numpy as np
import scipy
from numpy.typing import NDArray

from oralib.bounds.columns import for_distinct_rows, one_by_one
from oralib.bounds.counts import Counts, check_half_included, checked_r_in
from oralib.bounds.rule import Audits, Rule
from oralib.ground import arguments
from oralib.ground.solve import largest_passing
from oralib.ground.types import Array

__all__ = ["Balanced"]

#: Terms are capped here, at exp(600), well below overflow; the term of t = 0 is 1, so none of these
#: is the least.
_LARGEST_LOG = 600.0
#: No bound is larger than this; a count that would allow one has more guesses than a double can
#: hold.
LARGEST = 100.0


def _p_value(v: int, r: int, n: int, epsilon: float, d_in: float, d_out: float, r_in: int) -> float:
    """Return an upper limit on P[v or more of r guesses are right], where r_in say "included"."""
    largest_v = min(r_in, n // 2) + min(r - r_in, n // 2)  # more cannot be right
    v = min(v, largest_v)
    if v == 0 or epsilon == inf:
        return 1.0
    log_main, log_leak, side = _flips(v, r, n, r_in)
    t = np.arange(log_main.size)
    main = t * epsilon + log_main
    leak = t[:-1] * epsilon + log_leak
    delta = np.array([d_in, d_out])[side]  # of an element that is in, or out, before its flip
    leaks = np.cumsum(np.append(0.0, delta * np.exp(np.minimum(leak, _LARGEST_LOG))))
    return float(min(1.0, (np.exp(np.minimum(main, _LARGEST_LOG)) + leaks).min()))


def _bound(v: int, r: int, n: int, d_in: float, d_out: float, beta: float, r_in: int) -> float:
    """Return the largest ε whose p-value is at most β, or 0."""

    def excess(epsilon: float) -> float:
        p_value = _p_value(v, r, n, epsilon, d_in, d_out, r_in)
        return log(p_value / beta) + 1e-12 if p_value else -inf

    return largest_passing(excess, 0.0, LARGEST, guess=1.0, precision=1e-13)


_bounds = one_by_one(_bound)
_p_values = one_by_one(_p_value)


@dataclass(frozen=True)
class Balanced(Rule):
    """The balanced bound, for audits in which exactly half of the elements were included.

    It is proved without feedback, if both kinds of guesses, "included" and "left out", were fixed
    in number before the audit: flipping the coin of a right guess leads to a dataset with one
    element more or less, and the ways to get there can be counted. It is for (ε, δ)-DP for adding
    or removing one element.

    Attributes
    ----------
    r_in : int, optional
        The number of guesses that say "included". It is needed for plain numbers; Counts have it.

    Examples
    --------
    >>> counts = Counts(75, 100, n=1000, r_fixed=True, coins="balanced", r_in=50)
    >>> round(Balanced().lower_bound(counts, delta=1e-5), 6)
    0.537102
    >>> round(Balanced(r_in=50).p_value(75, 100, epsilon=0.5, n=1000, delta=1e-5), 6)
    0.032205
    """

    name: ClassVar[str] = "balanced bound"
    needs_n: ClassVar[bool] = True
    r_in: int | None = None

    def __post_init__(self) -> None:
        if self.r_in is not None:
            arguments.store(self, r_in=arguments.integer("r_in", self.r_in))

    def proved_for(self, counts: Counts, delta: float) -> bool:
        if self.r_in not in (None, counts.r_in):
            return False
        return counts.coins == "balanced" and counts.feedback == "none" and counts.r_fixed

    def bounds(self, audits: Audits) -> Array:
        return for_distinct_rows(
            _bounds,
            audits.v,
            audits.r,
            audits.n,
            audits.d_in,
            audits.d_out,
            audits.beta,
            self._r_in(audits),
        )

    def p_values(self, audits: Audits, epsilon: Array) -> Array:
        return for_distinct_rows(
            _p_values,
            audits.v,
            audits.r,
            audits.n,
            epsilon,
            audits.d_in,
            audits.d_out,
            self._r_in(audits),
        )

    def check(self, audits: Audits) -> None:
        if audits.r_in is None:
            check_half_included(audits.n)
            checked_r_in(self.r_in, audits.r.min(initial=arguments.LARGEST_COUNT))

    def _r_in(self, audits: Audits) -> Array:
        r_in = self.r_in if audits.r_in is None else audits.r_in
        return np.full(audits.v.size, r_in, dtype=np.int64)


@lru_cache(maxsize=64)
def _flips(v: int, r: int, n: int, r_in: int) -> tuple[Array, Array, NDArray[np.int64]]:
    """Return ``main`` and ``leak``, logarithms of the terms of the p-value, and each flip's side.

    The main term after t flips is exp(t ε + main[t]), the leak of flip t is δ exp(t ε + leak[t]),
    t = 0, 1, .... The side of a flip is 0 if its guess was "included", and 1 if it was "left out".

    Right guesses are flipped in an order that does not depend on how many of either kind are right.
    Let a of the right guesses say "included", and b = v - a "left out". A flip of one of x right
    guesses of R of its kind costs e^ε (R - x + 1) / x. The value of a with the largest cost counts,
    for each t.
    """
    sizes = np.array([r_in, r - r_in])
    largest_right = np.minimum(sizes, n // 2)
    a = np.arange(max(0, v - largest_right[1]), min(largest_right[0], v) + 1)
    splits = [a, v - a]
    least_right = [int(split.min()) for split in splits]  # of each kind, whatever a is
    flipped = [0, 0]
    cost = np.zeros(a.size)
    included = n // 2
    main: list[float] = [0.0]
    leak: list[float] = []
    sides: list[int] = []
    while True:
        side = int(flipped[0] * sizes[1] > flipped[1] * sizes[0])  # in proportion to the sizes
        if flipped[side] >= least_right[side]:
            return np.array(main), np.array(leak), np.array(sides, dtype=np.int64)
        x = splits[side] - flipped[side]
        exposed = n - included if side else included
        leak.append(
            np.log(exposed) + (cost - np.log(x)).max() + _log_choose_over_central(n, included)
        )
        cost = cost + np.log((sizes[side] - x + 1) / x)
        sides.append(side)
        flipped[side] += 1
        included += 1 if side else -1
        main.append(cost.max() + _log_choose_over_central(n, included))


def _log_choose_over_central(n: int, k: int) -> float:
    """Return log of C(n, k) / C(n, n / 2)."""
    terms = scipy.special.gammaln([n // 2 + 1, n // 2 + 1, k + 1, n - k + 1])
    return float(terms[0] + terms[1] - terms[2] - terms[3])
