"""The rules by which jax_privacy and this library turn the same scores into an ε.

The scores are those that TensorFlow Privacy left in ``book/data/tf-privacy.csv``, and *blind*
ones: random numbers that do not depend on the canaries' coins, for which ε is 0. This module needs
``make torch``.
"""

from importlib.metadata import version

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import oralib
from orabook.place import book_file

__all__ = ["other_packages", "rules_on"]

#: The number of guesses of the rules that fix it.
GUESSES = 200
#: The δ at which rules bound or estimate ε, and the probability with which a bound may fail.
DELTA = 1e-5
BETA = 0.05
#: The seed of the rule with many splits; the next one is that of blind scores.
SEED = 32
#: The number of audits of blind scores.
BLIND_AUDITS = 2000
#: The number of these audits with the estimate, which is slow.
BLIND_ESTIMATES = 100
#: The δ of the bound on blind scores: too small to raise it.
TINY_DELTA = 1e-12
#: The rules that are also applied to blind scores.
ALL_THRESHOLDS = "epsilon_one_run, all thresholds"
FROM_GDP = "epsilon_from_gdp"


def other_packages() -> pd.DataFrame:
    """Return the ε of each rule on the same scores, and what two rules make of blind scores.

    Column ``measure`` says what ``value`` is: an ε (on blind scores the mean of many), or the
    share of audits whose bound is above 0. Column ``se`` is its standard error.
    """
    table = pd.read_csv(book_file("data/tf-privacy.csv"))
    scores = table["score"].to_numpy()
    included = table["included"].to_numpy(dtype=bool)
    rows = [
        {"scores": "TensorFlow Privacy", "rule": rule, "measure": "ε", "value": epsilon}
        for rule, epsilon in rules_on(scores, included).items()
    ]
    rows.extend(_on_blind_scores(len(scores)))
    library = f"jax_privacy {version('jax_privacy')}"
    return pd.DataFrame(rows).assign(compared_with=library)


def rules_on(scores: NDArray[np.float64], included: NDArray[np.bool_]) -> dict[str, float]:
    """Return the ε that each rule reports for the scores of one audit."""
    from jax_privacy import auditing

    auditor = auditing.CanaryScoreAuditor(scores[included], scores[~included])
    at_200th_score = auditing.Explicit(np.sort(scores)[-GUESSES])
    many_splits = auditing.MultiSplit(seed=SEED)
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
        "epsilon_one_run, the highest scores": auditor.epsilon_one_run(
            BETA, DELTA, threshold_strategy=at_200th_score
        ),
        ALL_THRESHOLDS: auditor.epsilon_one_run(BETA, DELTA),
        "epsilon_one_run, many splits": auditor.epsilon_one_run(
            BETA, DELTA, threshold_strategy=many_splits
        ),
        "oralib, the highest scores, f-DP": oralib.bounds.Gaussian().lower_bound(
            right_at_top, GUESSES, n=n, delta=DELTA, beta=BETA
        ),
        "epsilon_one_run_fdp, the highest scores": auditor.epsilon_one_run_fdp(
            BETA, DELTA, threshold_strategy=at_200th_score
        ),
        "epsilon_clopper_pearson": auditor.epsilon_clopper_pearson(BETA, DELTA),
        FROM_GDP: auditor.epsilon_from_gdp(BETA, DELTA),
    }


def _on_blind_scores(n: int) -> list[dict[str, object]]:
    """Return the share of bounds above 0 and the mean of an estimate, where the true ε is 0."""
    from jax_privacy import auditing

    rng = np.random.default_rng(SEED + 1)
    above = np.zeros(BLIND_AUDITS)
    estimates = np.zeros(BLIND_ESTIMATES)
    for trial in range(BLIND_AUDITS):
        coins = rng.random(n) < 0.5
        blind = rng.random(n)
        auditor = auditing.CanaryScoreAuditor(blind[coins], blind[~coins])
        above[trial] = auditor.epsilon_one_run(BETA, TINY_DELTA) > 0
        if trial < BLIND_ESTIMATES:
            estimates[trial] = auditor.epsilon_from_gdp(BETA, DELTA)
    measured = ((ALL_THRESHOLDS, "share above 0", above), (FROM_GDP, "ε", estimates))
    return [
        {
            "scores": "blind",
            "rule": rule,
            "measure": measure,
            "value": values.mean(),
            "se": values.std(ddof=1) / np.sqrt(values.size),
        }
        for rule, measure, values in measured
    ]
