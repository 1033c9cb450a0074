"""The guesser with a threshold on one full-batch step, plain or with feedback (Section 6.3)."""

from functools import lru_cache
from math import exp, inf, log
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from oralib import _check
from oralib._binomial import log_pmf
from oralib._jit import jit
from oralib._rounding import ROUNDING
from oralib.bounds import Counts
from oralib.dpsgd.training import DpSgd, ones_among, play_counts
from oralib.games import FEEDBACK, adaptive_game, check_budget
from oralib.mechanisms import Array


def simulate_single_step(
    dpsgd: DpSgd,
    tau: float,
    *,
    feedback: str = "none",
    budget: int | None = None,
    trials: int = 1,
    seed: int,
) -> Counts:
    """Audit one full-batch step of DP-SGD, guessing where the privacy loss is at least tau.

    Parameters
    ----------
    dpsgd : a training with steps=1 and sample_rate=1.
    tau : the threshold on the distributional privacy loss, in [1e-6, 1000].
    feedback : what the guesser is told as it goes through the elements of a coordinate: nothing
        (``"none"``, plain one-run auditing), the coins of the elements that it abstained from
        (``"one-way"``), or all coins (``"full"``, the paper's adaptive auditing).
    budget : with feedback, a number of guesses fixed in advance, as in :func:`oralib.adaptive`.

    Examples
    --------
    >>> dpsgd = DpSgd(n=4000, steps=1, sample_rate=1.0, sigma=1.0)
    >>> counts = simulate_single_step(dpsgd, 1.0, trials=100, seed=1)
    >>> bool(abs(counts.accuracy.mean() - 0.8) < 0.02)
    True
    """
    _check.one_of("feedback", feedback, ("none", *FEEDBACK))
    plain, full = feedback == "none", feedback == "full"
    distance: Any = guess_distance(dpsgd, tau) if plain else guess_distances(dpsgd, tau)
    s, d = dpsgd.per_coordinate, dpsgd.used_coordinates
    most = check_budget(budget, dpsgd.n)
    if plain and budget is not None:
        raise ValueError(f"budget needs feedback, got budget={budget} and feedback='none'")

    def block(size: int, rng: Generator) -> Any:
        if plain:
            return _plain_block(size, d, s, dpsgd.sigma, distance, rng)
        v, r = _adaptive_block(size, d, s, (dpsgd.sigma, distance), full, most, rng)
        return v, r if budget is None else np.full_like(r, most)

    game = "one-run" if plain else f"{adaptive_game(feedback, budget)},"
    key = (float(tau),) if budget is None else (float(tau), most)
    if feedback == "full" and budget is not None:
        feedback = "list"  # the elements come in a fixed order
    how: Any = {"r_fixed": budget is not None, "feedback": feedback}
    return play_counts(f"{game} DP-SGD", block, dpsgd, trials, seed, *key, **how)


def guess_distances(dpsgd: DpSgd, tau: float) -> NDArray[np.float64]:
    """For u = 0, ..., n/d unknown elements, how far their noisy count must be from its mean u/2.

    The loss is an odd and monotone function of that distance, so |loss| >= tau there and beyond.

    Examples
    --------
    >>> dpsgd = DpSgd(n=2000, steps=1, sample_rate=1.0, sigma=1.0)
    >>> guess_distances(dpsgd, 1.0).round(3).tolist()
    [inf, 1.0, 1.278]
    """
    tau = _checked(dpsgd, tau)
    return _guess_distances(dpsgd.per_coordinate, dpsgd.sigma, tau).copy()


def guess_distance(dpsgd: DpSgd, tau: float) -> float:
    """The last of :func:`guess_distances`, which is all that a guesser without feedback needs."""
    tau = _checked(dpsgd, tau)
    return float(_guess_distances(dpsgd.per_coordinate, dpsgd.sigma, tau, last=True)[-1])


def _checked(dpsgd: DpSgd, tau: float) -> float:
    _check.instance("dpsgd", dpsgd, DpSgd, "DpSgd(n=1000)")
    if dpsgd.steps != 1 or dpsgd.sample_rate != 1:
        raise ValueError(
            "dpsgd must be a single full-batch step, with steps=1 and sample_rate=1, "
            f"got steps={dpsgd.steps} and sample_rate={dpsgd.sample_rate}"
        )
    return _check.real("tau", tau, 1e-6, 1e3)


@lru_cache(maxsize=64)
def _guess_distances(s: int, sigma: float, tau: float, last: bool = False) -> NDArray[np.float64]:
    goal = tau - ROUNDING * max(1.0, tau)  # as ThresholdGuesser
    return np.asarray(_distances(s if last else 1, s, sigma, goal))


@jit
def _distances(first: int, s: int, sigma: float, goal: float) -> Array:
    distance = np.full(s + 1, inf)
    high = 1.0
    for u in range(first, s + 1):
        log_weight = np.array([log_pmf(j, u - 1, 0.5, 0.5) for j in range(u)])
        # The distance changes little from one u to the next: look around the last one first.
        low, high = 0.98 * high, 1.02 * high
        while _loss_at(high, log_weight, sigma) < goal:
            low, high = high, 2 * high
        while _loss_at(low, log_weight, sigma) > goal:
            low, high = low / 2, low
        while high - low > 1e-14 * (1 + high):
            middle = 0.5 * (low + high)
            if _loss_at(middle, log_weight, sigma) < goal:
                low = middle
            else:
                high = middle
        distance[u] = high
    return distance


@jit
def _loss_at(x: float, log_weight: Array, sigma: float) -> float:
    """The loss of an element where the noisy count of all u lies x below u/2.

    The same as :class:`oralib.NoisyCountInSets` gives, but a hundred times faster; see the tests.
    """
    entry = 0.5 * log_weight.size - x
    without = _log_density(entry, log_weight, sigma)
    return without - _log_density(entry - 1, log_weight, sigma)


@jit
def _log_density(entry: float, log_weight: Array, sigma: float) -> float:
    """log density, up to a constant, of the noisy count of all elements but one."""
    most, total = -inf, 0.0
    for j in range(log_weight.size):
        most = max(most, log_weight[j] - (entry - j) ** 2 / (2 * sigma**2))
    for j in range(log_weight.size):
        total += exp(log_weight[j] - (entry - j) ** 2 / (2 * sigma**2) - most)
    return most + log(total)


@jit
def _plain_block(
    trials: int, d: int, s: int, sigma: float, distance: float, rng: Generator
) -> tuple[Array, Array]:
    v, r = np.zeros(trials, dtype=np.int64), np.zeros(trials, dtype=np.int64)
    for trial in range(trials):
        for _ in range(d):
            ones = rng.binomial(s, 0.5)
            x = ones + sigma * rng.standard_normal() - s / 2
            if abs(x) >= distance:
                r[trial] += s
                v[trial] += ones if x > 0 else s - ones
    return v, r


@jit
def _adaptive_block(
    trials: int, d: int, s: int, step: Any, full: bool, budget: int, rng: Generator
) -> tuple[Array, Array]:
    sigma, distance = step
    v, r = np.zeros(trials, dtype=np.int64), np.zeros(trials, dtype=np.int64)
    for trial in range(trials):
        for _ in range(d):
            if r[trial] == budget:
                break
            ones = rng.binomial(s, 0.5)
            rest = ones + sigma * rng.standard_normal()
            for unknown in range(s, 0, -1):
                x = rest - unknown / 2
                guessed = abs(x) >= distance[unknown] and r[trial] < budget
                if guessed and not full:
                    # A guess reveals nothing, so the next element looks the same: guess them all,
                    # as far as the budget goes.
                    taken = min(unknown, budget - r[trial])
                    if taken < unknown:
                        ones = ones_among(taken, ones, unknown, rng)
                    r[trial] += taken
                    v[trial] += ones if x > 0 else taken - ones
                    break
                bit = ones_among(np.int64(1), ones, unknown, rng)
                if guessed:
                    r[trial] += 1
                    v[trial] += bit == (x > 0)
                rest -= bit
                ones -= bit
    return v, r
