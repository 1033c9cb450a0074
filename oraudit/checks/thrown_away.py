"""No batch's gradients are computed and thrown away.

Exact: gradients of examples that were cleared before any step used them. If that is decided by
looking at them, or at the loss, it tells about the data, and no accountant counts it.
"""

from oraudit.findings import Finding
from oraudit.records import Seen

__all__ = ["check"]

NAME = "thrown-away"


def check(seen: Seen) -> list[Finding]:
    thrown = seen.of_kind("thrown-away")
    if not thrown:
        return []
    batches = "a batch" if len(thrown) == 1 else f"{len(thrown)} batches"
    text = (
        f"the gradients of {batches} were computed and thrown away; if that is not decided by the "
        f"data, as where a generator learns from its discriminator, pass allow=({NAME!r},)"
    )
    step = thrown[0].step
    return [Finding(NAME, text, "side unknown", step=step, allowed_by=NAME)]
