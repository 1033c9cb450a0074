"""The noise is normal.

Formula: how many numbers of a sample lie in each of 22 cells, in units of the noise's own size;
and the largest of all numbers. Limit: χ² of the cells, and the exact law of the largest number.
"""

import numpy as np
from scipy import stats

from oraudit.checks.levels import SHARE
from oraudit.findings import Finding, Side
from oraudit.records import Seen

NAME = "noise-law"

#: Three p-values share what the check may spend.
_EACH = SHARE / 3

#: Edges of the cells, dense where cut and rounded noise differs from normal noise.
_POSITIVE = (0.2, 0.4, 0.7, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0)
EDGES = np.array([*(-edge for edge in _POSITIVE[::-1]), 0.0, *_POSITIVE])
PROBABILITIES = np.diff(np.concatenate([[0.0], stats.norm.cdf(EDGES), [1.0]]))

#: Cells with fewer expected numbers are joined.
FEWEST_EXPECTED = 10

#: With fewer numbers the cells tell nothing.
FEWEST_NUMBERS = 200


def check(seen: Seen) -> list[Finding]:
    noise = seen.noise
    if noise is None or noise.share == 0 or noise.sample.size < FEWEST_NUMBERS:
        return []
    sizes = np.sqrt(noise.squares.sum(1) / noise.sizes.sum())
    used = sizes > 0
    units = noise.sample[used] / sizes[used, None]
    counts = np.bincount(np.searchsorted(EDGES, units.ravel()), minlength=len(PROBABILITIES))
    cells = _cells_p(counts)

    largest = float((noise.largest[used].max(1) / sizes[used]).max())
    numbers = int(noise.sizes.sum() * used.sum())
    tail = min(2 * stats.norm.sf(largest), 1 - 1e-12)
    too_small = float(np.exp(numbers * np.log1p(-tail)))
    too_large = float(min(1.0, numbers * tail))
    if min(cells, too_small, too_large) >= _EACH:
        return []
    fourth = float((units**4).mean())
    side: Side = "less private" if fourth < 3 else "side unknown"
    text = (
        f"the noise is not normal: its fourth moment is {fourth:.2f}, not 3, and the largest of "
        f"{numbers:.0e} numbers has {largest:.1f} standard deviations"
    )
    return [Finding(NAME, text, side, number=fourth, limit=3.0)]


def _cells_p(counts: np.ndarray) -> float:
    expected = PROBABILITIES * counts.sum()
    full = expected >= FEWEST_EXPECTED
    observed = np.append(counts[full], counts[~full].sum())
    wanted = np.append(expected[full], expected[~full].sum())
    present = wanted > 0
    distance = ((observed - wanted)[present] ** 2 / wanted[present]).sum()
    return float(stats.chi2.sf(distance, present.sum() - 1))
