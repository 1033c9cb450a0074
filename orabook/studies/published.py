"""Audits with isolated canaries of trainings like those of a published comparison.

dpsgd-auditbench has audited CIFAR-10, with 5,000 canaries on a weight each and one training for
each ε. Its numbers, of ``fig/bootstrap/auditing_comparison_final.csv`` at commit 4967fe4 of
https://github.com/stoneboat/dpsgd-auditbench, are in ``book/data/auditbench-cifar10.csv``.

Here the noise follows from its certified ε, and the law of the count is known, because nothing else
is on the weight of a canary.
"""

from bisect import bisect_left
from math import nan, sqrt
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from orabook.studies.ceiling import best_guesses
from orabook.studies.stated_noise import Scores, law_of_right
from oralib import Counts, DpSgd, Training, TrainingTest, epsilon_lower_bound, noise_multiplier
from oralib.bounds import Exact
from oralib.bounds.refuting import right_needed

__all__ = ["audits_like_published", "best_power", "best_threshold_bounds", "largest_share_found"]

#: The comparison's trainings: its scripts set 2,500 steps and a rate of a twelfth. Its certified ε
#: fit 2,400 steps, after which it saves scores. The noise here follows from the certified ε, so no
#: bound would change by over 0.003.
STEPS = 2500
SAMPLE_RATE = 0.083
DELTA = 1e-5
BETA = 0.05
#: The least probability with which a share of the stated noise counts as found.
POWER = 0.5
#: The smallest share of the stated noise that a search tries, in hundredths.
LEAST_SHARE = 30


def audits_like_published(certified: float, n: int) -> dict[str, float]:
    """Audit a training with this certified ε by n isolated canaries, whose scores see all steps.

    ``bound`` is the mean of the exact bound at the best number of guesses ``k``, and ``bound_in``
    the mean for guesses that all say "in".

    ``noise`` is the largest share of the stated noise that refutes the stated training with
    probability 1/2 or more, at the best number of guesses ``k_noise``, by a test at
    ``epsilon_noise``. ``noise_claim`` is the largest share that refutes (ε, δ)-DP in this way. The
    scores of both use the true noise. If scores use the stated noise instead, the test finds the
    share ``noise`` with probability ``found_stated``, at the number of guesses best for them.

    >>> row = audits_like_published(7.788, 5000)
    >>> row["k"], round(row["bound"], 2), round(row["bound_in"], 2)
    (260, 3.55, 3.27)
    """
    sigma = noise_multiplier(certified, DELTA, STEPS, SAMPLE_RATE, accountant="pld")
    dpsgd = DpSgd(n, n, STEPS, SAMPLE_RATE, sigma=sigma)
    k, bound = best_guesses(dpsgd, "steps", Exact(), BETA, DELTA)
    k_in, bound_in = best_guesses(dpsgd, "steps", Exact(), BETA, DELTA, "in")
    stated = Training(sigma, SAMPLE_RATE, STEPS)
    numbers = np.unique(np.geomspace(20, n // 2, 40).astype(int)).tolist()  # of guesses
    tests = {k: TrainingTest(stated, n=n, guesses=k, beta=BETA) for k in numbers}
    by_training = {k: test.needed for k, test in tests.items()}
    by_claim = {
        k: right_needed(Counts(0, k, n=n, r_fixed=True), certified, delta=DELTA, beta=BETA)
        for k in numbers
    }
    noise = largest_share_found(stated, n, by_training)
    k_noise, _ = best_power(stated, n, noise, by_training)
    _, power_of_stated = best_power(stated, n, noise, by_training, scores="stated noise")
    return {
        "certified": certified,
        "n": n,
        "sigma": sigma,
        "k": k,
        "bound": bound,
        "k_in": k_in,
        "bound_in": bound_in,
        "noise": noise,
        "k_noise": k_noise,
        "epsilon_noise": tests[k_noise].epsilon,
        "found_stated": power_of_stated,
        "noise_claim": largest_share_found(stated, n, by_claim),
    }


#: The right guesses that refute a claim, by the number of guesses; None where no number does.
Needed: TypeAlias = dict[int, int | None]


def largest_share_found(stated: Training, n: int, needed: Needed) -> float:
    """Search for the largest share of the noise, in hundredths, that some number of guesses finds.

    NaN if no number of right guesses refutes the claim.
    """
    if not any(needed.values()):
        return nan

    def missed(hundredths: int) -> bool:
        return best_power(stated, n, hundredths / 100, needed)[1] < POWER

    shares = range(LEAST_SHARE, 101)  # less noise is easier to find
    first_missed = bisect_left(shares, True, key=missed)
    if first_missed == 0:
        raise ValueError(f"needed must be found at {LEAST_SHARE}% of the noise, got {needed}")
    return shares[first_missed - 1] / 100


def best_power(
    stated: Training, n: int, share: float, needed: Needed, *, scores: Scores = "true noise"
) -> tuple[int, float]:
    """The best number of guesses, and its power against a training with this share of noise."""
    power = {}
    for k, least_right in needed.items():
        if least_right is not None:
            law = law_of_right(stated, n, k, share=share, scores=scores)
            power[k] = float(law.probability[law.v >= least_right].sum())
    best = max(power, key=lambda k: power[k])
    return best, power[best]


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
        v = included[np.argsort(-scores)].cumsum(dtype=np.int64)
        bounds[i] = _largest_bound(v, guesses)
    return bounds


def _largest_bound(v: NDArray[np.int64], r: NDArray[np.int64]) -> float:
    """Return the largest bound of n counts, one for each number of guesses.

    The bounds for δ = 0 are quick and larger, and so show that nearly all others are too small.
    """
    limit = epsilon_lower_bound(v, r, beta=BETA)

    def largest(places: NDArray[np.int64]) -> float:
        bounds = epsilon_lower_bound(v[places], r[places], n=len(r), delta=DELTA, beta=BETA)
        return float(np.max(bounds))

    best = largest(np.argsort(-limit)[:20])
    promising = np.flatnonzero(limit > best)
    return max(best, largest(promising)) if promising.size else best
