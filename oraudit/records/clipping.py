"""What clipping did at the steps that were looked at, example by example.

A look needs the gradient of each example, so it is taken at some steps only. It holds what was
added to the sum against the sum of clipped gradients, computed here again from the gradients.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from oraudit.records.arrays import namespace, rows
from oraudit.records.causes import SMALL, explain

__all__ = ["Look", "clip_factors", "look_at", "weighted_sum"]


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
    causes
        What explains the sum exactly, if it is not what it should be; and how far one example
        moves the sum then, in C, or None if that may be more than what is seen.
    """

    step: int
    error: float
    tolerance: float
    largest: float
    causes: Mapping[str, float | None] = field(default_factory=dict)

    @property
    def holds(self) -> bool:
        return self.error <= self.tolerance


def look_at(step: int, gradients: Sequence[Any], added: Sequence[Any], clip: float) -> Look:
    """Hold what was added to the sum against the gradients of the examples, clipped at ``clip``."""
    factors = clip_factors(gradients, clip)
    xp = namespace(factors)
    norms = example_norms(gradients)
    wanted = weighted_sum(gradients, factors)
    distance = sum(float(((a - b) ** 2).sum()) for a, b in zip(wanted, added, strict=True)) ** 0.5
    total = float((factors * norms).sum())
    precision = max(float(xp.finfo(each.dtype).eps) for each in gradients)
    error = distance / total if total > 0 else distance
    # Norms in half precision must show in single precision. Not everybody adds SMALL to a norm.
    tolerance = (2e-5 if precision < 1e-6 else 4 * precision) + SMALL / clip
    return Look(
        step=step,
        error=error,
        tolerance=tolerance,
        largest=float((factors * norms).max()) / clip if len(factors) else 0.0,
        causes={} if error <= tolerance else explain(gradients, added, clip, tolerance),
    )


def example_norms(gradients: Sequence[Any]) -> Any:
    """The norm of each example's gradient, all tensors together."""
    squares = sum((rows(each) ** 2).sum(1) for each in gradients)
    return squares**0.5


def clip_factors(gradients: Sequence[Any], clip: float) -> Any:
    """The factor of each example that leaves its gradient a norm of at most ``clip``."""
    norms = example_norms(gradients)
    return namespace(norms).clip(clip / (norms + SMALL), None, 1.0)


def weighted_sum(gradients: Sequence[Any], factors: Any) -> list[Any]:
    """The sum over examples of factor times gradient, tensor by tensor."""
    xp = namespace(factors)
    return [xp.einsum("i,i...", factors, each) for each in gradients]
