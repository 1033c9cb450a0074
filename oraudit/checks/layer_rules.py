"""The gradients that are clipped are those of the examples.

Formula: the distance of the gradients that the layers' rules give from those that autograd gives
for single examples, as a share of the latter, tensor by tensor. Limit: 1%. Gradients of each
example may be changed on purpose before they are clipped, each by itself, so nobody is accused.
"""

from oraudit.findings import Finding
from oraudit.records import Seen

__all__ = ["check"]

NAME = "layer-rules"


def check(seen: Seen) -> list[Finding]:
    off = seen.of_kind("layer-rule")
    if not off:
        return []
    worst = max(off, key=lambda event: event.number or 0.0)
    text = (
        f"the examples' gradients of tensor {worst.what} are not what autograd gives (off by "
        f"{worst.number:.0%}): a layer's rule is wrong, or they are changed before they are "
        f"clipped; if each is changed by itself, pass allow=({NAME!r},)"
    )
    return [
        Finding(
            NAME,
            text,
            "side unknown",
            step=worst.step,
            number=worst.number,
            limit=0.01,
            allowed_by=NAME,
        )
    ]
