"""The clipped sum is the sum of the examples' gradients, each clipped at C.

Formula: the distance of the two sums over the sum of the norms of the clipped gradients. Limit:
what rounding explains, 2e-5 in single precision. A cause is named only if it explains the sum
exactly at all steps that are off. A sum that is off is safer only if each example got a factor
between 0 and C / norm that depends on this example alone, in all steps that could show it.
"""

from oraudit.findings import Finding, Side
from oraudit.records import Look, Seen

__all__ = ["NAME", "check", "common_cause", "largest_norm"]

NAME = "clipped-sum"

#: Where no example reaches this share of C, a step may agree whatever its factors are.
REACHES = 0.999


def check(seen: Seen) -> list[Finding]:
    off = [look for look in seen.looks if not look.holds]
    if not off:
        return []
    worst = max(off, key=lambda look: look.error)
    cause = common_cause(off)
    norms = [look.causes.get(cause) for look in off]
    known_norms = [norm for norm in norms if norm is not None]
    text = "the clipped sum differs from the sum of clipped gradients"
    if cause:
        text = cause.format(names=seen.names)
    if len(off) < len(seen.looks):
        text = f"{text} in {len(off)} of {len(seen.looks)} steps looked at"
    side: Side = "side unknown"
    largest = max(known_norms, default=0.0)
    if largest > 1 + worst.tolerance:
        side = "less private"
    elif len(known_norms) == len(off) and not _some_clipped_well(seen):
        side = "safer"
    if side != "side unknown":
        text = f"{text}: an example adds up to {largest:.4g} C"
    return [Finding(NAME, text, side, step=off[0].step, number=worst.error, limit=worst.tolerance)]


def common_cause(off: list[Look]) -> str:
    """Return the first cause that explains all of these looks; "" if none does."""
    for cause in off[0].causes:
        if all(cause in look.causes for look in off):
            return cause
    return ""


def largest_norm(seen: Seen) -> float | None:
    """Return the largest norm that an example adds, in C; None if a sum is off without a cause."""
    off = [look for look in seen.looks if not look.holds]
    cause = common_cause(off) if off else ""
    norms = [look.causes.get(cause) for look in off]
    norms += [look.largest for look in seen.looks if look.holds]
    if not norms or None in norms:
        return None
    return max(norm for norm in norms if norm is not None)


def _some_clipped_well(seen: Seen) -> bool:
    """Return whether some step clips an example at C; then steps that are off are exceptions."""
    return any(look.holds and look.largest > REACHES for look in seen.looks)
