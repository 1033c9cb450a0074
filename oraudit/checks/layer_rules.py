"""The gradients that are clipped are those of the examples.

Formula: for each tensor, the distance between the examples' gradients by the layers' rules and by
autograd for single examples, as a share of autograd's. Limit: 1%. A training may change the
gradient of each example by itself before it is clipped, so nobody is accused.
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
