"""The noise is normal.

Formula: how many numbers of a sample lie in each of 22 cells, in units of the noise's own size;
and the largest of all numbers. Limits: χ² of the cells, and the exact law of the largest number,
both as too small and as too large.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from oraudit.checks import noise_follows_sum, noise_reuse, noise_values, sum_in_noise
from oraudit.checks.levels import SHARE
from oraudit.checks.presence import present_noise
from oraudit.findings import Finding, Side
from oraudit.records import Seen

__all__ = ["FEWEST_NUMBERS", "cell_counts", "cells_p", "check", "largest_p"]

NAME = "noise-law"
TESTS = 3
EXPLAINED_BY = (
    noise_follows_sum.NAME,
    noise_reuse.NAME,
    "noise-size",
    noise_values.NAME,
    sum_in_noise.NAME,
)

#: The edges of the cells, dense where cut and rounded noise differs from normal noise.
_POSITIVE = (0.2, 0.4, 0.7, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0)
EDGES = np.array([*(-edge for edge in _POSITIVE[::-1]), 0.0, *_POSITIVE])
PROBABILITIES = np.diff(np.concatenate([[0.0], stats.norm.cdf(EDGES), [1.0]]))

#: The fewest expected numbers in a cell; cells with fewer are joined.
FEWEST_EXPECTED = 10

#: The fewest numbers of a sample: with fewer the cells tell nothing.
FEWEST_NUMBERS = 200


def check(seen: Seen) -> list[Finding]:
    noise = present_noise(seen)
    if noise is None:
        return []
    sample = noise.sample[np.isfinite(noise.sample)]
    if len(sample) < FEWEST_NUMBERS:
        return []
    numbers = int(((noise.squares > 0) * noise.sizes).sum())
    size = np.sqrt(noise.squares.sum() / numbers)
    units = sample / size
    cells = cells_p(cell_counts(units))
    largest = float(noise.largest.max() / size)
    too_small, too_large = largest_p(largest, numbers)
    if min(cells, too_small, too_large) >= SHARE:
        return []
    fourth = float((units**4).mean())
    side: Side = "less private" if fourth < 3 else "side unknown"
    text = (
        f"the noise is not normal: its fourth moment is {fourth:.2f}, not 3, and the largest of "
        f"{numbers:.0e} numbers has {largest:.1f} standard deviations"
    )
    return [Finding(NAME, text, side, number=fourth, limit=3.0)]


def cell_counts(units: NDArray[np.floating]) -> NDArray[np.int64]:
    """Count the numbers in each cell."""
    cells = np.searchsorted(EDGES, units.ravel())
    return np.bincount(cells, minlength=len(PROBABILITIES))


def cells_p(counts: NDArray[np.int64]) -> float:
    """Return the p-value of the numbers in all cells, along the last axis."""
    expected = PROBABILITIES * counts.sum(-1, keepdims=True)
    rare = _rare(float(counts.sum(-1).max()))
    observed = _joined(counts, rare)
    wanted = _joined(expected, rare)
    distance = ((observed - wanted) ** 2 / wanted).sum(-1)
    return stats.chi2.sf(distance, wanted.shape[-1] - 1)


def _joined(numbers: NDArray[Any], rare: NDArray[np.bool_]) -> NDArray[Any]:
    """Return the numbers in all cells, with the rare cells joined into one."""
    return np.concatenate([numbers[..., ~rare], numbers[..., rare].sum(-1, keepdims=True)], axis=-1)


def _rare(numbers: float) -> NDArray[np.bool_]:
    """Return which cells to join: as many of the rarest as are expected to hold enough numbers."""
    order = np.argsort(PROBABILITIES, kind="stable")
    before = np.cumsum(PROBABILITIES[order]) - PROBABILITIES[order]
    rare = np.zeros(len(order), dtype=bool)
    rare[order] = np.maximum(before, 0) * numbers < FEWEST_EXPECTED
    return rare | (PROBABILITIES * numbers < FEWEST_EXPECTED)


def largest_p(largest: float, numbers: int) -> tuple[float, float]:
    """Return the p-values of the largest absolute number, as too small and as too large."""
    tail = np.minimum(2 * stats.norm.sf(largest), 1 - 1e-12)
    return np.exp(numbers * np.log1p(-tail)), np.minimum(1.0, numbers * tail)
