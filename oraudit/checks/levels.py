"""How often an honest training may be accused: the level of all tests together, and of each.

A check that is not exact has one or more statistical tests, and says how many (``TESTS``). Each
may accuse an honest training with probability :data:`SHARE`, by Bonferroni over its own steps,
tensors or pairs.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

__all__ = ["LEVEL", "SHARE", "STATISTICAL", "chi_square_p", "smallest_p", "two_sided"]

#: The probability that an honest training fails by chance, all statistical tests together: one
#: audit a night accuses it once in 270 years.
LEVEL = 1e-5

#: How many statistical tests share it: those that all checks declare.
STATISTICAL = 21

#: What each of them may spend.
SHARE = LEVEL / STATISTICAL


def two_sided(lower: ArrayLike, upper: ArrayLike) -> NDArray[np.float64]:
    """The p-value of a test that looks at both tails."""
    return np.minimum(1, 2 * np.minimum(lower, upper))


def chi_square_p(value: ArrayLike, degrees: ArrayLike) -> NDArray[np.float64]:
    """The two-sided p-value of a sum of squares of independent standard normal numbers."""
    return two_sided(stats.chi2.cdf(value, degrees), stats.chi2.sf(value, degrees))


def smallest_p(p: NDArray[np.float64]) -> float:
    """The p-value of the least of some, by Bonferroni."""
    return float(min(1.0, p.min() * p.size)) if p.size else 1.0
