"""The guesser with a threshold on one full-batch step, plain or with feedback (Section 6.3)."""

from functools import lru_cache
from math import inf
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from oralib import _check
from oralib._jit import jit
from oralib.bounds import Counts
from oralib.dpsgd.training import DpSgd, ones_among, play_counts
from oralib.games import FEEDBACK, adaptive_game, check_budget
from oralib.guessers import ROUNDING
from oralib.mechanisms import Array, NoisyCountInSets

__all__ = ["audit_single_step", "guess_distances"]


def audit_single_step(
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
    feedback : what the guesser is told on its way through the elements of a coordinate: nothing
        (``"none"``, plain one-run auditing), the coins of the elements that it abstained from
        (``"one-way"``), or all coins (``"full"``, the paper's adaptive auditing).
    budget : with feedback, a number of guesses fixed in advance, as in :func:`oralib.adaptive`.

    See Also
    --------
    oralib.adaptive : the same game played slowly with :class:`oralib.NoisyCountInSets`.
    """
    _check.one_of("feedback", feedback, ("none", *FEEDBACK))
    distance = guess_distances(dpsgd, tau)
    s, d = dpsgd.per_coordinate, dpsgd.used_coordinates
    most = check_budget(budget, dpsgd.n)
    if feedback == "none" and budget is not None:
        raise ValueError(f"budget needs feedback, got budget={budget} and feedback='none'")
    full = feedback == "full"

    def block(size: int, rng: Generator) -> Any:
        if feedback == "none":
            return _plain_block(size, d, s, dpsgd.sigma, distance, rng)
        v, r = _adaptive_block(size, d, s, dpsgd.sigma, distance, full, most, rng)
        return v, r if budget is None else np.full_like(r, most)

    game = "one-run" if feedback == "none" else f"{adaptive_game(feedback, budget)},"
    key = (float(tau),) if budget is None else (float(tau), most)
    return play_counts(
        *(f"{game} DP-SGD", block, dpsgd, trials, seed, *key),
        r_fixed=budget is not None,
        feedback=feedback,
    )


def guess_distances(dpsgd: DpSgd, tau: float) -> NDArray[np.float64]:
    """For u = 0, ..., n/d unknown elements, how far their noisy count must be from its mean u/2.

    The loss is an odd and monotone function of that distance, so |loss| >= tau there and beyond.
    """
    _check.instance("dpsgd", dpsgd, DpSgd, "DpSgd(n=1000)")
    if dpsgd.steps != 1 or dpsgd.sample_rate != 1:
        raise ValueError(
            "dpsgd must be a single full-batch step, with steps=1 and sample_rate=1, "
            f"got steps={dpsgd.steps} and sample_rate={dpsgd.sample_rate}"
        )
    tau = _check.real("tau", tau, 1e-6, 1e3)
    return _guess_distances(dpsgd.per_coordinate, dpsgd.sigma, tau)


@lru_cache(maxsize=64)
def _guess_distances(s: int, sigma: float, tau: float) -> NDArray[np.float64]:
    from scipy import optimize  # here, because it takes a while to import and few need it

    distance = np.full(s + 1, inf)
    high = 1.0
    for u in range(1, s + 1):
        mechanism = NoisyCountInSets(u, sigma)

        def excess(x: float, mechanism: NoisyCountInSets = mechanism, u: int = u) -> float:
            loss = mechanism.privacy_loss(np.array([u / 2 - x]), u)
            return float(loss[0]) - tau + ROUNDING * max(1.0, tau)  # as ThresholdGuesser

        # The distance changes little from one u to the next: look around the last one first.
        low, high = 0.98 * high, 1.02 * high
        while excess(high) < 0:
            low, high = high, 2 * high
        while excess(low) > 0:
            low, high = low / 2, low
        high = distance[u] = optimize.brentq(excess, low, high, xtol=1e-13)
    return distance


@jit
def _plain_block(
    trials: int, d: int, s: int, sigma: float, distance: Array, rng: Generator
) -> tuple[Array, Array]:
    v, r = np.zeros(trials, dtype=np.int64), np.zeros(trials, dtype=np.int64)
    for trial in range(trials):
        for _ in range(d):
            ones = rng.binomial(s, 0.5)
            x = ones + sigma * rng.standard_normal() - s / 2
            if abs(x) >= distance[s]:
                r[trial] += s
                v[trial] += ones if x > 0 else s - ones
    return v, r


@jit
def _adaptive_block(
    trials: int,
    d: int,
    s: int,
    sigma: float,
    distance: Array,
    full: bool,
    budget: int,
    rng: Generator,
) -> tuple[Array, Array]:
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
                bit = ones_among(1, ones, unknown, rng)
                if guessed:
                    r[trial] += 1
                    v[trial] += bit == (x > 0)
                rest -= bit
                ones -= bit
    return v, r
