"""What an audit with hopping canaries will show, predicted without simulating it.

A heuristic, for planning only: no bound rests on it. With many canaries each score is nearly a
Brownian motion, whose speed is the information in a step: the sum of both Kullback-Leibler
divergences between the laws of the canary's coordinate with and without it. So the absolute scores
have a density that spreads from 0, faster where coordinates are less crowded. The prediction
follows this density from step to step through dropping and crowding, and reads off how often the k
surest guesses are right.
"""

from functools import lru_cache
from math import ceil, sqrt

import numpy as np
from numpy.typing import NDArray

from oralib.dpsgd.ratios import ratio_table
from oralib.dpsgd.setting import DpSgd, Dropping, loads_and_widths, stages
from oralib.ground import arguments


def predicted_accuracy(
    dpsgd: DpSgd, guesses: NDArray[np.int64], dropping: Dropping | None = None
) -> NDArray[np.float64]:
    """The expected share of right guesses of :func:`oralib.simulate_hopping`, for several k.

    >>> predicted_accuracy(DpSgd(n=16_000, sigma=2.4224), np.array([300])).round(2).tolist()
    [0.75]
    """
    loads, widths = loads_and_widths(dpsgd, dropping)
    guesses = arguments.integers("guesses", guesses, 1, int(loads[-1] @ widths))
    starts = stages(dpsgd)
    loads = loads[starts]
    speed = np.array([_information(int(m), dpsgd.sample_rate, dpsgd.sigma) for m in loads.flat])
    speed = speed.reshape(loads.shape) * np.diff(starts, append=dpsgd.steps)[:, None]
    # One point of the grid is at least as wide as a step is long, so that the scheme is stable. A
    # very informative step is taken in several rounds, but not too many: a chance of 1 - exp(-22)
    # needs no more room.
    width = min(max(0.05, sqrt(speed.max())), 1.0)
    rounds = min(ceil(speed.max() / width**2), 50, max(1, 5000 // starts.size))
    speed = np.minimum(speed / rounds, width**2)
    size = width * np.arange(int(22 / width) + 3)
    right = 1 / (1 + np.exp(-size))
    drift = np.tanh(size / 2)
    up, down = 0.5 + 0.25 * drift * width, 0.5 - 0.25 * drift * width
    density = np.zeros(size.size)
    density[0] = dpsgd.n
    for load, pace in zip(loads.repeat(rounds, 0), speed.repeat(rounds, 0), strict=True):
        above = np.cumsum(density[::-1])[::-1] - density  # how many have a larger score
        ends = np.r_[0, np.cumsum(load * widths)][:, None]
        # The speed at each size of score: the average over the bands in which its canaries lie.
        shares = np.diff(np.clip(ends, above, above + density), axis=0)
        moved = (pace / width**2) @ shares
        rises, falls = moved * up, moved * down
        rises[0], falls[0] = moved[0], 0.0  # a score of size 0 can only grow
        density = density - rises - falls
        density[1:] += rises[:-1]
        density[:-1] += falls[1:]
        density[-1] += rises[-1]
    below = np.cumsum([0.0, *density[::-1]])
    return np.interp(guesses, below, np.cumsum([0.0, *(density * right)[::-1]])) / guesses


@lru_cache(maxsize=4096)
def _information(load: int, sample_rate: float, sigma: float) -> float:
    """Both divergences of one step, included against excluded, added up."""
    *_, ratio, density = ratio_table(load, sample_rate, sigma)
    excluded = np.exp(density - density.max())
    with np.errstate(over="ignore", invalid="ignore"):  # where exponentials are too large, below
        gain = excluded * np.expm1(ratio)
    gain = np.where(ratio < 700, gain, np.exp(density - density.max() + ratio))
    return float((gain * ratio).sum() / excluded.sum())
