"""Grades of guesses for a plan: surer ones count for more."""

from dataclasses import replace
from math import gcd, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oralib._types import Array
from oralib.bounds import p, valid_lower_bound
from oralib.bounds.graded import graded_bound
from oralib.dpsgd.hopping import hopping_counts
from oralib.dpsgd.prediction import predicted_accuracy
from oralib.planning.designs import Design
from oralib.planning.plan import AuditPlan, Grades


def with_grades(plan: AuditPlan, seed: int) -> AuditPlan:
    """The plan with two grades, if they add more than a standard error to its mean bound."""
    grades = find_grades(plan)
    graded = replace(plan, grades=grades, k=sum(number for number, _ in grades))
    _, bounds, equal = simulated(graded, plan.k, trials=plan.trials, seed=seed)
    (bound, bound_se), (gain, gain_se) = mean(bounds), mean(bounds - equal)
    if gain > gain_se:
        plan = replace(graded, bound=bound, bound_se=bound_se)
    return replace(plan, gain=gain, gain_se=gain_se)


def find_grades(plan: AuditPlan) -> Grades:
    """Two grades for a plan of equal guesses: half as many of them, and 0.8 times as many.

    Guesses of accuracy a tell it best from q if their weights are about proportional to a - q; here
    q is the accuracy at the predicted bound, and a is predicted too. No more than 1500 guesses are
    graded, as their bound would take long.
    """
    active = Design(plan.dpsgd, plan.dropping).active_at_the_end
    total = max(2, min(round(1.3 * plan.k), active, 1500))
    ends = np.array([round(total / 2.6), total])
    right = ends * predicted_accuracy(plan.dpsgd, ends, plan.dropping)
    r, more = np.diff(ends, prepend=0), np.diff(right - ends * p(plan.predicted), prepend=0)
    surer, other = np.maximum(more / r, 1e-9)
    weights = round(2 * min(max(surer / other, 1.0), 5.0)), 2
    return tuple((int(number), w // gcd(*weights)) for number, w in zip(r, weights, strict=True))


def simulated(
    plan: AuditPlan, equal: int, noise: float = 1.0, **options: Any
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Right guesses and bounds of simulated audits, and the bounds of as many equal guesses."""
    r, weights = np.array(plan.grades or [(plan.k, 1)]).T
    ends = np.cumsum(r).tolist()
    numbers = sorted({*ends, equal}, reverse=True)
    dpsgd = Design(plan.dpsgd, plan.dropping).with_noise(noise).dpsgd
    played = hopping_counts(dpsgd, numbers, dropping=plan.dropping, **options)
    counts = dict(zip(numbers, played, strict=True))
    ungraded = valid_lower_bound(counts[equal], beta=plan.beta, delta=plan.delta)
    if not plan.grades:
        return counts[equal].v, ungraded, ungraded
    points = weights @ np.diff([counts[end].v for end in ends], axis=0, prepend=0)
    # The bound depends on the points alone, and is nearly straight between a few of them.
    tried = np.unique(np.linspace(points.min(), points.max(), 5).astype(np.int64))
    given = r, weights, plan.dpsgd.n * plan.delta, plan.beta
    bounds = np.interp(points, tried, [graded_bound(s, *given) for s in tried.tolist()])
    return counts[plan.k].v, bounds, ungraded


def mean(values: Array) -> tuple[float, float]:
    """The mean of some trials, and its standard error."""
    return float(values.mean()), float(values.std(ddof=1)) / sqrt(values.size)
