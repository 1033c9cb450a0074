"""The random-r bound for (ε, δ)-DP, for a number of guesses that may depend on the output.

With W ~ Bin(r, p(ε)), f = P[W >= v] and B = v P[W = v] / f, the p-value of v right guesses is

    1 - (1 - f) max(0, 1 - n δ / max(b, log f / log p(ε))),

and 1 for counts with B < b. Any b that is fixed before the audit is valid. It is planned from n δ,
β and what is expected of the audit, never from what came out. The chapter *The exact (ε, δ) bound*
has the proof.
"""

from bisect import bisect_left
from dataclasses import dataclass
from functools import cache, partial
from math import log, log1p, sqrt
from typing import ClassVar

import numpy as np

from oralib.bounds.columns import for_distinct_rows, one_by_one
from oralib.bounds.counts import Counts, Expected
from oralib.bounds.exact import exact_bounds, with_leak
from oralib.bounds.pure import pure_p_value
from oralib.bounds.rule import Audits, Rule, pure_is_proved
from oralib.bounds.search import by_search
from oralib.ground import arguments
from oralib.ground.binomial import log_pmf, odds, tail, tail_and_pmf
from oralib.ground.jit import formula
from oralib.ground.types import Array

__all__ = ["RandomR", "pilot_of", "planned_b"]

#: The number of guesses that b is planned for if nothing is expected.
_USUAL_GUESSES = 60
#: The b to try for a pilot, as shares of the b that is best if exactly its counts come again.
_SHARES = np.geomspace(0.25, 1.1, 12)


@formula
def _p_value(v: int, r: int, epsilon: float, leak: float, least_b: float) -> tuple[float, float]:
    """Return the p-value before it is capped at 1, and its derivative in ε."""
    if v == 0 or leak == 0:
        return pure_p_value(v, r, epsilon, leak, least_b)
    q, qc = odds(epsilon)
    f, w, ratio = tail_and_pmf(v, r, q, qc)
    if v / ratio < least_b:
        return 1.0, 0.0
    log_q = log(q) if q < 0.5 else log1p(-qc)
    # f may be too small for a double, its logarithm never is.
    log_f = log(f) if f > 1e-300 else log_pmf(v, r, q, qc) + log(ratio)
    b = log_f / log_q
    b_slope = qc * (v / ratio) / log_q - log_f * qc / log_q**2
    if not b > least_b:
        b = least_b
        b_slope = 0.0
    return with_leak(f, v * w * qc, leak, b, b_slope)


_bounds, _p_values = by_search(_p_value)


@dataclass(frozen=True)
class RandomR(Rule):
    """The random-r bound for (ε, δ)-DP, valid also if the number of guesses depends on the output.

    It is proved for audits without feedback, or with one-way feedback: whatever number of guesses
    the output calls for, its leak costs at least b. For δ = 0 it is :class:`oralib.bounds.Pure`.

    Attributes
    ----------
    expected : Counts or int, optional
        The counts of a pilot run, or of trials of a simulation, or just the number of guesses that
        is expected; never the counts of the audit itself. The bound is valid whatever is expected,
        and large if the expectation comes true. By default b is made for 60 guesses, and it is at
        least n δ / (0.6 β) instead of n δ / (0.8 β): larger, in case there are more guesses.

    Examples
    --------
    >>> round(RandomR().lower_bound(160, 210, n=1000, delta=1e-5), 6)
    0.886749
    >>> round(RandomR(expected=268).lower_bound(203, 268, n=20_000, delta=1e-5), 6)
    0.887294
    >>> pilot = Counts(210, 275, n=20_000)
    >>> round(RandomR(pilot).lower_bound(203, 268, n=20_000, delta=1e-5), 6)
    0.892122
    >>> round(RandomR().p_value(75, 100, epsilon=0.5, n=1000, delta=1e-4), 6)
    0.013584
    """

    name: ClassVar[str] = "random-r bound"
    expected: Expected = None

    def __post_init__(self) -> None:
        if self.expected is not None and not isinstance(self.expected, Counts):
            arguments.store(self, expected=arguments.integer("expected", self.expected, 1))

    def proved_for(self, counts: Counts, delta: float) -> bool:
        return pure_is_proved(counts) and (delta == 0 or counts.feedback in ("none", "one-way"))

    def bounds(self, audits: Audits) -> Array:
        return _bounds(audits.v, audits.r, audits.beta, audits.leak, self._planned_b(audits))

    def p_values(self, audits: Audits, epsilon: Array) -> Array:
        return _p_values(audits.v, audits.r, epsilon, audits.leak, self._planned_b(audits))

    def _planned_b(self, audits: Audits) -> Array:
        """Return b for each row; what came out of the audits is not looked at."""
        of_columns = one_by_one(partial(planned_b, expected=self.expected))
        return for_distinct_rows(of_columns, audits.n, audits.planned, audits.beta)


def pilot_of(n: int, expected: Expected) -> tuple[int, int] | int | None:
    """Return the counts (v, r) that are expected of n elements, or only r, or None."""
    if expected is None:
        return None
    if not isinstance(expected, Counts):
        return arguments.integer("expected", expected, 1, max(n, 1))
    share = n / max(expected.n, 1)
    r = max(1, round(share * float(np.mean(expected.r))))
    v = round(share * float(np.mean(expected.v)))
    return min(r, v), r


def planned_b(n: int, leak: float, beta: float, expected: Expected = None) -> float:
    """Return b for counts near those that are expected.

    If only their number is, b is made for half of it, since there may be fewer.
    """
    pilot = pilot_of(n, expected)
    if isinstance(pilot, tuple):
        v, r = pilot
        if v > r / 2:
            return _best_b(v, r, leak, beta)
    else:
        r = min(_USUAL_GUESSES, n) if pilot is None else pilot
    low = leak / beta / (0.6 if pilot is None else 0.8)
    high = leak / beta / 0.1
    return min(max(_b_at_zero(max(r // 2, 1), beta), low), high)


@cache
def _b_at_zero(r: int, beta: float) -> float:
    """Return B at ε = 0 of the least of r coins that are too many right ones at level β."""
    v = bisect_left(range(1, r), True, key=lambda k: tail(k, r, 0.5, 0.5) <= beta) + 1
    return float(v / tail_and_pmf(v, r, 0.5, 0.5)[2])


def _best_b(v: int, r: int, leak: float, beta: float) -> float:
    """Return the b with the largest mean bound for nine counts around the pilot's counts.

    For the very counts of the pilot, B at their exact bound would be best.
    """
    nodes = np.array([-1.0, 0.0, 1.0]) * sqrt(3)  # a Gaussian quadrature
    weights = np.outer([1, 4, 1], [1, 4, 1]).ravel()
    accuracy = (v + 0.5) / (r + 1)
    near_r = np.maximum(np.rint(r + nodes * sqrt(r)), 1).repeat(3)
    spread = np.sqrt(near_r * accuracy * (1 - accuracy))
    near_v = np.clip(np.rint(near_r * accuracy + np.tile(nodes, 3) * spread), 0, near_r)
    counts = (near_v.astype(np.int64), near_r.astype(np.int64), np.full(9, beta), np.full(9, leak))
    pilot = (np.array([v]), np.array([r]), np.array([beta]), np.array([leak]))
    bound = float(exact_bounds(*pilot)[0])
    largest = v / tail_and_pmf(v, r, *odds(bound))[2]

    def mean(b: float) -> float:
        return float(weights @ _bounds(*counts, np.full(9, b)))

    return max((share * largest for share in _SHARES), key=mean)
