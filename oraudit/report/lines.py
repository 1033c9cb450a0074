"""The report in text: the verdict with its cause, then what was told and what was seen."""

from collections.abc import Sequence
from math import isinf

import numpy as np

from oraudit.checks import claim, noise_law, poisson_batches
from oraudit.findings import CANNOT_TELL, FAILED, PASSED, Finding, Status
from oraudit.records import Seen
from oraudit.report.seen_epsilon import seen_epsilon

__all__ = ["report_lines"]

#: What no audit of this kind can see.
NEVER_SEEN = ("secrecy of seeds", "which data")

#: The δ at which ε is told if nobody claims another.
DELTA = 1e-5

#: An ε above this is told as "beyond" it.
LARGEST_EPSILON = 100

_HEADLINES: dict[Status, str] = {PASSED: "PASSED", FAILED: "FAILED", CANNOT_TELL: "CANNOT TELL"}

#: Which findings are told first.
_ORDER = (FAILED, CANNOT_TELL, PASSED)


def report_lines(
    status: Status, seen: Seen, found: Sequence[Finding], unlooked: Sequence[str]
) -> list[str]:
    """The lines of a report; the first one is the verdict."""
    lines = _verdict_lines(status, seen, found)
    if seen.steps:
        lines += _told(seen)
        lines += _seen(seen, found)
        lines += _noise(seen, found)
        lines += _clipping(seen)
        lines += _batches(seen)
    lines.append(_row("unlooked", "; ".join([*unlooked, *_unlooked(seen), *NEVER_SEEN])))
    return lines


def _row(name: str, words: str) -> str:
    return f"{name:<9} {words}"


def _verdict_lines(status: Status, seen: Seen, found: Sequence[Finding]) -> list[str]:
    """The verdict with the first cause, what else was found, and what is safer as a note.

    What several events show in the same words is said once.
    """
    headline = _HEADLINES[status]
    by_words = {f"{finding.text}: {finding.side}": finding for finding in found}
    said = sorted(by_words, key=lambda words: _ORDER.index(by_words[words].status))
    if not seen.steps:
        lines = [f"{headline}  no private step was seen"]
        return lines + [_row("also", words) for words in said]
    if status == PASSED:
        words = "what was looked at is as the accountant was told"
        if any(finding.side == "safer" for finding in found):
            words += ", or safer"
        lines = [_row(headline, words)]
        return lines + [_row("note", words) for words in said]
    lines = [_row(headline, said[0])]
    for words in said[1:]:
        lines.append(_row("note" if by_words[words].status == PASSED else "also", words))
    return lines


def _delta(seen: Seen) -> float:
    return DELTA if seen.claim is None else seen.claim[1]


def _told(seen: Seen) -> list[str]:
    delta = _delta(seen)
    sigmas = _range_of(seen.sigmas)
    rates = "not given" if seen.rates is None else _range_of(seen.rates)
    words = f"σ {sigmas}, rate {rates}, {seen.steps} steps"
    epsilon = claim.told_epsilon(seen, delta)
    if epsilon is not None:
        words += f": {_epsilon_words(epsilon)} at δ = {delta:g}"
    if seen.claim is not None:
        words += f" (claimed {seen.claim[0]:g})"
    return [_row("told", words)]


def _seen(seen: Seen, found: Sequence[Finding]) -> list[str]:
    epsilon = seen_epsilon(seen, found, _delta(seen))
    if epsilon is None or isinf(epsilon):
        return []
    words = f"with the noise, norms and rate seen: {_epsilon_words(epsilon)}"
    return [_row("seen", f"{words} (a calculation, not a bound)")]


def _epsilon_words(epsilon: float) -> str:
    if isinf(epsilon):
        return "no ε"
    if epsilon > LARGEST_EPSILON:
        return f"ε is beyond {LARGEST_EPSILON}"
    return f"ε = {epsilon:.3g}"


def _noise(seen: Seen, found: Sequence[Finding]) -> list[str]:
    noise = seen.noise
    if noise is None:
        return []
    steps = (seen.sigmas > 0) & np.isfinite(noise.squares).all(1)
    tensors = noise.sizes > 0
    if not steps.any() or not tensors.any():
        return []
    squares = noise.squares[steps][:, tensors]
    numbers = noise.sizes[tensors] * len(squares)
    share = float(np.sqrt(squares.sum() / numbers.sum()))
    error = 1 / np.sqrt(2 * numbers.sum())
    by_tensor = np.sqrt(squares.sum(0) / numbers)
    words = f"{share:.3f} ± {max(error, 0.001):.3f} of the told"
    if len(by_tensor) > 1:
        words += f", {len(by_tensor)} tensors {by_tensor.min():.3f} to {by_tensor.max():.3f}"
    if not any("noise" in finding.name for finding in found):
        normal = noise.sample.size >= noise_law.FEWEST_NUMBERS
        words += f"; {'normal, ' if normal else ''}no reuse in {seen.steps} steps"
    return [_row("noise", words)]


def _clipping(seen: Seen) -> list[str]:
    looks = seen.looks
    if not looks:
        return []
    steps = len({look.step for look in looks})
    off = [look for look in looks if not look.holds]
    if off:
        error = max(look.error for look in off)
        words = f"off at {len(off)} of {len(looks)} sums that were looked at (by {error:.0e})"
        return [_row("clipping", words)]
    sums = f"{len(looks)} sums in " if len(looks) != steps else ""
    where = f"{sums}{steps} steps looked at, of {seen.steps}"
    most = max(look.largest for look in looks)
    words = f"exact in {where}; an example adds at most {most:.3g} C"
    return [_row("clipping", words)]


def _batches(seen: Seen) -> list[str]:
    known = poisson_batches.known_sizes(seen)
    if known is None:
        return []
    sizes, told, examples = known
    words = f"{sizes.sum() / (examples * len(sizes)):.4f} of {examples} examples"
    rates = poisson_batches.seen_rates(sizes, told, examples)
    if ((rates > 0) & (rates < 1)).all():
        dispersion, _ = poisson_batches.dispersion_p(sizes, told, examples)
        words += f", dispersion {float(dispersion):.2f}"
    shared = poisson_batches.shared_share(seen)
    if shared is not None:
        words += f", shared with the next {shared[0]:.2f} of what Poisson batches do"
    return [_row("batches", words)]


def _unlooked(seen: Seen) -> list[str]:
    """What the checks had too little for."""
    if not seen.steps:
        return []
    unlooked = []
    if seen.rates is not None and claim.told_epsilon(seen, _delta(seen)) is None:
        unlooked.append(f"ε (of more than {claim.MOST_KINDS} kinds of steps)")
    prints = seen.batches.fingerprints
    if all(each is not None for each in prints) and poisson_batches.known_prints(seen) is None:
        unlooked.append("which examples a batch has (many inputs are equal)")
    return unlooked


def _range_of(values: np.ndarray) -> str:
    low = f"{values.min():.4g}"
    high = f"{values.max():.4g}"
    return low if low == high else f"{low} to {high}"
