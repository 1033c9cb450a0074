"""What is held against what the accountant was told, a file for each check.

A check is a function of what was :class:`~oraudit.records.Seen` and returns what it finds. Their
order is that of causes: what comes first explains what comes later.
"""

from collections.abc import Callable

from oraudit.checks import (
    accountant,
    apart_clip,
    batch_rate,
    chain,
    claim,
    clipped_sum,
    dependent_examples,
    earlier_trainings,
    empty_batches,
    follows_batch,
    ghost_norms,
    gradient_scale,
    layer_rules,
    no_noise_told,
    noise_follows_sum,
    noise_law,
    noise_reuse,
    noise_size,
    noise_values,
    poisson_batches,
    private_steps,
    seeds,
    sum_in_noise,
    thrown_away,
)
from oraudit.findings import Finding
from oraudit.records import Seen

__all__ = ["CHECKS", "findings"]

#: All checks, causes before their consequences.
CHECKS: tuple[Callable[[Seen], list[Finding]], ...] = (
    no_noise_told.check,
    accountant.check,
    earlier_trainings.check,
    dependent_examples.check,
    apart_clip.check,
    ghost_norms.check,
    clipped_sum.check,
    layer_rules.check,
    private_steps.check,
    gradient_scale.check,
    follows_batch.check,
    noise_follows_sum.check,
    sum_in_noise.check,
    noise_reuse.check,
    noise_size.check,
    noise_values.check,
    noise_law.check,
    seeds.check,
    poisson_batches.check,
    empty_batches.check,
    batch_rate.check,
    claim.check,
    thrown_away.check,
    chain.check,
)


def findings(seen: Seen) -> list[Finding]:
    """What all checks find, in their order."""
    return [finding for check in CHECKS for finding in check(seen)]
