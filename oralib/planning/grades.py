"""Grades of guesses for a plan: surer ones count for more."""

from collections.abc import Sequence
from dataclasses import replace
from math import gcd, sqrt
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from oralib.bounds import p, valid_lower_bound
from oralib.bounds.graded import graded_bound
from oralib.dpsgd.hopping import hopping_counts
from oralib.dpsgd.prediction import predicted_accuracy
from oralib.planning.designs import Claim, Design
from oralib.planning.plan import AuditPlan

#: Numbers of guesses and what a right one counts, the surest first.
Grades: TypeAlias = tuple[tuple[int, int], ...]

#: More guesses are not graded, as their bound would take long.
MOST_GUESSES = 1500


def with_grades(plan: AuditPlan, seed: int) -> AuditPlan:
    """The plan with two grades, if they add more than a standard error to its mean bound."""
    design, claim = Design(plan.dpsgd, plan.dropping), Claim(plan.epsilon, plan.delta, plan.beta)
    grades = find_grades(design, plan.k, plan.predicted)
    ways, options = [((plan.k, 1),), grades], {"trials": plan.trials, "seed": seed}
    (_, equal), (_, graded) = simulated(design, ways, claim, **options)
    gain, error = mean(graded - equal)
    plan = replace(plan, gain=gain, gain_se=error)
    if gain <= error:
        return plan
    bound, bound_se = mean(graded)
    k = sum(number for number, _ in grades)
    return replace(plan, k=k, grades=grades, bound=bound, bound_se=bound_se)


def find_grades(design: Design, k: int, bound: float) -> Grades:
    """Two grades in place of k equal guesses that are predicted to show this bound.

    A few more guesses than that, half of them in each grade. Guesses of accuracy a tell it best
    from that at the bound, q, if their weights are about proportional to a - q.
    """
    half = max(1, min(round(0.7 * k), design.active_at_the_end // 2, MOST_GUESSES // 2))
    ends = np.array([half, 2 * half])
    right = ends * predicted_accuracy(design.dpsgd, ends, design.dropping)
    surer, other = np.maximum(np.diff(right, prepend=0) / half - p(bound), 1e-9)
    weights = [round(2 * min(max(surer / other, 1.0), 5.0)), 2]
    return tuple((half, weight // gcd(*weights)) for weight in weights)


def simulated(
    design: Design, ways: Sequence[Grades], claim: Claim, **options: Any
) -> list[tuple[NDArray[np.int64], NDArray[np.float64]]]:
    """Right guesses and bounds of the same simulated audits, for each way to count the guesses."""
    ends = [np.cumsum([number for number, _ in grades]).tolist() for grades in ways]
    numbers = sorted({end for some in ends for end in some}, reverse=True)
    played = hopping_counts(design.dpsgd, numbers, dropping=design.dropping, **options)
    counts, found = dict(zip(numbers, played, strict=True)), []
    for grades, some in zip(ways, ends, strict=True):
        bounds = valid_lower_bound(counts[some[-1]], beta=claim.beta, delta=claim.delta)
        if len(grades) > 1:
            r, weights = np.array(grades).T
            points = weights @ np.diff([counts[end].v for end in some], axis=0, prepend=0)
            # The bound depends on the points alone, and is nearly straight between a few of them.
            tried = np.unique(np.linspace(points.min(), points.max(), 5).astype(np.int64))
            given = r, weights, design.dpsgd.n * claim.delta, claim.beta
            bounds = np.interp(points, tried, [graded_bound(s, *given) for s in tried.tolist()])
        found.append((counts[some[-1]].v, bounds))
    return found


def mean(values: NDArray[Any]) -> tuple[float, float]:
    """The mean of some trials, and its standard error."""
    return float(values.mean()), float(values.std(ddof=1)) / sqrt(values.size)
