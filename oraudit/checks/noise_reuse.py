"""No noise is used twice: not in two steps, not in two tensors, not in two places of both.

Formula: the correlation of numbers that ought to be independent normal ones, for all pairs of
steps, of tensors over all steps, and of single tensors at single steps. Limit: the exact law of
such a correlation (Student's t), by Bonferroni over the pairs.
"""

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from oraudit.checks.levels import SHARE
from oraudit.findings import Finding
from oraudit.records import Seen

NAME = "noise-reuse"

#: The three kinds of pairs share what the check may spend.
_EACH = SHARE / 3

#: Pairs of vectors with fewer numbers than this tell nothing.
FEWEST_NUMBERS = 16

#: At most this many vectors are compared with each other, the first ones.
MOST_VECTORS = 20_000

#: So many vectors are compared at a time, to bound the memory.
_BLOCK = 2_000


def check(seen: Seen) -> list[Finding]:
    noise = seen.noise
    if noise is None or noise.share == 0:
        return []
    for search in (_steps, _places, _tensors):
        if found := search(seen):
            return [found]
    return []


def _steps(seen: Seen) -> Finding | None:
    """Compare each step with each other one."""
    assert seen.noise is not None
    first, second, correlation, p = _closest(seen.noise.sample)
    if p >= _EACH:
        return None
    same = "is that of" if abs(correlation) > 0.9 else "is correlated with that of"
    text = f"the noise of step {second + 1} {same} step {first + 1} (correlation {correlation:.2f})"
    return Finding(NAME, text, "less private", step=second + 1, number=correlation, limit=0.0)


def _places(seen: Seen) -> Finding | None:
    """Compare the beginning of each tensor at each step with each other one."""
    assert seen.noise is not None
    heads = seen.noise.heads
    length = heads.shape[2]
    long_enough = np.flatnonzero(~np.isnan(heads[0]).any(1))
    if length < FEWEST_NUMBERS or not len(long_enough):
        return None
    vectors = heads[:, long_enough].reshape(-1, length)
    first, second, correlation, p = _closest(vectors)
    if p >= _EACH:
        return None
    places = [divmod(vector, len(long_enough)) for vector in (first, second)]
    (step, tensor), (later, other) = places
    names = [seen.names[long_enough[place]] for place in (tensor, other)]
    if step == later:
        text = f"tensors {names[0]} and {names[1]} get the same noise in step {step + 1}"
    else:
        text = (
            f"the noise of tensor {names[1]} in step {later + 1} is that of tensor {names[0]} in "
            f"step {step + 1}"
        )
    return Finding(NAME, text, "less private", step=later + 1, number=correlation, limit=0.0)


def _tensors(seen: Seen) -> Finding | None:
    """Compare each tensor with each other one, over all steps."""
    assert seen.noise is not None
    heads = seen.noise.heads
    tensors = heads.shape[1]
    lengths = (~np.isnan(heads[0])).sum(1)
    pairs = tensors * (tensors - 1) // 2
    worst: tuple[float, int, int, float] = (1.0, 0, 0, 0.0)
    for width in np.unique(lengths):
        long_enough = np.flatnonzero(lengths >= width)
        vectors = heads[:, long_enough, :width].transpose(1, 0, 2).reshape(len(long_enough), -1)
        if vectors.shape[1] < FEWEST_NUMBERS or len(vectors) < 2:
            continue
        first, second, correlation, p = _closest(vectors, pairs * len(np.unique(lengths)))
        worst = min(worst, (p, int(long_enough[first]), int(long_enough[second]), correlation))
    p, one, other, correlation = worst
    if p >= _EACH:
        return None
    text = (
        f"the noise of tensors {seen.names[one]} and {seen.names[other]} is correlated "
        f"({correlation:.2f})"
    )
    return Finding(NAME, text, "less private", number=correlation, limit=0.0)


def _closest(
    vectors: NDArray[np.float32], pairs: int | None = None
) -> tuple[int, int, float, float]:
    """The two vectors with the largest correlation: their places, it, and its p-value."""
    vectors = vectors[:MOST_VECTORS].astype(np.float32)
    norms = np.linalg.norm(vectors, axis=1)
    used = np.flatnonzero(norms > 0)
    if len(used) < 2:
        return 0, 0, 0.0, 1.0
    units = vectors[used] / norms[used, None]
    best = (0.0, 0, 1, 0.0)
    for start in range(0, len(units), _BLOCK):
        block = units[start : start + _BLOCK] @ units.T
        # Only pairs of a vector with an earlier one.
        rows = np.arange(start, start + len(block))
        block[rows[:, None] <= np.arange(len(units))] = 0
        place = int(np.abs(block).argmax())
        row, column = divmod(place, len(units))
        correlation = float(block[row, column])
        best = max(best, (abs(correlation), column, start + row, correlation))
    size, first, second, correlation = best
    count = len(units) * (len(units) - 1) // 2 if pairs is None else pairs
    p = min(1.0, count * correlation_p(size, vectors.shape[1]))
    return int(used[first]), int(used[second]), correlation, p


def correlation_p(correlation: float, numbers: int) -> float:
    """The two-sided p-value of a correlation, about 0, of two vectors of normal numbers."""
    size = min(abs(correlation), 1 - 1e-12)
    t = size * np.sqrt((numbers - 1) / (1 - size**2))
    return float(2 * stats.t.sf(t, numbers - 1))
