"""The checks of an audit, a file for each: they compare what was seen with what was told.

The first line of a file says what is true of an honest training. A check is a function of what was
:class:`~oraudit.records.Seen` and returns its findings. Checks are ordered by cause: an earlier one
may explain a later one. A file says ``TESTS``, the number of statistical tests of its check, if
there are any; and ``EXPLAINED_BY``, the names of findings that make its own a mere consequence.
"""

from types import ModuleType

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
    example_counts,
    examples_twice,
    follows_batch,
    ghost_norms,
    gradient_scale,
    layer_rules,
    no_noise_told,
    noise_follows_sum,
    noise_in_weights,
    noise_law,
    noise_over_steps,
    noise_reuse,
    noise_size,
    noise_values,
    not_finite,
    poisson_batches,
    private_steps,
    rank_data,
    rank_noise,
    rank_seeds,
    seeds,
    sum_in_noise,
    thrown_away,
)
from oraudit.findings import Finding
from oraudit.records import Seen

__all__ = ["CHECKS", "findings"]

#: All checks, causes before their consequences.
CHECKS: tuple[ModuleType, ...] = (
    no_noise_told,
    accountant,
    earlier_trainings,
    dependent_examples,
    apart_clip,
    ghost_norms,
    examples_twice,
    rank_data,
    rank_seeds,
    not_finite,
    clipped_sum,
    layer_rules,
    private_steps,
    gradient_scale,
    noise_in_weights,
    follows_batch,
    rank_noise,
    noise_reuse,
    noise_follows_sum,
    sum_in_noise,
    noise_over_steps,
    noise_values,
    noise_size,
    noise_law,
    seeds,
    example_counts,
    poisson_batches,
    empty_batches,
    batch_rate,
    claim,
    thrown_away,
    chain,
)


def findings(seen: Seen) -> list[Finding]:
    """Return what all checks find, in their order, without what another finding explains."""
    all_findings: list[Finding] = []
    for check in CHECKS:
        explanations = set(getattr(check, "EXPLAINED_BY", ()))
        if not explanations & {finding.name for finding in all_findings}:
            all_findings += check.check(seen)
    return all_findings
