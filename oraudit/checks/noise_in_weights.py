"""The weights move by the noisy sum, not by the clipped sum without its noise.

Formulas, at the steps at which weights were compared: one minus the cosine of their move and the
clipped sum; and the correlation of their moves with the noise of the same step. Limits: a move
that is a multiple of the clipped sum, up to 1e-4 of what the noise is of the noisy sum (squared),
has no noise in it, as even averages over many steps have more. A correlation within four
deviations of 0, and below a twentieth of that of the noisy sum, may be an average over many steps.
"""

import numpy as np

from oraudit.findings import Finding
from oraudit.records import Seen
from oraudit.records.around import LEAST_NOISE

__all__ = ["check"]

NAME = "noise-in-weights"

#: One minus the cosine of a move without noise and the clipped sum, over the squared part of the
#: noise in the noisy sum, of which half would be there; a momentum of .999 leaves 2.5e-4 of it.
CLEAN = 1e-4

#: The correlation of moves with the noise, in deviations: at most NONE where no noise is felt, and
#: at least SURE where it would be felt.
NONE = 4
SURE = 20

#: An honest optimizer's moves have a larger share of the correlation of the noisy sum.
FELT = 0.05


def check(seen: Seen) -> list[Finding]:
    around = seen.around
    if around is None:
        return []
    is_known = np.isfinite(around.felt) & (around.noisiness > LEAST_NOISE)
    if not is_known.any():
        return []
    clean = is_known & (around.clean < CLEAN * around.noisiness**2)
    if clean.any():
        first = int(np.flatnonzero(clean)[0]) + 1
        text = (
            f"the weights move by the clipped sum without its noise, in {clean.sum()} of "
            f"{is_known.sum()} steps looked at"
        )
        return [Finding(NAME, text, "less private", step=first, number=0.0, limit=1.0)]
    numbers = around.numbers[is_known]
    felt = abs(float((numbers * around.felt[is_known]).sum() / numbers.sum()))
    would = float((numbers * around.noisiness[is_known]).sum() / numbers.sum())
    error = 1 / float(np.sqrt(numbers.sum()))
    if would < SURE * error or felt > FELT * would or felt > NONE * error:
        return []
    text = (
        f"the weights move as if there was no noise (their moves have correlation {felt:.2f} with "
        f"it, the noisy sum has {would:.2f}); if the optimizer averages over many steps, pass "
        f"allow=({NAME!r},)"
    )
    return [
        Finding(NAME, text, "side unknown", number=felt, error=error, limit=FELT, allowed_by=NAME)
    ]
