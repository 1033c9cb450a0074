"""The clipped sum is the sum of the examples' gradients, each clipped at C.

Formula: the distance of the two sums over the sum of the norms of the clipped gradients. Limit:
what rounding explains, 1e-4 in single precision. A cause is named only where it explains the sum
exactly.
"""

from oraudit.findings import Finding, Side
from oraudit.records import Seen

NAME = "clipped-sum"


def check(seen: Seen) -> list[Finding]:
    off = [look for look in seen.looks if not look.holds]
    if not off:
        return []
    causes = {look.cause for look in off}
    cause = off[0].cause if len(causes) == 1 else ""
    text = cause or "the clipped sum differs from the sum of clipped gradients"
    if len(off) < len(seen.looks):
        text += f" in {len(off)} of {len(seen.looks)} steps looked at"
    sensitivities = [look.sensitivity for look in off if look.sensitivity is not None]
    side: Side = "side unknown"
    if cause and len(sensitivities) == len(off):
        most = max(sensitivities)
        text += f": an example adds up to {most:.4g} C"
        side = "less private" if most > 1 + off[0].tolerance else "safer"
    worst = max(off, key=lambda look: look.error)
    return [Finding(NAME, text, side, step=off[0].step, number=worst.error, limit=worst.tolerance)]
