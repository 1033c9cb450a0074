"""What is added to the clipped sum is independent of it.

Formula: the noise times the clipped sum, over the root of the sum's squares: standard normal if
the noise is what it should be. Limit: its two-sided p-value, by Bonferroni over tensors and all
together.
"""

import numpy as np
from scipy import stats

from oraudit.checks.levels import SHARE
from oraudit.findings import Finding, Side
from oraudit.records import Seen

NAME = "sum-in-noise"


def check(seen: Seen) -> list[Finding]:
    noise = seen.noise
    if noise is None or noise.share == 0:
        return []
    seen_squares = noise.squares / noise.sizes
    products = np.append(noise.products.sum(0), noise.products.sum())
    sums = np.append(noise.sums.sum(0), noise.sums.sum())
    variances = (noise.sums * seen_squares).sum(0)
    variances = np.append(variances, variances.sum())
    present = variances > 0
    z = products[present] / np.sqrt(variances[present])
    p = 2 * stats.norm.sf(np.abs(z)) * len(z)
    if not len(p) or p.min() >= SHARE:
        return []
    place = int(np.flatnonzero(present)[p.argmin()])
    factor = 1 + products[place] / sums[place]
    where = "" if place == len(noise.sizes) or p[-1] < SHARE else f"tensor {seen.names[place]}: "
    if not where:
        factor = 1 + products[-1] / sums[-1]
    side: Side = "less private" if factor > 1 else "side unknown"
    text = f"{where}{factor:.3g} times the clipped sum is in the noisy sum"
    return [Finding(NAME, text, side, number=float(factor), limit=1.0)]
