"""What an auditor sees of one training, and how much that shows."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from oralib import _check
from oralib.bounds import Counts, valid_lower_bound
from oralib.dpsgd import audit_gradients, audit_hopping, audit_likelihood, canary_scores
from oralib.trainings.digits import Training

#: What an auditor sees of canaries with their own weights.
VIEWS: Mapping[str, dict[str, Any]] = {
    "weights of their own, the sum": {"sees": "sum"},
    "weights of their own, all steps": {"sees": "steps"},
    "weights of their own, all steps, one-way": {"sees": "steps", "feedback": "one-way"},
}


def compare_views(
    staying: Training,
    hopping: Training,
    among: Training,
    included: ArrayLike,
    included_among: ArrayLike,
    *,
    k: int,
    k_among: int,
    delta: float,
    beta: float = 0.05,
    trials: int = 500,
    seed: int = 0,
) -> pd.DataFrame:
    """Audits of three real trainings by auditors who see less or more: a row for each.

    Columns are k, v (the right guesses), bound, and the mean and the standard deviation sd of v
    when simulated, which are nan where digits disturb the canaries.

    Parameters
    ----------
    staying, hopping : trainings of the same canaries, which have their own weights.
    among : one whose canaries share the weights of the pixels.
    included, included_among : the coins of the first two, and of the third.
    k, k_among : the number of guesses, fixed in advance, for the first two and for the third.
    trials, seed : of the simulated audits to compare with.

    Examples
    --------
    With three trainings by ``train_digits``, in a minute:

    >>> compare_views(  # doctest: +SKIP
    ...     staying, hopping, among, coins, coins_among, k=200, k_among=64, delta=1e-5
    ... )
    """
    for name, training in (("staying", staying), ("hopping", hopping), ("among", among)):
        _check.instance(name, training, Training, "train_digits(...)")
    if hopping.places is None:
        raise ValueError("hopping must be a training whose canaries hop, got one where they stay")
    claim, few = staying.dpsgd, among.dpsgd
    coins = _check.coins("included", included, claim.n)
    played: Any = {"trials": _check.integer("trials", trials, 2), "seed": _check.seed(seed)}
    rows: dict[str, tuple[Counts, Counts | None]] = {}
    for name, view in VIEWS.items():
        real = audit_gradients(claim, staying.gradients, coins, k, **view)
        rows[name] = real, audit_likelihood(claim, k, **view, **played)
    # Of canaries that hop, the k with the largest log-likelihood ratios, guessed by their signs.
    scores = canary_scores(hopping.dpsgd, hopping.gradients, places=hopping.places)
    best = np.argsort(-np.abs(scores), kind="stable")[:k]
    right = ((scores[best] > 0) == coins[best]).sum()
    hopped = Counts(np.array([right]), np.array([k]), n=claim.n, r_fixed=True)
    rows["hopping, all steps"] = hopped, audit_hopping(claim, k, **played)
    known = among.gradients - among.expected_from_digits
    for name, seen in (("knows the digits", known), ("does not", among.gradients)):
        real = audit_gradients(few, seen, included_among, k_among, sees="sum")
        rows[f"weights of the pixels, the sum, auditor {name}"] = real, None
    table = []
    for real, simulated in rows.values():
        bound = float(valid_lower_bound(real, beta=beta, delta=delta)[0])
        row: dict[str, float] = {"k": int(real.r[0]), "v": int(real.v[0]), "bound": bound}
        row["mean"] = np.nan if simulated is None else float(simulated.v.mean())
        row["sd"] = np.nan if simulated is None else float(simulated.v.std())
        table.append(row)
    return pd.DataFrame(table, index=list(rows))
