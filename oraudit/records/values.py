"""The values in a saved audit: checks of their types, sizes and ranges, one line for each fault.

The first argument of each check names the part of the saved audit that the value is.
"""

from collections.abc import Mapping, Sequence
from math import inf, isnan
from typing import Any

import numpy as np

__all__ = [
    "MOST_STEPS",
    "check_fields",
    "check_steps",
    "damaged",
    "number",
    "optional_number",
    "reals",
    "rows",
    "whole",
    "words",
]

#: The most entries of lists that no number of steps limits; no training has so many.
MOST_STEPS = 10**9


def damaged(part: str, allowed: str, value: Any) -> ValueError:
    """Return the error that a part of a saved audit is not as it is allowed to be."""
    text = " ".join(repr(value).split())
    if len(text) > 60:
        text = f"{text[:57]}..."
    return ValueError(f"the saved audit is damaged: {part} must be {allowed}, got {text}")


def check_fields(part: str, value: Any, names: Sequence[str]) -> None:
    """Check that a value is a dictionary with exactly these keys."""
    if not isinstance(value, Mapping):
        raise damaged(part, f"a dictionary with {', '.join(names)}", value)
    for name in names:
        if name not in value:
            raise ValueError(f"the saved audit is damaged: {part} must have {name!r}, got none")
    for key in value:
        if key not in names:
            raise damaged(f"a key of {part}", f"one of {', '.join(names)}", key)


def rows(part: str, value: Any, least: int = 0, most: int | None = None) -> Sequence[Any]:
    """Return a list with ``least`` to ``most`` entries; with ``least`` if ``most`` is not given."""
    highest = least if most is None else most
    if not isinstance(value, list | tuple):
        raise damaged(part, "a list", value)
    if not least <= len(value) <= highest:
        wanted = f"{least}" if least == highest else f"{least} to {highest}"
        raise ValueError(
            f"the saved audit is damaged: {part} must have {wanted} entries, got {len(value)}"
        )
    return value


def words(part: str, value: Any) -> list[str]:
    """Return a list of different words."""
    value = rows(part, value, 0, MOST_STEPS)
    for word in value:
        if not isinstance(word, str):
            raise damaged(f"each of {part}", "a word", word)
    if len(set(value)) < len(value):
        raise damaged(part, "names that all differ", value)
    return list(value)


def whole(part: str, value: Any, low: int, high: int = 2**62) -> int:
    """Return a whole number in a range."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise damaged(part, "a whole number", value)
    if not low <= value <= high:
        raise damaged(part, f"in [{low}, {high}]", int(value) if -high <= value <= high else "more")
    return int(value)


def number(
    part: str, value: Any, low: float = -inf, high: float = inf, *, or_nan: bool = False
) -> float:
    """Return a number in a range; infinite or NaN only where that is allowed."""
    if not isinstance(value, float | int) or isinstance(value, bool):
        raise damaged(part, "a number", value)
    if isinstance(value, int) and abs(value) > 2**62:
        raise damaged(part, "a number below 2^62", "more")
    if isnan(value):
        if not or_nan:
            raise damaged(part, "a number", value)
    elif not low <= value <= high or (abs(value) == inf and not or_nan):
        raise damaged(part, f"a number in [{low:g}, {high:g}]", value)
    return float(value)


def reals(
    part: str,
    value: Any,
    shape: tuple[int, ...] | None = None,
    *,
    low: float = -inf,
    kinds: str = "f",
) -> None:
    """Check an array of numbers with this shape; NaN is allowed, as trainings may have it."""
    if not isinstance(value, np.ndarray) or value.dtype.kind not in kinds:
        kind = "whole" if kinds == "i" else "real"
        dtype = value.dtype if isinstance(value, np.ndarray) else value
        raise damaged(part, f"an array of {kind} numbers", dtype)
    if shape is not None and value.shape != shape:
        raise damaged(part, f"of shape {shape}", value.shape)
    if low > -inf and bool((value < low).any()):
        raise damaged(part, f"at least {low:g}", float(value[value < low].flat[0]))


def optional_number(part: str, value: Any) -> None:
    """Check that a value is None or a number, which may be NaN."""
    if value is not None:
        number(part, value, or_nan=True)


def check_steps(part: str, value: Any, steps: int) -> int:
    """Check that steps of the training rise; return their number."""
    before = 0
    for step in rows(part, value, 0, steps):
        if whole(f"each of {part}", step, 1, steps) <= before:
            raise damaged(part, "steps that grow", value)
        before = step
    return len(value)
