"""Log-likelihoods of a noisy count, in tables that guessers interpolate.

A guesser may use any function of the outputs, so interpolation costs no validity, and hardly power.
"""

from functools import lru_cache
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from oralib.ground.binomial import log_pmf
from oralib.ground.jit import jit
from oralib.ground.types import Array

__all__ = ["POINTS", "interpolate", "log_mixture", "log_weights", "ratio_table", "window"]

#: The points of a table.
POINTS = 1024

#: Counts of a smaller log-probability, about 1e-18, are left out of a table.
LEAST_LOG_PMF = -42.0


@jit
def window(r: int, q: float, least: float) -> tuple[int, int]:
    """Return the first and last count of Bin(r, q) with a log-probability above ``least``."""
    if q == 1:
        return r, r
    first = last = int(r * q)
    while first > 0 and log_pmf(first - 1, r, q, 1 - q) > least:
        first -= 1
    while last < r and log_pmf(last + 1, r, q, 1 - q) > least:
        last += 1
    return first, last


@jit
def log_weights(r: int, q: float) -> tuple[int, Array]:
    """Return the first likely count of Bin(r, q), and log-probabilities from it to the last."""
    first, last = window(r, q, LEAST_LOG_PMF)
    return first, np.array([log_pmf(m, r, q, 1 - q) for m in range(first, last + 1)])


@jit
def log_mixture(y: float, first: int, weight: Array, noise: float) -> float:
    """Return the log-density at y of a count plus normal noise, up to a constant.

    ``weight`` has the log-probabilities of the counts, beginning with ``first``.
    """
    top = -np.inf
    for m in range(weight.size):
        top = max(top, weight[m] - 0.5 * ((y - first - m) / noise) ** 2)
    total = 0.0
    for m in range(weight.size):
        total += np.exp(weight[m] - 0.5 * ((y - first - m) / noise) ** 2 - top)
    return top + np.log(total)


@jit
def interpolate(values: Array, low: float, spacing: float, y: float) -> float:
    """Return a table's value at y, linear between its points and beyond its ends."""
    x = (y - low) / spacing
    entry = min(max(int(x), 0), values.size - 2)
    x -= entry
    return (1 - x) * values[entry] + x * values[entry + 1]


@lru_cache(maxsize=4096)
def ratio_table(
    load: int, sample_rate: float, sigma: float
) -> tuple[float, float, NDArray[np.float64], NDArray[np.float64]]:
    """Tabulate the log-likelihood ratio of a noisy gradient for one of its ``load`` canaries.

    Returns the first point of the table and the spacing of points, the log-likelihood ratios,
    included against excluded, and the log-densities without the canary, up to a constant. Each of
    the other canaries of the coordinate is in the batch with probability sample_rate / 2.
    """
    mean = (load - 1) * sample_rate / 2
    reach = 8 * sqrt(sigma**2 + mean) + 1
    low = mean - reach
    spacing = 2 * reach / (POINTS - 1)
    return low, spacing, *_log_ratios(load, sample_rate, sigma, low, spacing)


@jit
def _log_ratios(
    load: int, sample_rate: float, sigma: float, low: float, spacing: float
) -> tuple[Array, Array]:
    first, weight = log_weights(load - 1, sample_rate / 2)
    ratio = np.empty(POINTS)
    density = np.empty(POINTS)
    for i in range(POINTS):
        y = low + i * spacing
        density[i] = log_mixture(y, first, weight, sigma)
        gain = log_mixture(y - 1, first, weight, sigma) - density[i]
        if sample_rate == 1:
            ratio[i] = gain
        elif gain < 700:
            ratio[i] = np.log1p(sample_rate * np.expm1(gain))
        else:  # beyond the range of the exponential
            ratio[i] = np.logaddexp(0.0, np.log(sample_rate) + gain)
    return ratio, density
