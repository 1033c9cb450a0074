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
at the end: this is plain one-run auditing with a number of guesses fixed in advance.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from oralib import _check
from oralib._jit import jit
from oralib._streams import play
from oralib.bounds import Counts
from oralib.dpsgd.ratios import interpolate, ratio_table
from oralib.dpsgd.training import DpSgd, fixed_counts, numbers_of_guesses
from oralib.mechanisms import Array

#: Coordinates are crowded in this many bands of equal width.
BANDS = 10

#: Canaries are dropped at most this many times; in a longer training not after every step.
STAGES = 1000

#: What is known of each step must fit into memory.
MOST_STEPS = 10**6


@dataclass(frozen=True)
class Dropping:
    """How the number of active canaries falls, and how unevenly they share the coordinates.

    Loads are whole numbers of at least 1, so the targets are met only roughly.

    Attributes
    ----------
    final : the target number of active canaries per coordinate in the end, at least 1.
    until : the share of the training after which no more are dropped, in (0, 1].
    bend : in [0.1, 10]. With 1 the number of active canaries falls by the same factor in each
        step; above 1 it falls slowly at first.
    crowding : the target ratio between the most and the least crowded coordinates, early and at the
        end, each at least 1; in between it changes geometrically. The most promising canaries, by
        the size of their scores, have the least crowded coordinates.

    Examples
    --------
    >>> Dropping(final=3, until=0.8).active(DpSgd(n=96_000))[[0, 40, 99]].tolist()
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
        before anything is known, and stay the same in each stage of a training.
        """
        check_steps(dpsgd)
        s, width = dpsgd.per_coordinate, _widths(dpsgd)
        starts = stages(dpsgd)
        loads = np.full((starts.size, width.size), s)
        for stage, t in enumerate(starts.tolist()[1:], start=1):
            fall = min(1.0, t / (self.until * dpsgd.steps)) ** self.bend
            mean = s * (min(self.final, s) / s) ** fall
            ratio = self.crowding[0] * (self.crowding[1] / self.crowding[0]) ** (t / dpsgd.steps)
            shape = ratio ** np.linspace(0, 1, width.size)
            load = np.maximum(1, np.rint(mean * shape * width.sum() / (shape @ width)))
            # Rounding must not bring back canaries that were dropped.
            while load @ width > loads[stage - 1] @ width:
                load[np.argmax(load)] -= 1
            loads[stage] = load
        return np.repeat(loads, np.diff(starts, append=dpsgd.steps), axis=0)

    def active(self, dpsgd: DpSgd) -> NDArray[np.int64]:
        """The number of active canaries in each step."""
        return self.loads(dpsgd) @ _widths(dpsgd)


def check_steps(dpsgd: DpSgd) -> None:
    _check.instance("dpsgd", dpsgd, DpSgd, "DpSgd(n=1000)")
    if dpsgd.steps > MOST_STEPS:
        raise ValueError(f"steps must be at most {MOST_STEPS}, got steps={dpsgd.steps}")


def stages(dpsgd: DpSgd) -> NDArray[np.int64]:
    """The first step of each stage of a training."""
    count = min(dpsgd.steps, STAGES)
    return np.arange(count) * dpsgd.steps // count


def _widths(dpsgd: DpSgd) -> NDArray[np.int64]:
    """The number of coordinates in each band."""
    bands = min(BANDS, dpsgd.used_coordinates)
    return np.diff(np.arange(bands + 1) * dpsgd.used_coordinates // bands)


def simulate_hopping(
    dpsgd: DpSgd, k: int, *, dropping: Dropping | None = None, trials: int = 1, seed: int
) -> Counts:
    """Audit DP-SGD with canaries that hop, guessing the k with scores farthest from 0.

    The score of a canary is the sum over the steps of the log-likelihood ratio of its coordinate's
    noisy gradient, with it and without it, where each of the others is in the batch with
    probability sample_rate / 2.

    Parameters
    ----------
    dpsgd : the training.
    k : the number of guesses, at most the number of canaries that are active in the end.
    dropping : which canaries to drop and to crowd; None for no dropping.

    Examples
    --------
    >>> dpsgd = DpSgd(n=16_000, sigma=2.4224)
    >>> counts = simulate_hopping(dpsgd, 300, trials=10, seed=1)
    >>> bool(counts.accuracy.mean() > 0.7)
    True
    """
    loads, widths = loads_and_widths(dpsgd, dropping)
    k = _check.integer("k", k, 1, int(loads[-1] @ widths))
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
    """Like :func:`simulate_hopping`, for several numbers of guesses on the same trainings.

    Parameters
    ----------
    guesses : the numbers of guesses, the largest first.
    norm : the norm of a canary's gradient; above 1 if it is not clipped.
    """
    plan = _plan(dpsgd, dropping)
    ks = numbers_of_guesses(guesses, int(plan.loads[-1] @ plan.widths))

    def block(size: int, rng: Generator) -> tuple[NDArray[np.int64]]:
        v = np.empty((size, ks.size), dtype=np.int64)
        for trial in range(size):
            included, scores, who = _hop(plan, rng, norm)
            v[trial] = [_count_right(included, scores, who, k) for k in ks.tolist()]
        return (v,)

    game = "one-run DP-SGD, hopping"
    (v,) = play(block, trials, seed, game, dpsgd, *ks.tolist(), dropping)
    return fixed_counts(v, ks, dpsgd.n, game)


def hopping_scores(
    dpsgd: DpSgd, *, dropping: Dropping | None = None, seed: int
) -> tuple[NDArray[np.bool_], NDArray[np.float64], NDArray[np.bool_]]:
    """One training of :func:`simulate_hopping`: who is included, all scores, who is active.

    The score of a dropped canary is the score it had when it was dropped.

    Examples
    --------
    >>> included, scores, active = hopping_scores(DpSgd(n=4000, sigma=1.0), seed=1)
    >>> bool(scores[included].mean() > scores[~included].mean()), int(active.sum())
    (True, 4000)
    """
    included, scores, who = _hop(_plan(dpsgd, dropping), np.random.default_rng(_check.seed(seed)))
    active = np.zeros(dpsgd.n, dtype=bool)
    active[who] = True
    return included, scores, active


class _Plan(NamedTuple):
    """What every trial of an audit shares.

    The table of the log-likelihood ratio in step t and band b begins at ``low[table[t, b]]``.
    """

    n: int
    sample_rate: float
    sigma: float
    loads: NDArray[np.int64]
    widths: NDArray[np.int64]
    table: NDArray[np.int64]
    low: NDArray[np.float64]
    step: NDArray[np.float64]
    values: NDArray[np.float64]


def loads_and_widths(
    dpsgd: DpSgd, dropping: Dropping | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The canaries per coordinate of each step and band, and the coordinates of each band."""
    check_steps(dpsgd)
    if dropping is None:
        loads = np.full((dpsgd.steps, 1), dpsgd.per_coordinate)
        return loads, np.array([dpsgd.used_coordinates])
    _check.instance("dropping", dropping, Dropping, "Dropping(final=3)")
    return dropping.loads(dpsgd), _widths(dpsgd)


def _plan(dpsgd: DpSgd, dropping: Dropping | None) -> _Plan:
    loads, widths = loads_and_widths(dpsgd, dropping)
    if dpsgd.n > 10**8:
        raise ValueError(f"n must be at most 10**8, as each canary is simulated, got n={dpsgd.n}")
    distinct, index = np.unique(loads, return_inverse=True)
    made = [ratio_table(int(load), dpsgd.sample_rate, dpsgd.sigma)[:3] for load in distinct]
    tables = (np.array(part) for part in zip(*made, strict=True))
    index = index.reshape(loads.shape)
    return _Plan(dpsgd.n, dpsgd.sample_rate, dpsgd.sigma, loads, widths, index, *tables)


@jit
def _hop(plan: _Plan, rng: Generator, norm: float = 1.0) -> tuple[Array, Array, Array]:
    """One training: the coins, all scores, and who is active in the end.

    Active canaries lie in the order of their promise, band by band. Within a band they lie in rows
    as wide as the band has coordinates, and each row is turned by an amount of its own in each
    step: so each coordinate of a band has one canary of each of its rows.
    """
    n, loads, widths = plan.n, plan.loads, plan.widths
    included = np.empty(n, dtype=np.bool_)
    for i in range(n):
        included[i] = rng.random() < 0.5
    dropped_scores = np.zeros(n)
    who, score = np.arange(n), np.zeros(n)
    coin = included.copy()
    spare = np.empty(n, dtype=np.int64), np.empty(n), np.empty(n, dtype=np.bool_)
    row, column = np.empty(n + 1, dtype=np.int32), np.empty(n + 1, dtype=np.int32)
    first = np.zeros(widths.size + 1, dtype=np.int64)
    gap = -1 / np.log1p(-plan.sample_rate)  # 0 for a full batch: no canary is left out
    active = n
    for t in range(loads.shape[0]):
        wanted = int((loads[t] * widths).sum())
        moved = t > 0 and (wanted < active or loads.shape[1] > 1)
        if moved:
            _sort(active, wanted, (who, score, coin), spare, dropped_scores)
            active = wanted
        if moved or t == 0:
            _line_up(coin, loads[t], widths, row, column, first)
        start = 0
        for band in range(widths.size):
            end = start + loads[t, band] * widths[band]
            entry, ones = plan.table[t, band], slice(first[band], first[band + 1])
            table = plan.low[entry], plan.step[entry], plan.values[entry]
            members = row[ones], column[ones]
            _step(score[start:end], members, widths[band], gap, (plan.sigma, norm), table, rng)
            start = end
    for i in range(active):
        dropped_scores[who[i]] = score[i]
    return included, dropped_scores, who[:active]


@jit
def _line_up(
    coin: Array, load: Array, widths: Array, row: Array, column: Array, first: Array
) -> None:
    """The rows and columns of the included canaries, those of each band from ``first`` on."""
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
    score: Array, members: Any, width: int, gap: float, sizes: Any, table: Any, rng: Generator
) -> None:
    """One step on the coordinates of a band: batches, noise, and what it adds to the scores.

    ``members`` are the rows and columns of the included canaries: only they can be in a batch.
    """
    row, column = members
    sigma, norm = sizes  # of the noise, and of a canary's gradient
    low, step, values = table
    rows = score.size // width
    turn = rng.integers(0, width, rows)
    noisy = np.zeros(2 * width)  # twice, so that a turned row is contiguous
    # The gaps between members of a batch are geometric: jump from member to member.
    i = np.floor(gap * rng.standard_exponential())
    while i < row.size:
        noisy[column[int(i)] + turn[row[int(i)]]] += norm
        i += 1 + np.floor(gap * rng.standard_exponential())
    for j in range(width):
        y = noisy[j] + noisy[j + width] + sigma * rng.standard_normal()
        noisy[j] = noisy[j + width] = interpolate(values, low, step, y)
    for i in range(rows):  # in slices, which the compiler can add several numbers at a time
        here, turned = score[i * width : (i + 1) * width], noisy[turn[i] : turn[i] + width]
        for j in range(width):
            here[j] += turned[j]


#: Scores are sorted by their size to a thousandth, up to 8: finer does not matter.
_KEYS, _KEYS_PER_UNIT = 8192, 1024.0


@jit
def _sort(active: int, wanted: int, canaries: Any, spare: Any, dropped_scores: Array) -> None:
    """Sort the active canaries by the size of their scores, and drop those beyond ``wanted``."""
    who, score, coin = canaries
    spare_who, spare_score, spare_coin = spare
    place = np.zeros(_KEYS + 1, dtype=np.int64)
    for i in range(active):
        place[_key(score[i]) + 1] += 1
    for key in range(_KEYS):
        place[key + 1] += place[key]
    for i in range(active):
        key = _key(score[i])
        spare_who[place[key]] = who[i]
        spare_score[place[key]] = score[i]
        spare_coin[place[key]] = coin[i]
        place[key] += 1
    for i in range(wanted):
        who[i], score[i], coin[i] = spare_who[i], spare_score[i], spare_coin[i]
    for i in range(wanted, active):
        dropped_scores[spare_who[i]] = spare_score[i]


@jit
def _key(score: float) -> int:
    """Small for a large score."""
    return _KEYS - 1 - int(min(abs(score) * _KEYS_PER_UNIT, _KEYS - 1.0))


def by_promise(scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """The order in which :func:`_sort` puts canaries with these scores."""
    size = np.minimum(np.abs(scores) * _KEYS_PER_UNIT, _KEYS - 1.0).astype(np.int16)
    return np.argsort(-size, kind="stable")


@jit
def _count_right(included: Array, scores: Array, who: Array, k: int) -> int:
    """How many of the k guesses with the scores farthest from 0 are right."""
    size = np.abs(scores[who])
    last = np.partition(size, size.size - k)[size.size - k]
    right, ties = 0, k - (size > last).sum()
    for i in range(size.size):
        if size[i] >= last:
            guessed = size[i] > last or ties > 0
            ties -= size[i] == last
            right += guessed and (scores[who[i]] > 0) == included[who[i]]
    return right
