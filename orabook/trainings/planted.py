"""How often an audit of a real training notices a bug that was planted."""

from collections.abc import Iterable
from itertools import product

import numpy as np
import pandas as pd
from tqdm import tqdm

from orabook.trainings.digits import TRAINING_BUGS, train_digits
from oralib.accounting import noise_multiplier
from oralib.bounds import Counts, valid_lower_bound
from oralib.dpsgd import DpSgd, canary_scores, conformity

#: For each claimed ε the numbers of canaries, of weights that they use, and of guesses. More than
#: 165 guesses, all of them right, are needed to refute a claim of 4. So the larger claim has more
#: guesses, and a weight for each canary, so that a bug leaves the guesser nearly certain of many.
SETTINGS = {1.0: (4000, 1000, 200), 4.0: (4000, 4000, 300)}

#: The δ of the claims, and how often a bound may fail.
DELTA, BETA = 1e-5, 0.05


def planted_bugs(
    claims: Iterable[float] = tuple(SETTINGS),
    *,
    runs: int = 20,
) -> pd.DataFrame:
    """Audit real trainings with each bug and without, each in one run: a row for each training.

    Columns
    -------
    epsilon, bug, run, n, d, k : which training it is; bug is "none" for an honest one.
    v : the number of right guesses, by the likelihood of all steps.
    bound : the exact (ε, δ) bound from it.
    conformity : the p-value of :func:`oralib.conformity`.
    """
    rows = []
    played = list(product(claims, (None, *TRAINING_BUGS), range(runs)))
    for epsilon, bug, run in tqdm(played, disable=None, leave=False):
        n, d, k = SETTINGS[epsilon]
        dpsgd = DpSgd(n, d, 100, 0.1, noise_multiplier(epsilon, DELTA, 100, 0.1))
        own = np.random.default_rng([0, run, round(1000 * epsilon), *(bug or "none").encode()])
        included = own.random(n) < 0.5
        training = train_digits(dpsgd, included, seed=int(own.integers(2**31)), bug=bug)
        scores = canary_scores(dpsgd, training.gradients)
        best = np.argsort(-np.abs(scores), kind="stable")[:k]
        right = int(((scores[best] > 0) == included[best]).sum())
        counts = Counts(np.array([right]), np.array([k]), n, r_fixed=True)
        row = {"epsilon": epsilon, "bug": bug or "none", "run": run, "n": n, "d": d, "k": k}
        row["v"] = right
        row["bound"] = float(valid_lower_bound(counts, beta=BETA, delta=DELTA)[0])
        row["conformity"] = conformity(dpsgd, training.gradients, included).p_value
        rows.append(row)
    return pd.DataFrame(rows)
