"""The audit of Section 6, drawing only what the guesser sees: for each coordinate

    N + σ √T Z,   N ~ Bin(m T, sample rate),   m ~ Bin(n / d, 1/2),   Z normal,

the sum of its T noisy gradients, where m is the number of its included elements.
"""

from functools import lru_cache
from math import log, sqrt
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from oralib.bounds import Counts
from oralib.dpsgd.play import ones_among, play_audits
from oralib.dpsgd.ratios import window
from oralib.dpsgd.setting import DpSgd
from oralib.ground import arguments
from oralib.ground.binomial import log_pmf
from oralib.ground.jit import jit
from oralib.ground.types import Array

__all__ = ["joint_law", "simulate_dpsgd"]

#: Outcomes of a smaller log-probability are left out: a 53-bit uniform never reaches them.
_LEAST_LOG_PROBABILITY = log(1e-25)


def simulate_dpsgd(dpsgd: DpSgd, guesses: int, *, trials: int = 1, seed: int) -> Counts:
    """Audit DP-SGD: half the guesses are 1, for the highest scores, and half -1, for the lowest.

    If their number is odd, the highest get one more. The score of an element is the sum of all
    noisy gradients of its coordinate.

    Parameters
    ----------
    dpsgd : DpSgd
        The training.
    guesses : int
        The number of guesses.
    trials : int
        The number of independent audits to simulate.
    seed : int
        The seed of their random numbers.

    Examples
    --------
    >>> counts = simulate_dpsgd(DpSgd(n=8000, sigma=2.4224), 100, trials=200, seed=1)
    >>> bool(abs(counts.accuracy.mean() - 0.72) < 0.02)
    True
    """
    arguments.instance("dpsgd", dpsgd, DpSgd, "DpSgd(n=1000, sigma=1.0)")
    k = arguments.integer("guesses", guesses, 1, dpsgd.n)
    d = dpsgd.used_coordinates
    s = dpsgd.per_coordinate
    law = _coordinate_law(s, dpsgd.steps, dpsgd.sample_rate)
    noise = dpsgd.sigma * sqrt(dpsgd.steps)

    def block(_: NDArray[np.int64], size: int, rng: Generator) -> NDArray[np.int64]:
        return _audit_block(size, d, s, k, noise, law, rng)[:, None]

    return play_audits("one-run DP-SGD", block, dpsgd, [k], dpsgd.n, trials, seed)[0]


class _CoordinateLaw(NamedTuple):
    """The joint law of (m, N) as an alias table: m, N, and for each entry a cut and an alias."""

    m: NDArray[np.int64]
    total: NDArray[np.int64]
    cut: NDArray[np.float64]
    alias: NDArray[np.int64]


@lru_cache(maxsize=64)
def _coordinate_law(s: int, steps: int, sample_rate: float) -> _CoordinateLaw:
    # m and N are spread over some 21 standard deviations, see _LEAST_LOG_PROBABILITY.
    spread_m = min(s, 11 * sqrt(s))
    spread_n = 21 * sqrt(s * steps * sample_rate) + 1
    if spread_m * spread_n > 3e7:
        raise ValueError(
            "n / d and steps must be small enough to tabulate the law of a coordinate, "
            f"got n / d = {s} and steps={steps}"
        )
    m, total, probability = joint_law(s, steps, sample_rate)
    return _CoordinateLaw(m, total, *_alias(probability))


@jit
def joint_law(s: int, steps: int, sample_rate: float) -> tuple[Array, Array, Array]:
    """Return all (m, N) that are not negligible, and their probabilities."""
    # Each list begins with an entry that tells the compiler its type.
    ms = [0]
    totals = [0]
    levels = [0.0]
    low, high = window(s, 0.5, _LEAST_LOG_PROBABILITY)
    for m in range(low, high + 1):
        weight = log_pmf(m, s, 0.5, 0.5)
        first, last = window(m * steps, sample_rate, _LEAST_LOG_PROBABILITY - weight)
        for total in range(first, last + 1):
            ms.append(m)
            totals.append(total)
            levels.append(weight + log_pmf(total, m * steps, sample_rate, 1 - sample_rate))
    return np.array(ms[1:]), np.array(totals[1:]), np.exp(np.array(levels[1:]))


@jit
def _alias(probability: Array) -> tuple[Array, Array]:
    """Make the table of Walker's method: i yields i if a uniform is below cut[i], else alias[i]."""
    size = probability.size
    cut = probability * (size / probability.sum())
    alias = np.arange(size)
    small = [i for i in range(size) if cut[i] < 1]
    large = [i for i in range(size) if cut[i] >= 1]
    while len(small) > 0 and len(large) > 0:
        poor = small.pop()
        rich = large[-1]
        alias[poor] = rich
        cut[rich] -= 1 - cut[poor]
        if cut[rich] < 1:
            small.append(large.pop())
    for i in small + large:  # only left over by rounding
        cut[i] = 1.0
    return cut, alias


@jit
def _audit_block(
    trials: int, d: int, s: int, k: int, noise: float, law: _CoordinateLaw, rng: Generator
) -> Array:
    """Return the right guesses of several audits at the highest and the lowest coordinates."""
    v = np.empty(trials, dtype=np.int64)
    included = np.empty(d, dtype=np.int64)
    score = np.empty(d)
    for trial in range(trials):
        for j in range(d):
            x = rng.random() * law.cut.size
            entry = int(x)
            if x - entry >= law.cut[entry]:
                entry = law.alias[entry]
            included[j] = law.m[entry]
            score[j] = law.total[entry] + noise * rng.standard_normal()
        v[trial] = _right_at_both_ends(score, included, s, k, rng)
    return v


@jit
def _right_at_both_ends(score: Array, included: Array, s: int, k: int, rng: Generator) -> int:
    """Return the number of right guesses, from each coordinate's score and included elements."""
    d = score.size
    low = k // 2
    high = k - low
    # Whole coordinates are taken from both ends of the order; at most two only in part.
    first = min(low // s, d - 1)
    last = max(d - 1 - high // s, 0)
    # Selection instead of sorting: the order within the three parts between them does not matter.
    order = np.arange(d)
    _select(score, order, first, 0)
    if last > first:
        _select(score, order, last, first)
    v = 0
    for j in range(d - high // s, d):
        v += included[order[j]]
    for j in range(low // s):
        v += s - included[order[j]]
    high %= s
    low %= s
    ones = included[order[last]]
    if first == last:  # both parts fall into one coordinate
        drawn = ones_among(high, ones, s, rng)
        return v + drawn + low - ones_among(low, ones - drawn, s - high, rng)
    v += ones_among(high, ones, s, rng)
    return v + low - ones_among(low, included[order[first]], s, rng)


@jit
def _select(score: Array, order: Array, place: int, low: int) -> None:
    """Sort ``order`` by score from ``low`` on, as far as ``place`` can tell (Hoare's selection)."""
    high = order.size - 1  # by hand: Numba compiles argpartition for as long as a whole audit
    while low < high:
        pivot = score[order[high]]  # any will do: there is no order, and no tie
        middle = low
        for i in range(low, high):
            if score[order[i]] < pivot:
                order[i], order[middle] = order[middle], order[i]
                middle += 1
        order[middle], order[high] = order[high], order[middle]
        if middle == place:
            break
        if place < middle:
            high = middle - 1
        else:
            low = middle + 1
