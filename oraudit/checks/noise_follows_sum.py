"""The size of the noise does not follow the size of the clipped sum.

Formula: take steps in pairs, 1 and 2, 3 and 4, and so on. In each pair take the log-ratio of the
noise's sizes, and that of the clipped sums' sizes. Over the pairs, correlate the ranks of the two.
No two pairs share a step, and a slow schedule hardly moves either ratio. Limit: a correlation over
.6 with a p-value below the share of this check, and only where the noise's sizes differ more or
less than chance allows: sizes that vary as by chance follow nothing.
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

#: The rank correlation above which the noise follows the sum; weaker ones have other causes.
CORRELATION = 0.6

#: The fewest pairs of steps; with fewer the tail of Student's t is too light.
FEWEST_PAIRS = 25


def check(seen: Seen) -> list[Finding]:
    noise = present_noise(seen)
    if noise is None:
        return []
    noise_squares = noise.squares.sum(1)
    # In units of C, as the noise that was told may differ from step to step.
    sum_squares = noise.sums.sum(1) * seen.sigmas**2
    weights = noise.sizes.sum()
    usable = (noise_squares > 0) & (sum_squares > 0)
    noise_squares = noise_squares[usable]
    sum_squares = sum_squares[usable]
    steps = len(noise_squares)
    if steps < 2 * FEWEST_PAIRS:
        return []
    # The squares of honest noise are chi-square with a degree of freedom for each weight, so
    # their relative deviations have variance 2 / weights.
    spread = ((noise_squares / noise_squares.mean() - 1) ** 2).sum() / (2 / weights)
    if chi_square_p(spread, steps - 1) >= SHARE:
        return []
    correlation = float(rank_correlations(changes(noise_squares), changes(sum_squares)))
    if correlation < CORRELATION or rank_p(correlation, steps // 2) >= SHARE:
        return []
    smallest = float(np.sqrt(noise_squares.min() / weights))
    largest = float(np.sqrt(noise_squares.max() / weights))
    text = (
        "the noise's size rises and falls with the size of the clipped sum (rank correlation "
        f"{correlation:.2f}): it is {smallest:.2g} to {largest:.2g} of what the accountant was "
        "told"
    )
    # Less private only if the smallest noise is too small by itself (Bonferroni over steps).
    side: Side = "less private"
    if stats.chi2.cdf(noise_squares.min(), weights) * steps >= SHARE:
        side = "side unknown"
    return [Finding(NAME, text, side, number=correlation, limit=CORRELATION)]


def changes(sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the log-ratios of sizes in the pairs of steps 1 and 2, 3 and 4, ..."""
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
