"""Canaries in rows: the loops over all of them in a step.

Active canaries lie in the order of their promise, band by band. Those of a band lie in rows as wide
as the band has coordinates, and each row is turned by a random number of coordinates.
"""

from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from oralib._jit import jit
from oralib._types import Array
from oralib.dpsgd.hopping import _KEYS, _key


class Rows(NamedTuple):
    """The rows of a step: how many each band has, how wide they are, and how far each is turned."""

    loads: NDArray[np.int64]
    widths: NDArray[np.int64]
    turns: NDArray[np.int64]


@jit
def spots(rows: Rows) -> Array:
    """The coordinate of each active canary."""
    where = np.empty(int((rows.loads * rows.widths).sum()), dtype=np.int64)
    place = first = row = 0
    for band in range(rows.widths.size):
        width, load = rows.widths[band], rows.loads[band]
        for _ in range(load):
            for j in range(width):
                where[place + j] = first + (j + rows.turns[row]) % width
            place, row = place + width, row + 1
        first += width
    return where


@jit
def included_at(rows: Rows, coin: Array) -> Array:
    """How many included canaries each coordinate has."""
    ones = np.zeros(int(rows.widths.sum()), dtype=np.int64)
    place = first = row = 0
    for band in range(rows.widths.size):
        width, load = rows.widths[band], rows.loads[band]
        here = ones[first : first + width]
        for _ in range(load):
            turn = rows.turns[row]
            here[turn:] += coin[place : place + width - turn]
            here[:turn] += coin[place + width - turn : place + width]
            place, row = place + width, row + 1
        first += width
    return ones


@jit
def add_turned(rows: Rows, score: Array, ratio: Array) -> None:
    """Add to each canary's score what its coordinate shows."""
    place = first = row = 0
    for band in range(rows.widths.size):
        width, load = rows.widths[band], rows.loads[band]
        here = ratio[first : first + width]
        for _ in range(load):
            turn = rows.turns[row]
            score[place : place + width - turn] += here[turn:]
            score[place + width - turn : place + width] += here[:turn]
            place, row = place + width, row + 1
        first += width


@jit
def batch_at(rows: Rows, coin: Array, rate: float, rng: Generator) -> Array:
    """How many included canaries of a random batch each coordinate has."""
    total = np.zeros(int(rows.widths.sum()))
    # The gaps between members of a batch are geometric: jump from member to member.
    gap = -1 / np.log1p(-rate)  # 0 for a full batch: no canary is left out
    i = np.floor(gap * rng.standard_exponential())
    place = first = row = 0
    for band in range(rows.widths.size):
        width, load = rows.widths[band], rows.loads[band]
        end = place + load * width
        while i < end:
            k = int(i) - place
            if coin[place + k]:
                total[first + (k % width + rows.turns[row + k // width]) % width] += 1
            i += 1 + np.floor(gap * rng.standard_exponential())
        place, first, row = end, first + width, row + load
    return total


class Active(NamedTuple):
    """The active canaries in the order of their places: who they are, their scores and coins."""

    who: NDArray[np.int32]
    score: NDArray[np.float64]
    coin: NDArray[np.bool_]


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
    chosen = Active(
        np.empty(wanted, dtype=np.int32), np.empty(wanted), np.empty(wanted, dtype=np.bool_)
    )
    for i in range(size):
        place = start[key[i]]
        start[key[i]] = place + 1
        if place < wanted:
            chosen.who[place], chosen.score[place] = active.who[i], active.score[i]
            chosen.coin[place] = active.coin[i]
    return chosen
