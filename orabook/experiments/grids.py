"""Grids of an experiment: rows of numbers or words, checked, and a progress bar over them.

Points that are equal are one point of a grid.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from oralib.ground import arguments

__all__ = ["elements_of", "integers_of", "reals_of", "with_bar", "words_of"]


def reals_of(
    name: str, values: Iterable[float], low: float, high: float, interval: str
) -> list[float]:
    """Check a grid of numbers in an interval; a single number is a grid of one point.

    The ``interval`` is named by its brackets: "(]" is low < number <= high.
    """
    return _row(name, arguments.reals(name, _as_list(values), low, high, interval=interval))


def integers_of(name: str, values: Iterable[int], low: int) -> list[int]:
    """Check a grid of whole numbers from ``low`` up."""
    return _row(name, arguments.integers(name, _as_list(values), low))


def words_of(name: str, values: Iterable[str], allowed: Iterable[str]) -> list[str]:
    """Check a grid of words, each of them allowed."""
    entries = _row(name, arguments.array(name, _as_list(values), "a row of words"))
    return [arguments.one_of(name, entry, tuple(allowed)) for entry in entries]


def elements_of(ratios: Iterable[float], d: int) -> list[int]:
    """Return the numbers n of elements nearest to these ratios n / d, at least 1."""
    d = arguments.integer("d", d, 1)
    numbers = [max(1, round(ratio * d)) for ratio in reals_of("ratios", ratios, 0, 1e12, "(]")]
    return list(dict.fromkeys(numbers))


def _as_list(values: Any) -> Any:
    """Turn dictionaries and generators, which NumPy takes for a single object, into lists."""
    is_for_numpy = isinstance(values, str | np.ndarray) or not isinstance(values, Iterable)
    return values if is_for_numpy else list(values)


def _row(name: str, values: NDArray[Any]) -> list[Any]:
    row = np.atleast_1d(values)
    if row.ndim != 1 or not row.size:
        raise ValueError(f"{name} must be a row of at least one entry, got shape {row.shape}")
    return list(dict.fromkeys(row.tolist()))


def with_bar(points: list[Any]) -> Iterable[Any]:
    """Go through the points of a grid, with a progress bar on a terminal."""
    return tqdm(points, disable=None, leave=False)
