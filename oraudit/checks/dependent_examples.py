"""An example's gradient depends on this example alone.

Formula: the model's output for an example that is alone, against its output in the batch, as a
share of the largest output. Limit: 1%, which is more than rounding. The comparison needs a model
that gives the same output when it runs again on the batch.
"""

import math

from oraudit.findings import Finding
from oraudit.records import Seen

__all__ = ["check"]

NAME = "dependent-examples"


def check(seen: Seen) -> list[Finding]:
    mixed = seen.of_kind("examples-mix")
    if not mixed:
        return []
    largest = max(event.number or 0.0 for event in mixed)
    alone = f"it differs by {largest:.0%}" if math.isfinite(largest) else "it is not a number"
    text = (
        f"an example's output depends on the others of its batch (in a batch of its own {alone}): "
        "clipping one gradient does not bound what one example moves"
    )
    return [Finding(NAME, text, "less private", step=mixed[0].step, number=largest, limit=0.01)]
