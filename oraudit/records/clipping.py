"""What clipping did at the steps that were looked at, example by example.

A look needs the gradient of each example, so it is taken at some steps only. It holds what was
added to the sum against the sum of clipped gradients, computed here again from the gradients.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from oraudit.records.arrays import namespace

__all__ = ["Look", "clip_factors", "look_at", "weighted_sum"]

#: Added to a norm before C is divided by it, as Opacus does.
SMALL = 1e-6


@dataclass(frozen=True)
class Look:
    """Clipping at one step.

    Attributes
    ----------
    step
        The step, counting from 1.
    error
        How far the sum is from the sum of clipped gradients: the norm of the difference over the
        sum of the norms of the clipped gradients, which does not cancel as the sum itself may.
    tolerance
        What rounding explains, by the precision of the gradients.
    largest
        The largest norm that an example adds, in C, if the sum is what it should be.
    cause
        What explains the sum exactly, if it is not what it should be; "" if nothing does.
    sensitivity
        The largest norm that an example adds under this cause, in C; None if not known.
    """

    step: int
    error: float
    tolerance: float
    largest: float
    cause: str = ""
    sensitivity: float | None = None

    @property
    def holds(self) -> bool:
        return self.error <= self.tolerance


def look_at(
    step: int, gradients: Sequence[Any], added: Sequence[Any], clip: float | Sequence[float]
) -> Look:
    """Hold what was added to the sum against the gradients of the examples, clipped at ``clip``.

    With a clip for each tensor, each is clipped by itself, and C is the norm of all clips.
    """
    norms = [example_norms([each]) for each in gradients]
    if isinstance(clip, int | float):
        factors = [_factors(_together(norms), clip)] * len(norms)
        bound = float(clip)
    else:
        factors = [_factors(norm, limit) for norm, limit in zip(norms, clip, strict=True)]
        bound = sum(float(limit) ** 2 for limit in clip) ** 0.5
    xp = namespace(norms[0])
    wanted = [
        xp.einsum("i,i...", factor, each) for factor, each in zip(factors, gradients, strict=True)
    ]
    clipped = _together([factor * norm for factor, norm in zip(factors, norms, strict=True)])
    distance = sum(float(((a - b) ** 2).sum()) for a, b in zip(wanted, added, strict=True)) ** 0.5
    total = float(clipped.sum())
    precision = max(float(xp.finfo(each.dtype).eps) for each in gradients)
    return Look(
        step=step,
        error=distance / total if total > 0 else distance,
        tolerance=1e-4 if precision < 1e-6 else 4 * precision,
        largest=float(clipped.max()) / bound if len(clipped) else 0.0,
    )


def example_norms(gradients: Sequence[Any]) -> Any:
    """The norm of each example's gradient, all tensors together."""
    rows = [each.reshape(len(each), -1) for each in gradients]
    if namespace(rows[0]) is np:
        return _together([np.linalg.norm(each, axis=1) for each in rows])
    return _together([each.norm(dim=1) for each in rows])


def clip_factors(gradients: Sequence[Any], clip: float) -> Any:
    """The factor of each example that leaves its gradient a norm of at most ``clip``."""
    return _factors(example_norms(gradients), clip)


def _together(norms: Sequence[Any]) -> Any:
    """The norm of several norms, for each example."""
    if len(norms) == 1:
        return norms[0]
    return sum(each**2 for each in norms) ** 0.5


def _factors(norms: Any, clip: float) -> Any:
    return namespace(norms).clip(clip / (norms + SMALL), None, 1.0)


def weighted_sum(gradients: Sequence[Any], factors: Any) -> list[Any]:
    """The sum over examples of factor times gradient, tensor by tensor."""
    xp = namespace(factors)
    return [xp.einsum("i,i...", factors, each) for each in gradients]
