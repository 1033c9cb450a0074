"""The rules by which jax_privacy and this library turn the same scores into an ε.

The scores are those that TensorFlow Privacy left in ``book/data/tf-privacy.csv``, and *blind*
ones: random numbers that do not depend on the coins, for which ε is 0. It needs ``make torch``.
"""

from importlib.metadata import version

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import oralib
from orabook.place import book_file

__all__ = ["other_packages", "rules_on"]

GUESSES = 200
DELTA = 1e-5
BETA = 0.05
SEED = 32
#: The number of audits of blind scores, and how many of them also get the estimate, which is slow.
BLIND_AUDITS = 2000
BLIND_ESTIMATES = 100
#: The δ of audits of blind scores by all thresholds, too small to matter.
TINY_DELTA = 1e-12


def other_packages() -> pd.DataFrame:
    """Return the ε of each rule on the same scores, and of two rules on blind scores."""
    table = pd.read_csv(book_file("data/tf-privacy.csv"))
    scores = table["score"].to_numpy()
    included = table["included"].to_numpy(dtype=bool)
    rows = [
        {"scores": "TensorFlow Privacy", "rule": rule, "epsilon": epsilon}
        for rule, epsilon in rules_on(scores, included).items()
    ]
    rows.extend(_on_blind_scores(len(scores)))
    library = f"jax_privacy {version('jax_privacy')}"
    return pd.DataFrame(rows).assign(version=library)


def rules_on(scores: NDArray[np.float64], included: NDArray[np.bool_]) -> dict[str, float]:
    """Return the ε that each rule reports for the scores of one audit."""
    from jax_privacy import auditing

    theirs = auditing.CanaryScoreAuditor(scores[included], scores[~included])
    highest_scores = auditing.Explicit(np.sort(scores)[-GUESSES])
    splits = auditing.MultiSplit(seed=SEED)
    order = np.argsort(-scores, kind="stable")
    right_at_top = int(included[order[:GUESSES]].sum())
    top = (GUESSES + 1) // 2
    bottom = GUESSES - top
    right_at_ends = int(included[order[:top]].sum() + (~included[order[-bottom:]]).sum())
    n = len(scores)
    at_ends = oralib.Counts(right_at_ends, GUESSES, n=n, r_fixed=True)
    at_top = oralib.Counts(right_at_top, GUESSES, n=n, r_fixed=True)
    return {
        "oralib, half the guesses at each end": oralib.valid_lower_bound(
            at_ends, delta=DELTA, beta=BETA
        ),
        "oralib, the highest scores": oralib.valid_lower_bound(at_top, delta=DELTA, beta=BETA),
        "oralib, the highest scores, Steinke et al.'s bound": oralib.epsilon_lower_bound(
            right_at_top, GUESSES, n=n, delta=DELTA, beta=BETA
        ),
        "epsilon_one_run, the highest scores": theirs.epsilon_one_run(
            BETA, DELTA, threshold_strategy=highest_scores
        ),
        "epsilon_one_run, all thresholds": theirs.epsilon_one_run(BETA, DELTA),
        "epsilon_one_run, many splits": theirs.epsilon_one_run(
            BETA, DELTA, threshold_strategy=splits
        ),
        "oralib, the highest scores, f-DP": oralib.bounds.Gaussian().lower_bound(
            right_at_top, GUESSES, n=n, delta=DELTA, beta=BETA
        ),
        "epsilon_one_run_fdp, the highest scores": theirs.epsilon_one_run_fdp(
            BETA, DELTA, threshold_strategy=highest_scores
        ),
        "epsilon_clopper_pearson": theirs.epsilon_clopper_pearson(BETA, DELTA),
        "epsilon_from_gdp": theirs.epsilon_from_gdp(BETA, DELTA),
    }


def _on_blind_scores(n: int) -> list[dict[str, object]]:
    """Return how often a bound is above 0, and the mean of an estimate, where ε is 0."""
    from jax_privacy import auditing

    rng = np.random.default_rng(SEED + 1)
    above = np.zeros(BLIND_AUDITS)
    estimates = np.zeros(BLIND_ESTIMATES)
    for trial in range(BLIND_AUDITS):
        coins = rng.random(n) < 0.5
        blind = rng.random(n)
        theirs = auditing.CanaryScoreAuditor(blind[coins], blind[~coins])
        above[trial] = theirs.epsilon_one_run(BETA, TINY_DELTA) > 0
        if trial < BLIND_ESTIMATES:
            estimates[trial] = theirs.epsilon_from_gdp(BETA, DELTA)
    means = {"all thresholds": above, "epsilon_from_gdp": estimates}
    return [
        {
            "scores": "blind",
            "rule": rule,
            "epsilon": values.mean(),
            "se": values.std(ddof=1) / np.sqrt(values.size),
        }
        for rule, values in means.items()
    ]
