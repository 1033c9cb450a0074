"""The probability that statistical tests accuse an honest training: of all together, and of each.

A check that is not exact has one or more statistical tests, and says how many (``TESTS``). Each
may accuse an honest training with probability :data:`SHARE`, by Bonferroni over its own steps,
tensors or pairs.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special, stats

__all__ = [
    "LEVEL",
    "SHARE",
    "STATISTICAL",
    "binomial_p",
    "chi_square_p",
    "smallest_p",
    "two_sided",
]

#: The probability that an honest training fails by chance, all statistical tests together: one
#: audit a night accuses it once in 270 years.
LEVEL = 1e-5

#: The number of statistical tests that share the level: the sum of ``TESTS`` of all checks.
STATISTICAL = 22

#: The level of each test.
SHARE = LEVEL / STATISTICAL


def two_sided(lower: ArrayLike, upper: ArrayLike) -> NDArray[np.float64]:
    """Return the p-value of a test that looks at both tails."""
    return np.minimum(1, 2 * np.minimum(lower, upper))


def chi_square_p(value: ArrayLike, degrees: ArrayLike) -> NDArray[np.float64]:
    """Return the two-sided p-value of a sum of squares of independent standard normal numbers."""
    return two_sided(stats.chi2.cdf(value, degrees), stats.chi2.sf(value, degrees))


def binomial_p(
    number: ArrayLike, mean: ArrayLike, variance: ArrayLike, third: ArrayLike
) -> NDArray[np.float64]:
    """Return the two-sided p-value by a shifted binomial law with these three cumulants.

    Its trials need not be an integer. It is exact for a binomial number, and nearly so for sums of
    binomial or hypergeometric ones.

    >>> round(float(binomial_p(9, 5, 2.5, 0)), 6) == round(2 * 11 / 2**10, 6)
    True
    """
    rate = np.clip((1 - np.divide(third, variance)) / 2, 1e-9, 1 - 1e-9)
    trials = variance / (rate * (1 - rate))
    shift = mean - trials * rate

    def tails(largest: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the probabilities of at most this number, and of more."""
        inside = np.clip(largest, 0, trials * (1 - 1e-12))
        lower = special.betainc(trials - inside, inside + 1, 1 - rate)
        upper = special.betainc(inside + 1, trials - inside, rate)
        below = largest < 0
        above = largest >= trials
        return (
            np.where(below, 0.0, np.where(above, 1.0, lower)),
            np.where(below, 1.0, np.where(above, 0.0, upper)),
        )

    number = np.asarray(number, dtype=float) - shift
    return two_sided(tails(number)[0], tails(number - 1)[1])


def smallest_p(p: NDArray[np.float64]) -> float:
    """Return the p-value of the smallest p-value of several, by Bonferroni."""
    return float(min(1.0, p.min() * p.size)) if p.size else 1.0
