"""Canaries that hop from coordinate to coordinate, and are dropped when they look undecided.

A canary that stays on one coordinate meets the same neighbours in every step, and the variance that
they add to its sum grows like T². A canary that hops, to a coordinate that is drawn afresh and
published in each step, meets different ones nearly every time, and the variance grows like T.

Dropping: a canary that looks undecided (its score is near 0) gets a zero gradient from then on.
Crowding: undecided canaries share their coordinates with many others, promising ones with few. All
this depends on earlier outputs and public random numbers, never on coins, so the bounds stay valid;
the chapter *How much can one run show?* has the proof.
"""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from oralib.bounds import Counts
from oralib.dpsgd.play import play_audits
from oralib.dpsgd.ratios import interpolate, ratio_table
from oralib.dpsgd.setting import DpSgd, Dropping, loads_and_widths
from oralib.ground.jit import jit
from oralib.ground.types import Array

__all__ = ["hopping_counts", "simulate_hopping"]

#: The most canaries whose scores are kept in memory.
MOST_CANARIES = 10**8


def simulate_hopping(
    dpsgd: DpSgd, guesses: int, *, dropping: Dropping | None = None, trials: int = 1, seed: int
) -> Counts:
    """Audit DP-SGD with canaries that hop, guessing those with scores farthest from 0.

    The score of a canary is the sum over the steps of the log-likelihood ratio of its coordinate's
    noisy gradient, with it and without it.

    Parameters
    ----------
    dpsgd : DpSgd
        The training.
    guesses : int
        The number of guesses, at most the number of canaries that are active in the end.
    dropping : Dropping or None
        The schedule by which canaries are dropped and crowded; None for neither.
    trials : int
        The number of independent audits to simulate.
    seed : int
        The seed of their random numbers.

    Examples
    --------
    >>> dpsgd = DpSgd(n=16_000, sigma=2.4224)
    >>> counts = simulate_hopping(dpsgd, 300, trials=10, seed=1)
    >>> bool(counts.accuracy.mean() > 0.7)
    True
    """
    return hopping_counts(dpsgd, [guesses], dropping=dropping, trials=trials, seed=seed)[0]


def hopping_counts(
    dpsgd: DpSgd,
    guesses: Sequence[int],
    *,
    dropping: Dropping | None = None,
    norm: float = 1.0,
    trials: int = 1,
    seed: int,
) -> list[Counts]:
    """Return the counts of :func:`simulate_hopping` for each of some numbers of guesses.

    These numbers fall. ``norm`` is the norm of a canary's gradient, in units of the clipping
    threshold; it is above 1 if gradients are not clipped.
    """
    plan = _plan(dpsgd, dropping, norm)
    game = "one-run DP-SGD, hopping"
    active_in_the_end = int(plan.loads[-1] @ plan.widths)
    block = partial(_audits, plan)
    return play_audits(game, block, dpsgd, guesses, active_in_the_end, trials, seed, dropping)


class _Plan(NamedTuple):
    """The numbers that all trials share.

    In step t, band b has ``widths[b]`` coordinates, each with ``loads[t, b]`` canaries, and its
    log-likelihood ratios are in the table ``k = table_index[t, b]``: ``values[k]`` has them at the
    points ``low[k]``, ``low[k] + spacing[k]``, ``low[k] + 2 * spacing[k]`` and so on.
    """

    n: int
    sample_rate: float
    sigma: float
    norm: float
    loads: NDArray[np.int64]
    widths: NDArray[np.int64]
    table_index: NDArray[np.int64]
    low: NDArray[np.float64]
    spacing: NDArray[np.float64]
    values: NDArray[np.float64]


def _plan(dpsgd: DpSgd, dropping: Dropping | None, norm: float) -> _Plan:
    loads, widths = loads_and_widths(dpsgd, dropping)
    if dpsgd.n > MOST_CANARIES:
        raise ValueError(f"n must be at most {MOST_CANARIES}, got n={dpsgd.n}")
    distinct, index = np.unique(loads, return_inverse=True)
    tables = [ratio_table(load, dpsgd.sample_rate, dpsgd.sigma)[:3] for load in distinct.tolist()]
    low, spacing, values = (np.array(part) for part in zip(*tables, strict=True))
    return _Plan(
        n=dpsgd.n,
        sample_rate=dpsgd.sample_rate,
        sigma=dpsgd.sigma,
        norm=norm,
        loads=loads,
        widths=widths,
        table_index=index.reshape(loads.shape),
        low=low,
        spacing=spacing,
        values=values,
    )


def _audits(plan: _Plan, ks: NDArray[np.int64], size: int, rng: Generator) -> NDArray[np.int64]:
    """Return the right guesses of ``size`` audits: train, and guess scores farthest from 0."""
    v = np.empty((size, ks.size), dtype=np.int64)
    for trial in range(size):
        canaries = _hop(plan, rng)
        certainty = np.abs(canaries.score)
        limit = np.partition(certainty, -ks[0])[-ks[0]]
        best = np.flatnonzero(certainty >= limit)
        best = best[np.argsort(-certainty[best], kind="stable")[: ks[0]]]  # of ties the first
        is_right = (canaries.score[best] > 0) == canaries.coin[best]
        v[trial] = np.cumsum(is_right)[ks - 1]
    return v


class _Active(NamedTuple):
    """The scores and coins of the active canaries."""

    score: NDArray[np.float64]
    coin: NDArray[np.bool_]


@jit
def _hop(plan: _Plan, rng: Generator) -> _Active:
    """Simulate one training run, and return the canaries that are active in the end.

    Toss the coins. Then in each step sort the active canaries by falling |score|, and drop those
    that the schedule no longer wants. The others take places, band by band: within a band
    they lie in rows as wide as the band has coordinates, and each row is turned by a random amount.
    Draw batches and noise, and add to each score what its coordinate shows.
    """
    n = plan.n
    loads = plan.loads
    widths = plan.widths
    canaries = _Active(np.zeros(n), np.empty(n, dtype=np.bool_))
    spare = _Active(np.empty(n), np.empty(n, dtype=np.bool_))
    for i in range(n):
        canaries.coin[i] = rng.random() < 0.5
    # One spare place: _line_up writes each canary's place, and moves on only if it is included.
    row = np.empty(n + 1, dtype=np.int32)
    column = np.empty(n + 1, dtype=np.int32)
    first = np.zeros(widths.size + 1, dtype=np.int64)
    active = n
    for t in range(loads.shape[0]):
        wanted = int((loads[t] * widths).sum())
        moved = t > 0 and (wanted < active or loads.shape[1] > 1)
        if moved:
            _sort(active, wanted, canaries, spare)
            active = wanted
        if moved or t == 0:
            _line_up(canaries.coin, loads[t], widths, row, column, first)
        start = 0
        for band in range(widths.size):
            end = start + loads[t, band] * widths[band]
            included = slice(first[band], first[band + 1])
            score = canaries.score[start:end]
            table = plan.table_index[t, band]
            _step(plan, table, score, row[included], column[included], widths[band], rng)
            start = end
    return _Active(canaries.score[:active], canaries.coin[:active])


@jit
def _line_up(
    coin: Array, load: Array, widths: Array, row: Array, column: Array, first: Array
) -> None:
    """Write down the rows and columns of the included canaries, for band b from first[b] on."""
    place = 0
    included = 0
    for band in range(widths.size):
        for i in range(load[band]):
            for j in range(widths[band]):
                row[included] = i
                column[included] = j
                included += coin[place]  # without an unpredictable branch
                place += 1
        first[band + 1] = included


@jit
def _step(
    plan: _Plan, table: int, score: Array, row: Array, column: Array, width: int, rng: Generator
) -> None:
    """Simulate one step on the coordinates of a band, and add what it shows to the scores.

    ``row`` and ``column`` belong to the included canaries: no others can be in a batch.
    """
    low = plan.low[table]
    spacing = plan.spacing[table]
    values = plan.values[table]
    rows = score.size // width
    turn = rng.integers(0, width, rows)
    noisy = np.zeros(2 * width)  # twice, so that a turned row is contiguous
    # The gaps between members of a batch are geometric: jump from member to member.
    mean_gap = -1 / np.log1p(-plan.sample_rate)  # 0 for a full batch: no canary is left out
    # A float, as a jump may be larger than any integer.
    position = np.floor(mean_gap * rng.standard_exponential())
    while position < row.size:
        member = int(position)
        noisy[column[member] + turn[row[member]]] += plan.norm
        position += 1 + np.floor(mean_gap * rng.standard_exponential())
    for j in range(width):
        y = noisy[j] + noisy[j + width] + plan.sigma * rng.standard_normal()
        noisy[j] = noisy[j + width] = interpolate(values, low, spacing, y)
    for i in range(rows):  # in slices, which the compiler can add several numbers at a time
        row_score = score[i * width : (i + 1) * width]
        turned = noisy[turn[i] : turn[i] + width]
        for j in range(width):
            row_score[j] += turned[j]


#: The number of keys by which :func:`_sort` sorts scores: to about a thousandth, and up to 8.
_KEYS = 8192
#: The number of keys between two scores that differ by 1.
_KEYS_PER_UNIT = 1024.0


@jit
def _sort(active: int, wanted: int, canaries: _Active, spare: _Active) -> None:
    """Sort by falling |score|, with a counting sort, and keep the first ``wanted`` canaries."""
    place = np.zeros(_KEYS + 1, dtype=np.int64)
    for i in range(active):
        place[_key(canaries.score[i]) + 1] += 1
    for key in range(_KEYS):
        place[key + 1] += place[key]
    for i in range(active):
        key = _key(canaries.score[i])
        spare.score[place[key]] = canaries.score[i]
        spare.coin[place[key]] = canaries.coin[i]
        place[key] += 1
    canaries.score[:wanted] = spare.score[:wanted]
    canaries.coin[:wanted] = spare.coin[:wanted]


@jit
def _key(score: float) -> int:
    """Return the key of a score: the larger |score|, the smaller the key."""
    return _KEYS - 1 - int(min(abs(score) * _KEYS_PER_UNIT, _KEYS - 1.0))
