"""Examples are clipped at the norm that the noise is made for.

Exact: the norm that the model clips at (ghost clipping), or the norm of all tensors' clips (per
layer), over the optimizer's ``max_grad_norm``. Limit: 1.
"""

from oraudit.findings import Finding, Side
from oraudit.records import Seen

__all__ = ["check"]

NAME = "apart-clip"


def check(seen: Seen) -> list[Finding]:
    apart = seen.of_kind("apart-clip")
    if not apart:
        return []
    largest = max(event.number or 0.0 for event in apart)
    side: Side = "less private" if largest > 1 else "safer"
    text = (
        f"examples are clipped at {largest:.3g} C, where C is the norm that the noise is made for, "
        f"in {len(apart)} of {seen.steps} steps"
    )
    return [Finding(NAME, text, side, step=apart[0].step, number=largest, limit=1.0)]
