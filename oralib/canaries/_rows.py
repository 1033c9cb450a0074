"""Canaries in rows: the loops over all of them in a step.

Active canaries lie in the order of their promise, band by band. Those of a band lie in rows as wide
as the band has coordinates, and each row is turned by a random number of coordinates.
"""

from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from oralib.dpsgd.hopping import _KEYS, _key
from oralib.ground.jit import jit
from oralib.ground.types import Array


class Active(NamedTuple):
    """The active canaries in the order of their places: who they are, their scores and coins."""

    who: NDArray[np.int32]
    score: NDArray[np.float64]
    coin: NDArray[np.bool_]


@jit
def spots(loads: Array, widths: Array, turns: Array) -> Array:
    """The coordinate of each active canary; ``loads`` says how many rows each band has."""
    where = np.empty(int((loads * widths).sum()), dtype=np.int64)
    place = first = row = 0
    for band in range(widths.size):
        width = widths[band]
        for turn in turns[row : row + loads[band]]:
            for j in range(width - turn):
                where[place + j] = first + turn + j
            for j in range(turn):
                where[place + width - turn + j] = first + j
            place += width
        first, row = first + width, row + loads[band]
    return where


@jit
def batch_at(where: Array, coin: Array, rate: float, d: int, rng: Generator) -> Array:
    """How many included canaries of a random batch each of d coordinates has."""
    total = np.zeros(d)
    # The gaps between members of a batch are geometric: jump from member to member.
    gap = -1 / np.log1p(-rate)  # 0 for a full batch: no canary is left out
    i = np.floor(gap * rng.standard_exponential())
    while i < coin.size:
        total[where[int(i)]] += coin[int(i)]
        i += 1 + np.floor(gap * rng.standard_exponential())
    return total


@jit
def included_at(where: Array, coin: Array, d: int) -> Array:
    """How many included canaries each of d coordinates has."""
    ones = np.zeros(d, dtype=np.int64)
    for i in range(coin.size):
        ones[where[i]] += coin[i]
    return ones


@jit
def by_promise(active: Active, wanted: int) -> Active:
    """The first ``wanted`` of them by the size of their scores, in the order of a simulation."""
    size = active.score.size
    key = np.empty(size, dtype=np.int16)
    start = np.zeros(_KEYS + 1, dtype=np.int64)
    for i in range(size):
        key[i] = _key(active.score[i])
        start[key[i] + 1] += 1
    start = np.cumsum(start)
    who, score, coin = np.empty_like(active.who), np.empty(size), np.empty_like(active.coin)
    for i in range(size):
        place = start[key[i]]
        start[key[i]] = place + 1
        who[place], score[place], coin[place] = active.who[i], active.score[i], active.coin[i]
    return Active(who[:wanted], score[:wanted], coin[:wanted])
