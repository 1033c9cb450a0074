"""What all bounds share: counts, checked and flat, and results of the shape of the arguments."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from oralib import _check
from oralib._types import Array


def flat_counts(
    v: ArrayLike, r: ArrayLike, *, most: int = _check.LARGEST_COUNT, **others: Array
) -> tuple[tuple[int, ...], list[Array]]:
    """The shape of all arguments together; then v, r and the others, broadcast and flat.

    There are at most ``most`` guesses, v is at most r, and r at most the n among the others, which
    have been checked already.
    """
    counts = {"v": _check.integers("v", v), "r": _check.integers("r", r, 0, most)}
    arrays = _check.broadcast(**counts, **others)
    _check.at_most("v", arrays[0], "r", arrays[1])
    if "n" in others:
        _check.at_most("r", arrays[1], "n", arrays[2 + list(others).index("n")])
    # flatten copies, so that kernels see one type of array: contiguous and writable.
    return arrays[0].shape, [array.flatten() for array in arrays]


def float_if_single(array: Array) -> Any:
    """A float for scalar arguments, an array otherwise."""
    return array if np.ndim(array) else float(array)


def for_each_row(function: Callable[..., float], *columns: Array) -> Array:
    """A number for each row of the columns, computed once for all rows that are equal."""
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    numbers = {row: function(*row) for row in {*rows}}
    return np.array([numbers[row] for row in rows])


def distinct_rows(*columns: Array) -> tuple[Array, Array]:
    """Where each distinct row of the columns stands, and for every row which of these it equals.

    Trials repeat counts, so a bound is computed once for each distinct row.
    """
    order = np.lexsort(columns)
    rows = np.stack(columns)[:, order]
    is_new = np.ones(order.size, dtype=bool)
    is_new[1:] = (rows[:, 1:] != rows[:, :-1]).any(axis=0)
    number = np.empty(order.size, dtype=np.int64)
    number[order] = np.cumsum(is_new) - 1
    return order[is_new], number
