"""The causes of a clipped sum that is off: hypotheses that give the very sum that was seen.

A guess is a cause only if the gradients times its factors add up to the sum that was seen, up to
rounding. Several hypotheses may explain one step; other steps decide between them.
"""

from collections.abc import Sequence
from typing import Any

from oraudit.records.case import Case
from oraudit.records.hypotheses import HYPOTHESES

__all__ = ["explain"]


def explain(
    gradients: Sequence[Any],
    added: Sequence[Any],
    clip: float | Sequence[float],
    tolerance: float,
) -> dict[str, float | None]:
    """Return the causes that explain a sum exactly, with the sensitivity in C that each gives.

    A sensitivity is None if it may be more than what the examples of this batch add. ``clip`` is C,
    or its part for each tensor; then C is the norm of these parts.

    >>> import numpy as np
    >>> explain([np.array([[3.0, 4.0], [0.6, 0.0]])], [np.array([3.6, 4.0])], 1.0, 1e-4)
    {'no example is clipped': 5.0, ...}
    """
    case = Case(gradients, added, clip, tolerance)
    if not case.finite:
        return {"gradients of examples, or their sum, are not finite (NaN or infinite)": None}
    causes: dict[str, float | None] = {}
    for hypothesis in HYPOTHESES:
        for guess in hypothesis(case):
            if guess.text not in causes and case.is_explained_by(guess):
                causes[guess.text] = case.sensitivity(guess)
    return causes
