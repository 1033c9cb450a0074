"""How often an honest training may be accused: the level of all checks together, and of each."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

__all__ = ["LEVEL", "SHARE", "STATISTICAL", "chi_square_p", "smallest_p"]

#: The probability that an honest training fails by chance, all statistical checks together: one
#: audit a night accuses it once in 270 years.
LEVEL = 1e-5

#: How many statistical checks share it.
STATISTICAL = 18

#: What each of them may spend; within a check it is shared again by its tests.
SHARE = LEVEL / STATISTICAL


def chi_square_p(value: ArrayLike, degrees: ArrayLike) -> NDArray[np.float64]:
    """The two-sided p-value of a sum of squares of independent standard normal numbers."""
    lower = stats.chi2.cdf(value, degrees)
    upper = stats.chi2.sf(value, degrees)
    return np.minimum(1, 2 * np.minimum(lower, upper))


def smallest_p(p: NDArray[np.float64]) -> float:
    """The p-value of the least of some, by Bonferroni."""
    return float(min(1.0, p.min() * p.size)) if p.size else 1.0
