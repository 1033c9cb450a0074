"""What the accountant was told gives the ε that the training is said to have.

Formula: the ε of the told noise multipliers, rates and steps at the claim's δ. Limit: 2% above
the claimed ε, as accountants differ.
"""

from itertools import groupby

from oraudit.findings import Finding
from oraudit.records import Seen

NAME = "claim"

#: Accountants differ by less.
MARGIN = 1.02


def check(seen: Seen) -> list[Finding]:
    if seen.claim is None or seen.rates is None or not (seen.sigmas > 0).all():
        return []
    epsilon, delta = seen.claim
    told = told_epsilon(seen, delta)
    if told is None or told <= MARGIN * epsilon:
        return []
    text = f"what the accountant was told is ε = {told:.3g} at δ = {delta:g}, not {epsilon:g}"
    return [Finding(NAME, text, "less private", number=told, limit=epsilon)]


def told_epsilon(seen: Seen, delta: float) -> float | None:
    """The ε of a training with one kind of step; None if steps differ."""
    kinds = [key for key, _ in groupby((step.sigma, step.rate) for step in seen.told)]
    if len(kinds) != 1:
        return None
    sigma, rate = kinds[0]
    if rate is None:
        return None
    from oralib.accounting import certified_epsilon  # compiles; most audits have no claim

    return certified_epsilon(sigma, delta, seen.steps, rate, accountant="pld")
