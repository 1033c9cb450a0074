"""The guesser with a threshold on one full-batch step, with or without feedback (Section 6.3)."""

from math import inf

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from oralib.bounds import Counts
from oralib.dpsgd.play import ones_among
from oralib.dpsgd.ratios import log_mixture
from oralib.dpsgd.setting import DpSgd
from oralib.games import adaptive_game, check_number
from oralib.ground import arguments
from oralib.ground.binomial import log_pmf
from oralib.ground.jit import jit
from oralib.ground.rounding import ROUNDING
from oralib.ground.streams import play
from oralib.ground.types import PLAYED, Array, Feedback

__all__ = ["simulate_single_step"]


def simulate_single_step(
    dpsgd: DpSgd,
    tau: float,
    *,
    feedback: Feedback = "none",
    guesses: int | None = None,
    trials: int = 1,
    seed: int,
) -> Counts:
    """Audit one full-batch step of DP-SGD, guessing where the absolute loss is at least tau.

    The training run has steps=1 and sample_rate=1; feedback (within each coordinate) and
    guesses are as in :func:`oralib.adaptive`.

    Parameters
    ----------
    dpsgd : DpSgd
        The training, of one step with all elements.
    tau : float
        The least absolute loss of an element that is guessed.
    feedback, guesses
        As in :func:`oralib.adaptive`; feedback is about elements of the same coordinate.
    trials, seed : int
        The number of independent audits, and the seed of their random numbers.

    Examples
    --------
    >>> dpsgd = DpSgd(n=4000, steps=1, sample_rate=1.0, sigma=1.0)
    >>> counts = simulate_single_step(dpsgd, 1.0, trials=100, seed=1)
    >>> bool(abs(counts.accuracy.mean() - 0.8) < 0.02)
    True
    """
    arguments.one_of("feedback", feedback, PLAYED)
    distances = guess_distances(dpsgd, tau, last=feedback == "none")
    is_fixed = guesses is not None
    limit = check_number(guesses, dpsgd.n)
    if is_fixed and feedback == "none":
        raise ValueError(f"guesses needs feedback, got {guesses=} and feedback='none'")

    def block(size: int, rng: Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        v, r = _audit_block(
            size,
            dpsgd.used_coordinates,
            dpsgd.sigma,
            distances,
            feedback != "none",
            feedback == "full",
            limit,
            rng,
        )
        return v, np.full_like(r, limit) if is_fixed else r

    is_one_run = feedback == "none"
    game = "one-run DP-SGD" if is_one_run else f"{adaptive_game(feedback, guesses)}, DP-SGD"
    key = (float(tau), limit) if is_fixed else (float(tau),)
    v, r = play(block, trials, seed, game, dpsgd, *key)
    # The elements come in a fixed order.
    kind: Feedback = "list" if feedback == "full" and is_fixed else feedback
    return Counts(v, r, dpsgd.n, game, r_fixed=is_fixed, feedback=kind)


def guess_distances(dpsgd: DpSgd, tau: float, *, last: bool = False) -> NDArray[np.float64]:
    """The least distance of a noisy count from its mean u/2 to guess, for u = 0, ..., s elements.

    Only elements whose coins are unknown are counted.

    The loss is an odd and monotone function of that distance, so |loss| >= tau there and beyond.
    With ``last`` only the entry of u = s is computed.
    """
    arguments.instance("dpsgd", dpsgd, DpSgd, "DpSgd(n=1000, sigma=1.0)")
    if dpsgd.steps != 1 or dpsgd.sample_rate != 1:
        raise ValueError(
            "dpsgd must be a single full-batch step, with steps=1 and sample_rate=1, "
            f"got steps={dpsgd.steps} and sample_rate={dpsgd.sample_rate}"
        )
    tau = arguments.real("tau", tau, 1e-6, 1e3)
    s = dpsgd.per_coordinate
    goal = tau - ROUNDING * max(1.0, tau)  # as ThresholdGuesser
    return np.asarray(_distances(s if last else 1, s, dpsgd.sigma, goal))


@jit
def _distances(first: int, s: int, sigma: float, goal: float) -> Array:
    distance = np.full(s + 1, inf)
    for u in range(first, s + 1):
        log_weight = np.array([log_pmf(j, u - 1, 0.5, 0.5) for j in range(u)])
        low = 0.0
        high = 1.0
        # Bisection is written out, as a kernel that takes a function cannot be cached.
        while _loss_at(high, log_weight, sigma) < goal:
            low = high
            high = 2 * high
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
    count = 0.5 * log_weight.size - x  # of all elements, this one included or not
    without = log_mixture(count, 0, log_weight, sigma)
    return without - log_mixture(count - 1, 0, log_weight, sigma)


@jit
def _audit_block(
    trials: int,
    d: int,
    sigma: float,
    distances: Array,
    shows_abstained: bool,
    shows_guessed: bool,
    limit: int,
    rng: Generator,
) -> tuple[Array, Array]:
    """Count right guesses and guesses in each of several audits.

    For each coordinate toss the coins of its elements and add noise to their sum. Go through its
    elements: guess where the noisy count of those whose coins are unknown is far enough from its
    mean. Where a coin is shown, take it off that count. Stop when all guesses are taken.
    """
    s = distances.size - 1
    v = np.zeros(trials, dtype=np.int64)
    r = np.zeros(trials, dtype=np.int64)
    for trial in range(trials):
        for _ in range(d):
            if r[trial] == limit:
                break
            ones = rng.binomial(s, 0.5)
            rest = ones + sigma * rng.standard_normal()
            for unknown in range(s, 0, -1):
                x = rest - unknown / 2
                guessed = abs(x) >= distances[unknown] and r[trial] < limit
                if not (shows_guessed if guessed else shows_abstained):
                    # The next one looks the same: guess all, as far as guesses last, or none.
                    if guessed:
                        added = min(unknown, limit - r[trial])
                        if added < unknown:
                            ones = ones_among(added, ones, unknown, rng)
                        r[trial] += added
                        v[trial] += ones if x > 0 else added - ones
                    break
                bit = int(rng.random() * unknown < ones)
                if guessed:
                    r[trial] += 1
                    v[trial] += bit == (x > 0)
                rest -= bit
                ones -= bit
    return v, r
