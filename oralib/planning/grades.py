"""Grades of guesses for a plan: surer ones count for more, by the accuracy predicted at each rank."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from oralib.bounds import p, valid_lower_bound
from oralib.bounds.graded import graded_bound, graded_p_value
from oralib.dpsgd.hopping import hopping_counts
from oralib.dpsgd.prediction import predicted_accuracy
from oralib.planning.designs import Claim, Design

#: Numbers of guesses and what a right one counts, the surest first; ((k, 1),) if all count alike.
Grades: TypeAlias = tuple[tuple[int, int], ...]

#: Guesses in all, as multiples of the best number of equal ones, and the share of the surer grade.
TOTALS, SHARES = (1.0, 1.2, 1.4, 1.6), (0.3, 0.4, 0.5)

#: No more guesses are graded: their bound would take long.
MOST_GUESSES = 1500


def find_grades(design: Design, k: int, claim: Claim) -> Grades:
    """Two grades in place of k equal guesses, by the accuracy that is predicted at each rank.

    Guesses of accuracy a tell it best from q if their weights are about proportional to a - q. So q
    is the accuracy at the predicted bound of equal guesses, and of some grades with such weights
    those are taken whose predicted points have the least p-value there.
    """
    level = float(design.bounds(np.array([k]), claim.delta, claim.beta)[0])
    most = min(design.active_at_the_end, MOST_GUESSES)
    totals = {min(round(k * total), most) for total in TOTALS}
    tried = {(round(total * share), total) for total in totals for share in SHARES}
    ends = np.array(sorted(pair for pair in tried if pair[0] > 0))
    right = ends * predicted_accuracy(design.dpsgd, ends.ravel(), design.dropping).reshape(-1, 2)
    found = []
    for r, each in zip(np.diff(ends, prepend=0), np.diff(right, prepend=0), strict=True):
        first, second = np.maximum(each / r - p(level), 1e-9)
        weights = np.array([round(2 * min(max(first / second, 1.0), 5.0)), 2])
        weights //= np.gcd(*weights)
        points = float(weights @ each)
        values = [
            graded_p_value(s, r, weights, level, design.dpsgd.n * claim.delta)
            for s in (int(points), int(points) + 1)
        ]
        value = values[0] ** (1 - points % 1) * values[1] ** (points % 1)
        found.append((value, tuple(zip(r.tolist(), weights.tolist(), strict=True))))
    return min(found)[1]


def simulated(
    design: Design, schemes: Sequence[Grades], claim: Claim, **options: Any
) -> list[tuple[NDArray[np.int64], NDArray[np.float64]]]:
    """Right guesses and bounds of the same simulated audits, for each way to count the guesses."""
    ends = [np.cumsum([number for number, _ in grades]).tolist() for grades in schemes]
    numbers = sorted({end for some in ends for end in some}, reverse=True)
    played = hopping_counts(design.dpsgd, numbers, dropping=design.dropping, **options)
    counts, found = dict(zip(numbers, played, strict=True)), []
    for grades, some in zip(schemes, ends, strict=True):
        bounds = valid_lower_bound(counts[some[-1]], beta=claim.beta, delta=claim.delta)
        if len(grades) > 1:
            r, weights = np.array(grades).T
            points = weights @ np.diff([counts[end].v for end in some], axis=0, prepend=0)
            # Between a few sums of weights the bound is nearly straight.
            tried = np.unique(np.linspace(points.min(), points.max(), 5).astype(np.int64))
            leaks = design.dpsgd.n * claim.delta
            bounds = [graded_bound(s, r, weights, leaks, claim.beta) for s in tried.tolist()]
            bounds = np.interp(points, tried, bounds)
        found.append((counts[some[-1]].v, bounds))
    return found
