"""Columns of scores, guesses and coins as users have them, checked and made into arrays."""

from math import inf, nan
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oralib.ground import arguments

__all__ = ["Unusable", "are_listed_twice", "column", "guesses_and_coins", "scores_and_coins"]

Reals: TypeAlias = NDArray[np.float64]
Bits: TypeAlias = NDArray[np.bool_]

#: Report scores as listed twice only from this many distinct ones: fewer may agree by chance.
MANY_VALUES = 20

#: The names of types whose values mean that a number is missing, as pandas and lists have them.
MISSING = ("NoneType", "NAType")


class Unusable(ValueError):
    """Evidence that proves nothing, whatever its counts are; its text says why."""


def column(name: str, value: ArrayLike) -> Reals:
    """Return one number for each canary; truth values are 1 and 0, missing values NaN."""
    reason = ""
    try:
        array = np.asarray(None if np.ma.is_masked(value) else value)
        if array.dtype.kind == "O" and array.ndim == 1:
            array = np.array([nan if type(x).__name__ in MISSING else x for x in array.flat])
    except (ValueError, TypeError, RuntimeError) as error:  # lists of lists, or tensors
        array = np.asarray(None)
        reason = arguments.reason(value, error)
    if array.dtype.kind not in "biuf" or array.ndim != 1 or not array.size:
        reason = arguments.reason(value) or reason
        if array.dtype.kind in "US":
            reason = " (words: turn them into numbers, or compare them, as in column == 'yes')"
        raise TypeError(
            f"{name} must be a list of numbers or truth values, one per canary, "
            f"got {name}={arguments.shown(value)}{reason}"
        )
    return array.astype(np.float64)


def scores_and_coins(scores: ArrayLike, included: ArrayLike) -> tuple[Reals, Bits]:
    """Return finite scores that are not all equal, and their coins."""
    values = arguments.reals("scores", column("scores", scores), -inf, inf, interval="()")
    bits = _coins("included", included)
    _check_same_canaries("scores", scores, "included", included)
    if (values == values[0]).all():
        raise Unusable(
            "scores must differ: they say nothing about who was included, "
            f"got {bits.size} scores that are all {values[0]:g}"
        )
    return values, bits


def guesses_and_coins(guesses: ArrayLike, truth: ArrayLike) -> tuple[Bits, Bits, Bits]:
    """Return which guesses are right, which were taken, and the coins.

    With truth as 1 and 0, a guess of 0 is "left out"; with truth as 1 and -1 it is no guess.
    """
    bits = _coins("truth", truth)
    numbers = column("guesses", guesses)
    _check_same_canaries("guesses", guesses, "truth", truth)
    signs = bool((column("truth", truth) == -1).any())
    entries = guesses if isinstance(guesses, list | tuple) else np.asarray(guesses).flat
    if signs and any(isinstance(x, bool | np.bool_) for x in entries):  # is False no guess, or -1?
        raise ValueError(
            "guesses must be 1, -1, or 0 or nan for no guess, as truth is written, got True or "
            "False in guesses"
        )
    taken = (numbers == 1) | (numbers == (-1 if signs else 0))
    allowed = "be 1, 0, or nan for no guess, as truth is written"
    if signs:
        allowed = "be 1, -1, or 0 or nan for no guess, as truth is written"
    arguments.require(taken | np.isnan(numbers) | (numbers == 0), "guesses", numbers, allowed)
    if not taken.any():
        raise Unusable(f"guesses must hold a guess, got {bits.size} canaries without one")
    return taken & ((numbers == 1) == bits), taken, bits


def are_listed_twice(values: Reals, bits: Bits) -> bool:
    """Return whether no score occurs once, and equal scores go with equal coins.

    Scores with few values, or many that are tied at 0, may have equal coins by chance or by a leak;
    so there must be many values, and one of them may have both coins.
    """
    distinct, times = np.unique(values, return_counts=True)
    if times.min() == 1 or times.size < MANY_VALUES:
        return False
    ones = np.bincount(np.searchsorted(distinct, values), weights=bits)
    return int(((ones > 0) & (ones < times)).sum()) <= 1


def _coins(name: str, value: ArrayLike) -> Bits:
    """Return coins as truth values; both of them must occur."""
    numbers = column(name, value)
    bits: Bits = numbers == 1
    if (numbers == -1).any():
        allowed = "be 1 or -1, since there is a -1, for each canary"
        arguments.require(bits | (numbers == -1), name, numbers, allowed)
    else:
        allowed = "be True or False, 1 or 0, or 1 or -1, for each canary"
        arguments.require(bits | (numbers == 0), name, numbers, allowed)
    if bits.all() or not bits.any():
        kind = "included" if bits.all() else "left out"
        raise Unusable(
            f"{name} must have canaries of both kinds, got {bits.size} that were all {kind}: "
            "there is nothing to tell apart"
        )
    return bits


def _check_same_canaries(one: str, first: Any, two: str, second: Any) -> None:
    """Refuse columns of different lengths, or with pandas labels in different orders."""
    if len(first) != len(second):
        raise ValueError(
            f"{one} and {two} must have one entry per canary, "
            f"got {len(first)} and {len(second)} entries"
        )
    index: Any = getattr(first, "index", None)
    other: Any = getattr(second, "index", None)
    if not hasattr(index, "equals") or not hasattr(other, "equals"):
        return
    if not index.equals(other) and not set(index).isdisjoint(other):
        raise ValueError(
            f"{one} and {two} must have the same index, got {arguments.shown(index)} and "
            f"{arguments.shown(other)}; canaries are matched by their places (to_numpy() gives "
            "columns without an index)"
        )
