"""The report in text: the verdict with its cause, then what was told and what was seen."""

from collections.abc import Sequence

import numpy as np

from oraudit.findings import Finding, Status
from oraudit.records import Seen

__all__ = ["report_lines"]

#: What no audit of this kind can see.
NEVER_SEEN = ("secrecy of seeds", "which data")

_HEADLINES: dict[Status, str] = {
    "passed": "PASSED",
    "failed": "FAILED",
    "cannot tell": "CANNOT TELL",
}


def report_lines(
    status: Status, seen: Seen, found: Sequence[Finding], unlooked: Sequence[str]
) -> list[str]:
    """The lines of a report; the first one is the verdict."""
    lines = _verdict_lines(status, seen, found)
    lines += _told(seen)
    lines += _noise(seen)
    lines += _clipping(seen)
    lines.append(_row("unlooked", "; ".join([*unlooked, *NEVER_SEEN])))
    return lines


def _row(name: str, words: str) -> str:
    return f"{name:<10}{words}"


def _verdict_lines(status: Status, seen: Seen, found: Sequence[Finding]) -> list[str]:
    headline = _HEADLINES[status]
    if not seen.steps:
        return [f"{headline}  no private step was seen"]
    said = [f"{finding.text}: {finding.side}" for finding in found]
    if status == "passed":
        lines = [_row(headline, "what was looked at is as the accountant was told")]
        return lines + [_row("note", words) for words in said]
    first, *others = said
    return [f"{headline:<9} {first}"] + [_row("also", words) for words in others]


def _told(seen: Seen) -> list[str]:
    if not seen.steps:
        return []
    sigmas = _range_of(seen.sigmas)
    rates = "not given" if seen.rates is None else _range_of(seen.rates)
    return [_row("told", f"σ {sigmas}, rate {rates}, {seen.steps} steps")]


def _noise(seen: Seen) -> list[str]:
    if seen.noise is None or not (seen.sigmas > 0).all():
        return []
    noise = seen.noise
    if not np.isfinite(noise.share):
        return []
    error = 1 / np.sqrt(2 * noise.sizes.sum() * noise.steps)
    by_tensor = np.sqrt(noise.squares.sum(0) / (noise.sizes * noise.steps))
    return [
        _row(
            "noise",
            f"{noise.share:.3f} ± {max(error, 0.001):.3f} of the told, {len(by_tensor)} tensors "
            f"{by_tensor.min():.3f} to {by_tensor.max():.3f}",
        )
    ]


def _clipping(seen: Seen) -> list[str]:
    if not seen.looks:
        return []
    holding = [look for look in seen.looks if look.holds]
    if len(holding) < len(seen.looks):
        return [
            _row("clipping", f"off at {len(seen.looks) - len(holding)} of {len(seen.looks)} sums")
        ]
    most = max(look.largest for look in holding)
    return [_row("clipping", f"exact at {len(holding)} sums; an example adds at most {most:.3g} C")]


def _range_of(values: np.ndarray) -> str:
    low = f"{values.min():.4g}"
    high = f"{values.max():.4g}"
    return low if low == high else f"{low} to {high}"
