"""C, the noise multiplier and the learning rate do not follow the batch.

Formula: if one of the three takes many values, its products and ratios with a number of its own
batch, and of the batch before: the size, the norm of the gradient before clipping, and the mean,
median and largest norm of an example. Limit: a product or ratio that varies by less than 1e-3; and
a C that is the norm of an example in most batches. Adaptive clipping passes, as it follows a count
with noise of its own.
"""

import numpy as np
from numpy.typing import NDArray

from oraudit.findings import Finding
from oraudit.records import Seen
from oraudit.records.around import Around

__all__ = ["check"]

NAME = "follows-batch"

#: The numbers that must not follow a batch, with their names in a finding.
FOLLOWERS = {"clip": "C", "rate": "the learning rate", "sigma": "the noise multiplier"}

#: The numbers of a batch, with their names in a finding.
SOURCES = {
    "size": "the size",
    "raw": "the norm of the gradient before clipping",
    "mean": "the mean norm",
    "median": "the median norm",
    "middle": "the median norm",
    "largest": "the largest norm",
}

#: With fewer steps a constant product may be chance.
FEWEST_STEPS = 8

#: Products and ratios that vary by less are constant.
VARIATION = 1e-3

#: C is a norm of the batch's own if the nearest one differs by a smaller share.
NEAREST = 1e-6


def check(seen: Seen) -> list[Finding]:
    around = seen.around
    if around is None or seen.steps < FEWEST_STEPS:
        return []
    findings = (_follows(around, name) for name in FOLLOWERS)
    return [finding for finding in findings if finding is not None]


def _follows(around: Around, name: str) -> Finding | None:
    """Return a finding if a number follows a number of the batch."""
    values = getattr(around, name)
    if len(np.unique(values[np.isfinite(values)])) <= len(values) / 2:
        return None
    for source, description in SOURCES.items():
        numbers = getattr(around, source)
        for batch, follower, leader in (
            ("its own batch", values, numbers),
            ("the batch before", values[1:], numbers[:-1]),
        ):
            if _constant(follower, leader):
                text = (
                    f"{FOLLOWERS[name]} follows {description} of {batch}: it depends on the data, "
                    "without noise"
                )
                return Finding(NAME, text, "less private")
    looked = np.isfinite(around.nearest)
    if name == "clip" and looked.sum() >= FEWEST_STEPS:
        hits = around.nearest[looked] < NEAREST
        if hits.mean() > 0.5:
            text = (
                "C is the norm of an example of its own batch (a quantile): it depends on the "
                "data, without noise"
            )
            return Finding(NAME, text, "less private", number=float(hits.mean()), limit=0.5)
    return None


def _constant(follower: NDArray[np.float64], leader: NDArray[np.float64]) -> bool:
    """Return whether the product or the ratio of two numbers that vary is constant."""
    usable = np.isfinite(follower) & np.isfinite(leader) & (follower > 0) & (leader > 0)
    if usable.sum() < FEWEST_STEPS:
        return False
    follower = follower[usable]
    leader = leader[usable]
    if _variation(leader) < 10 * VARIATION or _variation(follower) < 10 * VARIATION:
        return False
    return min(_variation(follower * leader), _variation(follower / leader)) < VARIATION


def _variation(numbers: NDArray[np.float64]) -> float:
    """Return the standard deviation over the mean."""
    return float(numbers.std() / numbers.mean())
