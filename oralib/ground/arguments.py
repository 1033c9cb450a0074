"""Checks of arguments: each error names the argument, its value and what is allowed."""

import os
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["LARGEST_COUNT", "array", "at_most", "beta_and_delta", "betas_and_deltas", "broadcast"]
__all__ += ["coins", "instance", "integer", "integers", "multiple", "one_of", "path", "read_only"]
__all__ += ["real", "reals", "reason", "require", "seed", "shown", "store", "truth"]

T = TypeVar("T")

#: The largest count that is still exact as a double.
LARGEST_COUNT = 2**53

#: Types of numbers in an array of objects, such as a column of pandas; truth values are none.
_NUMBERS = {int, np.int64, np.int32, float, np.float64, np.float32}


def path(name: str, value: Any) -> Path:
    """Return ``value``, a path or a string, as a path."""
    if not isinstance(value, str | os.PathLike):
        raise TypeError(f"{name} must be a path, got {name}={value!r}")
    return Path(value)


def reals(
    name: str, value: Any, low: float = -np.inf, high: float = np.inf, *, interval: str = "[]"
) -> NDArray[np.float64]:
    """Return ``value`` as an array of floats in an interval; ``interval="(]"`` is (low, high]."""
    if isinstance(value, float) and low < value < high:
        return np.array(value)  # the usual case, far faster than what follows
    array = _numbers(name, value, "a number").astype(np.float64)
    above = array > low if interval[0] == "(" else array >= low
    below = array < high if interval[1] == ")" else array <= high
    require(above & below, name, array, f"lie in {interval[0]}{low:g}, {high:g}{interval[1]}")
    return array


def integers(name: str, value: Any, low: int = 0, high: int = LARGEST_COUNT) -> NDArray[np.int64]:
    """Return ``value`` as an array of integers in [low, high]; 7.0 passes, 7.5 does not."""
    if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
        return np.array(value, dtype=np.int64)  # the usual case, far faster than what follows
    array = _numbers(name, value, "an integer")
    if array.dtype.kind == "f":
        array = array.astype(np.float64)
        require(np.isfinite(array) & (array == np.floor(array)), name, array, "be an integer")
    open_ended = high == LARGEST_COUNT and (array <= high).all()
    allowed = f"be at least {low}" if open_ended else f"lie in [{low}, {high}]"
    require((array >= low) & (array <= high), name, array, allowed)
    return array.astype(np.int64)


def real(
    name: str, value: Any, low: float = -np.inf, high: float = np.inf, *, interval: str = "[]"
) -> float:
    """Return ``value`` as one float in an interval."""
    return float(_scalar(name, value, reals(name, value, low, high, interval=interval)))


def integer(name: str, value: Any, low: int = 0, high: int = LARGEST_COUNT) -> int:
    """Return ``value`` as one integer between ``low`` and ``high``."""
    return int(_scalar(name, value, integers(name, value, low, high)))


def beta_and_delta(beta: Any, delta: Any = 0.0) -> tuple[float, float]:
    """Return the probability β that a bound fails, and the δ of (ε, δ)-DP."""
    return real("beta", beta, 0, 1, interval="()"), real("delta", delta, 0, 1)


def betas_and_deltas(beta: ArrayLike, delta: ArrayLike = 0.0) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return what :func:`beta_and_delta` does, for arrays."""
    return reals("beta", beta, 0, 1, interval="()"), reals("delta", delta, 0, 1)


def seed(value: Any, name: str = "seed") -> int:
    """Return a seed: any integer that is at least 0, however large."""
    if isinstance(value, int | np.integer) and value > LARGEST_COUNT:
        return int(value)
    return integer(name, value)


def instance(name: str, value: Any, kind: type, example: str) -> None:
    """Check that ``value`` is an instance of ``kind``; errors show ``example``."""
    if not isinstance(value, kind) or isinstance(value, type):
        raise TypeError(f"{name} must be like {example}, got {name}={value!r}")


def store(target: object, **checked: Any) -> None:
    """Put checked and converted values back into the fields of a frozen dataclass."""
    for name, value in checked.items():
        object.__setattr__(target, name, value)


def read_only(result: T) -> T:
    """Make an array or a tuple of arrays read-only, so that no caller changes a cached result."""
    for part in result if isinstance(result, tuple) else (result,):
        if isinstance(part, np.ndarray):
            part.flags.writeable = False
    return result


def one_of(name: str, value: Any, allowed: tuple[str, ...]) -> str:
    """Return ``value`` if it is one of a few allowed words."""
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(allowed)}, got {name}={value!r}")
    return value


def truth(name: str, value: Any) -> bool:
    """Return ``value`` if it is True or False; a word like "no" would otherwise pass for True."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {name}={value!r}")
    return bool(value)


def coins(name: str, value: Any, n: int) -> NDArray[np.bool_]:
    """Return ``value`` as n truth values."""
    allowed = f"a boolean vector of length n={n}"
    bits = array(name, value, allowed)
    if bits.dtype != bool or bits.shape != (n,):
        raise ValueError(f"{name} must be {allowed}, got {bits.dtype} of shape {bits.shape}")
    return bits


def multiple(name: str, value: int, of: int, meaning: str) -> None:
    """Check that ``value`` is a multiple of ``of``, which ``meaning`` explains."""
    if value % of:
        below = value - value % of
        nearest = f"{below} and {below + of}" if below else f"{of}"
        raise ValueError(
            f"{name} must be a multiple of {of} ({meaning}), "
            f"got {name}={value} (nearest: {nearest})"
        )


def at_most(name: str, value: NDArray[Any], limit_name: str, limit: NDArray[Any]) -> None:
    """Check that ``value`` does not exceed ``limit``, in any entry; both have the same shape."""
    if (value > limit).any():
        index, place = _first(value > limit)
        raise ValueError(
            f"{name} must be at most {limit_name}, "
            f"got {name}={value[index]} and {limit_name}={limit[index]}{place}"
        )


def broadcast(**arguments: NDArray[Any]) -> list[NDArray[Any]]:
    """Return the arguments, broadcast together."""
    if len({array.shape for array in arguments.values()}) == 1:  # the usual case
        return list(arguments.values())
    try:
        return list(np.broadcast_arrays(*arguments.values()))
    except ValueError:
        listed = ", ".join(f"{name} {array.shape}" for name, array in arguments.items())
        raise ValueError(f"arguments must broadcast together, got shapes {listed}") from None


def array(name: str, value: Any, allowed: str) -> NDArray[Any]:
    """Return ``value`` as an array; errors say that it must be ``allowed``."""
    if np.ma.is_masked(value):
        raise ValueError(f"{name} must have no masked entries, got {name}={value!r}")
    try:
        return np.asarray(value)
    # Rows of different lengths, not an array at all, or a tensor that requires a gradient.
    except (ValueError, TypeError, RuntimeError) as error:
        raise TypeError(
            f"{name} must be {allowed}, got {name}={shown(value)}{reason(value, error)}"
        ) from None


def _numbers(name: str, value: ArrayLike, allowed: str) -> NDArray[Any]:
    """Return ``value`` as an array of numbers, and not of strings, truth values or lists."""
    numbers = array(name, value, allowed)
    if numbers.dtype.kind == "O" and {type(entry) for entry in numbers.flat} <= _NUMBERS:
        numbers = np.array(numbers.tolist())
        if numbers.dtype.kind == "O":  # an integer too large for NumPy
            raise ValueError(f"{name} must lie in [0, {LARGEST_COUNT}], got {name}={value!r}")
    if numbers.dtype.kind not in "iuf":
        kind = f" (of dtype {numbers.dtype})" if numbers.ndim else ""
        raise TypeError(f"{name} must be {allowed}, got {name}={shown(value)}{kind}")
    return numbers


def reason(value: Any, error: Exception | None = None) -> str:
    """Explain in brackets why NumPy does not accept a tensor, or a list of them."""
    first = value[0] if isinstance(value, list | tuple) and value else value
    if getattr(first, "requires_grad", False):
        return " (a tensor that requires a gradient: give it as .detach().cpu().numpy())"
    if "bfloat16" in str(getattr(first, "dtype", "")):
        return " (NumPy has no bfloat16: give it as .float().cpu().numpy())"
    if error is not None and hasattr(first, "dtype"):
        return f" ({' '.join(str(error).split())})"
    return ""


def shown(value: Any) -> str:
    """Return a value as errors show it: a long one is cut short."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else f"{text[:77]}..."


def _scalar(name: str, value: Any, array: NDArray[Any]) -> Any:
    """Return the single number of an array, which was made of ``value``."""
    if array.ndim:
        raise TypeError(f"{name} must be a single number, got {name}={value!r}")
    return array[()]


def require(good: NDArray[np.bool_], name: str, array: NDArray[Any], allowed: str) -> None:
    """Check that all entries are good; the error shows the first that is not, and its place."""
    if not good.all():
        index, place = _first(~good)
        raise ValueError(f"{name} must {allowed}, got {name}={array[index]}{place}")


def _first(bad: NDArray[np.bool_]) -> tuple[tuple[int, ...], str]:
    """Return the index of the first bad entry, and the words of errors for it."""
    index = tuple(np.argwhere(bad)[0].tolist())
    if not index:
        return index, ""
    return index, f" at index {index[0] if len(index) == 1 else index}"
