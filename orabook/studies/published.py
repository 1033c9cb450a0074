"""What isolated canaries show of trainings like those of a published comparison.

dpsgd-auditbench has audited CIFAR-10, with 5,000 canaries on a weight each and one training for
each ε. Its numbers are in ``book/data/auditbench-cifar10.csv``. Here the noise follows from its
certified ε, and the law of the count is known, because nothing else is on the weight of a canary.
"""

from bisect import bisect_left
from math import nan, sqrt

import numpy as np
from numpy.typing import NDArray

from orabook.laws import Law
from orabook.studies.ceiling import best_guesses, isolated_law
from oralib import Counts, DpSgd, Training, TrainingTest, epsilon_lower_bound, noise_multiplier
from oralib.bounds.refuting import right_needed

#: Its scripts set 2,500 steps and a rate of about a twelfth. Its certified ε fit 2,400 steps; since
#: the noise follows from them, that changes no bound here by more than 0.003.
STEPS, SAMPLE_RATE, DELTA = 2500, 0.083, 1e-5
BETA = 0.05
#: Shares of the stated noise, in hundredths, are found with at least this probability.
POWER = 0.5
#: No smaller hundredths are tried.
LEAST_SHARE = 30


def audits_like_published(certified: float, n: int) -> dict[str, float]:
    """What n isolated canaries show of a training with this certified ε; scores see all steps.

    ``bound`` is the mean of the exact bound at the best number of guesses ``k``, and ``bound_in``
    that of the bound for guesses that all say "in". ``noise`` is the largest share of the stated
    noise that refutes the stated training with probability 1/2 or more, at the best number of
    guesses, ``noise_claim`` the one that refutes (ε, δ)-DP. Scores use the true noise.

    >>> row = audits_like_published(7.788, 5000)
    >>> row["k"], round(row["bound"], 2), round(row["bound_in"], 2)
    (260, 3.55, 3.27)
    """
    sigma = noise_multiplier(certified, DELTA, STEPS, SAMPLE_RATE, accountant="pld")
    dpsgd = DpSgd(n, n, STEPS, SAMPLE_RATE, sigma=sigma)
    k, bound = best_guesses(dpsgd, "steps", "exact", BETA, DELTA)
    k_in, bound_in = best_guesses(dpsgd, "steps", "exact", BETA, DELTA, "in")
    row: dict[str, float] = {"certified": certified, "n": n, "sigma": sigma}
    row |= {"k": k, "bound": bound, "k_in": k_in, "bound_in": bound_in}
    designs = np.unique(np.geomspace(20, n // 2, 40).astype(int)).tolist()
    stated = Training(sigma, SAMPLE_RATE, STEPS)
    by_training = {k: TrainingTest(stated, n=n, guesses=k, beta=BETA).needed for k in designs}
    by_claim = {
        k: right_needed(Counts(0, k, n=n, r_fixed=True), certified, delta=DELTA, beta=BETA)
        for k in designs
    }
    return row | {
        "noise": largest_share_found(dpsgd, by_training),
        "noise_claim": largest_share_found(dpsgd, by_claim),
    }


def largest_share_found(dpsgd: DpSgd, needed: dict[int, int | None]) -> float:
    """Search for the largest share of the noise, in hundredths, that some number of guesses finds.

    ``needed`` has the right guesses that refute, for each number of guesses; None if all are too
    few. NaN if they always are.
    """
    if not any(needed.values()):
        return nan

    def missed(hundredths: int) -> bool:
        return power(dpsgd, hundredths / 100, needed) < POWER

    tried = range(LEAST_SHARE, 101)  # less noise is easier to find
    found = bisect_left(tried, True, key=missed)
    if found == 0:
        raise ValueError(f"needed must be found at {LEAST_SHARE}% of the noise, got {needed}")
    return tried[found - 1] / 100


def power(dpsgd: DpSgd, share: float, needed: dict[int, int | None]) -> float:
    """How often a training with so much of the noise is refuted, at the best number of guesses."""
    run = dpsgd.n, dpsgd.d, dpsgd.steps, dpsgd.sample_rate
    less_noisy = DpSgd(*run, sigma=share * dpsgd.sigma)

    def found(law: Law, right: int) -> float:
        return float(law.probability[law.v >= right].sum())

    return max(
        (found(isolated_law(less_noisy, k), v) for k, v in needed.items() if v is not None),
        default=0.0,
    )


def best_threshold_bounds(
    certified: float, n: int, *, trials: int, seed: int
) -> NDArray[np.float64]:
    """Simulate Steinke et al.'s bound at its best threshold, as the comparison takes it.

    Each audit guesses "in" above a threshold of the sums of its noisy gradients, and reports the
    largest bound of all thresholds. This is *not* a valid bound: its β is that of one threshold.

    >>> bounds = best_threshold_bounds(0.975, 5000, trials=4, seed=0)
    >>> bounds.round(2).tolist()
    [0.24, 0.54, 0.51, 0.63]
    """
    sigma = noise_multiplier(certified, DELTA, STEPS, SAMPLE_RATE, accountant="pld")
    rng = np.random.default_rng(seed)
    guesses = np.arange(1, n + 1)
    bounds = np.zeros(trials)
    for i in range(trials):
        included = rng.random(n) < 0.5
        drawn = rng.binomial(STEPS, SAMPLE_RATE, n)
        scores = included * drawn + rng.normal(0, sigma * sqrt(STEPS), n)
        right = np.cumsum(included[np.argsort(-scores)])
        bounds[i] = _largest_bound(right, guesses)
    return bounds


def _largest_bound(right: NDArray[np.int64], guesses: NDArray[np.int64]) -> float:
    """The largest of many bounds; most of them are seen to be smaller by those for δ = 0."""
    n = len(guesses)
    at_most = epsilon_lower_bound(right, guesses, beta=BETA)

    def largest(some: NDArray[np.int64]) -> float:
        found = epsilon_lower_bound(right[some], guesses[some], n=n, delta=DELTA, beta=BETA)
        return float(np.max(found))

    best = largest(np.argsort(-at_most)[:20])
    left = np.flatnonzero(at_most > best)
    return max(best, largest(left)) if left.size else best
