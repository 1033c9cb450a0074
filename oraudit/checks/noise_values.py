"""The noise takes as many values as numbers of its precision have: no grid, no zeros.

Formula: pairs of equal numbers within a step, in cells of four roundings and at least a
millionth of the noise's size; and numbers that are exactly 0. Limit: a Poisson law with twice
the expected pairs.
"""

import math

import numpy as np
from scipy import stats

from oraudit.checks.levels import SHARE
from oraudit.findings import Finding
from oraudit.records import Seen

NAME = "noise-values"

#: Pairs and zeros share what the check may spend.
_EACH = SHARE / 2

#: How likely two standard normal numbers lie in one cell, for a cell of width 1: 1 / (2 √π).
_MEET = 1 / (2 * math.sqrt(math.pi))

#: The smallest cell, in units of the noise's size.
CELL = 1e-6

#: The share of exact zeros that rounding may make.
ZEROS = 1e-4


def check(seen: Seen) -> list[Finding]:
    noise = seen.noise
    if noise is None or noise.share == 0:
        return []
    pairs = 0
    expected = 0.0
    distinct = 0
    numbers = 0
    zeros = 0
    for row, rounding in zip(noise.sample, noise.rounding, strict=True):
        values = row[row != 0].astype(float)
        zeros += len(row) - len(values)
        size = np.sqrt((values**2).mean()) if len(values) else 0.0
        if size == 0:
            continue
        cell = max(CELL, 4 * rounding / size)
        found = len(np.unique(np.round(values / size / cell)))
        pairs += len(values) - found
        expected += len(values) * (len(values) - 1) / 2 * cell * _MEET
        distinct += found
        numbers += len(values)
    if pairs > stats.poisson.isf(_EACH, 2 * expected + 1):
        text = (
            f"the noise takes few values: {distinct / numbers:.1%} of a step's numbers are distinct"
        )
        return [Finding(NAME, text, "less private", number=distinct / numbers, limit=1.0)]
    share = zeros / noise.sample.size
    if share < 0.999 and zeros > stats.poisson.isf(_EACH, max(ZEROS * noise.sample.size, 1)):
        text = f"{share:.0%} of the noise is exactly 0"
        return [Finding(NAME, text, "less private", number=share, limit=ZEROS)]
    return []
