"""Each rank draws noise and batches of its own, from a generator with a seed of its own.

Exact: the first numbers of the noise of two ranks are the same; or all batches of two ranks are
equally large, where their sizes vary so much that this has a probability below 1e-12. If all ranks
add noise to the same weights, equal noise is a finding only where it has not the told size.
"""

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from oraudit.checks import noise_size
from oraudit.checks.noise_reuse import FEWEST_NUMBERS, SAME
from oraudit.checks.poisson_batches import SURELY
from oraudit.checks.rank_noise import adds_noise
from oraudit.findings import Finding, Side
from oraudit.records import Ranks, Seen

__all__ = ["check"]

NAME = "rank-seeds"


def check(seen: Seen) -> list[Finding]:
    if seen.ranks is None:
        return []
    return [*_noise(seen, seen.ranks), *_sampling(seen.ranks)]


def _noise(seen: Seen, ranks: Ranks) -> list[Finding]:
    for first, second in combinations(range(ranks.number), 2):
        agreeing = _same_steps(ranks, first, second)
        if not agreeing.any():
            continue
        side: Side = "less private"
        if ranks.shared:
            sizes = noise_size.check(seen)
            if not sizes:
                return []
            side = sizes[0].side
        text = (
            f"ranks {first} and {second} draw the same noise in {agreeing.sum()} of "
            f"{len(agreeing)} steps, as with equal seeds"
        )
        return [
            Finding(
                NAME, text, side, step=int(agreeing.argmax()) + 1, number=float(agreeing.mean())
            )
        ]
    return []


def _same_steps(ranks: Ranks, first: int, second: int) -> NDArray[np.bool_]:
    """Return the steps in which two ranks draw the same noise."""
    noise: NDArray[np.float64] = ranks.noise[:, [first, second]]
    finite: NDArray[np.bool_] = np.all(np.isfinite(noise), axis=1)
    noise = np.where(finite[:, None], noise, 0.0)
    products = noise[:, 0] * noise[:, 1]
    lengths = np.sqrt((noise**2).sum(2)).prod(1)
    both_add = np.all(adds_noise(ranks)[:, [first, second]], axis=1)
    long_enough = finite.sum(1) >= FEWEST_NUMBERS
    return both_add & long_enough & (products.sum(1) > SAME * lengths)


def _sampling(ranks: Ranks) -> list[Finding]:
    sizes = ranks.sizes
    if (sizes < 0).any() or not len(sizes):
        return []
    for first, second in combinations(range(ranks.number), 2):
        if (sizes[:, first] != sizes[:, second]).any():
            continue
        _, counts = np.unique(sizes[:, first], return_counts=True)
        alike = float(((counts / len(sizes)) ** 2).sum())
        if alike ** len(sizes) > SURELY:
            continue
        text = (
            f"ranks {first} and {second} draw batches of the same size in all {len(sizes)} steps, "
            "as with equal seeds: the accountant's ε is for examples that are drawn independently"
        )
        return [Finding(NAME, text, "side unknown", number=1.0, limit=alike)]
    return []
