"""Tables of log-likelihoods of a noisy count, which guessers interpolate.

A guesser may look at any function of the outputs, so interpolation costs no validity, and next to
no power.
"""

import numpy as np

from oralib._binomial import log_pmf
from oralib._jit import jit
from oralib.mechanisms import Array

__all__ = ["POINTS", "interpolate", "log_mixture", "window"]

#: Points of a table.
POINTS = 1024


@jit
def window(r: int, q: float) -> tuple[int, int]:
    """The counts of Bin(r, q) beyond which nothing is likelier than 1e-18."""
    if q == 1:
        return r, r
    first = last = int(r * q)
    while first > 0 and log_pmf(first - 1, r, q, 1 - q) > -42.0:
        first -= 1
    while last < r and log_pmf(last + 1, r, q, 1 - q) > -42.0:
        last += 1
    return first, last


@jit
def log_mixture(y: float, first: int, weight: Array, noise: float) -> float:
    """The log-density at y of a count plus normal noise, up to a constant.

    ``weight`` has the log-probabilities of the counts from ``first`` on.
    """
    top = -np.inf
    for m in range(weight.size):
        top = max(top, weight[m] - 0.5 * ((y - first - m) / noise) ** 2)
    total = 0.0
    for m in range(weight.size):
        total += np.exp(weight[m] - 0.5 * ((y - first - m) / noise) ** 2 - top)
    return top + np.log(total)


@jit
def interpolate(values: Array, low: float, step: float, y: float) -> float:
    """A table's value at y, linear between its points and beyond its ends."""
    x = (y - low) / step
    entry = min(max(int(x), 0), values.size - 2)
    x -= entry
    return (1 - x) * values[entry] + x * values[entry + 1]
