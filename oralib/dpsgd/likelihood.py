"""The most likely guess for canaries that stay on their coordinates, from sums or from all steps.

A coordinate has s canaries, m of them included. Its noisy gradients give a likelihood for m;
then each canary is included with probability E[m / s]. The guesser uses the likelihood of the sum,

    y = N + σ √T Z,   N ~ Bin(m T, sample rate),

or the product of the likelihoods of T steps, each y_t = Bin(m, sample rate) + σ Z. The steps
determine the sum, so they say at least as much.

With one-way feedback the guesser skips the least promising element and is shown its coin. It
repeats this until k elements are left, and guesses them.
"""

from collections.abc import Sequence
from functools import lru_cache, partial
from heapq import heapify, heappop, heapreplace
from math import lgamma, sqrt
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from oralib.bounds import Counts
from oralib.dpsgd.play import play_audits
from oralib.dpsgd.ratios import POINTS, interpolate, log_mixture, log_weights
from oralib.dpsgd.setting import DpSgd
from oralib.ground import arguments
from oralib.ground.jit import jit
from oralib.ground.types import VIEWS, Array, Feedback, View

__all__ = ["LikelihoodTables", "beliefs", "likelihood_counts", "likelihood_tables"]
__all__ += ["log_likelihoods", "log_odds", "simulate_likelihood"]


def simulate_likelihood(
    dpsgd: DpSgd,
    guesses: int,
    *,
    sees: View = "steps",
    feedback: Feedback = "none",
    trials: int = 1,
    seed: int,
) -> Counts:
    """Audit DP-SGD, guessing the elements whose coins are best known from the outputs.

    Parameters
    ----------
    dpsgd : DpSgd
        The training.
    guesses : int
        The number of guesses.
    sees : str
        The outputs that the guesser sees: the ``"sum"`` of the noisy gradients, or all ``"steps"``.
    feedback : str
        ``"none"``, or ``"one-way"``: the guesser is shown the coins of elements on which it
        abstains.
    trials : int
        The number of independent audits to simulate.
    seed : int
        The seed of their random numbers.

    Examples
    --------
    >>> dpsgd = DpSgd(n=4000, sigma=0.99)
    >>> played = partial(simulate_likelihood, dpsgd, 100, trials=50, seed=1)
    >>> bool(played(sees="steps").v.mean() > played(sees="sum").v.mean())
    True
    """
    arguments.instance("dpsgd", dpsgd, DpSgd, "DpSgd(n=1000, sigma=1.0)")
    arguments.one_of("sees", sees, VIEWS)
    arguments.one_of("feedback", feedback, ("none", "one-way"))
    play = partial(likelihood_counts, dpsgd, [guesses], trials=trials, seed=seed)
    return play(sees=sees, feedback=feedback)[0]


def likelihood_counts(
    dpsgd: DpSgd, guesses: Sequence[int], *, sees: View, feedback: Feedback, trials: int, seed: int
) -> list[Counts]:
    """Return the counts of :func:`simulate_likelihood` for falling numbers of guesses."""
    if sees == "sum":  # the same as one step with T draws of each element and the noise of T steps
        draws = dpsgd.steps
        rounds = 1
    else:
        draws = 1
        rounds = dpsgd.steps
    rate = dpsgd.sample_rate
    noise = dpsgd.sigma * sqrt(draws)
    tables = likelihood_tables(dpsgd.per_coordinate, draws, rate, noise)
    d = dpsgd.used_coordinates
    one_way = feedback == "one-way"

    def block(ks: NDArray[np.int64], size: int, rng: Generator) -> NDArray[np.int64]:
        return _audit_block(size, d, draws, rounds, rate, noise, tables, ks, one_way, rng)

    game = f"{'one-way' if one_way else 'one-run'} DP-SGD, likelihood"
    return play_audits(game, block, dpsgd, guesses, dpsgd.n, trials, seed, sees, feedback=feedback)


class LikelihoodTables(NamedTuple):
    """The log-likelihoods of a noisy gradient, and the logarithms of factorials.

    Row m of ``values`` is for m included elements, at the points ``low``, ``low + spacing``, ...
    """

    low: float
    spacing: float
    values: NDArray[np.float64]
    factorials: NDArray[np.float64]


@lru_cache(maxsize=64)
def likelihood_tables(s: int, draws: int, sample_rate: float, noise: float) -> LikelihoodTables:
    """Return the tables for m = 0, ..., s included elements, each drawn ``draws`` times."""
    if s > 1000:
        raise ValueError(f"n / d must be at most 1000, to weigh every count, got n / d = {s}")
    reach = 8 * sqrt(noise**2 + s * draws * sample_rate)
    low = -reach
    high = s * draws * sample_rate + reach
    spacing = (high - low) / (POINTS - 1)
    values = _log_likelihoods(s, draws, sample_rate, noise, low, spacing)
    return LikelihoodTables(low, spacing, values, np.array([lgamma(i + 1) for i in range(s + 1)]))


@jit
def _log_likelihoods(
    s: int, draws: int, sample_rate: float, noise: float, low: float, spacing: float
) -> Array:
    values = np.empty((s + 1, POINTS))
    for m in range(s + 1):
        first, weight = log_weights(m * draws, sample_rate)
        for i in range(POINTS):
            values[m, i] = log_mixture(low + i * spacing, first, weight, noise)
    return values


@jit
def _audit_block(
    trials: int,
    d: int,
    draws: int,
    rounds: int,
    sample_rate: float,
    noise: float,
    tables: LikelihoodTables,
    ks: Array,
    one_way: bool,
    rng: Generator,
) -> Array:
    """Return the right guesses of several audits, a column for each number of guesses.

    In each, toss the coins of all elements; in each round and for each coordinate draw how many are
    in the batch, and add noise. Then guess the elements whose coins are best known from that.
    """
    s = tables.values.shape[0] - 1
    v = np.empty((trials, ks.size), dtype=np.int64)
    coins = np.empty((d, s), dtype=np.bool_)
    y = np.empty((rounds, d))
    for trial in range(trials):
        for j in range(d):
            for i in range(s):
                coins[j, i] = rng.random() < 0.5
            ones = coins[j].sum()
            for t in range(rounds):
                y[t, j] = rng.binomial(ones * draws, sample_rate) + noise * rng.standard_normal()
        likelihood = log_likelihoods(y, tables)
        belief = beliefs(likelihood, tables.factorials)
        if one_way:
            v[trial] = _right_after_feedback(likelihood, coins, belief, ks, tables.factorials)
        else:
            v[trial] = _right_of_likeliest(coins, belief, ks)
    return v


@jit
def log_likelihoods(y: Array, tables: LikelihoodTables) -> Array:
    """Return log P[gradients | m of s included], a row per coordinate, m = 0, ..., s."""
    likelihood = np.zeros((y.shape[1], tables.values.shape[0]))
    for j, m in np.ndindex(likelihood.shape):
        for t in range(y.shape[0]):
            likelihood[j, m] += interpolate(tables.values[m], tables.low, tables.spacing, y[t, j])
    return likelihood


@jit
def beliefs(likelihood: Array, factorials: Array) -> Array:
    """Return each coordinate's log-odds that one of its elements is included, no coin shown."""
    belief = np.empty(likelihood.shape[0])
    for j in range(belief.size):
        belief[j] = log_odds(likelihood[j], likelihood.shape[1] - 1, 0, factorials)
    return belief


@jit
def log_odds(likelihood: Array, unknown: int, ones: int, factorials: Array) -> float:
    """Return the log-odds that an unknown element is included; ``ones`` were shown as included."""
    m = np.arange(unknown + 1)
    level = likelihood[ones : ones + m.size] - factorials[m] - factorials[unknown - m]
    weight = np.exp(level - level.max())
    included = (m * weight).sum()
    excluded = ((unknown - m) * weight).sum()
    if included > 0 and excluded > 0:
        return np.log(included) - np.log(excluded)
    # Beyond the range of the exponential: both sums by their logarithms.
    included = excluded = -np.inf
    for i in range(m.size):
        included = np.logaddexp(included, level[i] + np.log(i))
        excluded = np.logaddexp(excluded, level[i] + np.log(unknown - i))
    return included - excluded


@jit
def _right_of_likeliest(coins: Array, belief: Array, ks: Array) -> Array:
    """Guess the elements of the most promising coordinates; of the last one only as many as fit."""
    v = np.zeros(ks.size, dtype=np.int64)
    order = np.argsort(-np.abs(belief))
    for i in range(ks.size):
        left = ks[i]
        for j in order:
            guesses = min(left, coins.shape[1])
            ones = coins[j, :guesses].sum()
            v[i] += ones if belief[j] > 0 else guesses - ones
            left -= guesses
            if left == 0:
                break
    return v


@jit
def _right_after_feedback(
    likelihood: Array, coins: Array, belief: Array, ks: Array, factorials: Array
) -> Array:
    """Show the least promising element until k are left, and guess those; then go on to fewer."""
    d, s = coins.shape
    # For each coordinate, the coins that were shown, and how many of them are 1.
    revealed = np.zeros(d, dtype=np.int64)
    revealed_ones = np.zeros(d, dtype=np.int64)
    queue = [(abs(belief[j]), j) for j in range(d)]
    heapify(queue)
    v = np.zeros(ks.size, dtype=np.int64)
    left = d * s
    for i in range(ks.size):
        while left > ks[i]:
            j = queue[0][1]
            revealed_ones[j] += coins[j, revealed[j]]
            revealed[j] += 1
            left -= 1
            if revealed[j] == s:
                heappop(queue)  # no element is left to show; others may be just as certain
            else:
                belief[j] = log_odds(likelihood[j], s - revealed[j], revealed_ones[j], factorials)
                heapreplace(queue, (abs(belief[j]), j))
        for j in range(d):
            ones = coins[j, revealed[j] :].sum()
            v[i] += ones if belief[j] > 0 else s - revealed[j] - ones
    return v
