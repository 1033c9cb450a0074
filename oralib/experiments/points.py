"""Grids of experiments, checked before any work."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oralib import _check


def reals_of(
    name: str, values: Iterable[float], low: float, high: float, interval: str
) -> list[float]:
    """A grid of numbers in an interval; a single number is a grid of one point."""
    return _row(name, _check.reals(name, _readable(values), low, high, interval=interval))


def integers_of(name: str, values: Iterable[int]) -> list[int]:
    """A grid of integers that are at least 1."""
    return _row(name, _check.integers(name, _readable(values), 1))


def words_of(name: str, values: Iterable[str], allowed: Iterable[str]) -> list[str]:
    """A grid of some of the allowed words."""
    words = _row(name, _check.array(name, _readable(values), "a row of words"))
    return [_check.one_of(name, word, tuple(allowed)) for word in words]


def elements_of(ratios: Iterable[float], d: int) -> list[int]:
    """The numbers of elements n with these ratios n / d."""
    d = _check.integer("d", d, 1)
    return [max(1, round(ratio * d)) for ratio in reals_of("ratios", ratios, 0, 1e12, "(]")]


def _readable(values: Any) -> Any:
    """Dictionaries and generators, which NumPy takes for a single object, as lists."""
    as_it_is = isinstance(values, str | np.ndarray) or not isinstance(values, Iterable)
    return values if as_it_is else list(values)


def _row(name: str, values: NDArray[Any]) -> list[Any]:
    row = np.atleast_1d(values)
    if row.ndim != 1 or not row.size:
        raise ValueError(f"{name} must be a row of at least one entry, got shape {row.shape}")
    return row.tolist()
