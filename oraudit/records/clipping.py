"""The effect of clipping at the steps that were looked at, example by example.

A look needs the gradient of each example, so it is taken at some steps only. It compares what was
added to the sum with the sum of clipped gradients, computed here again from the gradients.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from oraudit.records.arrays import namespace, rows
from oraudit.records.causes import explain
from oraudit.records.factors import SMALL

__all__ = [
    "EXACT",
    "Look",
    "example_norms",
    "is_looked_at",
    "joined_norms",
    "look_at",
    "tensor_norms",
    "weighted_sum",
]

#: The error of an honest sum in single precision.
EXACT = 2e-5

#: The error that each number of a gradient adds where norms are long sums.
LONG_SUM = 8e-11

#: The numbers that are summed at a time on a processor.
BLOCK = 65_536

#: The weights below which a model is looked at in the first steps and in a tenth of the others; a
#: larger one is looked at in the first step and in a twentieth.
SMALL_MODEL = 200_000

#: The first steps in which a small model is looked at.
FIRST_STEPS = 20

#: The multiples of this number, without their whole parts, are spread evenly, and follow no epoch.
GOLDEN = (math.sqrt(5) - 1) / 2


def is_looked_at(step: int, numbers: int) -> bool:
    """Return whether clipping is looked at in this step of a model with so many numbers.

    >>> sum(is_looked_at(step, 1000) for step in range(1, 1021))
    119
    """
    small = numbers < SMALL_MODEL
    first = FIRST_STEPS if small else 1
    return step <= first or step * GOLDEN % 1 < (0.1 if small else 0.05)


@dataclass(frozen=True)
class Look:
    """A look at clipping in one step.

    Attributes
    ----------
    step
        The step, counting from 1.
    error
        The distance of the sum from the sum of clipped gradients: the norm of the difference over
        the sum of the norms of the clipped gradients, which does not cancel as the sum itself may.
    tolerance
        The largest error that rounding explains, by the precision of the gradients.
    largest
        The largest norm that an example adds, in C, if the sum is what it should be.
    causes
        The causes that explain the sum exactly, if it is not what it should be, each with how far
        one example moves the sum then, in C, or None if that may be further than is seen.
    """

    step: int
    error: float
    tolerance: float
    largest: float
    causes: Mapping[str, float | None] = field(default_factory=dict)

    @property
    def holds(self) -> bool:
        return self.error <= self.tolerance


def look_at(
    step: int,
    gradients: Sequence[Any],
    added: Sequence[Any],
    clip: float | Sequence[float],
    norms: Sequence[Any] | None = None,
) -> Look:
    """Compare what was added to the sum with the gradients of the examples, clipped at ``clip``.

    With a clip for each tensor, each is clipped by itself, and C is the norm of all clips.
    ``norms`` is what :func:`tensor_norms` returns, if it was computed before.
    """
    norms = tensor_norms(gradients) if norms is None else norms
    xp = namespace(norms[0])
    if isinstance(clip, int | float):
        factors = [_cap(joined_norms(norms), clip)] * len(norms)
        bound = float(clip)
    else:
        factors = [_cap(norm, limit) for norm, limit in zip(norms, clip, strict=True)]
        bound = sum(float(limit) ** 2 for limit in clip) ** 0.5
    clipped = joined_norms([f * norm for f, norm in zip(factors, norms, strict=True)])
    differences = [
        weighted_sum(gradient, factor) - total.reshape(-1)
        for gradient, factor, total in zip(gradients, factors, added, strict=True)
    ]
    squares = sum((part * part).sum() for part in differences)
    largest = clipped.max() if len(clipped) else clipped.sum()
    # All numbers in one transfer, as each transfer waits for the device.
    distance, total, longest = xp.stack([squares**0.5, clipped.sum(), largest]).tolist()
    error = distance / total if total > 0 else distance
    tolerance = _rounding(gradients) + SMALL / bound
    return Look(
        step=step,
        error=error,
        tolerance=tolerance,
        largest=longest / bound,
        causes={} if error <= tolerance else explain(gradients, added, clip, tolerance),
    )


def _rounding(gradients: Sequence[Any]) -> float:
    """Return how far an honest sum may be off.

    Norms in half precision must show in single precision. But processors add many numbers in
    single precision one after the other, so PyTorch's norm of a million numbers is .00004 short.
    """
    precision = max(float(namespace(gradient).finfo(gradient.dtype).eps) for gradient in gradients)
    if precision >= 1e-6:
        return 4 * precision
    if precision < 1e-10 or getattr(gradients[0], "is_cuda", False):
        return EXACT
    return EXACT + LONG_SUM * sum(math.prod(gradient.shape[1:]) for gradient in gradients)


def tensor_norms(gradients: Sequence[Any]) -> list[Any]:
    """Return the norm of each example's gradient, tensor by tensor."""
    return [_norm(rows(gradient)) for gradient in gradients]


def _norm(table: Any) -> Any:
    xp = namespace(table)
    if xp is np:
        table = table if table.dtype.itemsize >= 4 else table.astype(np.float32)
        return (table**2).sum(1) ** 0.5
    kind = table.dtype if table.dtype.itemsize >= 4 else xp.float32
    if table.is_cuda or table.shape[1] <= BLOCK:
        return xp.linalg.vector_norm(table, dim=1, dtype=kind)
    parts = table.split(BLOCK, 1)
    return joined_norms([xp.linalg.vector_norm(part, dim=1, dtype=kind) for part in parts])


def joined_norms(norms: Sequence[Any]) -> Any:
    """Return the norms of vectors whose parts have these norms."""
    return sum(norm * norm for norm in norms) ** 0.5


def example_norms(gradients: Sequence[Any]) -> Any:
    """Return the norm of each example's gradient, all tensors together."""
    return joined_norms(tensor_norms(gradients))


def _cap(norms: Any, clip: float) -> Any:
    """Return the factor of each example that leaves its gradient a norm of at most ``clip``."""
    return namespace(norms).clip(clip / (norms + SMALL), None, 1.0)


def weighted_sum(gradients: Any, factors: Any) -> Any:
    """Return the sum over examples of factor times gradient, as a row of numbers."""
    table = rows(gradients)
    if namespace(table) is np:
        return factors.astype(table.dtype) @ table
    return factors.to(table) @ table
