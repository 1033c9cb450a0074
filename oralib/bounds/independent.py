"""Counts of independent scores: an ε that holds if no element depends on the others.

**What is assumed.** All elements behave alike and independently: a coin, a guess, a confidence, and
a trade-off curve of a known family, here that of μ-GDP. So an event of probability x under one
value of the coin has probability at least g(x) = Φ(Φ^-1(x) - μ) under the other. The r most
confident guesses are taken.

**What follows.** Let C be the probability of a confidence above the highest one that is not taken:
C ~ Beta(r + 1, n - r), as an order statistic of n uniform numbers, or C = 1 if all are taken. Given
C, taken guesses are independent, each right with a probability a and wrong with b, where a + b = C
and b >= g(a). So a guess is right with a probability of at most q(C) = a / C where a + g(a) = C;
with Gaussian noise, for which a = P[N > t - μ/2] and b = P[N > t + μ/2] at a threshold t, it is
exactly q(C). The p-value of v right guesses is E[P[Bin(r, q(C)) >= v]]. It rises with μ, and the
bound is the ε at δ of the largest μ whose p-value is at most β.

The mean over C is computed by the trapezoidal rule, over z, with C at its quantile Φ(z).

See Also
--------
Xiang, Wang, Xiao, Tian, Wang, "Tight Privacy Audit in One Run", 2025. The code is our own.
"""

from math import erfc, exp, inf, log, pi, sqrt
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike

from oralib import _check
from oralib._binomial import tail
from oralib._jit import jit
from oralib._types import Array
from oralib.bounds._arguments import distinct_rows, flat_counts, float_if_single
from oralib.bounds.fdp import LARGEST_R, MU_MARGIN, epsilon_of_mu, upper_quantile

__all__ = ["epsilon_lower_bound_independent"]

_POINTS = np.linspace(-8, 8, 41)
_WEIGHTS = np.exp(-0.5 * _POINTS**2) / sqrt(2 * pi) * (_POINTS[1] - _POINTS[0])
_OUTSIDE = erfc(8 / sqrt(2))


def epsilon_lower_bound_independent(
    v: ArrayLike, r: ArrayLike, *, n: ArrayLike, delta: ArrayLike, beta: ArrayLike = 0.05
) -> Any:
    """A lower bound on ε at δ for scores that are independent, with Gaussian trade-off curves.

    With probability 1 - β it does not exceed the ε at δ of Gaussian noise on each element by
    itself, if the r most confident of n guesses were taken, r fixed in advance. Where elements
    share anything it is *not* guaranteed, even if the mechanism as a whole is exactly μ-GDP; for
    that case use :func:`oralib.epsilon_lower_bound_fdp`. At δ = 0 it is 0 or inf.

    Parameters
    ----------
    v, r : int or array
        How many guesses were right, and how many were taken, 0 <= v <= r <= 10^8.
    n : int or array
        The number of elements, taken and abstained, at least r.
    delta : float or array
        The δ of (ε, δ)-DP, in [0, 1].
    beta : float or array
        How often the bound may fail, in (0, 1); below 10^-15 it is always 0.

    Examples
    --------
    >>> round(epsilon_lower_bound_independent(74, 100, n=1000, delta=1e-5), 5)
    1.19258
    """
    n, (beta, delta) = _check.integers("n", n), _check.betas_and_deltas(beta, delta)
    shape, (v, r, n, delta, beta) = flat_counts(v, r, most=LARGEST_R, n=n, delta=delta, beta=beta)
    mu = np.zeros(v.size)
    for taken, elements in {*zip(r, n, strict=True)}:
        here = np.flatnonzero((r == taken) & (n == elements))
        first, number = distinct_rows(v[here], beta[here])
        distinct = here[first]
        shares = _shares_above(taken, elements)
        mu[here] = _largest_mus(v[distinct], taken, shares, beta[distinct])[number]
    return float_if_single(epsilon_of_mu(mu, delta).reshape(shape))


def _shares_above(r: int, n: int) -> Array:
    """C at the points of the rule, each from the nearer end, so that no digits are lost."""
    if r == n:
        return np.ones(_POINTS.size)
    low = scipy.special.betaincinv(r + 1, n - r, scipy.special.ndtr(_POINTS))
    high = scipy.special.betainccinv(r + 1, n - r, scipy.special.ndtr(-_POINTS))
    return np.where(_POINTS < 0, low, high)


@jit
def _right_and_wrong(c: float, mu: float) -> tuple[float, float]:
    """(a, b) with a + b = c, b = g(a): Newton's method for the threshold t, in a bracket."""
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
        a, b = _right_and_wrong(shares[i], mu)
        total += _WEIGHTS[i] * tail(v, r, a / (a + b), b / (a + b))
    return min(total, 1.0)


@jit
def _largest_mus(v: Array, r: int, shares: Array, beta: Array) -> Array:
    """The largest rejected μ, or 0: the secant method on sqrt(-log p), in a bracket.

    It is written out, since a kernel that takes a function cannot be cached.
    """
    out = np.zeros(v.size)
    for i in range(v.size):
        if 2 * v[i] <= r or _independent_p_value(v[i], r, shares, 0.0) > beta[i]:
            continue
        low, high, x, last, last_height = 0.0, 60.0, 1.0, inf, inf
        while min(high - low, abs(x - last)) > 0.1 * MU_MARGIN * high:
            p = _independent_p_value(v[i], r, shares, x)
            low, high = (x, high) if p <= beta[i] else (low, x)
            height = sqrt(-log(p)) - sqrt(-log(beta[i]))
            step = -height * (x - last) / (height - last_height) if height != last_height else inf
            last, last_height = x, height
            x = x + step if low < x + step < high else 0.5 * (low + high)
        out[i] = x * (1 - MU_MARGIN)  # a rounding error must not lead to an overclaim
    return out
