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

__all__ = ["NAME", "Slopes", "check", "is_cause", "slopes_of"]

NAME = "sum-in-noise"
TESTS = 1

#: A share of the sum above LARGE, at SURE deviations, is a cause of what else is seen.
LARGE = 0.05
SURE = 20

#: Tensors have the same share of the sum if they differ by less than this number of deviations.
NEAR = 5


@dataclass(frozen=True)
class Slopes:
    """The share of the clipped sum in the noise of each tensor, and last of all together."""

    share: NDArray[np.float64]
    z: NDArray[np.float64]
    error: NDArray[np.float64]


def check(seen: Seen) -> list[Finding]:
    noise = present_noise(seen)
    if noise is None:
        return []
    slopes = slopes_of(noise)
    is_unlikely = 2 * stats.norm.sf(np.abs(slopes.z)) * len(slopes.z) < SHARE
    if not is_unlikely.any():
        return []
    share = slopes.share[-1]
    text = f"{1 + share:.3g} times the clipped sum is in the noisy sum"
    everywhere = np.abs(slopes.share[:-1] - share) <= NEAR * slopes.error[:-1]
    if not everywhere.all() and is_unlikely[:-1].any():
        tensor = int(np.argmax(np.abs(slopes.z[:-1])))
        further = is_unlikely[:-1].sum() - 1
        share = slopes.share[tensor]
        more = f" and {further} more" if further else ""
        text = (
            f"tensor {seen.names[tensor]}{more}: {1 + share:.3g} times the clipped sum is in the "
            "noisy sum"
        )
    side: Side = "less private" if share > 0 else "side unknown"
    return [Finding(NAME, text, side, number=float(1 + share), limit=1.0)]


def is_cause(noise: Noise) -> bool:
    """Return whether the sum in the noise explains what else is wrong with it."""
    slopes = slopes_of(noise)
    return bool(((np.abs(slopes.z) > SURE) & (np.abs(slopes.share) > LARGE)).any())


def slopes_of(noise: Noise) -> Slopes:
    """Return the shares of the sum in the noise, by least squares."""
    products = noise.products.sum(0)
    sums = noise.sums.sum(0)
    variances = (noise.sums * noise.squares / np.maximum(noise.sizes, 1)).sum(0)
    products, sums, variances = (np.append(x, x.sum()) for x in (products, sums, variances))
    is_known = variances > 0
    z = np.divide(products, np.sqrt(variances), out=np.zeros_like(products), where=is_known)
    share = np.divide(products, sums, out=np.zeros_like(products), where=is_known)
    error = np.divide(np.sqrt(variances), sums, out=np.full_like(sums, np.inf), where=is_known)
    return Slopes(share, z, error)
