"""No noise is used twice: not in two steps, not in two tensors, not in two places of both.

Formula: the correlation of numbers that ought to be independent normal ones, for all pairs of
steps, of tensors over all steps, and of single tensors at single steps. Limit: the exact law of
such a correlation (Student's t), by Bonferroni over the pairs.
"""

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from oraudit.checks.levels import SHARE, chi_square_p
from oraudit.checks.presence import present_noise
from oraudit.checks.sum_in_noise import is_cause
from oraudit.findings import Finding
from oraudit.records import Noise, Seen

__all__ = ["FEWEST_NUMBERS", "NAME", "SAME", "check", "complete", "correlation_p", "deviations"]

NAME = "noise-reuse"
TESTS = 3

#: The fewest numbers of vectors that are compared: fewer correlate by chance.
FEWEST_NUMBERS = 8

#: The largest number of vectors that are compared with each other, the first ones.
MOST_VECTORS = 20_000

#: The largest number of products that comparing steps may take.
MOST_PRODUCTS = 2e10

#: The number of vectors that are compared with all at a time, to bound the memory.
_BLOCK = 2_000

#: The correlation above which two noises are the same but for rounding.
SAME = 0.999

#: The difference below which two correlations count as equal: the finding is on the first pair.
ALIKE = 1e-4


def check(seen: Seen) -> list[Finding]:
    noise = present_noise(seen)
    if noise is None:
        return []
    for search in (_steps, _places, _tensors):
        finding = search(seen, noise)
        if finding is None:
            continue
        # Clipped sums of successive steps are alike. So is noise that contains them, which is the
        # finding of sum_in_noise; noise that is the sum itself is no noise used twice.
        is_same = abs(finding.number or 0) > SAME and not _is_sum(noise)
        return [finding] if is_same or not is_cause(noise) else []
    return []


def _is_sum(noise: Noise) -> bool:
    """Return whether the noise is a multiple of the sum itself."""
    size = noise.squares.sum() * noise.sums.sum()
    return bool(noise.products.sum() ** 2 > SAME * size)


def _steps(seen: Seen, noise: Noise) -> Finding | None:
    """Compare each step with each other one."""
    steps, tensors = complete(noise)
    columns = np.isin(noise.owners, tensors)
    width = max(int(MOST_PRODUCTS / max(len(steps), 1) ** 2), FEWEST_NUMBERS)
    vectors = (noise.sample / deviations(noise)[noise.owners])[steps][:, columns][:, :width]
    first, second, correlation, p = _closest(vectors)
    if p >= SHARE:
        return None
    earlier = steps[first] + 1
    later = int(steps[second] + 1)
    relation = "is that of" if abs(correlation) > 0.9 else "is correlated with that of"
    text = f"the noise of step {later} {relation} step {earlier} (correlation {correlation:.2f})"
    return Finding(NAME, text, "less private", step=later, number=correlation, limit=0.0)


def _places(seen: Seen, noise: Noise) -> Finding | None:
    """Compare the beginning of each tensor at each step with each other one."""
    length = noise.heads.shape[2]
    steps, tensors = complete(noise)
    long_enough = tensors[noise.sizes[tensors] >= length]
    if not len(long_enough):
        return None
    vectors = noise.heads[steps][:, long_enough].reshape(-1, length)
    first, second, correlation, p = _closest(vectors)
    if p >= SHARE:
        return None
    places = [divmod(vector, len(long_enough)) for vector in (first, second)]
    (row, tensor), (later_row, other) = places
    step = int(steps[row] + 1)
    later = int(steps[later_row] + 1)
    names = [seen.names[long_enough[place]] for place in (tensor, other)]
    if step == later:
        text = f"tensors {names[0]} and {names[1]} get the same noise in step {step}"
    else:
        text = (
            f"the noise of tensor {names[1]} in step {later} is that of tensor {names[0]} in "
            f"step {step}"
        )
    return Finding(NAME, text, "less private", step=later, number=correlation, limit=0.0)


def _tensors(seen: Seen, noise: Noise) -> Finding | None:
    """Compare each tensor with each other one, over all steps."""
    steps, tensors = complete(noise)
    heads = noise.heads[steps]
    lengths = np.minimum(noise.sizes, heads.shape[2])
    widths = np.unique(lengths[tensors])
    pairs = len(tensors) * (len(tensors) - 1) // 2 * len(widths)
    worst: tuple[float, int, int, float] = (1.0, 0, 0, 0.0)
    for width in widths:
        long_enough = tensors[lengths[tensors] >= width]
        vectors = heads[:, long_enough, :width].transpose(1, 0, 2).reshape(len(long_enough), -1)
        first, second, correlation, p = _closest(vectors, pairs)
        worst = min(worst, (p, int(long_enough[first]), int(long_enough[second]), correlation))
    p, one, other, correlation = worst
    if p >= SHARE:
        return None
    text = (
        f"the noise of tensors {seen.names[one]} and {seen.names[other]} is correlated "
        f"({correlation:.2f})"
    )
    return Finding(NAME, text, "less private", number=correlation, limit=0.0)


def complete(noise: Noise) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the steps that have noise, and the tensors that have it in each of them."""
    present = noise.squares > 0
    steps = np.flatnonzero(present.any(1))
    return steps, np.flatnonzero(present[steps].all(0))


def deviations(noise: Noise) -> NDArray[np.float64]:
    """Return the size of each tensor's noise, to divide by, so that no tensor outweighs the others.

    A size that differs from 1 by no more than chance is 1.
    """
    squares = noise.squares.sum(0)
    numbers = np.maximum((noise.squares > 0).sum(0) * noise.sizes, 1)
    differing = (chi_square_p(squares, numbers) < SHARE) & (squares > 0)
    return np.sqrt(np.where(differing, squares / numbers, 1.0))


def _closest(
    vectors: NDArray[np.floating], pairs: int | None = None
) -> tuple[int, int, float, float]:
    """Return the places of the two most correlated vectors, their correlation and its p-value."""
    vectors = vectors[:MOST_VECTORS].astype(np.float32)
    if len(vectors) < 2 or vectors.shape[1] < FEWEST_NUMBERS:
        return 0, 0, 0.0, 1.0
    norms = np.linalg.norm(vectors, axis=1)
    used = np.flatnonzero(norms > 0)  # the others have no direction
    if len(used) < 2:
        return 0, 0, 0.0, 1.0
    units = vectors[used] / norms[used, None]
    best = (0.0, 0, 1, 0.0)
    for start in range(0, len(units), _BLOCK):
        block = units[start : start + _BLOCK] @ units.T
        # Only pairs of a vector with an earlier one.
        rows = np.arange(start, start + len(block))
        block[rows[:, None] <= np.arange(len(units))] = 0
        sizes = np.abs(block)
        # Of pairs with equal correlations take the first.
        place = int((sizes >= sizes.max() - ALIKE).argmax())
        row, column = divmod(place, len(units))
        correlation = float(block[row, column])
        if abs(correlation) > best[0] + ALIKE:
            best = (abs(correlation), column, start + row, correlation)
    size, first, second, correlation = best
    count = len(units) * (len(units) - 1) // 2 if pairs is None else pairs
    p = min(1.0, count * correlation_p(size, vectors.shape[1]))
    return int(used[first]), int(used[second]), correlation, p


def correlation_p(correlation: float, numbers: int) -> float:
    """Return the two-sided p-value of a correlation, about 0, of two vectors of normal numbers."""
    size = min(abs(correlation), 1 - 1e-12)
    t = size * np.sqrt((numbers - 1) / (1 - size**2))
    return float(2 * stats.t.sf(t, numbers - 1))
