"""The audit of Section 6, and its collapsed form: only what the guesser looks at.

The guesser sorts coordinates by the sum of their T noisy gradients (in units of the clipping
threshold), which is

    N + σ √T Z,   N ~ Bin(m T, sample rate),   m ~ Bin(n / d, 1/2),   Z normal,

independently for each coordinate, where m is the number of its included elements.
"""

from functools import lru_cache
from math import log, sqrt
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from oralib import _check
from oralib._binomial import log_pmf
from oralib._jit import jit
from oralib.bounds import Counts
from oralib.dpsgd.extremes import coordinates_needed, extremes_of, play_extremes
from oralib.dpsgd.training import DpSgd, ones_among, play_counts
from oralib.mechanisms import Array

#: How to draw an audit.
METHODS = ("auto", "collapsed", "extremes")
#: This many coordinates, or elements in one, are many: drawing all of them takes long.
_MANY_COORDINATES, _MANY_ELEMENTS = 10_000, 256


def simulate_dpsgd(
    dpsgd: DpSgd, k: int, *, trials: int = 1, seed: int, method: str = "auto"
) -> Counts:
    """Audit DP-SGD with k guesses: 1 for the k/2 highest elements, -1 for the k/2 lowest.

    For odd k the highest get one more. The score of an element is the sum of all noisy gradients of
    its coordinate; which elements of a coordinate are taken at the border does not matter.

    Parameters
    ----------
    dpsgd : the training.
    k : the number of guesses.
    trials, seed : how many audits are played, and with which random numbers.
    method : how they are drawn. The law is the same, but the random numbers are not:
        ``"collapsed"`` draws each coordinate; ``"extremes"`` only those that are guessed, in a time
        that depends on k alone, after preparing tables for about half a second; ``"auto"`` takes
        the latter where there are many more coordinates, or too many elements in each.

    Examples
    --------
    >>> counts = simulate_dpsgd(DpSgd(n=10**12, d=10**12, sigma=2.4224), 100, trials=1000, seed=1)
    >>> bool(abs(counts.v.mean() - 93.92) < 0.3)
    True
    """
    _check.instance("dpsgd", dpsgd, DpSgd, "DpSgd(n=1000)")
    k = _check.integer("k", k, 1, dpsgd.n)
    _check.one_of("method", method, METHODS)
    used, s = dpsgd.used_coordinates, dpsgd.per_coordinate
    many = used >= max(_MANY_COORDINATES, 8 * coordinates_needed(dpsgd, k))
    game = "one-run DP-SGD"
    if method == "extremes" or (method == "auto" and (many or s >= _MANY_ELEMENTS)):
        try:
            extremes = extremes_of(dpsgd, k)
        except ValueError:  # there is too little noise, or there are too many guesses
            if method == "extremes":
                raise
        else:

            def drawn(size: int, rng: Generator) -> tuple[NDArray[Any], NDArray[Any]]:
                return play_extremes(extremes, size, rng), np.full(size, k)

            # A trial takes microseconds, less than opening a stream for a few of them.
            key = dpsgd, trials, seed, k, "extremes"
            return play_counts(game, drawn, *key, r_fixed=True, largest=1024)
    law = _coordinate_law(s, dpsgd.steps, dpsgd.sample_rate)
    noise = dpsgd.sigma * sqrt(dpsgd.steps)

    def block(size: int, rng: Generator) -> tuple[NDArray[Any], NDArray[Any]]:
        return _audit_block(size, used, s, k, noise, law, rng), np.full(size, k)

    return play_counts(game, block, dpsgd, trials, seed, k, r_fixed=True)


@lru_cache(maxsize=64)
def _coordinate_law(
    s: int, steps: int, sample_rate: float
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
    """The joint law of (m, N) as an alias table: m, N, and for each entry a cut and an alias."""
    # m and N are spread over some 21 standard deviations, see _NEGLIGIBLE.
    spread_m, spread_n = min(s, 11 * sqrt(s)), 21 * sqrt(s * steps * sample_rate) + 1
    if spread_m * spread_n > 3e7:
        raise ValueError(
            "n / d and steps must be small enough to tabulate the law of a coordinate, "
            f"got n / d = {s} and steps={steps}"
        )
    m, total, probability = _joint_law(s, steps, sample_rate)
    return m, total, *_alias(probability)


#: Log-probability that no draw can notice: a uniform double has 53 bits.
_NEGLIGIBLE = log(1e-25)


@jit
def _joint_law(s: int, steps: int, sample_rate: float) -> tuple[Array, Array, Array]:
    """All (m, N) that are not negligible, and their probabilities."""
    ms, totals, levels = [0], [0], [0.0]
    for m in _around(s // 2, s, 0.5, 0.0):
        weight = log_pmf(m, s, 0.5, 0.5)
        if sample_rate == 1:
            ms.append(m)
            totals.append(m * steps)
            levels.append(weight)
            continue
        mean = int(m * steps * sample_rate)
        for total in _around(mean, m * steps, sample_rate, weight):
            ms.append(m)
            totals.append(total)
            levels.append(weight + log_pmf(total, m * steps, sample_rate, 1 - sample_rate))
    return np.array(ms[1:]), np.array(totals[1:]), np.exp(np.array(levels[1:]))


@jit
def _around(start: int, r: int, q: float, weight: float) -> list[int]:
    """The counts of Bin(r, q), from ``start`` outwards, that are not negligible."""
    first = last = start
    while first > 0 and weight + log_pmf(first - 1, r, q, 1 - q) > _NEGLIGIBLE:
        first -= 1
    while last < r and weight + log_pmf(last + 1, r, q, 1 - q) > _NEGLIGIBLE:
        last += 1
    return list(range(first, last + 1))


@jit
def _alias(probability: Array) -> tuple[Array, Array]:
    """Walker's alias method: entry i yields i if a uniform lies below cut[i], else alias[i]."""
    size = probability.size
    cut = probability * (size / probability.sum())
    alias = np.arange(size)
    small = [i for i in range(size) if cut[i] < 1]
    large = [i for i in range(size) if cut[i] >= 1]
    while len(small) > 0 and len(large) > 0:
        poor, rich = small.pop(), large[-1]
        alias[poor] = rich
        cut[rich] -= 1 - cut[poor]
        if cut[rich] < 1:
            small.append(large.pop())
    for i in small + large:  # only left over by rounding
        cut[i] = 1.0
    return cut, alias


@jit
def _audit_block(
    trials: int, d: int, s: int, k: int, noise: float, law: Any, rng: Generator
) -> Array:
    m, total, cut, alias = law
    v = np.empty(trials, dtype=np.int64)
    included = np.empty(d, dtype=np.int64)
    score = np.empty(d)
    for trial in range(trials):
        for j in range(d):
            x = rng.random() * cut.size
            entry = int(x)
            if x - entry >= cut[entry]:
                entry = alias[entry]
            included[j] = m[entry]
            score[j] = total[entry] + noise * rng.standard_normal()
        v[trial] = _count_right(score, included, s, k, rng)
    return v


@jit
def _count_right(score: Array, included: Array, s: int, k: int, rng: Generator) -> int:
    """How many of the k guesses are right, given each coordinate's score and included elements."""
    d = score.size
    high, low = k - k // 2, k // 2
    # Whole coordinates are taken from both ends of the order; at most two only in part.
    first, last = min(low // s, d - 1), max(d - 1 - high // s, 0)
    order = _split(score, first, last)
    right = 0
    for j in range(d - high // s, d):
        right += included[order[j]]
    for j in range(low // s):
        right += s - included[order[j]]
    high, low = high % s, low % s
    ones = included[order[last]]
    if first == last:  # both parts fall into one coordinate
        drawn = ones_among(high, ones, s, rng)
        return right + drawn + low - ones_among(low, ones - drawn, s - high, rng)
    right += ones_among(high, ones, s, rng)
    return right + low - ones_among(low, included[order[first]], s, rng)


@jit
def _split(score: Array, first: int, last: int) -> Array:
    """The coordinates, ordered only as far as the borders ``first`` and ``last`` need.

    Selection instead of sorting: only the two borders matter, not the order beyond them.
    """
    order = np.argpartition(score, first)
    if last > first:
        rest = order[first + 1 :].copy()
        order[first + 1 :] = rest[np.argpartition(score[rest], last - first - 1)]
    return order
