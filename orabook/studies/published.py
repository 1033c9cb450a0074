"""What isolated canaries show of trainings like those of a published comparison.

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

#: Its scripts set 2,500 steps and a rate of a twelfth. Its certified ε fit 2,400 of these steps, at
#: which it saves scores. The noise here follows from them, so no bound would change by over 0.003.
STEPS, SAMPLE_RATE, DELTA = 2500, 0.083, 1e-5
BETA = 0.05
#: Shares of the stated noise, in hundredths, are found with at least this probability.
POWER = 0.5
#: No smaller hundredths are tried.
LEAST_SHARE = 30


def audits_like_published(certified: float, n: int) -> dict[str, float]:
    """What n isolated canaries show of a training with this certified ε; scores see all steps.

    ``bound`` is the mean of the exact bound at the best number of guesses ``k``, and ``bound_in``
    that of the bound for guesses that all say "in".

    ``noise`` is the largest share of the stated noise that refutes the stated training with
    probability 1/2 or more, at the best number of guesses, ``k_noise``, which tests it at
    ``epsilon_noise``; ``noise_claim`` is the one that refutes (ε, δ)-DP. Scores use the true noise.
    With those that use the stated noise the test finds that share with probability
    ``found_stated``, at the number of guesses that is best for them.

    >>> row = audits_like_published(7.788, 5000)
    >>> row["k"], round(row["bound"], 2), round(row["bound_in"], 2)
    (260, 3.55, 3.27)
    """
    sigma = noise_multiplier(certified, DELTA, STEPS, SAMPLE_RATE, accountant="pld")
    dpsgd = DpSgd(n, n, STEPS, SAMPLE_RATE, sigma=sigma)
    k, bound = best_guesses(dpsgd, "steps", Exact(), BETA, DELTA)
    k_in, bound_in = best_guesses(dpsgd, "steps", Exact(), BETA, DELTA, "in")
    row: dict[str, float] = {"certified": certified, "n": n, "sigma": sigma}
    row |= {"k": k, "bound": bound, "k_in": k_in, "bound_in": bound_in}
    stated = Training(sigma, SAMPLE_RATE, STEPS)
    designs = np.unique(np.geomspace(20, n // 2, 40).astype(int)).tolist()
    tests = {k: TrainingTest(stated, n=n, guesses=k, beta=BETA) for k in designs}
    by_training = {k: test.needed for k, test in tests.items()}
    by_claim = {
        k: right_needed(Counts(0, k, n=n, r_fixed=True), certified, delta=DELTA, beta=BETA)
        for k in designs
    }
    noise = largest_share_found(stated, n, by_training)
    k_noise, _ = best_power(stated, n, noise, by_training)
    row |= {"noise": noise, "k_noise": k_noise, "epsilon_noise": tests[k_noise].epsilon}
    row["found_stated"] = best_power(stated, n, noise, by_training, scores="stated noise")[1]
    return row | {"noise_claim": largest_share_found(stated, n, by_claim)}


#: The right guesses that refute a claim, by the number of guesses; None if all are too few.
Needed: TypeAlias = dict[int, int | None]


def largest_share_found(stated: Training, n: int, needed: Needed) -> float:
    """Search for the largest share of the noise, in hundredths, that some number of guesses finds.

    NaN if no number of right guesses refutes the claim.
    """
    if not any(needed.values()):
        return nan

    def missed(hundredths: int) -> bool:
        return best_power(stated, n, hundredths / 100, needed)[1] < POWER

    tried = range(LEAST_SHARE, 101)  # less noise is easier to find
    found = bisect_left(tried, True, key=missed)
    if found == 0:
        raise ValueError(f"needed must be found at {LEAST_SHARE}% of the noise, got {needed}")
    return tried[found - 1] / 100


def best_power(
    stated: Training, n: int, share: float, needed: Needed, *, scores: Scores = "true noise"
) -> tuple[int, float]:
    """The best number of guesses, and how often it refutes a training with this share of noise."""
    power = {}
    for k, right in needed.items():
        if right is not None:
            law = law_of_right(stated, n, k, share=share, scores=scores)
            power[k] = float(law.probability[law.v >= right].sum())
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
        right = included[np.argsort(-scores)].cumsum(dtype=np.int64)
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
