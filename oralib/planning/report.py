"""A plan in words: what to do, what to expect, and the lines of code."""

from typing import TYPE_CHECKING

from oralib._text import confidence, paragraphs, short

if TYPE_CHECKING:
    from oralib.planning.plan import AuditPlan


def report(plan: "AuditPlan") -> str:
    """What to do, row by row, and what to write into the script of the training."""
    dpsgd, dropping, s = plan.dpsgd, plan.dropping, plan.dpsgd.per_coordinate
    used = dpsgd.used_coordinates
    coins = "each included by a fair coin of its own"
    if used < dpsgd.d:
        coins += f"; {used:,} of {dpsgd.d:,} coordinates are used"
    words = (
        "A coordinate is a weight of the model whose noisy gradient you see in each step; "
        "oralib.canaries adds such weights to a model. A canary is an example that you make: "
        "its gradient is the clipping threshold on one coordinate, and 0 elsewhere."
    )
    claim = f"({plan.epsilon:g}, {short(plan.delta)})-DP: noise multiplier {dpsgd.sigma:.4f}"
    canaries = f"{dpsgd.n:,}, {s} per coordinate, {coins}"
    rows = [("words", words), ("claim", claim), ("canaries", canaries)]
    if s > 1:
        evenly = ", as many on each coordinate as on any other" if dropping is None else ""
        rows.append(("place", f"drawn again in each step, by public random numbers{evenly}"))
    if dropping is None:
        rows.append(("drop", "none"))
    else:
        active, steps = dropping.active(dpsgd), dpsgd.steps
        quarters = sorted({0, steps // 4, steps // 2, 3 * steps // 4, steps - 1})
        falls = ", ".join(f"{active[t]:,} in step {t + 1}" for t in quarters)
        loads, second = dropping.loads(dpsgd), min(2, steps)
        most, least = loads[second - 1].max(), loads[second - 1].min()
        crowds = f"{most} on a coordinate in step {second}, against {least} of the most promising"
        if steps > second:
            crowds += f"; {loads[-1].max()} against {loads[-1].min()} in step {steps}"
        rows.append(("drop", f"those with scores nearest to 0; active: {falls}"))
        rows.append(("crowd", f"the undecided: {crowds}"))
    bound, seen = f"a bound of about {plan.predicted:.2f} by prediction", "not simulated here"
    if plan.trials:
        seen = f"{plan.bound:.3f} ± {plan.bound_se:.3f}, the mean of {plan.trials} simulated audits"
    valid = (
        f"with {confidence(plan.beta)} for any training that is (ε, δ)-DP, by the exact p-value: "
        "the number of guesses is fixed in advance"
    )
    rows += [
        ("guess", f"the {plan.k:,} with the scores farthest from 0, sums of log-likelihood ratios"),
        ("expect", f"of an honest training {bound}; {seen}"),
        ("at best", f"a bound of {plan.best:.2f}, if every guess is right{_meaning(plan)}"),
        ("valid", valid),
    ]
    return "\n".join([paragraphs(rows), "", *_commands(plan)])


def _meaning(plan: "AuditPlan") -> str:
    """What the best outcome would mean for the claim, and when to expect it."""
    if plan.best <= plan.epsilon:
        return f": this plan can never refute {plan.epsilon:g}; --aim refute looks for one that can"
    if plan.noise < 1:
        return (
            f"; made to refute {plan.epsilon:g} if the noise is {plan.noise:g} of what is stated, "
            f"as {plan.refuted:.0%} of simulated audits do"
        )
    return f", more than the claimed {plan.epsilon:g}"


def _commands(plan: "AuditPlan") -> list[str]:
    """What to write into the script of the training, and what to call after it."""
    dropping = "" if plan.dropping is None else f"\n    dropping={plan.dropping!r},"
    hop = "\n    hop=False," if plan.dpsgd.per_coordinate == 1 else ""
    beta = "" if plan.beta == 0.05 else f" --beta {short(plan.beta)}"
    options = f"--side farthest --guesses {plan.k} --delta {short(plan.delta)}{beta}"
    return [
        "In the script of the training:",
        "",
        "from oralib import DpSgd, Dropping",
        "from oralib.canaries import Canaries",
        "audit = Canaries(",
        f"    {plan.dpsgd!r},",
        f"    k={plan.k},{dropping}{hop}",
        "    seed=...,  # a number of your own, which nobody else knows",
        ")",
        "",
        "In each step audit.places(step) says where canaries are, and audit.observe(step,",
        "gradient) takes the noisy gradient; oralib.canaries.opacus does both for Opacus.",
        "Canaries join your batches, which dilutes the mean gradient: multiply the",
        f"learning rate of plain SGD by (N + {plan.dpsgd.n})/N, N your examples.",
        'After the last step, audit.write_scores("scores.csv"), and then:',
        "",
        f"oralib audit scores.csv {options} \\",
        f"    --claim {plan.epsilon:g}",
    ]
