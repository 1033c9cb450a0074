"""Counts of independent scores: an ε that holds if no element depends on the others.

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
from functools import lru_cache, partial
from math import erfc, exp, log, pi, sqrt
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike

from oralib.bounds._arguments import flat_counts, float_if_single, for_distinct_rows, one_by_one
from oralib.bounds.fdp import LARGEST_R, MU_MARGIN, MU_PRECISION, epsilon_of_mu, upper_quantile
from oralib.ground import arguments
from oralib.ground.binomial import tail
from oralib.ground.jit import formula, jit
from oralib.ground.solve import largest_passing
from oralib.ground.types import Array

#: No larger μ is rejected by counts up to the largest r; beyond, guesses would be right for sure.
_LARGEST_MU = 28.0
_POINTS = np.linspace(-8, 8, 41)
_WEIGHTS = np.exp(-0.5 * _POINTS**2) / sqrt(2 * pi) * (_POINTS[1] - _POINTS[0])
_OUTSIDE = erfc(8 / sqrt(2))


def epsilon_lower_bound_independent(
    v: ArrayLike, r: ArrayLike, *, n: ArrayLike, delta: ArrayLike, beta: ArrayLike = 0.05
) -> Any:
    """A lower bound on ε at δ for scores that are independent, with Gaussian trade-off curves.

    With probability at least 1 - β it does not exceed the ε at δ of Gaussian noise on each element
    by itself, if the r most confident of n guesses were made, r fixed in advance. Where elements
    share anything it is *not* guaranteed, even if the mechanism as a whole is exactly μ-GDP; for
    that case use :func:`oralib.epsilon_lower_bound_fdp`, which has the same parameters. At δ = 0 it
    is 0 or inf, and for β below 10^-15 always 0.

    >>> round(epsilon_lower_bound_independent(74, 100, n=1000, delta=1e-5), 5)
    1.19258
    """
    n, (beta, delta) = arguments.integers("n", n), arguments.betas_and_deltas(beta, delta)
    shape, (v, r, n, delta, beta) = flat_counts(v, r, most=LARGEST_R, n=n, delta=delta, beta=beta)
    # That of a single count is computed in plain Python, which needs no compiler.
    p_value = _independent_p_value.plain if v.size == 1 else _independent_p_value
    mu = for_distinct_rows(one_by_one(partial(_largest_mu, p_value)), v, r, n, beta)
    return float_if_single(epsilon_of_mu(mu, delta).reshape(shape))


def _largest_mu(p_value: Callable[..., float], v: int, r: int, n: int, beta: float) -> float:
    """The largest rejected μ, or 0."""
    if 2 * v <= r:
        return 0.0
    shares = _shares_above(r, n)

    def excess(mu: float) -> float:
        """Nearly a straight line."""
        return sqrt(-log(beta)) - sqrt(-log(p_value(v, r, shares, mu)))

    mu = largest_passing(excess, 0.0, _LARGEST_MU, guess=1.0, precision=MU_PRECISION)
    return mu * (1 - MU_MARGIN)


@lru_cache(maxsize=64)
def _shares_above(r: int, n: int) -> Array:
    """C at the points of the rule, each from the nearer end, so that no digits are lost."""
    if r == n:
        return np.ones(_POINTS.size)
    low = scipy.special.betaincinv(r + 1, n - r, scipy.special.ndtr(_POINTS))
    high = scipy.special.betainccinv(r + 1, n - r, scipy.special.ndtr(-_POINTS))
    return np.where(_POINTS < 0, low, high)


@formula
def _right_and_wrong(c: float, mu: float) -> tuple[float, float]:
    """(a, b) with a + b = c, b = g(a): Newton's method in a bracket, for use in a kernel."""
    m = 0.5 * mu
    low = t = max(0.0, m + upper_quantile(c)) if c < 1 else 0.0
    high = m + upper_quantile(0.5 * c)
    while True:
        a, b = 0.5 * erfc((t - m) / sqrt(2)), 0.5 * erfc((t + m) / sqrt(2))
        low, high = (t, high) if a + b > c else (low, t)
        slope = (exp(-0.5 * (t - m) ** 2) + exp(-0.5 * (t + m) ** 2)) / sqrt(2 * pi)
        step = (a + b) / slope * log((a + b) / c)
        if abs(step) < 1e-14 * (1 + t) or high - low < 1e-14 * (1 + t):
            return a, b
        t = t + step if low < t + step < high else 0.5 * (low + high)


@jit
def _independent_p_value(v: int, r: int, shares: Array, mu: float) -> float:
    """E[P[Bin(r, q(C)) >= v]], with C at each of the points in ``shares``."""
    total = _OUTSIDE
    for i in range(shares.size):
        a, b = _right_and_wrong(float(shares[i]), mu)
        total += _WEIGHTS[i] * tail(v, r, a / (a + b), b / (a + b))
    return min(total, 1.0)
