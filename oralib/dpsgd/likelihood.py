"""The most likely guess for canaries that stay on their coordinates, from sums or from all steps.

A coordinate has s canaries, m of them included. What its noisy gradients say about m is a
likelihood; what they say about one canary is the posterior mean of m / s. From the sum,

    y = N + σ √T Z,   N ~ Bin(m T, sample rate),

and from the T steps, of which each is y_t = Bin(m, sample rate) + σ Z: the likelihoods multiply.
The steps contain the sum, so they say more: how much more depends on the noise.

With one-way feedback the guesser is shown the coins of elements that it abstains from, and its
beliefs about the others on that coordinate sharpen. It is shown the least promising element first,
again and again, until just k are left, and guesses those.
"""

from functools import lru_cache
from heapq import heapify, heappop, heapreplace
from math import lgamma, sqrt

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from oralib import _check
from oralib._binomial import log_pmf
from oralib._jit import jit
from oralib.bounds import Counts
from oralib.dpsgd.tables import POINTS, interpolate, log_mixture, window
from oralib.dpsgd.training import DpSgd, ones_among, play_counts
from oralib.mechanisms import Array

__all__ = ["audit_likelihood"]

SEEN = ("sum", "steps")


def audit_likelihood(
    dpsgd: DpSgd,
    k: int,
    *,
    sees: str = "steps",
    feedback: str = "none",
    trials: int = 1,
    seed: int,
) -> Counts:
    """Audit DP-SGD with k guesses at the elements whose coins are best known from the outputs.

    Parameters
    ----------
    dpsgd : the training; its canaries stay on their coordinates.
    k : the number of guesses, fixed in advance.
    sees : whether the guesser looks at the ``"sum"`` of the noisy gradients, as with the first and
        the last weights, or at all ``"steps"``.
    feedback : ``"none"``, or ``"one-way"``: it is shown the coins of elements that it abstains
        from, the least promising first, until k are left.

    See Also
    --------
    audit : the paper's guesser, which looks at the sum and takes k/2 elements from each end.

    Examples
    --------
    >>> dpsgd = DpSgd(n=4000, sigma=0.99)
    >>> means = [audit_likelihood(dpsgd, 100, sees=x, trials=50, seed=1).v.mean() for x in SEEN]
    >>> bool(means[1] > means[0])
    True
    """
    _check.instance("dpsgd", dpsgd, DpSgd, "DpSgd(n=1000)")
    k = _check.integer("k", k, 1, dpsgd.n)
    _check.one_of("sees", sees, SEEN)
    _check.one_of("feedback", feedback, ("none", "one-way"))
    s, steps = dpsgd.per_coordinate, dpsgd.steps
    if s > 1000:
        raise ValueError(f"n / d must be at most 1000, to weigh every count, got n / d = {s}")
    # A sum is one step with T draws of each element, and with the noise of T steps.
    draws, rounds = (steps, 1) if sees == "sum" else (1, steps)
    noise = dpsgd.sigma * sqrt(draws)
    table = _tables(s, draws, dpsgd.sample_rate, noise)

    def block(size: int, rng: Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        v = _block(
            *(size, dpsgd.used_coordinates, s, k, draws, rounds, dpsgd.sample_rate, noise),
            *(feedback == "one-way", *table, rng),
        )
        return v, np.full(size, k)

    game = "one-run DP-SGD, likelihood" if feedback == "none" else "one-way DP-SGD, likelihood"
    return play_counts(
        *(game, block, dpsgd, trials, seed, k, sees),
        r_fixed=True,
        feedback=feedback,
    )


@lru_cache(maxsize=64)
def _tables(
    s: int, draws: int, sample_rate: float, noise: float
) -> tuple[float, float, NDArray[np.float64], NDArray[np.float64]]:
    """Log-likelihoods of a noisy gradient for m = 0, ..., s, and the logarithms of factorials."""
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
    trials: int,
    d: int,
    s: int,
    k: int,
    draws: int,
    rounds: int,
    sample_rate: float,
    noise: float,
    one_way: bool,
    low: float,
    step: float,
    table: Array,
    factorials: Array,
    rng: Generator,
) -> Array:
    v = np.empty(trials, dtype=np.int64)
    likelihood = np.empty((d, s + 1))
    ones = np.empty(d, dtype=np.int64)
    belief = np.empty(d)
    for trial in range(trials):
        likelihood[:] = 0
        for j in range(d):
            ones[j] = rng.binomial(s, 0.5)
            for _ in range(rounds):
                y = rng.binomial(ones[j] * draws, sample_rate) + noise * rng.standard_normal()
                for m in range(s + 1):
                    likelihood[j, m] += interpolate(table[m], low, step, y)
            belief[j] = _log_odds(likelihood[j], s, 0, factorials)
        if one_way:
            v[trial] = _reveal(likelihood, ones, belief, s, k, factorials, rng)
        else:
            v[trial] = _plain(ones, belief, s, k, rng)
    return v


@jit
def _log_odds(likelihood: Array, unknown: int, seen: int, factorials: Array) -> float:
    """The log-odds that an element is included, ``unknown`` of s left and ``seen`` ones shown."""
    top = -np.inf
    for m in range(unknown + 1):
        top = max(top, likelihood[seen + m] - factorials[m] - factorials[unknown - m])
    included = excluded = 0.0
    for m in range(unknown + 1):
        weight = np.exp(likelihood[seen + m] - factorials[m] - factorials[unknown - m] - top)
        included += m * weight
        excluded += (unknown - m) * weight
    return np.log(included) - np.log(excluded)


@jit
def _plain(ones: Array, belief: Array, s: int, k: int, rng: Generator) -> int:
    """Guess the elements of the most promising coordinates; of the last one only as many as fit."""
    right = 0
    for j in np.argsort(-np.abs(belief)):
        taken = min(k, s)
        drawn = ones_among(taken, ones[j], s, rng)
        right += drawn if belief[j] > 0 else taken - drawn
        k -= taken
        if k == 0:
            break
    return right


@jit
def _reveal(
    likelihood: Array,
    ones: Array,
    belief: Array,
    s: int,
    k: int,
    factorials: Array,
    rng: Generator,
) -> int:
    """Show the least promising element until k are left, and guess those."""
    d = ones.size
    unknown, seen = np.full(d, s), np.zeros(d, dtype=np.int64)
    queue = [(abs(belief[j]), j) for j in range(d)]
    heapify(queue)
    for _ in range(d * s - k):
        j = queue[0][1]
        bit = ones_among(1, ones[j] - seen[j], unknown[j], rng)
        unknown[j] -= 1
        seen[j] += bit
        if unknown[j] == 0:
            heappop(queue)  # nothing is left to show; others may be as sure as can be, too
        else:
            belief[j] = _log_odds(likelihood[j], unknown[j], seen[j], factorials)
            heapreplace(queue, (abs(belief[j]), j))
    right = 0
    for j in range(d):
        left = ones[j] - seen[j]
        right += left if belief[j] > 0 else unknown[j] - left
    return right
