"""What canaries cost, and what they show for it: plans at several prices."""

from typing import Any

import numpy as np
import scipy

from oralib import _check
from oralib.bounds import Counts
from oralib.bounds.refuting import right_needed
from oralib.planning.plan import AuditPlan
from oralib.planning.search import BUGS, plan_audit
from oralib.scores.seen import SEES

#: How much longer a training may take.
SHARES = (0.0, 0.01, 0.05, 0.1, 0.5)


def plans_by_price(
    examples: int, epsilon: float | None, delta: float, *, trials: int = 10, **options: Any
) -> dict[float, AuditPlan]:
    """Plans for a large bound, by how much longer they make a training, as a share.

    At 0 canaries go into the sum of gradients. At 0.01, 0.05, 0.1 and 0.5 they are that share of
    your examples; a share of less than one canary is left out.

    Parameters
    ----------
    examples : int
        How many examples of your own the training has.
    epsilon, delta, **options
        As for :func:`oralib.plan_audit`, without ``aim``, ``way`` and ``canaries``.
    trials : int
        Simulated audits of each kind; where they take long there are fewer, or only predictions.

    Examples
    --------
    >>> plans = plans_by_price(5000, 2.0, 1e-5, steps=20, sample_rate=0.1, d=200, trials=0)
    >>> {share: plan.design.dpsgd.n for share, plan in plans.items() if share < 0.1}
    {0.0: 20000, 0.01: 50, 0.05: 200}
    """
    examples, plans = _check.integer("examples", examples, 1, 10**9), {}
    for share in SHARES:
        way: dict[str, Any] = {"way": "examples", "canaries": int(share * examples)}
        if share == 0:
            way = {"way": "sum"}
        elif not way["canaries"]:
            continue
        plan = plan_audit(epsilon, delta, **options, **way, trials=0)
        if quick := plan.design.affordable(10 * trials) // 10:
            plan = plan_audit(epsilon, delta, **options, **way, trials=quick)
        plans[share] = plan
    return plans


def price_table(plans: dict[float, AuditPlan]) -> str:
    """Such plans in a table: canaries, the bound to expect, and how often bugs are refuted."""
    bugs = [name for name in BUGS if name != "none"]
    heads = "".join(f"{name:>{len(name) + 2}}" for name in bugs)
    lines = [f"{'longer, way':<13}{'canaries':>9}{'bound':>7}{heads}"]
    for share, plan in plans.items():
        cells = "".join(f"{_refuted(plan, name):>{len(name) + 2}}" for name in bugs)
        design, bound = plan.design, plan.forecast.predicted
        lines.append(f"{f'{share:.0%} {design.way}':<13}{design.dpsgd.n:>9,}{bound:>7.2f}{cells}")
    lines += ["", "Bounds are predicted for an honest training; a bug has the share of audits that"]
    lines += ["refute the claim then, simulated or predicted (? takes too long to simulate)."]
    return "\n".join(lines)


def _refuted(plan: AuditPlan, name: str) -> str:
    """How often audits refute the claim if there is this bug, simulated or else predicted."""
    claim, design, bug = plan.claim, plan.design, BUGS[name]
    if design.way not in SEES[bug.part]:
        return "unseen"
    for outcome in plan.forecast.outcomes:
        if outcome.bug == name:
            return f"{outcome.refuted:.0%}"
    if bug.norm != 1:
        return "?"
    counts = Counts(0, plan.guesses, design.dpsgd.n, r_fixed=True)
    need = right_needed(counts, claim.epsilon, delta=claim.delta, beta=claim.beta)
    if need is None:
        return "0%"
    margin = design.with_noise(bug.noise).margins(np.array([plan.guesses]), np.array([need]))[0]
    return f"{scipy.special.ndtr(margin):.0%}"
