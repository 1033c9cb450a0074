"""How a check compares what a claim says with what is computed."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from ledger.findings import Finding
from oralib.bounds import Counts
from oralib.ground.rounding import first_largest


def first_least(values: Iterable[float]) -> int:
    """The place of the least number; of those that are equal up to rounding, the first.

    >>> first_least([0.3, 0.1 + 0.2 - 0.1, 0.2])
    1
    """
    numbers = np.fromiter(values, dtype=float)
    least = numbers.min()
    return int(np.argmax(numbers <= least + 1e-12 * max(1.0, abs(least))))


def equal(cases: Iterable[tuple[str, float, float]], tolerance: float = 1e-9) -> Finding:
    """Two numbers agree in each case (name, one, other)."""
    count = 0
    for name, one, other in cases:
        count += 1
        if not (one == other or abs(one - other) <= tolerance):
            return Finding(False, f"the two sides differ: {one:.6g} and {other:.6g} ({name})")
    return Finding(count > 0, f"the two sides agree to within {tolerance:g} in {_all(count)}")


def at_most(cases: Iterable[tuple[str, float, float]], slack: float = 1e-9) -> Finding:
    """In each case (name, value, limit) the value does not exceed the limit."""
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
    return {1: "the one case tried", 2: "both cases"}.get(count, f"all {count} cases")


def tends(values: Sequence[float], limit: float, tolerance: float) -> Finding:
    """The values come closer and closer to the limit, in the end within the tolerance."""
    distance = np.abs(np.asarray(values, dtype=float) - limit)
    closer = bool((distance[1:] <= distance[:-1] + 1e-12).all())
    holds = closer and bool(distance[-1] <= tolerance)
    return Finding(holds, approach(values, limit, holds))


def approach(values: Sequence[float], limit: float, holds: bool) -> str:
    """A sequence and its limit; what is 0 up to rounding, on any machine, is shown as 0."""
    listed = ", ".join(f"{value:.4g}" if abs(value) > 1e-9 else "0" for value in values)
    return f"the values {listed} {'approach' if holds else 'do not approach'} {limit:.4g}"


def same_answers(answers: Mapping[str, tuple[bool, bool]]) -> Finding:
    """The claim's yes or no is the computed one in each case {name: (claimed, computed)}."""
    for name, (claimed, computed) in answers.items():
        if claimed != computed:
            words = {True: "yes", False: "no"}
            says, answer = words[claimed], words[computed]
            return Finding(False, f"the claim says {says}, the computation {answer} ({name})")
    listed = (
        f"in these cases: {', '.join(answers)}" if len(answers) <= 8 else f"{len(answers)} times"
    )
    return Finding(bool(answers), f"claim and computation agree {listed}")


def near(cases: Iterable[tuple[str, float, float, float]], errors: float = 4.0) -> Finding:
    """In each case (name, mean, standard error, target) the mean is near the target."""
    tried = list(cases)
    distance = [abs(mean - target) / error for _, mean, error, target in tried]
    name, mean, error, target = tried[first_largest(distance)]
    evidence = f"the mean farthest from its expected value is {mean:.3f} ± {error:.3f}, "
    evidence += f"expected {target:.3f} ({name})"
    return Finding(any(distance) and all(z <= errors for z in distance), evidence)


def fits(counts: Counts, law: NDArray[np.float64]) -> Finding:
    """Played counts have the given law, by a chi-square test that rejects below p = 1e-4."""
    place = np.ravel_multi_index((counts.v, counts.r), law.shape)
    observed = np.bincount(place, minlength=law.size).reshape(law.shape)
    if (observed[law < 1e-12] > 0).any():
        return Finding(False, "an outcome that the law excludes has occurred")
    expected = law * counts.trials
    rare = expected < 5  # counted together
    observed = np.append(observed[~rare], observed[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    observed, expected = observed[expected > 0], expected[expected > 0]
    statistic = ((observed - expected) ** 2 / expected).sum()
    value = float(stats.chi2.sf(statistic, max(1, len(expected) - 1)))
    fit = f"{counts.trials} audits {'fit' if value > 1e-4 else 'do not fit'} the exact law"
    return Finding(value > 1e-4, f"{fit} (chi-square p-value {value:.3f})")
