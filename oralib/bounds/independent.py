"""The order-statistics bound, for scores that are independent: no element depends on the others.

All elements behave alike and independently, with the trade-off curve of μ-GDP, and the r most
confident guesses are made. Let C be the probability that a confidence exceeds the highest one
without a guess: it is Beta(r + 1, n - r), or 1 if all are guessed. Given C, a guess is right with
probability at most q(C) = a / C, where a = P[N > t - μ/2], b = P[N > t + μ/2], a + b = C, N
standard normal. The p-value of v right guesses is E[P[Bin(r, q(C)) >= v]]; the bound is the ε at
δ of the largest μ whose p-value is at most β. The chapter *What an assumption buys* has the proof.

The mean over C is computed by the trapezoidal rule, over z, with C at its quantile Φ(z).

See Xiang, Wang, Xiao, Tian, Wang, "Tight Privacy Audit in One Run", 2025. The code is our own.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from math import erfc, exp, log, pi, sqrt
from typing import ClassVar

import numpy as np
import scipy

from oralib.bounds.columns import for_distinct_rows, one_by_one
from oralib.bounds.counts import Counts
from oralib.bounds.gaussian import (
    LARGEST_R,
    MU_MARGIN,
    MU_PRECISION,
    epsilon_of_mu,
    mu_of_epsilon,
    upper_quantile,
)
from oralib.bounds.rule import Audits, Rule
from oralib.ground import arguments
from oralib.ground.binomial import tail
from oralib.ground.jit import formula, jit
from oralib.ground.solve import largest_passing
from oralib.ground.types import Array

__all__ = ["Independent"]

#: No larger μ is rejected by counts up to the largest r; beyond, guesses would be right for sure.
_LARGEST_MU = 28.0
#: The points of the trapezoidal rule, their weights, and the probability beyond them.
_POINTS = np.linspace(-8, 8, 41)
_WEIGHTS = np.exp(-0.5 * _POINTS**2) / sqrt(2 * pi) * (_POINTS[1] - _POINTS[0])
_OUTSIDE = erfc(8 / sqrt(2))


def _largest_mu(p_value: Callable[..., float], v: int, r: int, n: int, beta: float) -> float:
    """Return the largest rejected μ, or 0."""
    if 2 * v <= r:
        return 0.0
    shares = _shares_above(r, n)

    def excess(mu: float) -> float:
        """Return a number that is nearly a straight line in μ."""
        return sqrt(-log(beta)) - sqrt(-log(p_value(v, r, shares, mu)))

    mu = largest_passing(excess, 0.0, _LARGEST_MU, guess=1.0, precision=MU_PRECISION)
    return mu * (1 - MU_MARGIN)


@lru_cache(maxsize=64)
def _shares_above(r: int, n: int) -> Array:
    """Return C at the points, each from the nearer end, so that no digits are lost."""
    if r == n:
        return np.ones(_POINTS.size)
    low = scipy.special.betaincinv(r + 1, n - r, scipy.special.ndtr(_POINTS))
    high = scipy.special.betainccinv(r + 1, n - r, scipy.special.ndtr(-_POINTS))
    return np.where(_POINTS < 0, low, high)


@formula
def _right_and_wrong(c: float, mu: float) -> tuple[float, float]:
    """Return (a, b) with a + b = c and b = g(a), by Newton's method in a bracket."""
    m = 0.5 * mu
    low = max(0.0, m + upper_quantile(c)) if c < 1 else 0.0
    high = m + upper_quantile(0.5 * c)
    t = low
    while True:
        a = 0.5 * erfc((t - m) / sqrt(2))
        b = 0.5 * erfc((t + m) / sqrt(2))
        if a + b > c:
            low = t
        else:
            high = t
        slope = (exp(-0.5 * (t - m) ** 2) + exp(-0.5 * (t + m) ** 2)) / sqrt(2 * pi)
        step = (a + b) / slope * log((a + b) / c)
        if abs(step) < 1e-14 * (1 + t) or high - low < 1e-14 * (1 + t):
            return a, b
        t = t + step if low < t + step < high else 0.5 * (low + high)


@jit
def _independent_p_value(v: int, r: int, shares: Array, mu: float) -> float:
    """Return E[P[Bin(r, q(C)) >= v]], with C at each of the points in ``shares``."""
    total = _OUTSIDE
    for i in range(shares.size):
        a, b = _right_and_wrong(float(shares[i]), mu)
        total += _WEIGHTS[i] * tail(v, r, a / (a + b), b / (a + b))
    return min(total, 1.0)


def _kernel(v: Array) -> Callable[..., float]:
    """Return the p-value's function, which for a single count needs no compiler."""
    return _independent_p_value.plain if v.size == 1 else _independent_p_value


def _p_value(kernel: Callable[..., float], v: int, r: int, n: int, mu: float) -> float:
    """Return the p-value of μ-GDP."""
    if v == 0 or mu > _LARGEST_MU:
        return 1.0
    return float(kernel(v, r, _shares_above(r, n), mu))


@dataclass(frozen=True)
class Independent(Rule):
    """The order-statistics bound, for scores that are independent, with Gaussian trade-off curves.

    It is proved for Gaussian noise on each element by itself, if the r most confident of n guesses
    were made, r fixed in advance, without feedback: these are the elements above an order statistic
    of independent confidences. Where elements share anything it is *not* guaranteed, even if the
    mechanism as a whole is exactly μ-GDP; for that case there is :class:`oralib.bounds.Gaussian`.
    At δ = 0 it is 0 or inf, and for β below 10^-15 always 0. There are at most 10^8 guesses.

    >>> round(Independent().lower_bound(74, 100, n=1000, delta=1e-5), 5)
    1.19258
    >>> round(Independent().p_value(74, 100, epsilon=1.1, n=1000, delta=1e-5), 5)
    0.03114
    """

    name: ClassVar[str] = "order-statistics bound"
    needs_n: ClassVar[bool] = True

    def proved_for(self, counts: Counts, delta: float) -> bool:
        return counts.r_fixed and counts.feedback == "none" and counts.coins == "independent"

    def bounds(self, audits: Audits) -> Array:
        largest_mus = one_by_one(partial(_largest_mu, _kernel(audits.v)))
        mu = for_distinct_rows(largest_mus, audits.v, audits.r, audits.n, audits.beta)
        return epsilon_of_mu(mu, audits.d_in)

    def p_values(self, audits: Audits, epsilon: Array) -> Array:
        mu = for_distinct_rows(mu_of_epsilon, epsilon, audits.d_in)
        p_values = one_by_one(partial(_p_value, _kernel(audits.v)))
        return for_distinct_rows(p_values, audits.v, audits.r, audits.n, mu)

    def check(self, audits: Audits) -> None:
        arguments.integers("r", audits.r, 0, LARGEST_R)
