"""What is added to the clipped sum is independent of it.

Formula: the noise times the clipped sum, over the root of the sum's squares and the noise's
size: standard normal if the noise is what it should be. Limit: its two-sided p-value, by
Bonferroni over tensors and all together.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from oraudit.checks.levels import SHARE
from oraudit.checks.presence import present_noise
from oraudit.findings import Finding, Side
from oraudit.records import Noise, Seen

NAME = "sum-in-noise"
TESTS = 1

#: A share of the sum so large, and so sure, is a cause of what else is seen, not a consequence.
LARGE = 0.05
SURE = 20

#: How far the other tensors may be from a share of the sum that is in all of them, in deviations.
NEAR = 5


@dataclass(frozen=True)
class Slopes:
    """How much of the clipped sum is in the noise: of each tensor, and last of all together."""

    share: NDArray[np.float64]
    z: NDArray[np.float64]
    error: NDArray[np.float64]


def check(seen: Seen) -> list[Finding]:
    noise = present_noise(seen)
    if noise is None:
        return []
    slopes = slopes_of(noise)
    odd = 2 * stats.norm.sf(np.abs(slopes.z)) * len(slopes.z) < SHARE
    if not odd.any():
        return []
    share = slopes.share[-1]
    where = ""
    everywhere = np.abs(slopes.share[:-1] - share) <= NEAR * slopes.error[:-1]
    if not everywhere.all() and odd[:-1].any():
        tensor = int(np.argmax(np.abs(slopes.z[:-1])))
        others = odd[:-1].sum() - 1
        share = slopes.share[tensor]
        where = f"tensor {seen.names[tensor]}{f' and {others} more' if others else ''}: "
    side: Side = "less private" if share > 0 else "side unknown"
    text = f"{where}{1 + share:.3g} times the clipped sum is in the noisy sum"
    return [Finding(NAME, text, side, number=float(1 + share), limit=1.0)]


def is_cause(noise: Noise) -> bool:
    """Whether so much of the sum is in the noise that this explains what else is wrong with it."""
    slopes = slopes_of(noise)
    return bool(((np.abs(slopes.z) > SURE) & (np.abs(slopes.share) > LARGE)).any())


def slopes_of(noise: Noise) -> Slopes:
    """The share of the sum in the noise, by least squares."""
    products = noise.products.sum(0)
    sums = noise.sums.sum(0)
    variances = (noise.sums * noise.squares / np.maximum(noise.sizes, 1)).sum(0)
    products, sums, variances = (np.append(x, x.sum()) for x in (products, sums, variances))
    known = variances > 0
    z = np.divide(products, np.sqrt(variances), out=np.zeros_like(products), where=known)
    share = np.divide(products, sums, out=np.zeros_like(products), where=known)
    error = np.divide(np.sqrt(variances), sums, out=np.full_like(sums, np.inf), where=known)
    return Slopes(share, z, error)
