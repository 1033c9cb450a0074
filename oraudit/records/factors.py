"""The factors that clip gradients, and the norms of gradients, in double precision."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oraudit.records.arrays import namespace, rows

__all__ = [
    "SMALL",
    "Reals",
    "by_tensor",
    "capped",
    "doubles",
    "half_precision",
    "lengths",
    "like",
    "norms_of",
    "precise",
    "precise_rows",
]

#: Added to a norm before C is divided by it, as Opacus does.
SMALL = 1e-6

Reals = NDArray[np.floating]


def capped(norms: Reals, clip: float | Reals) -> Reals:
    """Return the factors that leave at most ``clip`` of these norms."""
    return np.minimum(1.0, clip / (norms + SMALL))


def by_tensor(factors: Reals, norms: Reals) -> Reals:
    """Return factors for each example and tensor."""
    columns = factors if factors.ndim == 2 else factors[:, None]
    return np.array(np.broadcast_to(columns, norms.shape))


def lengths(factors: Reals, norms: Reals) -> Reals:
    """Return the norm of what each example adds."""
    return np.linalg.norm(by_tensor(factors, norms) * norms, axis=1)


def norms_of(gradients: Sequence[Any]) -> Reals:
    """Return the norm of each example's gradient in each tensor."""
    squares = [doubles((precise_rows(gradient) ** 2).sum(1)) for gradient in gradients]
    return np.stack(squares, axis=1) ** 0.5


def precise_rows(gradient: Any) -> Any:
    """Return a row for each example, in single precision at least."""
    return rows(precise(gradient))


def precise(array: Any) -> Any:
    """Return the array, in single precision at least."""
    if namespace(array) is np:
        return array if array.dtype.itemsize >= 4 else array.astype(np.float32)
    return array if array.element_size() >= 4 else array.float()


def like(factors: Reals, gradient: Any) -> Any:
    """Return factors with the precision, and in the place, of gradients."""
    if namespace(gradient) is np:
        return factors.astype(gradient.dtype)
    return namespace(gradient).as_tensor(factors).to(gradient)


def doubles(array: Any) -> Reals:
    """Return an array of NumPy in double precision."""
    if namespace(array) is np:
        return array.astype(float)
    return array.detach().double().cpu().numpy()


def half_precision(array: Any, kind: str) -> Any:
    """Return the numbers as half precision has them, in single precision again."""
    xp = namespace(array)
    if xp is not np:
        return array.to(xp.float16 if kind == "fp16" else xp.bfloat16).float()
    if kind == "fp16":
        with np.errstate(over="ignore"):
            return array.astype(np.float16).astype(np.float32)
    bits = np.ascontiguousarray(array, dtype=np.float32).view(np.uint32)
    even = (bits >> np.uint32(16)) & np.uint32(1)
    return ((bits + np.uint32(0x7FFF) + even) & np.uint32(0xFFFF0000)).view(np.float32)
