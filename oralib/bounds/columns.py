"""Counts as columns: checked, flat, and of one length; results get the shape of the arguments."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from oralib.ground import arguments
from oralib.ground.types import Array

__all__ = ["flat_counts", "float_if_single", "for_distinct_rows", "one_by_one"]


def flat_counts(
    v: ArrayLike, r: ArrayLike, *, largest_r: int = arguments.LARGEST_COUNT, **others: Array
) -> tuple[tuple[int, ...], list[Array]]:
    """Return the shape of all arguments together; then v, r and the others, broadcast and flat.

    Every v is at most r, every r at most ``largest_r``, and at most the n among the others, which
    have been checked already.
    """
    v_array = arguments.integers("v", v)
    r_array = arguments.integers("r", r, 0, largest_r)
    columns = arguments.broadcast(v=v_array, r=r_array, **others)
    arguments.at_most("v", columns[0], "r", columns[1])
    if "n" in others:
        n = columns[2 + list(others).index("n")]
        arguments.at_most("r", columns[1], "n", n)
    # flatten copies, so that kernels see one type of array: contiguous and writable.
    return columns[0].shape, [column.flatten() for column in columns]


def float_if_single(array: Array) -> Any:
    """Return a float for an array without dimensions, and any other array as it is."""
    return array if np.ndim(array) else float(array)


def one_by_one(function: Callable[..., float]) -> Callable[..., Array]:
    """Turn a function of numbers into one of flat columns, with a number for each row."""

    def of_columns(*columns: Array) -> Array:
        rows = zip(*(column.tolist() for column in columns), strict=True)
        return np.array([function(*row) for row in rows])

    return of_columns


def for_distinct_rows(function: Callable[..., Array], *columns: Array) -> Array:
    """Apply a function of flat columns, but compute rows that are equal only once.

    Trials repeat counts, so this is much faster.
    """
    if columns[0].size == 1:
        return function(*columns)
    order = np.lexsort(columns)
    rows = np.stack(columns)[:, order]
    is_new = np.ones(order.size, dtype=bool)
    is_new[1:] = (rows[:, 1:] != rows[:, :-1]).any(axis=0)
    number = np.empty(order.size, dtype=np.int64)
    number[order] = np.cumsum(is_new) - 1
    return function(*(column[order[is_new]] for column in columns))[number]
