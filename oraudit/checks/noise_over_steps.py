"""The noise of a step is independent of the noise of earlier steps.

Formula: the correlation of the numbers of a step with those of the step before it, two steps
before it, and so on. Steps are cut into runs as long as the lag, and the first run is paired with
the second, the third with the fourth; then once more from the second run on. So the two sides of
a correlation have no number in common, and the limit is exact: Student's t, by Bonferroni over
lags and the two pairings. It finds what is too weak to be seen between two single steps, such as
noise that takes back a part of the last one.

Noise that is correlated over steps by design, as in matrix factorization, has an accountant of
its own: the ε of independent noise is not for it, and the side is unknown.
"""

import numpy as np
from numpy.typing import NDArray

from oraudit.checks import noise_reuse, sum_in_noise
from oraudit.checks.levels import SHARE
from oraudit.checks.noise_reuse import complete, correlation_p, deviations
from oraudit.checks.presence import present_noise
from oraudit.findings import Finding
from oraudit.records import Seen

__all__ = ["check", "strongest"]

NAME = "noise-over-steps"
TESTS = 1
EXPLAINED_BY = (noise_reuse.NAME, sum_in_noise.NAME)

#: The distances of the steps that are compared.
LAGS = (1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 64)


def check(seen: Seen) -> list[Finding]:
    noise = present_noise(seen)
    if noise is None:
        return []
    steps, tensors = complete(noise)
    columns = np.isin(noise.owners, tensors)
    numbers = (noise.sample / deviations(noise)[noise.owners])[steps][:, columns]
    result = strongest(numbers)
    if result is None:
        return []
    correlation, lag, p = result
    if p >= SHARE:
        return []
    before = "the step before" if lag == 1 else f"{lag} steps before"
    text = f"the noise of a step is correlated with that of {before} ({correlation:.2f})"
    return [Finding(NAME, text, "side unknown", number=correlation, limit=0.0)]


def strongest(numbers: NDArray[np.floating]) -> tuple[float, int, float] | None:
    """Return the most unlikely correlation of steps, their lag, and the p-value.

    A row of numbers is a step.
    """
    tests = []
    for lag in LAGS:
        for start in (0, lag):
            pairs = (len(numbers) - start) // (2 * lag)
            part = numbers[start : start + 2 * lag * pairs].astype(float)
            runs = part.reshape(pairs, 2, lag * numbers.shape[1])
            earlier = runs[:, 0].ravel()
            later = runs[:, 1].ravel()
            size = float(np.linalg.norm(earlier) * np.linalg.norm(later))
            if size > 0 and len(later) > 1:
                correlation = float(earlier @ later) / size
                tests.append((correlation_p(correlation, len(later)), correlation, lag))
    if not tests:
        return None
    p, correlation, lag = min(tests)
    return correlation, lag, min(1.0, len(tests) * p)
