"""Checks of arguments: each error names the argument, its value and what is allowed."""

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

#: Largest count that is still exact as a double.
LARGEST_COUNT = 2**53

#: Single numbers, which are checked without the array operations that would take most of the time
#: of a call. All that is odd about them, and all else, goes the long way and gets its error there.
_PLAIN_INTEGER = frozenset({int, np.int64})
_PLAIN_REAL = frozenset({float, np.float64, np.int64})

#: Numbers that an array of objects may hold; not truth values.
_IN_OBJECTS = frozenset({int, float, np.int64, np.int32, np.float64, np.float32})


def path(name: str, value: Any) -> Path:
    """``value``, a path or the words of one, as a path."""
    if not isinstance(value, str | os.PathLike):
        raise TypeError(f"{name} must be a path, got {name}={value!r}")
    return Path(value)


def is_plain_integer(value: Any) -> bool:
    """Whether ``value`` is one integer of the usual kinds, of any size."""
    return type(value) in _PLAIN_INTEGER


def is_plain_real(value: Any) -> bool:
    """Whether ``value`` is one number of the usual kinds; nan is."""
    kind = type(value)  # integers beyond those of NumPy, or even beyond floats, go the long way
    return kind in _PLAIN_REAL or (kind is int and abs(value) <= LARGEST_COUNT)


def reals(
    name: str,
    value: ArrayLike,
    low: float = -np.inf,
    high: float = np.inf,
    *,
    interval: str = "[]",
) -> NDArray[np.float64]:
    """``value`` as an array of floats in an interval, e.g. ``interval="(]"`` for (low, high]."""
    if is_plain_real(value) and _between(value, low, high, interval):
        return np.array(value, dtype=np.float64)
    array = _numbers(name, value, "a number").astype(np.float64)
    if array.size and all(_between(x, low, high, interval) for x in (array.min(), array.max())):
        return array
    above = array > low if interval[0] == "(" else array >= low
    below = array < high if interval[1] == ")" else array <= high
    require(above & below, name, array, f"lie in {interval[0]}{low:g}, {high:g}{interval[1]}")
    return array


def integers(
    name: str, value: ArrayLike, low: int = 0, high: int = LARGEST_COUNT
) -> NDArray[np.int64]:
    """``value`` as an array of integers between ``low`` and ``high``; 7.0 passes, 7.5 does not."""
    if is_plain_integer(value) and low <= value <= high:  # type: ignore[operator]
        return np.array(value, dtype=np.int64)
    array = _numbers(name, value, "an integer")
    if array.dtype.kind in "iu" and array.size and low <= array.min() and array.max() <= high:
        return array.astype(np.int64)
    if array.dtype == np.float16:
        array = array.astype(np.float64)  # in which the largest count fits
    if array.dtype.kind == "f":
        require(np.isfinite(array) & (array == np.floor(array)), name, array, "be an integer")
    open_ended = high == LARGEST_COUNT and (array <= high).all()
    allowed = f"be at least {low}" if open_ended else f"lie in [{low}, {high}]"
    require((array >= low) & (array <= high), name, array, allowed)
    return array.astype(np.int64)


def real(
    name: str, value: Any, low: float = -np.inf, high: float = np.inf, *, interval: str = "[]"
) -> float:
    """``value`` as one float in an interval."""
    if is_plain_real(value) and _between(value, low, high, interval):
        return float(value)
    return float(_scalar(name, value, reals(name, value, low, high, interval=interval)))


def integer(name: str, value: Any, low: int = 0, high: int = LARGEST_COUNT) -> int:
    """``value`` as one integer between ``low`` and ``high``."""
    if is_plain_integer(value) and low <= value <= high:
        return int(value)
    return int(_scalar(name, value, integers(name, value, low, high)))


def seed(value: Any) -> int:
    """A seed: any integer from 0 on, however large."""
    if isinstance(value, int | np.integer) and value > LARGEST_COUNT:
        return int(value)
    return integer("seed", value)


def instance(name: str, value: Any, kind: type, example: str) -> None:
    """``value`` must be of a kind of which ``example`` is an example."""
    if not isinstance(value, kind) or isinstance(value, type):
        raise TypeError(f"{name} must be like {example}, got {name}={value!r}")


def store(target: object, **checked: Any) -> None:
    """Put checked and converted values back into the fields of a frozen dataclass."""
    for name, value in checked.items():
        object.__setattr__(target, name, value)


def one_of(name: str, value: Any, allowed: tuple[str, ...]) -> str:
    """``value`` as one of a few allowed words."""
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(allowed)}, got {name}={value!r}")
    return value


def truth(name: str, value: Any) -> bool:
    """``value`` as True or False; a word such as "no" would pass for True."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {name}={value!r}")
    return bool(value)


def coins(name: str, value: Any, n: int) -> NDArray[np.bool_]:
    """``value`` as n truth values."""
    if np.ma.is_masked(value):
        raise ValueError(f"{name} must have no masked entries, got {name}={value!r}")
    try:
        array = np.asarray(value)
    except (ValueError, TypeError, RuntimeError) as error:  # as for numbers
        raise TypeError(
            f"{name} must be a boolean vector of length n={n}, got {name}={shown(value)}"
            f"{reason(value, error)}"
        ) from None
    if array.dtype != bool or array.shape != (n,):
        raise ValueError(
            f"{name} must be a boolean vector of length n={n}, "
            f"got {array.dtype} of shape {array.shape}"
        )
    return array


def multiple(name: str, value: int, of: int, meaning: str) -> None:
    """``value`` must be a multiple of ``of``, which ``meaning`` explains."""
    if value % of:
        below = value - value % of
        nearest = f"{below} and {below + of}" if below else f"{of}"
        raise ValueError(
            f"{name} must be a multiple of {of} ({meaning}), "
            f"got {name}={value} (nearest: {nearest})"
        )


def at_most(name: str, value: NDArray[Any], limit_name: str, limit: NDArray[Any]) -> None:
    """``value`` must not exceed ``limit``, element by element; both have the same shape."""
    if value.shape == () == limit.shape and value.item() <= limit.item():
        return
    if (value > limit).any():
        where = tuple(int(i) for i in np.argwhere(value > limit)[0])
        raise ValueError(
            f"{name} must be at most {limit_name}, "
            f"got {name}={value[where]} and {limit_name}={limit[where]}{_place(where)}"
        )


def broadcast(**arguments: NDArray[Any]) -> list[NDArray[Any]]:
    """The arguments broadcast together."""
    shapes = {array.shape for array in arguments.values()}
    if len(shapes) == 1:
        return list(arguments.values())
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError:
        listed = ", ".join(f"{name} {array.shape}" for name, array in arguments.items())
        raise ValueError(f"arguments must broadcast together, got shapes {listed}") from None
    return [np.broadcast_to(array, shape) for array in arguments.values()]


def _numbers(name: str, value: ArrayLike, what: str) -> NDArray[Any]:
    """``value`` as an array, if it holds numbers: no strings, truth values, or lists of lists."""
    if isinstance(value, np.ma.MaskedArray):
        if np.ma.is_masked(value):
            raise ValueError(f"{name} must have no masked entries, got {name}={value!r}")
        value = value.data
    why = ""
    try:
        array = np.asarray(value)
    # Rows of different lengths, no array at all, or a tensor whose gradient is followed.
    except (ValueError, TypeError, RuntimeError) as error:
        array = np.asarray(None)
        why = reason(value, error)
    if array.dtype.kind == "O" and all(type(entry) in _IN_OBJECTS for entry in array.flat):
        # Columns of pandas that once had something else.
        whole = [int(x) for x in array.flat if isinstance(x, int | np.integer)]
        if any(abs(x) > LARGEST_COUNT for x in whole):
            raise ValueError(f"{name} must lie in [0, {LARGEST_COUNT}], got {name}={value!r}")
        array = array.astype(np.int64 if len(whole) == array.size else np.float64)
    if array.dtype.kind not in "iuf":
        if array.ndim and not why:
            why = f" (of dtype {array.dtype})"
        raise TypeError(f"{name} must be {what}, got {name}={shown(value)}{why}")
    return array


def reason(value: Any, error: Exception) -> str:
    """Why a tensor, or a list of them, is no array, as its library says it: in brackets."""
    first = value[0] if isinstance(value, list | tuple) and value else value
    return f" ({' '.join(str(error).split())})" if hasattr(first, "dtype") else ""


def shown(value: Any) -> str:
    """A value as errors show it: not all of a long one."""
    word = " ".join(repr(value).split())
    return word if len(word) <= 80 else f"{word[:77]}..."


def _between(value: Any, low: float, high: float, interval: str) -> bool:
    above = value > low if interval[0] == "(" else value >= low
    return bool(above and (value < high if interval[1] == ")" else value <= high))


def _scalar(name: str, value: Any, array: NDArray[Any]) -> Any:
    if array.ndim:
        raise TypeError(f"{name} must be a single number, got {name}={value!r}")
    return array[()]


def require(good: NDArray[np.bool_], name: str, array: NDArray[Any], allowed: str) -> None:
    """All must be good; the error shows the first entry that is not, and where it is."""
    if not good.all():
        where = tuple(int(i) for i in np.argwhere(~good)[0])
        raise ValueError(f"{name} must {allowed}, got {name}={array[where]}{_place(where)}")


def _place(where: tuple[int, ...]) -> str:
    return f" at index {where[0] if len(where) == 1 else where}" if where else ""
