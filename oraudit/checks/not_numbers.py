"""The noisy sum consists of numbers.

Exact: the sums of squares of the noise, which are finite unless a number of the clipped or of
the noisy sum is not. One example with a gradient of NaN makes the whole sum NaN, which shows that
the example is there. Checks of the noise have nothing to say then.
"""

import numpy as np

from oraudit.findings import Finding
from oraudit.records import Seen

NAME = "not-numbers"


def check(seen: Seen) -> list[Finding]:
    if seen.noise is None:
        return []
    broken = ~np.isfinite(seen.noise.squares)
    if not broken.any():
        return []
    step, tensor = np.argwhere(broken)[0]
    text = (
        f"the sum or its noise is not finite (NaN or infinite) in {broken.any(1).sum()} of "
        f"{seen.steps} steps, first in tensor {seen.names[tensor]} at step {step + 1}: the noise "
        "hides nothing there, and cannot be checked"
    )
    return [Finding(NAME, text, "side unknown", step=int(step) + 1)]
