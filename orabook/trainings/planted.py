"""How often an audit of a real training notices a bug that was planted."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
from tqdm import tqdm

from orabook.trainings.training import TRAINING_BUGS, train_digits
from oralib._extra import needed
from oralib.bounds import Counts, valid_lower_bound
from oralib.dpsgd import DpSgd, canary_scores, conformity
from oralib.planning import AuditPlan, expected_outcomes, plan_audit
from oralib.planning.search import BUGS

#: For each claimed ε the numbers of canaries, of weights that they use, and of guesses. More than
#: 165 guesses, all of them right, are needed to refute a claim of 4. So the larger claim has more
#: guesses, and a weight for each canary, so that a bug leaves the guesser nearly certain of many.
SETTINGS = {1.0: (4000, 1000, 200), 4.0: (4000, 4000, 300)}

#: The δ of the claims, and how often a bound may fail.
DELTA, BETA = 1e-5, 0.05


def foretold_verdicts(runs: int = 10) -> pd.DataFrame:
    """What a plan to refute foretells, and what training runs with Opacus show: a row for each.

    ``foretold`` are right guesses in simulated audits by the plan, and ``foretold_refuted`` the
    share that refutes the claim; ``v`` is what the training run shows, as ``noise_seen`` is.
    """
    with needed("torch", "opacus"):
        from orabook.trainings import _opacus
    plan = plan_to_refute()
    rows = []
    played = list(product(plan.forecast.outcomes, range(runs)))
    for outcome, run in tqdm(played, disable=None, leave=False):
        share, norm = BUGS.get(outcome.bug, (plan.forecast.noise, 1.0))
        canaries = _opacus.audited_network(plan, share, clipped=norm == 1, seed=run)
        audit = plan.audit(canaries.scores, canaries.included, canaries.seen)
        dpsgd = plan.design.dpsgd
        row = {"bug": outcome.bug, "run": run, "n": dpsgd.n, "d": dpsgd.d, "k": plan.guesses}
        row |= {"right_needed": audit.right_needed(), "foretold": outcome.right}
        row |= {"foretold_se": outcome.right_se, "foretold_refuted": outcome.refuted}
        row |= {"v": audit.v, "refuted": audit.refutes()}
        rows.append(row | {"noise_seen": canaries.noise_seen})
    return pd.DataFrame(rows)


def plan_to_refute() -> AuditPlan:
    """The plan of that table, for a claim of ε = 2, with what it foretells."""
    plan = plan_audit(2.0, DELTA, steps=100, sample_rate=0.1, aim="refute", trials=0)
    outcomes = expected_outcomes(plan, trials=100)
    return replace(plan, forecast=replace(plan.forecast, outcomes=outcomes))


def planted_bugs(claims: Iterable[float] = tuple(SETTINGS), *, runs: int = 20) -> pd.DataFrame:
    """Audit real trainings with each bug and without, each in one run: a row for each training.

    ``v`` counts right guesses, by the likelihood of all steps; ``bound`` is the exact bound from
    it, and ``conformity`` the p-value of :func:`oralib.conformity`.
    """
    rows = []
    played = list(product(claims, (None, *TRAINING_BUGS), range(runs)))
    for epsilon, bug, run in tqdm(played, disable=None, leave=False):
        n, d, k = SETTINGS[epsilon]
        dpsgd = DpSgd.calibrated(epsilon, DELTA, n=n, d=d)
        own = np.random.default_rng([0, run, round(1000 * epsilon), *(bug or "none").encode()])
        included = own.random(n) < 0.5
        training = train_digits(dpsgd, included, seed=int(own.integers(2**31)), bug=bug)
        scores = canary_scores(dpsgd, training.gradients)
        best = np.argsort(-np.abs(scores), kind="stable")[:k]
        right = int(((scores[best] > 0) == included[best]).sum())
        counts = Counts(np.array([right]), np.array([k]), n, r_fixed=True)
        row = {"epsilon": epsilon, "bug": bug or "none", "run": run, "n": n, "d": d, "k": k}
        row["v"] = right
        row["bound"] = float(np.squeeze(valid_lower_bound(counts, beta=BETA, delta=DELTA)))
        row["conformity"] = conformity(dpsgd, training.gradients, included).p_value
        rows.append(row)
    return pd.DataFrame(rows)
