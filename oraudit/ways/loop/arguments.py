"""The arguments of an audit of a loop, checked where they come in."""

import math
from typing import Any

import numpy as np

from oraudit.ways.loop.trees import branches

__all__ = [
    "batch_size",
    "check_allow",
    "check_claim",
    "check_clips",
    "check_examples",
    "check_rate",
    "check_sigma",
    "joint_clip",
]


def _refuse_unless(holds: bool, argument: str, value: Any, allowed: str) -> None:
    if not holds:
        raise ValueError(f"{argument} is {value!r}; it must be {allowed}")


def _number(argument: str, value: Any, allowed: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{argument} is {value!r}; it must be {allowed}") from None


def check_examples(examples: Any) -> int | None:
    """Return the number of examples of the data, or None if it is not known."""
    if examples is None:
        return None
    holds = float(examples).is_integer() and examples > 0
    _refuse_unless(holds, "examples", examples, "a whole number > 0")
    return int(examples)


def check_allow(allow: Any) -> tuple[str, ...]:
    """Return the names of findings that are allowed."""
    _refuse_unless(not isinstance(allow, str), "allow", allow, "a list of names, as in the report")
    return tuple(allow)


def check_claim(claim: Any) -> tuple[float, float] | None:
    """Return the (ε, δ) that a training is said to have, or None."""
    if claim is None:
        return None
    allowed = "(ε, δ) with ε > 0 and 0 < δ < 1"
    _refuse_unless(isinstance(claim, tuple | list) and len(claim) == 2, "claim", claim, allowed)
    epsilon, delta = (_number("claim", part, allowed) for part in claim)
    _refuse_unless(0 < epsilon < math.inf and 0 < delta < 1, "claim", claim, allowed)
    return epsilon, delta


def check_clips(clip: Any, tensors: int) -> float | list[float]:
    """Return the norm that gradients are clipped at, or a list of norms, one for each tensor."""
    allowed = f"a number > 0, or a list of {tensors} of them, one for each tensor"
    if np.ndim(clip) == 0:
        number = _number("clip", clip, allowed)
        _refuse_unless(0 < number < math.inf, "clip", clip, allowed)
        return number
    numbers = [_number("clip", part, allowed) for part in clip]
    holds = len(numbers) == tensors and all(0 < number < math.inf for number in numbers)
    _refuse_unless(holds, "clip", clip, allowed)
    return numbers


def joint_clip(clips: float | list[float]) -> float:
    """Return the largest norm that an example may add, all tensors together.

    >>> joint_clip([3.0, 4.0])
    5.0
    """
    return clips if isinstance(clips, float) else math.hypot(*clips)


def check_sigma(sigma: Any) -> float:
    """Return the noise multiplier."""
    number = _number("sigma", sigma, "a number >= 0")
    _refuse_unless(0 <= number < math.inf, "sigma", sigma, "a number >= 0")
    return number


def check_rate(rate: Any) -> float | None:
    """Return the sampling rate, or None if it is not given."""
    if rate is None:
        return None
    number = _number("rate", rate, "a number in (0, 1]")
    _refuse_unless(0 < number <= 1, "rate", rate, "a number in (0, 1]")
    return number


def batch_size(*, per_example: Any, inputs: Any, batch: int | None) -> int | None:
    """Return the number of examples in a batch, from any argument that shows it, or None.

    >>> batch_size(per_example=[np.ones((3, 2))], inputs=None, batch=3)
    3
    """
    sizes = {}
    for argument, tree in (("per_example", per_example), ("inputs", inputs)):
        if tree is not None:
            first, *_ = branches(tree).values()
            sizes[argument] = int(np.shape(first)[0])
    if batch is not None:
        holds = float(batch).is_integer() and batch >= 0
        _refuse_unless(holds, "batch", batch, "a whole number >= 0")
        sizes["batch"] = int(batch)
    if len(set(sizes.values())) > 1:
        listed = ", ".join(f"{argument} {size}" for argument, size in sizes.items())
        raise ValueError(f"the numbers of examples differ: {listed}; they must be equal")
    return next(iter(sizes.values()), None)
