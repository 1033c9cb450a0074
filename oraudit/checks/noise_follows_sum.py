"""The size of the noise does not follow the size of the clipped sum.

Formula: where the noise's size differs between steps at all, the rank correlation of how it and
the clipped sum change from a step to the next; of each two steps, so that pairs have no step in
common, and a schedule that norms follow in time changes neither. Limit: a correlation over .6
with a p-value below the share of this check.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from oraudit.checks.levels import SHARE, chi_square_p
from oraudit.checks.presence import present_noise
from oraudit.findings import Finding, Side
from oraudit.records import Seen

__all__ = ["NAME", "changes", "check", "rank_correlations", "rank_p"]

NAME = "noise-follows-sum"
TESTS = 1

#: Weaker correlations have other causes.
CORRELATION = 0.6

#: With fewer pairs of steps the tail of Student's t is too light.
FEWEST_PAIRS = 25


def check(seen: Seen) -> list[Finding]:
    noise = present_noise(seen)
    if noise is None:
        return []
    squares = noise.squares.sum(1)
    # In units of C, as the noise that was told may differ from step to step.
    sums = noise.sums.sum(1) * seen.sigmas**2
    numbers = noise.sizes.sum()
    steps = (squares > 0) & (sums > 0)
    squares = squares[steps]
    sums = sums[steps]
    if len(squares) < 2 * FEWEST_PAIRS:
        return []
    spread = ((squares / squares.mean() - 1) ** 2 * numbers / 2).sum()
    if chi_square_p(spread, len(squares) - 1) >= SHARE:
        return []
    correlation = float(rank_correlations(changes(squares), changes(sums)))
    if correlation < CORRELATION or rank_p(correlation, len(squares) // 2) >= SHARE:
        return []
    smallest = float(np.sqrt(squares.min() / numbers))
    largest = float(np.sqrt(squares.max() / numbers))
    text = (
        "the noise's size rises and falls with the size of the clipped sum (rank correlation "
        f"{correlation:.2f}): it is {smallest:.2g} to {largest:.2g} of what the accountant was "
        "told"
    )
    side: Side = "less private"
    if stats.chi2.cdf(squares.min(), numbers) * len(squares) >= SHARE:
        side = "side unknown"
    return [Finding(NAME, text, side, number=correlation, limit=CORRELATION)]


def changes(sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the changes of sizes within the pairs of steps 1 and 2, 3 and 4, ..."""
    pairs = sizes.shape[-1] // 2
    return np.log(sizes[..., 1 : 2 * pairs : 2]) - np.log(sizes[..., : 2 * pairs : 2])


def rank_correlations(left: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return Spearman's rank correlation along the last axis."""
    first, second = (
        ranks - ranks.mean(axis=-1, keepdims=True)
        for ranks in (stats.rankdata(left, axis=-1), stats.rankdata(right, axis=-1))
    )
    size = np.sqrt((first**2).sum(-1) * (second**2).sum(-1))
    return (first * second).sum(-1) / np.maximum(size, 1e-300)


def rank_p(correlation: ArrayLike, pairs: int) -> NDArray[np.float64]:
    """Return the one-sided p-value of a rank correlation, by Student's t."""
    r = np.clip(correlation, 0.0, 1 - 1e-12)
    return stats.t.sf(r * np.sqrt((pairs - 2) / (1 - r**2)), pairs - 2)
