"""The rows of what was seen of a training, beside what its accountant was told."""

from collections.abc import Collection, Sequence
from math import isinf

import numpy as np

from oraudit.checks import claim, noise_law, poisson_batches
from oraudit.findings import CANNOT_TELL, FAILED, PASSED, Finding, Status
from oraudit.records import Seen
from oraudit.report.facts import Number, Row, Tone, tone_of
from oraudit.report.seen_epsilon import seen_epsilon
from oraudit.report.words import epsilon_words, joined, range_of

__all__ = [
    "NEVER_SEEN",
    "Measured",
    "delta_of",
    "measured_batches",
    "measured_clipping",
    "measured_noise",
    "stands",
    "told_row",
    "unlooked_of",
    "verdict_rows",
]

#: What no audit of this kind can see.
NEVER_SEEN = ("secrecy of seeds", "which data")

#: The δ at which ε is told if nobody claims another.
DELTA = 1e-5

#: Which findings are told first.
_ORDER = (FAILED, CANNOT_TELL, PASSED)

#: The names of the checks that look at clipping, and at batches; those of noise say "noise".
_CLIPPING = ("apart-clip", "clipped-sum", "ghost-norms", "layer-rules")
_BATCHES = (
    "batch-rate",
    "empty-batches",
    "example-counts",
    "examples-twice",
    "poisson-batches",
    "rank-data",
)

#: A row with the numbers that it shows.
Measured = tuple[Row, list[Number]]


# ---------------------------------------------------------------------------------------- verdict


def stands(finding: Finding, allow: Collection[str]) -> Status:
    """What a finding makes of the audit: nothing if it is post-processing that is meant."""
    return PASSED if finding.allowed_by and finding.name in allow else finding.status


def set_aside(found: Sequence[Finding], allow: Collection[str]) -> list[str]:
    """The names of the findings that would decide, had nobody said that they are meant."""
    return sorted({each.name for each in found if stands(each, allow) != each.status})


def verdict_rows(
    status: Status, steps: int, found: Sequence[Finding], allow: Collection[str]
) -> tuple[str, list[Row]]:
    """The headline with the first cause, and rows of what else was found.

    What several events show in the same words is said once.
    """
    by_words: dict[str, Finding] = {}
    for finding in sorted(found, key=lambda each: _ORDER.index(stands(each, allow))):
        by_words.setdefault(f"{finding.text}: {finding.side}", finding)
    said = list(by_words)
    if status == PASSED:
        headline = "what was looked at is as the accountant was told"
        if any(finding.side == "safer" for finding in found):
            headline += ", or safer"
        if names := set_aside(found, allow):
            headline += f"; whoever ran the audit has set aside {joined(names)}"
    elif not steps and status != FAILED:
        headline = "no private step was seen"
    else:
        headline = said.pop(0)
    rows = [_finding_row(words, stands(by_words[words], allow)) for words in said]
    if not steps and status == FAILED:
        rows.append(Row("also", "no private step was seen", "open"))
    return headline, rows


def _finding_row(words: str, status: Status) -> Row:
    """What is found and decides nothing is a note; "also" it is said of the rest."""
    return Row("note", words) if status == PASSED else Row("also", words, tone_of(status))


# ------------------------------------------------------------------------------- what was told


def delta_of(seen: Seen) -> float:
    """The δ at which ε is told."""
    return DELTA if seen.claim is None else seen.claim[1]


def told_row(seen: Seen, found: Sequence[Finding]) -> tuple[list[Row], list[Number]]:
    """What the accountant was told, and the ε of what was seen where it can be calculated."""
    delta = delta_of(seen)
    rates = "not given" if seen.rates is None else range_of(seen.rates.tolist())
    words = f"σ {range_of(seen.sigmas.tolist())}, rate {rates}, {seen.steps} steps"
    numbers = [Number("steps", seen.steps)]
    epsilon = claim.told_epsilon(seen, delta)
    if epsilon is not None:
        words += f": {epsilon_words(epsilon)} at δ = {delta:g}"
        limit = None if seen.claim is None else seen.claim[0]
        numbers.append(Number("told epsilon", epsilon, limit=limit))
    if seen.claim is not None:
        words += f" (claimed {seen.claim[0]:g})"
    rows = [Row("told", words)]
    calculated = seen_epsilon(seen, found, delta)
    if calculated is not None and not isinf(calculated):
        words = f"with the noise, norms and rate seen: {epsilon_words(calculated)}"
        rows.append(Row("seen", f"{words} (a calculation, not a bound)"))
        numbers.append(Number("epsilon with what was seen", calculated))
    return rows, numbers


# ------------------------------------------------------------------------------- what was measured


def _tone(found: Sequence[Finding]) -> Tone:
    """The tone of a measurement, by what is found in it: safer than told is plain."""
    if not found:
        return "good"
    worst = min((finding.status for finding in found), key=_ORDER.index)
    return "plain" if worst == PASSED else tone_of(worst)


def measured_noise(seen: Seen, found: Sequence[Finding]) -> Measured | None:
    """The size of the noise as a share of the told; None if none could be measured."""
    noise = seen.noise
    if noise is None:
        return None
    steps = (seen.sigmas > 0) & np.isfinite(noise.squares).all(1)
    tensors = noise.sizes > 0
    if not steps.any() or not tensors.any():
        return None
    squares = noise.squares[steps][:, tensors]
    numbers = noise.sizes[tensors] * len(squares)
    share = float(np.sqrt(squares.sum() / numbers.sum()))
    error = float(1 / np.sqrt(2 * numbers.sum()))
    by_tensor = np.sqrt(squares.sum(0) / numbers)
    words = f"{share:.3f} ± {max(error, 0.001):.3f} of the told"
    if len(by_tensor) > 1:
        words += f", {len(by_tensor)} tensors {by_tensor.min():.3f} to {by_tensor.max():.3f}"
    related = [finding for finding in found if "noise" in finding.name]
    if not related:
        normal = noise.sample.size >= noise_law.FEWEST_NUMBERS
        words += f"; {'normal, ' if normal else ''}no reuse in {seen.steps} steps"
    shown = [
        Number("noise over told", share, error=error, limit=1.0),
        Number("noise over told, least tensor", float(by_tensor.min())),
        Number("noise over told, largest tensor", float(by_tensor.max())),
    ]
    return Row("noise", words, _tone(related)), shown


def measured_clipping(seen: Seen, found: Sequence[Finding]) -> Measured | None:
    """How exactly examples are clipped; None if no step was looked at."""
    looks = seen.looks
    if not looks:
        return None
    steps = len({look.step for look in looks})
    off = [look for look in looks if not look.holds]
    tone = _tone([finding for finding in found if finding.name in _CLIPPING])
    numbers = [
        Number(
            "clipped sum, largest error",
            max(look.error for look in looks),
            limit=max(look.tolerance for look in looks),
        )
    ]
    if off:
        error = max(look.error for look in off)
        words = f"off at {len(off)} of {len(looks)} sums that were looked at (by {error:.0e})"
        return Row("clipping", words, tone), numbers
    sums = f"{len(looks)} sums in " if len(looks) != steps else ""
    where = f"{sums}{steps} steps looked at, of {seen.steps}"
    most = max(look.largest for look in looks)
    words = f"exact in {where}; an example adds at most {most:.3g} C"
    return Row("clipping", words, tone), [*numbers, Number("most an example adds, in C", most)]


def measured_batches(seen: Seen, found: Sequence[Finding]) -> Measured | None:
    """How batches are drawn; None if their sizes, or the rate, are not known."""
    known = poisson_batches.known_sizes(seen)
    if known is None:
        return None
    sizes, told, examples = known
    held = float(sizes.sum() / (examples * len(sizes)))
    words = f"{held:.4f} of {examples} examples"
    expected = float(told.mean())
    error = float(np.sqrt((told * (1 - told)).sum() / examples) / len(sizes))
    numbers = [Number("share of the data in a batch", held, error=error, limit=expected)]
    rates = poisson_batches.seen_rates(sizes, told, examples)
    if ((rates > 0) & (rates < 1)).all():
        dispersion, _ = poisson_batches.dispersion_p(sizes, told, examples)
        words += f", dispersion {float(dispersion):.2f}"
        numbers.append(Number("dispersion of the batches' sizes", float(dispersion), limit=1.0))
    shared = poisson_batches.shared_share(seen)
    if shared is not None:
        words += f", shared with the next {shared[0]:.2f} of what Poisson batches do"
        numbers.append(Number("examples shared with the next batch", shared[0], limit=1.0))
    tone = _tone([finding for finding in found if finding.name in _BATCHES])
    return Row("batches", words, tone), numbers


# ------------------------------------------------------------------------- what was not looked at


def unlooked_of(seen: Seen, unlooked: Sequence[str]) -> list[str]:
    """What the way in could not look at, and what the checks had too little for."""
    words = [*unlooked]
    if not seen.steps:
        return [*words, "the training itself", *NEVER_SEEN]
    parts = {
        "noise": seen.noise is not None,
        "clipping": bool(seen.looks),
        "batches": poisson_batches.known_sizes(seen) is not None,
    }
    for part, known in parts.items():
        if not known and not any(part in each for each in unlooked):
            words.append(part)
    if seen.rates is not None and claim.told_epsilon(seen, delta_of(seen)) is None:
        words.append(f"ε (of more than {claim.MOST_KINDS} kinds of steps)")
    prints = seen.batches.fingerprints
    if all(each is not None for each in prints) and poisson_batches.known_prints(seen) is None:
        words.append("which examples a batch has (many inputs are equal)")
    return [*words, *NEVER_SEEN]
