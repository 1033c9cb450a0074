"""Binomial probabilities and tails to full relative precision, for counts up to 10^9.

The success probability is given by its log-odds ε, q = p(ε), so that q and 1 - q are both exact.
"""

from math import exp, floor, inf, log, log1p, pi, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oralib.ground.jit import formula, jit
from oralib.ground.types import Array

__all__ = ["best_window", "deviance", "log_pmf", "log_pmfs", "odds", "pmf", "tail", "tail_and_pmf"]
__all__ += ["tail_over_pmf"]

_HALF_LOG_TWO_PI = 0.5 * log(2 * pi)


def log_pmfs(k: ArrayLike, r: ArrayLike, q: ArrayLike) -> NDArray[np.float64]:
    """Return log P[Bin(r, q) = k] for arrays that broadcast together; nan where r is negative."""
    k = np.asarray(k, dtype=np.int64)
    r = np.asarray(r, dtype=np.int64)
    k, r, q = np.broadcast_arrays(k, r, np.asarray(q, dtype=np.float64))
    flat = _log_pmf_loop(k.flatten(), r.flatten(), q.flatten())
    return flat.reshape(k.shape)


@formula
def odds(epsilon: float) -> tuple[float, float]:
    """Return (q, 1 - q) for the log-odds ε, each to full relative precision."""
    if epsilon >= 0:
        small = exp(-epsilon)
        return 1 / (1 + small), small / (1 + small)
    small = exp(epsilon)
    return small / (1 + small), 1 / (1 + small)


@formula
def _stirling_error(k: int) -> float:
    """log k! minus Stirling's formula, for k >= 1."""
    if k < 16:
        factorial = 1.0
        for j in range(2, k + 1):
            factorial *= j
        return log(factorial) - (k + 0.5) * log(k) + k - _HALF_LOG_TWO_PI
    k2 = 1.0 * k * k
    return (1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680 - 1 / 1188 / k2) / k2) / k2) / k2) / k


@formula
def deviance(x: float, mean: float) -> float:
    """x log(x / mean) + mean - x without cancellation (Loader, 2000)."""
    gap = x - mean
    if abs(gap) >= 0.1 * (x + mean):
        return x * log(x / mean) + mean - x
    d = gap / (x + mean)
    total = gap * d
    power = 2 * x * d
    j = 1
    while True:
        power *= d * d
        better = total + power / (2 * j + 1)
        if better == total:
            return total
        total = better
        j += 1


@formula
def log_pmf(k: int, r: int, q: float, qc: float) -> float:
    """log P[Bin(r, q) = k] by Loader's saddle-point expansion; qc = 1 - q."""
    if k < 0 or k > r or (q == 0 and k > 0) or (qc == 0 and k < r):
        return -inf
    if r == 0:
        return 0.0
    if k == 0:
        return r * (log1p(-q) if q < 0.5 else log(qc))
    if k == r:
        return r * (log1p(-qc) if qc < 0.5 else log(q))
    errors = _stirling_error(r) - _stirling_error(k) - _stirling_error(r - k)
    at_mean = errors + 0.5 * log(r / (2 * pi * k * (r - k)))
    return at_mean - deviance(k, r * q) - deviance(r - k, r * qc)


@formula
def pmf(k: int, r: int, q: float, qc: float) -> float:
    """P[Bin(r, q) = k]."""
    return exp(log_pmf(k, r, q, qc))


@formula
def tail_over_pmf(k: int, r: int, q: float, qc: float) -> float:
    """P[Bin(r, q) >= k] / P[Bin(r, q) = k] for k above the mean."""
    if r * q * qc < 1e4:
        # Few terms matter, and all are positive: add them up.
        odds_ratio = q / qc
        term = total = 1.0
        for j in range(k, r):
            term *= odds_ratio * (r - j) / (j + 1)
            total += term
            if term < 1e-17 * total:
                break
        return total
    # The continued fraction of the incomplete beta function (Lentz's method) needs far fewer terms.
    a = 1.0 * k
    b = r - k + 1.0
    c = 1.0
    d = (a + 1) / (1 - b + (a + b) * qc)  # 1 / (1 - (a + b) q / (a + 1)), also for q near 1
    value = d
    for m in range(1, r - k + 2):
        # The even and the odd coefficients of the fraction.
        term = m * (b - m) * q / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1 / (1 + term * d)
        c = 1 + term / c
        value *= c * d
        term = -(a + m) * (a + b + m) * q / ((a + 2 * m) * (a + 2 * m + 1))
        d = 1 / (1 + term * d)
        c = 1 + term / c
        value *= c * d
        if abs(c * d - 1) < 1e-16:
            break
    return value * qc


@formula
def tail(k: int, r: int, q: float, qc: float) -> float:
    """P[Bin(r, q) >= k]."""
    if k <= 0:
        return 1.0
    if k > r:
        return 0.0
    if k > r * q:
        return pmf(k, r, q, qc) * tail_over_pmf(k, r, q, qc)
    return 1 - pmf(k - 1, r, q, qc) * tail_over_pmf(r - k + 1, r, qc, q)


@formula
def tail_and_pmf(k: int, r: int, q: float, qc: float) -> tuple[float, float, float]:
    """Return (f, w, f / w) with f = P[Bin(r, q) >= k] and w = P[Bin(r, q) = k], for k >= 1.

    The ratio keeps all its digits even where f and w are too small for a double.
    """
    w = pmf(k, r, q, qc)
    if k > r * q:
        ratio = tail_over_pmf(k, r, q, qc)
        return w * ratio, w, ratio
    f = tail(k, r, q, qc)
    return f, w, f / w if w > 0 else inf


@formula
def best_window(v: int, r: int, q: float, qc: float) -> tuple[int, float]:
    """Return (start, mean) of the window of counts [start, v) with the largest mean probability.

    The mean of pmf(v - 1), pmf(v - 2), ... rises while the next probability exceeds it and falls
    from then on, since the binomial law is unimodal. So the best window starts at the mode or
    below. A short window is added up, the start of a long one is found by bisection.
    """
    mode = floor((r + 1) * q)
    first = pmf(v - 1, r, q, qc)
    if v - 1 <= mode:
        return v - 1, first
    if first > 1e-290 and v - mode + 4 * sqrt(r * q * qc) < 4096:
        start = v - 1
        term = mass = first
        while start > 0:
            term *= start * qc / ((r - start + 1) * q)
            if term * (v - start) <= mass:
                break
            mass += term
            start -= 1
        return start, mass / (v - start)
    beyond = tail(v, r, q, qc)
    # Invariant: the window from `high` can still gain by growing, the window from `low` cannot. The
    # search is written out, since a kernel that takes a function cannot be cached.
    high = mode + 1
    step = int(sqrt(r * q * qc)) + 1
    low = max(mode + 1 - step, 0)
    while low > 0 and _window_grows(low, v, r, q, qc, beyond):
        high = low
        step *= 2
        low = max(low - step, 0)
    while high - low > 1:
        middle = (low + high) // 2
        if _window_grows(middle, v, r, q, qc, beyond):
            high = middle
        else:
            low = middle
    whole = tail(low, r, q, qc)
    if v - low > 4096 or beyond < 0.5 * whole:
        return low, (whole - beyond) / (v - low)
    # The difference of two close tails loses digits, so add up the terms of the short window. Far
    # above the mode these would be too small for a double, but there the tails are not close.
    term = mass = first
    for j in range(v - 1, low, -1):
        term *= j * qc / ((r - j + 1) * q)
        mass += term
    return low, mass / (v - low)


@formula
def _window_grows(start: int, v: int, r: int, q: float, qc: float, beyond: float) -> bool:
    """Return True if the mean of [start, v) rises with one more count; ``beyond`` is P[>= v]."""
    mean = (tail(start, r, q, qc) - beyond) / (v - start)
    return pmf(start - 1, r, q, qc) > mean


@jit
def _log_pmf_loop(k: Array, r: Array, q: Array) -> Array:
    out = np.full(k.size, np.nan)
    for i in range(k.size):
        if r[i] >= 0:
            out[i] = log_pmf(k[i], r[i], q[i], 1 - q[i])
    return out
