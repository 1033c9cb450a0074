"""The weights move by the noisy sum, not by the clipped sum without its noise.

Formulas and their limits, at the steps at which weights were compared:

- One minus the cosine of the weights' move and the clipped sum. Limit: 1e-4 of the squared share
  of the noise in the noisy sum. A move below it has no noise: even averages over many steps have
  more.
- The correlation of the weights' moves with the noise of their steps. Limit: within four standard
  errors of 0, and below a twentieth of the noisy sum's correlation with the noise. Such moves may
  be averages over many steps, so they accuse nobody.
"""

import numpy as np

from oraudit.findings import Finding
from oraudit.records import Seen
from oraudit.records.around import LEAST_NOISE

__all__ = ["check"]

NAME = "noise-in-weights"

#: The largest value of one minus the cosine of a move without noise and the clipped sum, over the
#: squared share of the noise in the noisy sum. A move by the noisy sum has one half; a momentum of
#: .999 leaves 2.5e-4.
CLEAN = 1e-4

#: The largest correlation of moves without noise, in standard errors.
NONE = 4

#: The smallest correlation of the noisy sum with which such moves can be told, in standard errors.
SURE = 20

#: The largest correlation of such moves, as a share of the noisy sum's. An honest optimizer without
#: long averages has more.
SHARE_LEFT = 0.05


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
    of_moves = abs(float((numbers * around.felt[is_known]).sum() / numbers.sum()))
    of_noisy_sum = float((numbers * around.noisiness[is_known]).sum() / numbers.sum())
    error = 1 / float(np.sqrt(numbers.sum()))
    if of_noisy_sum < SURE * error:
        return []
    if of_moves > SHARE_LEFT * of_noisy_sum or of_moves > NONE * error:
        return []
    text = (
        f"the weights move as if there was no noise (their moves have correlation {of_moves:.2f} "
        f"with it, the noisy sum has {of_noisy_sum:.2f}); if the optimizer averages over many "
        f"steps, pass allow=({NAME!r},)"
    )
    return [
        Finding(
            NAME,
            text,
            "side unknown",
            number=of_moves,
            error=error,
            limit=SHARE_LEFT,
            allowed_by=NAME,
        )
    ]
