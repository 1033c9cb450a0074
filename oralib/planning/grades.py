"""Grades of guesses for a plan: surer ones count for more, by the accuracy predicted at each rank."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from oralib.bounds import p, valid_lower_bound
from oralib.bounds.graded import graded_bound
from oralib.dpsgd.hopping import hopping_counts
from oralib.dpsgd.prediction import predicted_accuracy
from oralib.planning.designs import Claim, Design

#: Numbers of guesses and what a right one counts, the surest first; ((k, 1),) if all count alike.
Grades: TypeAlias = tuple[tuple[int, int], ...]

#: No more guesses are graded, as their bound would take long; and no weight is larger.
MOST_GUESSES, MOST_WEIGHT = 1500, 9


def find_grades(design: Design, k: int, claim: Claim) -> tuple[Grades, float]:
    """Two grades where k equal guesses are best, and the bound that is predicted for them.

    Independent guesses that are right with probability a tell that from q best if their weights are
    about proportional to a - q. So q is the accuracy at the bound of equal guesses, and the grades
    are those with the largest Σ r (a - q)², where a is the predicted accuracy of r guesses.
    """
    delta, beta = claim.delta, claim.beta
    q = p(design.bounds(np.array([k]), delta, beta)[0])
    most = min(2 * k, design.active_at_the_end, MOST_GUESSES)
    ends = np.unique(np.linspace(0, most, 81)[1:].astype(np.int64))
    right = ends * predicted_accuracy(design.dpsgd, ends, design.dropping)

    def apart(cuts: tuple[int, ...]) -> tuple[NDArray[Any], NDArray[Any]]:
        """The numbers of guesses of these grades, and by how much their accuracy exceeds q."""
        r = np.diff(ends[list(cuts)], prepend=0)
        return r, np.maximum(np.diff(right[list(cuts)], prepend=0) / r - q, 0)

    r, better = max(map(apart, combinations(range(ends.size), 2)), key=lambda x: x[0] @ x[1] ** 2)
    # The smallest whole weights that lose little.
    for largest in range(1, MOST_WEIGHT + 1):
        weights = np.maximum(np.rint(largest * better / better.max()), 1).astype(np.int64)
        if (r * weights) @ better >= 0.998 * np.sqrt((r @ weights**2) * (r @ better**2)):
            break
    points = int((r * weights) @ (better + q))
    bound = graded_bound(points, r, weights, design.dpsgd.n * delta, beta)
    return tuple(zip(r.tolist(), weights.tolist(), strict=True)), bound


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
