"""Comparisons of a claim with computed numbers: equal, at most, tending to, near."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from ledger.machine.findings import Finding
from oralib.bounds import Counts
from oralib.ground.rounding import first_largest

__all__ = [
    "approach",
    "at_most",
    "equal",
    "first_least",
    "fits",
    "near",
    "same_answers",
    "tends",
    "vanish",
]


def first_least(values: Iterable[float]) -> int:
    """Return the place of the least number; of those equal up to rounding, the first.

    >>> first_least([0.3, 0.1 + 0.2 - 0.1, 0.2])
    1
    """
    numbers = np.fromiter(values, dtype=float)
    minimum = numbers.min()
    return int(np.argmax(numbers <= minimum + 1e-12 * max(1.0, abs(minimum))))


def equal(cases: Iterable[tuple[str, float, float]], tolerance: float = 1e-9) -> Finding:
    """Find whether the two numbers of each case (name, one, other) agree."""
    count = 0
    for name, one, other in cases:
        count += 1
        if not (one == other or abs(one - other) <= tolerance):
            return Finding(False, f"the two sides differ: {one:.6g} and {other:.6g} ({name})")
    return Finding(count > 0, f"the two sides agree to within {tolerance:g} in {_all(count)}")


def at_most(cases: Iterable[tuple[str, float, float]], slack: float = 1e-9) -> Finding:
    """Find whether the value of each case (name, value, limit) is at most the limit."""
    tried = []
    for name, value, limit in cases:
        if not value <= limit + slack:
            return Finding(False, f"{value:.4g} exceeds the limit of {limit:.4g} ({name})")
        tried.append((name, value, limit))
    if not tried:
        return Finding(False, "there was nothing to try")
    gaps = (limit - value if value < np.inf else np.inf for _, value, limit in tried)
    name, value, limit = tried[first_least(gaps)]
    closest = f"the closest is {value:.4g} where {limit:.4g} is allowed ({name})"
    return Finding(True, f"the limit is kept in {_all(len(tried))}; {closest}")


def _all(count: int) -> str:
    if count == 1:
        return "the one case tried"
    return "both cases" if count == 2 else f"all {count} cases"


def tends(values: Sequence[float], limit: float, tolerance: float) -> Finding:
    """Find whether values come closer and closer to a limit, in the end within the tolerance."""
    distance = np.abs(np.asarray(values, dtype=float) - limit)
    closer = bool((distance[1:] <= distance[:-1] + 1e-12).all())
    holds = closer and bool(distance[-1] <= tolerance)
    return Finding(holds, approach(values, limit, holds))


def approach(values: Sequence[float], limit: float, holds: bool) -> str:
    """Describe a sequence and its limit; a value that is 0 up to rounding is shown as 0."""
    listed = ", ".join(f"{value:.4g}" if abs(value) > 1e-9 else "0" for value in values)
    return f"the values {listed} {'approach' if holds else 'do not approach'} {limit:.4g}"


def same_answers(answers: Mapping[str, tuple[bool, bool]]) -> Finding:
    """Find whether the claim's yes or no is the computed one, {name: (claimed, computed)}."""
    for name, (claimed, computed) in answers.items():
        if claimed != computed:
            answers_differ = "yes, the computation no" if claimed else "no, the computation yes"
            return Finding(False, f"the claim says {answers_differ} ({name})")
    if len(answers) > 8:
        return Finding(True, f"claim and computation agree {len(answers)} times")
    names = ", ".join(answers)
    return Finding(bool(answers), f"claim and computation agree in these cases: {names}")


def near(cases: Iterable[tuple[str, float, float, float]], errors: float = 4.0) -> Finding:
    """Find whether each mean of cases (name, mean, standard error, target) is near its target."""
    compared = list(cases)
    distances = [abs(mean - target) / error for _, mean, error, target in compared]
    name, mean, error, target = compared[first_largest(distances)]
    return Finding(
        any(distances) and all(distance <= errors for distance in distances),
        f"the mean farthest from its expected value is {mean:.3f} ± {error:.3f}, "
        f"expected {target:.3f} ({name})",
    )


def fits(counts: Counts, law: NDArray[np.float64]) -> Finding:
    """Find whether played counts fit a law, by a chi-square test that rejects below p = 1e-4."""
    place = np.ravel_multi_index((counts.v, counts.r), law.shape)
    observed = np.bincount(place, minlength=law.size).reshape(law.shape)
    if (observed[law < 1e-12] > 0).any():
        return Finding(False, "an outcome that the law excludes has occurred")
    expected = law * counts.trials
    rare = expected < 5  # counted together
    observed = np.append(observed[~rare], observed[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    observed = observed[expected > 0]
    expected = expected[expected > 0]
    statistic = ((observed - expected) ** 2 / expected).sum()
    p_value = float(stats.chi2.sf(statistic, max(1, len(expected) - 1)))
    fit = "fit" if p_value > 1e-4 else "do not fit"
    evidence = f"{counts.trials} audits {fit} the exact law (chi-square p-value {p_value:.3f})"
    return Finding(p_value > 1e-4, evidence)


def vanish(values: list[float]) -> Finding:
    """Find whether the last probability is small; the first ones may rise before they fall."""
    small = values[-1] < 1e-3
    return Finding(small, approach(values, 0.0, small))
