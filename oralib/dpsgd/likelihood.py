"""The most likely guess for canaries that stay on their coordinates, from sums or from all steps.

A coordinate has s canaries, m of them included. Its noisy gradients give a likelihood for m, and
for one canary the posterior mean of m / s. From the sum,

    y = N + σ √T Z,   N ~ Bin(m T, sample rate),

and from the T steps, each y_t = Bin(m, sample rate) + σ Z: the likelihoods multiply. The steps
contain the sum, so they say at least as much; how much more depends on the noise.

With one-way feedback the guesser is shown the coins of elements that it abstains from, and its
beliefs about the others on that coordinate sharpen. It is shown the least promising element, again
and again, until only k are left, and guesses those.
"""

from collections.abc import Sequence
from functools import lru_cache
from heapq import heapify, heappop, heapreplace
from math import lgamma, sqrt
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from oralib import _check
from oralib._binomial import log_pmf
from oralib._jit import jit
from oralib._streams import play
from oralib.bounds import Counts
from oralib.dpsgd.ratios import POINTS, interpolate, log_mixture, window
from oralib.dpsgd.training import DpSgd, fixed_counts, numbers_of_guesses
from oralib.mechanisms import Array

SEEN = ("sum", "steps")


def simulate_likelihood(
    dpsgd: DpSgd, k: int, *, sees: str = "steps", feedback: str = "none", trials: int = 1, seed: int
) -> Counts:
    """Audit DP-SGD with k guesses at the elements whose coins are best known from the outputs.

    Parameters
    ----------
    dpsgd : the training; its canaries stay on their coordinates.
    k : the number of guesses, fixed in advance.
    sees : whether the guesser looks at the ``"sum"`` of the noisy gradients or at all ``"steps"``.
    feedback : ``"none"``, or ``"one-way"``: it is shown the coins of elements that it abstains
        from, the least promising first, until k are left.

    Examples
    --------
    >>> dpsgd = DpSgd(n=4000, sigma=0.99)
    >>> means = [simulate_likelihood(dpsgd, 100, sees=x, trials=50, seed=1).v.mean() for x in SEEN]
    >>> bool(means[1] > means[0])
    True
    """
    _check.instance("dpsgd", dpsgd, DpSgd, "DpSgd(n=1000)")
    k = _check.integer("k", k, 1, dpsgd.n)
    return likelihood_counts(dpsgd, [k], sees=sees, feedback=feedback, trials=trials, seed=seed)[0]


def likelihood_counts(
    dpsgd: DpSgd,
    guesses: Sequence[int],
    *,
    sees: str = "steps",
    feedback: str = "none",
    trials: int = 1,
    seed: int,
) -> list[Counts]:
    """Like :func:`simulate_likelihood`, for several numbers of guesses, the largest first."""
    ks = numbers_of_guesses(guesses, dpsgd.n)
    _check.one_of("sees", sees, SEEN)
    _check.one_of("feedback", feedback, ("none", "one-way"))
    s, steps = dpsgd.per_coordinate, dpsgd.steps
    # A sum is one step with T draws of each element, and with the noise of T steps.
    draws, rounds = (steps, 1) if sees == "sum" else (1, steps)
    noise = dpsgd.sigma * sqrt(draws)
    tables = likelihood_tables(s, draws, dpsgd.sample_rate, noise)

    def block(size: int, rng: Generator) -> tuple[NDArray[np.int64]]:
        training = dpsgd.used_coordinates, s, draws, rounds, dpsgd.sample_rate, noise
        return (_block(size, training, ks, feedback == "one-way", tables, rng),)

    game = "one-run DP-SGD, likelihood" if feedback == "none" else "one-way DP-SGD, likelihood"
    (v,) = play(block, trials, seed, game, dpsgd, *ks.tolist(), sees)
    return fixed_counts(v, ks, dpsgd.n, game, feedback)


@lru_cache(maxsize=64)
def likelihood_tables(
    s: int, draws: int, sample_rate: float, noise: float
) -> tuple[float, float, NDArray[np.float64], NDArray[np.float64]]:
    """Log-likelihoods of a noisy gradient for m = 0, ..., s, and the logarithms of factorials."""
    if s > 1000:
        raise ValueError(f"n / d must be at most 1000, to weigh every count, got n / d = {s}")
    reach = 8 * sqrt(noise**2 + s * draws * sample_rate)
    low, high = -reach, s * draws * sample_rate + reach
    step = (high - low) / (POINTS - 1)
    factorials = np.array([lgamma(i + 1) for i in range(s + 1)])
    return low, step, _log_likelihoods(s, draws, sample_rate, noise, low, step), factorials


@jit
def _log_likelihoods(
    s: int, draws: int, sample_rate: float, noise: float, low: float, step: float
) -> Array:
    table = np.empty((s + 1, POINTS))
    for m in range(s + 1):
        first, last = window(m * draws, sample_rate)
        weight = np.empty(last - first + 1)
        for i in range(weight.size):
            weight[i] = log_pmf(first + i, m * draws, sample_rate, 1 - sample_rate)
        for i in range(POINTS):
            table[m, i] = log_mixture(low + i * step, first, weight, noise)
    return table


@jit
def _block(
    trials: int, training: Any, ks: Array, one_way: bool, tables: Any, rng: Generator
) -> Array:
    d, s, draws, rounds, sample_rate, noise = training
    low, step, table, factorials = tables
    v = np.empty((trials, ks.size), dtype=np.int64)
    likelihood = np.empty((d, s + 1))
    coins = np.empty((d, s), dtype=np.bool_)
    for trial in range(trials):
        likelihood[:] = 0
        for j in range(d):
            for i in range(s):
                coins[j, i] = rng.random() < 0.5
            ones = coins[j].sum()
            for _ in range(rounds):
                y = rng.binomial(ones * draws, sample_rate) + noise * rng.standard_normal()
                weigh(likelihood[j], table, low, step, y)
        v[trial] = count_right(likelihood, coins, ks, one_way, factorials)
    return v


@jit
def weigh(likelihood: Array, table: Array, low: float, step: float, y: float) -> None:
    """Add what a noisy gradient says about each number of included elements."""
    for m in range(likelihood.size):
        likelihood[m] += interpolate(table[m], low, step, y)


@jit
def count_right(
    likelihood: Array, coins: Array, ks: Array, one_way: bool, factorials: Array
) -> Array:
    """How many of k guesses are right, for each k; the coins have a row for each coordinate."""
    d, s = coins.shape
    belief = np.empty(d)
    for j in range(d):
        belief[j] = log_odds(likelihood[j], s, np.int64(0), factorials)
    if one_way:
        return _reveal(likelihood, coins, belief, ks, factorials)
    right = np.empty(ks.size, dtype=np.int64)
    for i in range(ks.size):
        right[i] = _plain(coins, belief, ks[i])
    return right


@jit
def log_odds(likelihood: Array, unknown: int, seen: int, factorials: Array) -> float:
    """The log-odds that an element is included, ``unknown`` of s left and ``seen`` ones shown."""
    top = -np.inf
    for m in range(unknown + 1):
        top = max(top, likelihood[seen + m] - factorials[m] - factorials[unknown - m])
    included = excluded = 0.0
    for m in range(unknown + 1):
        weight = np.exp(likelihood[seen + m] - factorials[m] - factorials[unknown - m] - top)
        included += m * weight
        excluded += (unknown - m) * weight
    if included == 0:  # beyond the range of the exponential
        level = _log_sum(likelihood, unknown, seen, factorials, np.int64(1))
        return level - top - np.log(excluded)
    if excluded == 0:
        level = _log_sum(likelihood, unknown, seen, factorials, np.int64(0))
        return np.log(included) + top - level
    return np.log(included) - np.log(excluded)


@jit
def _log_sum(likelihood: Array, unknown: int, seen: int, factorials: Array, coin: int) -> float:
    """The logarithm of one of the two sums in :func:`log_odds`, whatever the size of the other."""
    total = -np.inf
    for m in range(coin, unknown + coin):
        share = m if coin else unknown - m
        level = likelihood[seen + m] - factorials[m] - factorials[unknown - m]
        total = np.logaddexp(total, level + np.log(share))
    return total


@jit
def _plain(coins: Array, belief: Array, k: int) -> int:
    """Guess the elements of the most promising coordinates; of the last one only as many as fit."""
    right = 0
    for j in np.argsort(-np.abs(belief)):
        taken = min(k, coins.shape[1])
        ones = coins[j, :taken].sum()
        right += ones if belief[j] > 0 else taken - ones
        k -= taken
        if k == 0:
            break
    return right


@jit
def _reveal(likelihood: Array, coins: Array, belief: Array, ks: Array, factorials: Array) -> Array:
    """Show the least promising element until k are left, and guess those; then go on to fewer."""
    d, s = coins.shape
    shown, seen = np.zeros(d, dtype=np.int64), np.zeros(d, dtype=np.int64)
    queue = [(abs(belief[j]), j) for j in range(d)]
    heapify(queue)
    right, left = np.zeros(ks.size, dtype=np.int64), d * s
    for i in range(ks.size):
        while left > ks[i]:
            j = queue[0][1]
            seen[j] += coins[j, shown[j]]
            shown[j] += 1
            left -= 1
            if shown[j] == s:
                heappop(queue)  # nothing is left to show; others may be just as certain
            else:
                belief[j] = log_odds(likelihood[j], s - shown[j], seen[j], factorials)
                heapreplace(queue, (abs(belief[j]), j))
        for j in range(d):
            ones = coins[j, shown[j] :].sum()
            right[i] += ones if belief[j] > 0 else s - shown[j] - ones
    return right
