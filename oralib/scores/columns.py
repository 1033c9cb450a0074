"""Columns of scores, guesses and coins, as users have them: checked and made into arrays."""

from math import inf, nan
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oralib.ground import arguments
from oralib.ground.types import SIDES, Side
from oralib.scores.seen import Seen

Reals: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Bits: TypeAlias = NDArray[np.bool_]

#: So many equal pairs of scores do not have equal coins by chance.
MANY_VALUES = 20


class ScoreFile(NamedTuple):
    """The columns of a file, and a digest of its bytes."""

    kind: str  # "score" or "guess"
    values: Reals  # scores, or guesses with nan for none
    coins: Reals  # 1.0 or 0.0, or 1.0 or -1.0
    digest: str  # SHA-256
    seen: Seen | None = None  # what canaries of ours wrote into its first line


def column(name: str, value: ArrayLike) -> Reals:
    """One number per canary; truth values are 1 and 0, and missing values are nan."""
    why = ""
    try:
        array = np.asarray(None if np.ma.is_masked(value) else value)
        if array.dtype.kind == "O" and array.ndim == 1:  # as when something is missing
            missing = ("NoneType", "NAType")
            array = np.array([nan if type(x).__name__ in missing else x for x in array.flat])
    except (ValueError, TypeError, RuntimeError) as error:  # lists of lists, or tensors
        array, why = np.asarray(None), arguments.reason(value, error)
    if array.dtype.kind not in "biuf" or array.ndim != 1 or not array.size:
        why = arguments.reason(value) or why
        if array.dtype.kind in "US":
            why = " (words: turn them into numbers, or compare them, as in column == 'yes')"
        got = f"got {name}={arguments.shown(value)}{why}"
        raise TypeError(f"{name} must be a list of numbers or truth values, one per canary, {got}")
    return array.astype(np.float64)


def bits_of(name: str, value: ArrayLike) -> Bits:
    """Coins as truth values; both of them must occur."""
    numbers = column(name, value)
    low = -1 if (numbers == -1).any() else 0
    bits: Bits = numbers == 1
    allowed = "1 or -1, since there is a -1," if low else "True or False, 1 or 0, or 1 or -1,"
    arguments.require(bits | (numbers == low), name, numbers, f"be {allowed} for each canary")
    if bits.all() or not bits.any():
        same = "included" if bits.all() else "left out"
        got = f"{bits.size} that were all {same}: there is nothing to tell apart"
        raise ValueError(f"{name} must have canaries of both kinds, got {got}")
    return bits


def scores_and_coins(scores: ArrayLike, included: ArrayLike, side: Side) -> tuple[Reals, Bits]:
    """Scores that differ and are finite, and their coins."""
    values = arguments.reals("scores", column("scores", scores), -inf, inf, interval="()")
    bits = bits_of("included", included)
    check_same_canaries(scores=scores, included=included)
    if (values == values[0]).all():
        got = f"{bits.size} scores that are all {values[0]:g}"
        raise ValueError(f"scores must differ: they say nothing about who was included, got {got}")
    arguments.one_of("side", side, SIDES)
    return values, bits


def are_listed_twice(values: Reals, bits: Bits) -> bool:
    """Whether no score occurs once, and equal scores go with equal coins, as if listed twice.

    Scores with few values, or tied at 0 because canaries were dropped, may have equal coins by
    chance or by a leak; so there must be many values, and one of them may have both coins.
    """
    found, times = np.unique(values, return_counts=True)
    if times.min() == 1 or times.size < MANY_VALUES:
        return False
    ones = np.bincount(np.searchsorted(found, values), weights=bits)
    return int(((ones > 0) & (ones < times)).sum()) <= 1


def guesses_and_coins(guessed: ArrayLike, truth: ArrayLike) -> tuple[Bits, Bits, Bits]:
    """Which guesses are right, which were taken, and the coins.

    With truth as 1 and 0, left out is 0; with truth as 1 and -1, it is -1, and 0 is no guess.
    """
    bits, numbers = bits_of("truth", truth), column("guessed", guessed)
    check_same_canaries(guessed=guessed, truth=truth)
    signs = bool((column("truth", truth) == -1).any())
    words = "1, -1, or 0 or nan" if signs else "1, 0, or nan"
    allowed = f"be {words} for no guess, as truth is written"
    entries = guessed if isinstance(guessed, list | tuple) else np.asarray(guessed).flat
    if signs and any(isinstance(x, bool | np.bool_) for x in entries):  # is False no guess, or -1?
        raise ValueError(f"guessed must {allowed}, got True or False in guessed")
    taken = (numbers == 1) | (numbers == (-1 if signs else 0))
    arguments.require(taken | np.isnan(numbers) | (numbers == 0), "guessed", numbers, allowed)
    return taken & ((numbers == 1) == bits), taken, bits


def check_same_canaries(**columns: Any) -> None:
    """Two columns must have one entry per canary, and common pandas labels in the same order."""
    (one, first), (two, second) = columns.items()
    if len(first) != len(second):
        got = f"{len(first)} and {len(second)} entries"
        raise ValueError(f"{one} and {two} must have one entry per canary, got {got}")
    a: Any = getattr(first, "index", None)
    b: Any = getattr(second, "index", None)
    if hasattr(a, "equals") and hasattr(b, "equals") and not (a.equals(b) or {*a}.isdisjoint(b)):
        must, got = "must have the same index", f"{arguments.shown(a)} and {arguments.shown(b)}"
        why = "canaries are matched by their places (to_numpy() gives columns without an index)"
        raise ValueError(f"{one} and {two} {must}, got {got}; {why}")
