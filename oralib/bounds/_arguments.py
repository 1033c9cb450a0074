"""What all bounds share: counts, checked and flat, and results of the shape of the arguments."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from oralib.ground import arguments
from oralib.ground.types import Array


def flat_counts(
    v: ArrayLike, r: ArrayLike, *, most: int = arguments.LARGEST_COUNT, **others: Array
) -> tuple[tuple[int, ...], list[Array]]:
    """The shape of all arguments together; then v, r and the others, broadcast and flat.

    There are at most ``most`` guesses, v is at most r, and r at most the n among the others, which
    have been checked already.
    """
    counts = {"v": arguments.integers("v", v), "r": arguments.integers("r", r, 0, most)}
    arrays = arguments.broadcast(**counts, **others)
    arguments.at_most("v", arrays[0], "r", arrays[1])
    if "n" in others:
        arguments.at_most("r", arrays[1], "n", arrays[2 + list(others).index("n")])
    # flatten copies, so that kernels see one type of array: contiguous and writable.
    return arrays[0].shape, [array.flatten() for array in arrays]


def float_if_single(array: Array) -> Any:
    """A float for scalar arguments, an array otherwise."""
    return array if np.ndim(array) else float(array)


def one_by_one(function: Callable[..., float]) -> Callable[..., Array]:
    """The same function for flat columns, a number for each row."""

    def of_columns(*columns: Array) -> Array:
        rows = zip(*(column.tolist() for column in columns), strict=True)
        return np.array([function(*row) for row in rows])

    return of_columns


def for_distinct_rows(function: Callable[..., Array], *columns: Array) -> Array:
    """A function of flat columns, row by row, but computed only once for rows that are equal.

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
