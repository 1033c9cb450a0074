"""The noise takes as many values as numbers of its precision have: no grid, no zeros.

Formula: pairs of equal numbers within a step, in cells of four roundings and at least a
millionth of the noise's size; and numbers that are exactly 0. Limit: a Poisson law with twice
the expected pairs.
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from oraudit.checks import noise_reuse, sum_in_noise
from oraudit.checks.levels import SHARE
from oraudit.checks.presence import present_noise
from oraudit.findings import Finding
from oraudit.records import Seen

__all__ = ["NAME", "check", "distinct_cells", "expected_pairs", "most_pairs"]

NAME = "noise-values"
TESTS = 2
EXPLAINED_BY = (noise_reuse.NAME, sum_in_noise.NAME)

#: The probability that two standard normal numbers lie in one cell, divided by the cell's width:
#: 1 / (2 √π).
MEET = 1 / (2 * math.sqrt(math.pi))

#: The smallest cell, in units of the noise's size.
CELL = 1e-6

#: The share of exact zeros that rounding may make.
ZEROS = 1e-4

#: The share of distinct numbers below which the noise lies on a grid, of which 0 is one value.
GRID = 0.7

#: The bits of a number that half precisions keep.
BITS = {"fp16": 11, "bf16": 8}


def check(seen: Seen) -> list[Finding]:
    noise = present_noise(seen)
    if noise is None:
        return []
    pairs = 0
    expected = 0.0
    distinct = 0
    numbers = 0
    zeros = 0
    for row, rounding in zip(noise.sample, noise.rounding, strict=True):
        values = row[np.isfinite(row) & (row != 0)].astype(float)
        numbers += len(values)
        zeros += int((row == 0).sum())
        if not len(values):
            continue
        size = np.sqrt((values**2).mean())
        cell = max(CELL, 4 * rounding / size)
        occupied = distinct_cells(values / size, cell)
        pairs += len(values) - occupied
        expected += expected_pairs(len(values), cell)
        distinct += occupied
    has_pairs = pairs > most_pairs(expected)
    share = zeros / max(zeros + numbers, 1)
    # A grid has zeros, too.
    grid = has_pairs and distinct < GRID * numbers
    if not grid and zeros > stats.poisson.isf(SHARE, max(ZEROS * (zeros + numbers), 1)):
        text = f"{share:.0%} of the noise is exactly 0"
        return [Finding(NAME, text, "less private", number=share, limit=ZEROS)]
    if has_pairs:
        precision = _precision(seen)
        text = f"the noise takes few values: {precision}"
        if not precision:
            text = (
                f"the noise takes few values: {distinct / numbers:.1%} of a step's numbers are "
                "distinct"
            )
        return [Finding(NAME, text, "less private", number=distinct / numbers, limit=1.0)]
    return []


def distinct_cells(values: NDArray[np.float64], cell: float) -> int:
    """Count the cells that hold some of the values, which are in units of their size."""
    return len(np.unique(np.round(values / cell)))


def expected_pairs(numbers: int, cell: float) -> float:
    """Return the expected number of pairs of normal numbers in one cell."""
    return numbers * (numbers - 1) / 2 * cell * MEET


def most_pairs(expected: float) -> float:
    """Return the largest number of pairs that an honest training has."""
    return float(stats.poisson.isf(SHARE, 2 * expected + 1))


def _precision(seen: Seen) -> str:
    """Return the precision of all numbers, in units of C or of the noise; "" if they have none."""
    noise = present_noise(seen)
    assert noise is not None
    units = np.array([step.sigma * step.clip for step in seen.told])[:, None]
    for name, bits in BITS.items():
        for scale in (np.ones_like(units), units):
            values = noise.sample * scale
            usable = np.isfinite(values) & (values != 0)
            spacing = 2.0 ** (np.floor(np.log2(np.abs(values[usable]))) + 1 - bits)
            off = np.abs(values[usable] - np.round(values[usable] / spacing) * spacing)
            rounding = np.broadcast_to(2 * noise.rounding[:, None] * scale, values.shape)[usable]
            # The probability that a number is this near to the grid by chance.
            chance = np.minimum(1, 2 * rounding / spacing).mean() if len(off) else 1.0
            if (off <= rounding).mean() > 0.9 and chance < 0.45:
                return f"it has the precision of {name}, {bits} bits"
    return ""
