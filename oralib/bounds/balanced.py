"""A bound for coins that balance: exactly half of the elements were included.

Such coins depend on each other, so the other bounds do not hold. The proof flips the coins of right
guesses one after the other, those guessed "included" and those guessed "left out" in proportion to
their numbers, and each flip changes the size of the included set by one.
"""

from functools import lru_cache
from math import inf, log

import numpy as np
import scipy
from numpy.typing import NDArray

from oralib.bounds._arguments import for_distinct_rows, one_by_one
from oralib.ground.solve import largest_passing
from oralib.ground.types import Array

#: Larger terms than exp(600) would overflow; none of them is ever the least.
_LARGEST_LOG = 600.0
#: No bound is larger than this; a count that would allow one has more guesses than a double can.
LARGEST = 100.0


def balanced_p_value(
    v: int, r: int, n: int, epsilon: float, delta: float | tuple[float, float], *, r_in: int
) -> float:
    """An upper limit on P[v or more of r guesses are right], where r_in say "included".

    It holds for (ε, δ)-DP for adding or removing one element, if exactly half of n are included,
    both kinds of guesses are fixed in number before the audit, and there is no feedback. Of two
    numbers δ the first is for "in" against "out", the second for the other direction.

    >>> round(balanced_p_value(75, 100, 1000, 0.5, 1e-5, r_in=50), 6)
    0.032205
    """
    v = min(v, min(r_in, n // 2) + min(r - r_in, n // 2))  # more cannot be right
    if v == 0:
        return 1.0
    log_main, log_leak, side = _flips(v, r, n, r_in)
    t = np.arange(log_main.size)
    main, leak = t * epsilon + log_main, t[:-1] * epsilon + log_leak
    deltas = np.broadcast_to(delta, 2)[side]  # of an element that is in, or out, before its flip
    leaks = np.cumsum(np.append(0.0, deltas * np.exp(np.minimum(leak, _LARGEST_LOG))))
    return float(min(1.0, (np.exp(np.minimum(main, _LARGEST_LOG)) + leaks).min()))


def balanced_bounds(
    v: Array, r: Array, n: int, r_in: int, delta: float, beta: float
) -> NDArray[np.float64]:
    """For each count the largest ε whose :func:`balanced_p_value` is at most β, or 0."""

    @one_by_one
    def bound(v: int, r: int) -> float:
        def excess(epsilon: float) -> float:
            p_value = balanced_p_value(v, r, n, epsilon, delta, r_in=r_in)
            return log(p_value / beta) + 1e-12 if p_value else -inf

        return largest_passing(excess, 0.0, LARGEST, guess=1.0, precision=1e-13)

    return for_distinct_rows(bound, v, r)


@lru_cache(maxsize=64)
def _flips(v: int, r: int, n: int, r_in: int) -> tuple[Array, Array, NDArray[np.int64]]:
    """Logarithms, up to ε, of the main term after t flips and of the leak of each flip.

    Then for each flip whether the guess was "included" (0) or "left out" (1).

    Right guesses are flipped in an order that does not depend on how many of either kind are right.
    With a right "included" and b right "left out", a + b = v, a flip of one of x right guesses of
    R of its kind costs e^ε (R - x + 1) / x. The worst a counts, at every t.
    """
    sizes = np.array([r_in, r - r_in])
    most_right = np.minimum(sizes, n // 2)
    a = np.arange(max(0, v - most_right[1]), min(most_right[0], v) + 1)
    right = [a, v - a]
    most = [int(count.min()) for count in right]  # flips of either kind that are always possible
    flipped, cost, included = [0, 0], np.zeros(a.size), n // 2
    main: list[float] = [0.0]
    leak: list[float] = []
    sides: list[int] = []
    while True:
        side = int(flipped[0] * sizes[1] > flipped[1] * sizes[0])  # in proportion to the sizes
        if flipped[side] >= most[side]:
            return np.array(main), np.array(leak), np.array(sides, dtype=np.int64)
        x = right[side] - flipped[side]
        exposed = n - included if side else included
        leak.append(np.log(exposed) + (cost - np.log(x)).max() + _log_choose(n, included))
        cost = cost + np.log((sizes[side] - x + 1) / x)
        sides.append(side)
        flipped[side] += 1
        included += 1 if side else -1
        main.append(cost.max() + _log_choose(n, included))


def _log_choose(n: int, k: int) -> float:
    """log of C(n, k) / C(n, n / 2)."""
    terms = scipy.special.gammaln([n // 2 + 1, n // 2 + 1, k + 1, n - k + 1])
    return float(terms[0] + terms[1] - terms[2] - terms[3])
