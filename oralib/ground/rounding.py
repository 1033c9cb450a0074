"""Numbers that are 0, or equal, up to rounding are made 0, or equal.

A loss that is 0 in theory is 1e-16 on one machine and -1e-16 on the next, and nothing that is shown
may depend on that. So code that takes the logarithm of a ratio, or adds up probabilities, removes
the rounding errors here. All other numbers keep all their digits.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["ROUNDING", "first_largest", "largest_first", "log_ratio", "snap"]

#: The largest difference of two numbers, relative to their size, that may be due to rounding.
#: For losses, which are logarithms of ratios, it is the difference itself.
ROUNDING = 1e-12


def log_ratio(one: ArrayLike, other: ArrayLike) -> Any:
    """Return ln(one / other): 0 if the two are equal up to rounding, nan if both are 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        loss = np.log(one) - np.log(other)
    return np.where(np.abs(loss) <= ROUNDING, 0.0, loss)[()]


def snap(values: ArrayLike) -> Any:
    """Make numbers that are equal up to rounding equal, and numbers that are nearly round, round.

    Round numbers are those with at most six digits after the point: otherwise 0.6875, printed with
    fewer digits, could be 0.688 or 0.687.

    >>> snap([0.1 + 0.2, 0.3, 2 / 3, 1 - 1 / 3, 2 / 3 + 1e-9]).tolist()
    [0.3, 0.3, 0.6666666666666666, 0.6666666666666666, 0.6666666676666666]
    """
    array = np.asarray(values, dtype=np.float64)
    order = np.argsort(np.abs(array), axis=None, kind="stable")
    ascending = np.abs(array).ravel()[order]
    with np.errstate(invalid="ignore"):  # inf - inf
        gap = np.diff(ascending)
        same_group = np.isfinite(gap) & (gap <= ROUNDING * ascending[1:])
        begins_group = np.concatenate([[True], ~same_group])[: ascending.size]
        smallest = ascending[begins_group]
        rounded = np.round(smallest, 6)
        is_round = np.abs(smallest - rounded) <= ROUNDING * rounded
        smallest = np.where(is_round, rounded, smallest)
    size = np.empty_like(ascending)
    size[order] = smallest[np.cumsum(begins_group) - 1]
    return np.copysign(size.reshape(array.shape), array)[()]


def largest_first(sizes: NDArray[Any]) -> NDArray[np.int64]:
    """Return the indices along the last axis in falling order; equal entries stay in order."""
    order = np.argsort(-sizes, axis=-1, kind="stable")
    falling = np.take_along_axis(sizes, order, axis=-1)
    with np.errstate(invalid="ignore"):
        close = -np.diff(falling, axis=-1) <= ROUNDING
    if (close & (falling[..., 1:] != falling[..., :-1])).any():
        start = np.zeros((*close.shape[:-1], 1), dtype=np.int64)
        group = np.concatenate([start, np.cumsum(~close, axis=-1)], axis=-1)
        rank = np.empty_like(group)
        np.put_along_axis(rank, order, group, axis=-1)
        order = np.argsort(rank, axis=-1, kind="stable")
    return order


def first_largest(values: ArrayLike) -> int:
    """Return the flat index of the largest number, the first if several are equal; not of nan."""
    array = np.asarray(values, dtype=np.float64).ravel()
    return int(np.argmax(array >= np.nanmax(array) - ROUNDING * np.abs(np.nanmax(array))))
