"""The size of the noise does not follow the size of the clipped sum.

Formula: Spearman's rank correlation, over steps, of the noise's and the sum's squares, where the
noise's size differs between steps at all. Limit: a correlation over .6 with a p-value below the
share of this check.
"""

import numpy as np
from scipy import stats

from oraudit.checks.levels import SHARE, chi_square_p
from oraudit.findings import Finding
from oraudit.records import Seen

NAME = "noise-follows-sum"

#: Weaker correlations have other causes, as a schedule of the noise that the norms follow.
CORRELATION = 0.6

#: With fewer steps no correlation is significant.
FEWEST_STEPS = 10


def check(seen: Seen) -> list[Finding]:
    noise = seen.noise
    if noise is None or noise.steps < FEWEST_STEPS:
        return []
    squares = noise.squares.sum(1)
    sums = noise.sums.sum(1)
    if squares.min() <= 0 or np.ptp(sums) == 0:
        return []
    numbers = noise.sizes.sum()
    spread = ((squares / squares.mean() - 1) ** 2 * numbers / 2).sum()
    if chi_square_p(spread, noise.steps - 1) >= SHARE:
        return []
    rank = stats.spearmanr(squares, sums)
    if rank.statistic < CORRELATION or rank.pvalue >= SHARE:
        return []
    least, most = np.sqrt([squares.min() / numbers, squares.max() / numbers])
    text = (
        f"the noise's size follows the size of the clipped sum (rank correlation "
        f"{rank.statistic:.2f}): it is {least:.2f} to {most:.2f} of what the accountant was told"
    )
    number = float(rank.statistic)
    return [Finding(NAME, text, "less private", number=number, limit=CORRELATION)]
