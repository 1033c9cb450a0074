"""The optimizer steps with a constant multiple of the noisy sum.

Formulas: one minus the cosine of the gradient and the noisy sum, and their ratio in each step.
Limits: 1e-5, and a ratio that varies by less than 1e-3. Where the ratio times the batch's size is
constant, the sum is divided by that size; where the gradient is the clipped sum and a part of the
noise, the rest of the noise was taken off; whatever else it is may be post-processing.
"""

import numpy as np

from oraudit.findings import Finding, Side
from oraudit.records import Seen

NAME = "gradient-scale"

#: What to pass as ``allow=`` where gradients are changed after the noise on purpose.
AFTER = "gradients-after-noise"

#: A larger part of the gradient that is no multiple of the noisy sum is no rounding.
MOST_OFF = 1e-5

#: A ratio that varies by less is constant; one that is explained varies by less than a tenth.
VARIATION = 1e-3

#: A gradient of which no larger share is anything else consists of clipped sum and noise.
MOST_REST = 1e-4

#: With fewer steps a constant product may be chance.
FEWEST_STEPS = 5


def check(seen: Seen) -> list[Finding]:
    around = seen.around
    if around is None:
        return []
    known = np.isfinite(around.factor)
    factors = around.factor[known]
    if not len(factors):
        return []
    if _variation(factors) > VARIATION:
        products = (around.factor * around.size)[known & (around.size > 0)]
        if len(products) >= FEWEST_STEPS and _variation(products) < VARIATION / 10:
            text = "the noisy sum is divided by the size of its own batch, which is private"
            return [Finding(NAME, text, "side unknown", number=float(products.mean()))]
    reduced = known & (around.off > MOST_OFF) & (around.rest < MOST_REST)
    if reduced.any():
        kept = around.kept[reduced]
        least = float(kept[np.abs(kept).argmin()])
        first = int(np.flatnonzero(reduced)[0]) + 1
        text = (
            f"{least:.2g} of the noise is in the gradient that the optimizer steps with, in "
            f"{reduced.sum()} steps"
        )
        side: Side = "less private" if least < 1 else "side unknown"
        return [Finding(NAME, text, side, step=first, number=least, limit=1.0)]
    changed = known & ~(np.abs(around.off) <= MOST_OFF)
    varying = known & (np.abs(around.factor / np.median(factors) - 1) > VARIATION)
    steps = np.flatnonzero(changed | varying)
    if not len(steps):
        return []
    text = (
        f"gradients change between the noise and the optimizer's step, in {len(steps)} steps; if "
        f"that looks at nothing but the noisy sum, pass allow=({AFTER!r},)"
    )
    return [Finding(AFTER, text, "side unknown", step=int(steps[0]) + 1, allowed_by=AFTER)]


def _variation(numbers: np.ndarray) -> float:
    """The standard deviation over the mean."""
    return float(numbers.std() / abs(numbers.mean())) if numbers.mean() else 0.0
