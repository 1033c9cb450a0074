"""Canaries that hop from coordinate to coordinate, and are dropped when they look undecided.

A canary that stays on one coordinate meets the same neighbours in every step, and their gradients
add up: the variance that they add to its sum grows like T². A canary that hops, to a coordinate
that is drawn afresh and published in each step, meets others nearly every time. What is left is the
randomness of their coins and batches in that step, which grows like T.

Dropping. A canary that looks undecided gets a zero gradient from then on, and no longer disturbs
the others. Crowding. Undecided canaries share their coordinates with many, promising ones with few.

Why the bounds stay valid: in each step every gradient has norm at most 1, whatever the earlier
outputs were. Placing, crowding and dropping are functions of those outputs and of public random
numbers (never of coins), just as gradients of a real training are functions of its weights. So each
step is the same subsampled Gaussian mechanism given the past, and the accountant's (ε, δ), which
covers adaptive composition, holds for the whole sequence of outputs. All guesses are made from it
at the end: this is one-run auditing without feedback, with a number of guesses fixed in advance.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from oralib import _check
from oralib._jit import jit
from oralib.bounds import Counts
from oralib.dpsgd.ratios import interpolate, ratio_table
from oralib.dpsgd.training import DpSgd, play_audits
from oralib.mechanisms import Array

#: Coordinates are crowded in this many bands of equal width.
BANDS = 10

#: Canaries are dropped at most this many times; in a longer training not after every step.
STAGES = 1000

#: The loads of all steps must fit into memory, and so must the scores of all canaries.
MOST_STEPS, MOST_CANARIES = 10**6, 10**8


@dataclass(frozen=True)
class Dropping:
    """How the number of active canaries falls, and how unevenly they share the coordinates.

    Loads are whole numbers of at least 1, so the targets are met only roughly.

    Attributes
    ----------
    final : float
        The target number of active canaries per coordinate in the end, at least 1.
    until : float
        The share of the training after which no more are dropped, in (0, 1].
    bend : float
        In [0.1, 10]. With 1 the number of active canaries falls by the same factor in each step;
        above 1 it falls slowly at first.
    crowding : pair of float
        The target ratio between the most and the least crowded coordinates, early and at the end,
        each at least 1; in between it changes geometrically, whatever the bend is. The most
        promising canaries, by the size of their scores, have the least crowded coordinates.

    Examples
    --------
    >>> Dropping(final=3, until=0.8).active(DpSgd(n=96_000, sigma=1.0))[[0, 40, 99]].tolist()
    [96000, 17000, 3000]
    """

    final: float = 1.0
    until: float = 1.0
    bend: float = 1.0
    crowding: tuple[float, float] = (1.0, 1.0)

    def __post_init__(self) -> None:
        crowding = _check.reals("crowding", self.crowding, 1, 1e3)
        if crowding.shape != (2,):
            raise ValueError(
                f"crowding must be two numbers, first and last, got crowding={self.crowding!r}"
            )
        _check.store(
            self,
            final=_check.real("final", self.final, 1, 1e9),
            until=_check.real("until", self.until, 0, 1, interval="(]"),
            bend=_check.real("bend", self.bend, 0.1, 10),
            crowding=(float(crowding[0]), float(crowding[1])),
        )

    def loads(self, dpsgd: DpSgd) -> NDArray[np.int64]:
        """How many canaries share a coordinate: a row for each step, a column for each band.

        The first band is that of the most promising ones. All loads are equal in the first step,
        before anything is known, and stay the same in each stage of a training run.
        """
        return loads_and_widths(dpsgd, self)[0]

    def active(self, dpsgd: DpSgd) -> NDArray[np.int64]:
        """The number of active canaries in each step."""
        loads, widths = loads_and_widths(dpsgd, self)
        return loads @ widths


def loads_and_widths(
    dpsgd: DpSgd, dropping: Dropping | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The canaries per coordinate of each step and band, and the coordinates of each band."""
    _check.instance("dpsgd", dpsgd, DpSgd, "DpSgd(n=1000, sigma=1.0)")
    if dpsgd.steps > MOST_STEPS:
        raise ValueError(f"steps must be at most {MOST_STEPS}, got steps={dpsgd.steps}")
    if dropping is None:
        loads = np.full((dpsgd.steps, 1), dpsgd.per_coordinate)
        return loads, np.array([dpsgd.used_coordinates])
    _check.instance("dropping", dropping, Dropping, "Dropping(final=3)")
    bands = min(BANDS, dpsgd.used_coordinates)
    widths = np.diff(np.arange(bands + 1) * dpsgd.used_coordinates // bands)
    s, starts = dpsgd.per_coordinate, stages(dpsgd)
    loads = np.full((starts.size, bands), s)
    first, last = dropping.crowding
    for stage, t in enumerate(starts.tolist()[1:], start=1):
        fall = min(1.0, t / (dropping.until * dpsgd.steps)) ** dropping.bend
        mean = s * (min(dropping.final, s) / s) ** fall
        shape = (first * (last / first) ** (t / dpsgd.steps)) ** np.linspace(0, 1, bands)
        load = np.maximum(1, np.rint(mean * shape * widths.sum() / (shape @ widths)))
        # Rounding must not bring back canaries that were dropped.
        while load @ widths > loads[stage - 1] @ widths:
            load[np.argmax(load)] -= 1
        loads[stage] = load
    return np.repeat(loads, np.diff(starts, append=dpsgd.steps), axis=0), widths


def stages(dpsgd: DpSgd) -> NDArray[np.int64]:
    """The first step of each stage of a training run."""
    count = min(dpsgd.steps, STAGES)
    return np.arange(count) * dpsgd.steps // count


def simulate_hopping(
    dpsgd: DpSgd, k: int, *, dropping: Dropping | None = None, trials: int = 1, seed: int
) -> Counts:
    """Audit DP-SGD with canaries that hop, guessing the k with scores farthest from 0.

    The score of a canary is the sum over the steps of the log-likelihood ratio of its coordinate's
    noisy gradient, with it and without it, where each of the others is in the batch with
    probability sample_rate / 2.

    Parameters
    ----------
    k : int
        The number of guesses, at most the number of canaries that are active in the end.
    dropping : Dropping or None
        Which canaries to drop and to crowd; None for no dropping.

    Examples
    --------
    >>> dpsgd = DpSgd(n=16_000, sigma=2.4224)
    >>> counts = simulate_hopping(dpsgd, 300, trials=10, seed=1)
    >>> bool(counts.accuracy.mean() > 0.7)
    True
    """
    return hopping_counts(dpsgd, [k], dropping=dropping, trials=trials, seed=seed)[0]


def hopping_counts(
    dpsgd: DpSgd,
    guesses: Sequence[int],
    *,
    dropping: Dropping | None = None,
    norm: float = 1.0,
    trials: int = 1,
    seed: int,
) -> list[Counts]:
    """Like :func:`simulate_hopping`, for several numbers of guesses, the largest first.

    All are made in the same training runs. ``norm`` is that of a canary's gradient; it is above 1
    if gradients are not clipped.
    """
    plan = _tables(dpsgd, dropping, norm)
    most = int(plan.loads[-1] @ plan.widths)
    game, block = "one-run DP-SGD, hopping", partial(_audits, plan)
    return play_audits(game, block, dpsgd, guesses, most, trials, seed, dropping)


class _Tables(NamedTuple):
    """What every trial of an audit shares.

    The table of the log-likelihood ratio in step t and band b is row ``table[t, b]`` of ``values``;
    it begins at the same entry of ``low``, with the same entry of ``step`` between its points.
    """

    n: int
    sample_rate: float
    sigma: float
    norm: float
    loads: NDArray[np.int64]
    widths: NDArray[np.int64]
    table: NDArray[np.int64]
    low: NDArray[np.float64]
    step: NDArray[np.float64]
    values: NDArray[np.float64]


def _tables(dpsgd: DpSgd, dropping: Dropping | None, norm: float) -> _Tables:
    loads, widths = loads_and_widths(dpsgd, dropping)
    if dpsgd.n > MOST_CANARIES:
        raise ValueError(f"n must be at most {MOST_CANARIES}, got n={dpsgd.n}")
    distinct, index = np.unique(loads, return_inverse=True)
    tables = [ratio_table(load, dpsgd.sample_rate, dpsgd.sigma)[:3] for load in distinct.tolist()]
    low, step, values = (np.array(part) for part in zip(*tables, strict=True))
    rates = dpsgd.sample_rate, dpsgd.sigma, norm
    return _Tables(dpsgd.n, *rates, loads, widths, index.reshape(loads.shape), low, step, values)


def _audits(plan: _Tables, ks: NDArray[np.int64], size: int, rng: Generator) -> NDArray[np.int64]:
    """Right guesses in ``size`` audits: in each, train and guess the scores farthest from 0."""
    v = np.empty((size, ks.size), dtype=np.int64)
    for trial in range(size):
        canaries = _hop(plan, rng)
        certainty = np.abs(canaries.score)
        least = np.partition(certainty, -ks[0])[-ks[0]]
        best = np.flatnonzero(certainty >= least)
        best = best[np.argsort(-certainty[best], kind="stable")[: ks[0]]]  # the first of equal ones
        right = np.cumsum((canaries.score[best] > 0) == canaries.coin[best])
        v[trial] = right[ks - 1]
    return v


class _Active(NamedTuple):
    """The scores and coins of the active canaries."""

    score: NDArray[np.float64]
    coin: NDArray[np.bool_]


@jit
def _hop(plan: _Tables, rng: Generator) -> _Active:
    """Simulate one training run: those who are active in the end.

    Toss the coins. Then in each step

    1. sort the active canaries by the size of their scores, and drop those that the schedule no
       longer wants;
    2. let the remaining ones take places, band by band: within a band they lie in rows as wide as
       the band has coordinates, and each row is turned by a random amount, so that each coordinate
       of a band has one canary of each of its rows;
    3. draw batches and noise, and add to each score what its coordinate shows.
    """
    n, loads, widths = plan.n, plan.loads, plan.widths
    canaries = _Active(np.zeros(n), np.empty(n, dtype=np.bool_))
    spare = _Active(np.empty(n), np.empty(n, dtype=np.bool_))
    for i in range(n):
        canaries.coin[i] = rng.random() < 0.5
    row, column = np.empty(n + 1, dtype=np.int32), np.empty(n + 1, dtype=np.int32)
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
            ones = slice(first[band], first[band + 1])
            score, table = canaries.score[start:end], plan.table[t, band]
            _step(plan, table, score, row[ones], column[ones], widths[band], rng)
            start = end
    return _Active(canaries.score[:active], canaries.coin[:active])


@jit
def _line_up(
    coin: Array, load: Array, widths: Array, row: Array, column: Array, first: Array
) -> None:
    """Write down the rows and columns of the included canaries, band by band.

    Those of band b begin at ``first[b]``.
    """
    place = ones = 0
    for band in range(widths.size):
        for i in range(load[band]):
            for j in range(widths[band]):
                row[ones], column[ones] = i, j
                ones += coin[place]  # without an unpredictable branch
                place += 1
        first[band + 1] = ones


@jit
def _step(
    plan: _Tables, table: int, score: Array, row: Array, column: Array, width: int, rng: Generator
) -> None:
    """Simulate one step on the coordinates of a band, and add what it shows to the scores.

    Turn each row; add the norm of a gradient to the coordinate of each canary in the batch; add
    noise; and look up the log-likelihood ratio of each coordinate. ``row`` and ``column`` are those
    of the included canaries: only they can be in a batch.
    """
    low, step, values = plan.low[table], plan.step[table], plan.values[table]
    rows = score.size // width
    turn = rng.integers(0, width, rows)
    noisy = np.zeros(2 * width)  # twice, so that a turned row is contiguous
    # The gaps between members of a batch are geometric: jump from member to member.
    gap = -1 / np.log1p(-plan.sample_rate)  # 0 for a full batch: no canary is left out
    i = np.floor(gap * rng.standard_exponential())
    while i < row.size:
        noisy[column[int(i)] + turn[row[int(i)]]] += plan.norm
        i += 1 + np.floor(gap * rng.standard_exponential())
    for j in range(width):
        y = noisy[j] + noisy[j + width] + plan.sigma * rng.standard_normal()
        noisy[j] = noisy[j + width] = interpolate(values, low, step, y)
    for i in range(rows):  # in slices, which the compiler can add several numbers at a time
        here, turned = score[i * width : (i + 1) * width], noisy[turn[i] : turn[i] + width]
        for j in range(width):
            here[j] += turned[j]


#: Scores are sorted by their size to a thousandth, up to 8: finer does not matter.
_KEYS, _KEYS_PER_UNIT = 8192, 1024.0


@jit
def _sort(active: int, wanted: int, canaries: _Active, spare: _Active) -> None:
    """Sort the active canaries by the size of their scores, and drop those beyond ``wanted``.

    A counting sort, which keeps the order of equal ones; ``spare`` is room to work in.
    """
    place = np.zeros(_KEYS + 1, dtype=np.int64)
    for i in range(active):
        place[_key(canaries.score[i]) + 1] += 1
    for key in range(_KEYS):
        place[key + 1] += place[key]
    for i in range(active):
        key = _key(canaries.score[i])
        spare.score[place[key]], spare.coin[place[key]] = canaries.score[i], canaries.coin[i]
        place[key] += 1
    canaries.score[:wanted], canaries.coin[:wanted] = spare.score[:wanted], spare.coin[:wanted]


@jit
def _key(score: float) -> int:
    """Small for a large score."""
    return _KEYS - 1 - int(min(abs(score) * _KEYS_PER_UNIT, _KEYS - 1.0))


def by_promise(scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """The order in which :func:`_sort` puts canaries with these scores."""
    size = np.minimum(np.abs(scores) * _KEYS_PER_UNIT, _KEYS - 1.0).astype(np.int16)
    return np.argsort(-size, kind="stable")
