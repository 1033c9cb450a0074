"""The optimizer steps with a constant multiple of the noisy sum.

Formulas: one minus the cosine of the gradient and the noisy sum, and their ratio in each step.
Limits: 1e-5, and a ratio that varies by less than 1e-3. Where the ratio times the batch's size is
constant, the sum is divided by that size; where the gradient is the clipped sum and a part of the
noise, the rest of the noise was taken off. Any other change may be post-processing.
"""

import numpy as np

from oraudit.findings import Finding, Side
from oraudit.records import Seen

__all__ = ["check"]

NAME = "gradient-scale"

#: What to pass as ``allow=`` where gradients are changed after the noise on purpose.
AFTER = "gradients-after-noise"

#: The largest value of one minus the cosine that rounding explains.
MOST_OFF = 1e-5

#: The variation below which a ratio is constant. The product of ratio and batch size must vary by
#: less than a tenth of that to explain a ratio that is not.
VARIATION = 1e-3

#: The largest share of a gradient of clipped sum and noise that may be anything else.
MOST_REST = 1e-4

#: The fewest steps for a constant product: with fewer it may be chance.
FEWEST_STEPS = 5


def check(seen: Seen) -> list[Finding]:
    around = seen.around
    if around is None:
        return []
    is_known = np.isfinite(around.factor)
    factors = around.factor[is_known]
    if not len(factors):
        return []
    if _variation(factors) > VARIATION:
        products = (around.factor * around.size)[is_known & (around.size > 0)]
        if len(products) >= FEWEST_STEPS and _variation(products) < VARIATION / 10:
            text = "the noisy sum is divided by the size of its own batch, which is private"
            return [Finding(NAME, text, "side unknown", number=float(products.mean()))]
    reduced = is_known & (around.off > MOST_OFF) & (around.rest < MOST_REST)
    if reduced.any():
        shares = around.kept[reduced]
        smallest = float(shares[np.abs(shares).argmin()])
        first = int(np.flatnonzero(reduced)[0]) + 1
        text = (
            f"{smallest:.2g} of the noise is in the gradient that the optimizer steps with, in "
            f"{reduced.sum()} steps"
        )
        side: Side = "less private" if smallest < 1 else "side unknown"
        return [Finding(NAME, text, side, step=first, number=smallest, limit=1.0)]
    changed = is_known & ~(np.abs(around.off) <= MOST_OFF)
    varying = is_known & (np.abs(around.factor / np.median(factors) - 1) > VARIATION)
    steps = np.flatnonzero(changed | varying)
    if not len(steps):
        return []
    text = (
        f"gradients change between the noise and the optimizer's step, in {len(steps)} steps; if "
        f"that looks at nothing but the noisy sum, pass allow=({AFTER!r},)"
    )
    return [Finding(AFTER, text, "side unknown", step=int(steps[0]) + 1, allowed_by=AFTER)]


def _variation(numbers: np.ndarray) -> float:
    """Return the standard deviation over the mean."""
    return float(numbers.std() / abs(numbers.mean())) if numbers.mean() else 0.0
