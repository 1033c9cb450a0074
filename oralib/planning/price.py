"""What more canaries show: plans for several shares of canaries among the examples."""

from dataclasses import replace
from typing import Any

from oralib.ground import arguments
from oralib.planning.file import table
from oralib.planning.measured import MEASURED
from oralib.planning.plan import AuditPlan
from oralib.planning.search import BUGS, expected_outcomes, plan_audit
from oralib.scores.seen import SEES

#: The canaries among the examples, as a share of the others.
SHARES = (0.0, 0.01, 0.05, 0.1, 0.5)


def plans_by_price(
    examples: int, epsilon: float | None, delta: float, *, trials: int = 10, **options: Any
) -> dict[float, AuditPlan]:
    """Plans for a large bound, keyed by the share of your examples that the canaries add to them.

    At share 0 the canaries go into the sum of gradients. At 0.01, 0.05, 0.1 and 0.5 they are
    examples, at most that share of your ``examples``; shares of less than one canary are left out.
    How much longer a training takes is not computed: ``oralib.planning.measured`` says what was
    measured.
    If ``trials`` simulated audits of each kind would take too long, there are fewer, or only
    predictions. Other options are those of :func:`oralib.plan_audit`, without ``aim``, ``way`` and
    ``canaries``.

    Examples
    --------
    >>> plans = plans_by_price(5000, 2.0, 1e-5, steps=20, sample_rate=0.1, d=200, trials=0)
    >>> {share: plan.design.dpsgd.n for share, plan in plans.items() if share < 0.1}
    {0.0: 20000, 0.01: 50, 0.05: 200}
    """
    examples, plans = arguments.integer("examples", examples, 1, 10**9), {}
    for share in SHARES:
        if share == 0 or int(share * examples):
            way = {"way": "examples", "canaries": int(share * examples)} if share else {}
            plan = plan_audit(epsilon, delta, **options | way, trials=0)
            if (quick := plan.design.affordable(10 * trials) // 10) > 1:
                outcomes = expected_outcomes(plan, trials=quick, seed=options.get("seed", 0))
                plan = replace(plan, forecast=replace(plan.forecast, outcomes=outcomes))
            plans[share] = plan
    return plans


def price_table(plans: dict[float, AuditPlan]) -> str:
    """Such plans in a table, and what was measured of the time that canaries take."""
    bugs = {name: bug for name, bug in BUGS.items() if name != "none"}
    rows = [["way", "canaries", "bound", *bugs]]
    for share, plan in plans.items():
        design, found = plan.design, {each.bug: each.refuted for each in plan.forecast.outcomes}
        way = f"{design.way} +{share:.0%}" if share else design.way
        row = [way, f"{design.dpsgd.n:,}", f"{plan.forecast.predicted:.2f}"]
        for name, bug in bugs.items():
            if bug.norm == 1 and name not in found:
                found[name] = design.with_noise(bug.noise).refuting(plan.guesses, plan.claim)
            refuted = f"{found[name]:.0%}" if name in found else "?"
            row.append(refuted if design.way in SEES[bug.part] else "unseen")
        rows.append(row)
    times = [[x.way, f"{x.canaries:,}", f"{x.smaller:.2f}", f"{x.larger:.2f}"] for x in MEASURED]
    return f"""{table([13, 9, 7, *(len(name) + 2 for name in bugs)], rows)}

Bounds are predicted for an honest training run. Under each bug is the share of
audits that would refute the claim, simulated or predicted (? = too slow).

How many times as long a step takes was measured on a GPU, for networks of
0.3 and 4.6 million weights with 50,000 examples:

{table([13, 9, 13, 13], [["way", "canaries", "0.3 million", "4.6 million"], *times])}"""
