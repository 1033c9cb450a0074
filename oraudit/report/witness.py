"""The rows of a report on a training that was watched: what was told, and what was seen."""

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
    "set_aside",
    "stands",
    "told_rows",
    "unlooked_of",
    "verdict_rows",
]

#: The subjects that every report calls unlooked: no audit of a training can see them.
NEVER_SEEN = ("secrecy of seeds", "which data")

#: The δ at which a report gives ε, if no (ε, δ) is claimed.
DELTA = 1e-5

#: The statuses of findings, in the order of a report.
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
    """Return the status of a finding: passed if the user allows it as post-processing."""
    return PASSED if finding.allowed_by and finding.name in allow else finding.status


def set_aside(findings: Sequence[Finding], allow: Collection[str]) -> list[str]:
    """Return the names of findings whose status changes because the user allows them."""
    return sorted(
        {finding.name for finding in findings if stands(finding, allow) != finding.status}
    )


def verdict_rows(
    status: Status, steps: int, findings: Sequence[Finding], allow: Collection[str]
) -> tuple[str, list[Row]]:
    """Return the headline with the first cause, and rows of all other findings.

    A sentence that several findings share is said once.
    """
    by_sentence: dict[str, Finding] = {}
    for finding in sorted(findings, key=lambda finding: _ORDER.index(stands(finding, allow))):
        by_sentence.setdefault(f"{finding.text}: {finding.side}", finding)
    sentences = list(by_sentence)
    if status == PASSED:
        headline = _passed(findings, allow)
    elif not steps and status != FAILED:
        headline = "no private step was seen"
    else:
        headline = sentences.pop(0)
    rows = [_finding_row(sentence, stands(by_sentence[sentence], allow)) for sentence in sentences]
    if not steps and status == FAILED:
        rows.append(Row("also", "no private step was seen", "open"))
    return headline, rows


def _passed(findings: Sequence[Finding], allow: Collection[str]) -> str:
    """Return the headline of an audit that passed."""
    headline = "what was looked at is as the accountant was told"
    if any(finding.side == "safer" for finding in findings):
        headline = f"{headline}, or safer"
    allowed = set_aside(findings, allow)
    if allowed:
        headline = f"{headline}; whoever ran the audit has set aside {joined(allowed)}"
    return headline


def _finding_row(sentence: str, status: Status) -> Row:
    """Return the row of a finding: "note" if it leaves the audit passed, else "also"."""
    if status == PASSED:
        return Row("note", sentence)
    return Row("also", sentence, tone_of(status))


# ------------------------------------------------------------------------------- what was told


def delta_of(seen: Seen) -> float:
    """Return the δ at which ε is told."""
    return DELTA if seen.claim is None else seen.claim[1]


def told_rows(seen: Seen, findings: Sequence[Finding]) -> tuple[list[Row], list[Number]]:
    """Return what the accountant was told, and the ε of what was seen if it can be calculated."""
    delta = delta_of(seen)
    rates = "not given" if seen.rates is None else range_of(seen.rates.tolist())
    training = f"σ {range_of(seen.sigmas.tolist())}, rate {rates}, {seen.steps} steps"
    numbers = [Number("steps", seen.steps)]
    epsilon = claim.told_epsilon(seen, delta)
    if epsilon is not None:
        training = f"{training}: {epsilon_words(epsilon)} at δ = {delta:g}"
        limit = None if seen.claim is None else seen.claim[0]
        numbers.append(Number("told epsilon", epsilon, limit=limit))
    if seen.claim is not None:
        training = f"{training} (claimed {seen.claim[0]:g})"
    rows = [Row("told", training)]
    calculated = seen_epsilon(seen, findings, delta)
    if calculated is not None and not isinf(calculated):
        sentence = (
            f"with the noise, norms and rate seen: {epsilon_words(calculated)} (a calculation, "
            "not a bound)"
        )
        rows.append(Row("seen", sentence))
        numbers.append(Number("epsilon with what was seen", calculated))
    return rows, numbers


# ------------------------------------------------------------------------------- what was measured


def _tone(findings: Sequence[Finding]) -> Tone:
    """Return the tone of a measurement from its findings; plain if it is only safer than told."""
    if not findings:
        return "good"
    worst = min((finding.status for finding in findings), key=_ORDER.index)
    return "plain" if worst == PASSED else tone_of(worst)


def measured_noise(seen: Seen, findings: Sequence[Finding]) -> Measured | None:
    """Return the size of the noise as a share of the told; None if none could be measured."""
    noise = seen.noise
    if noise is None:
        return None
    steps = (seen.sigmas > 0) & np.isfinite(noise.squares).all(1)
    tensors = noise.sizes > 0
    if not steps.any() or not tensors.any():
        return None
    squares = noise.squares[steps][:, tensors]
    entries = noise.sizes[tensors] * len(squares)
    share = float(np.sqrt(squares.sum() / entries.sum()))
    error = float(1 / np.sqrt(2 * entries.sum()))
    by_tensor = np.sqrt(squares.sum(0) / entries)
    size = f"{share:.3f} ± {max(error, 0.001):.3f} of the told"
    if len(by_tensor) > 1:
        size = f"{size}, {len(by_tensor)} tensors {by_tensor.min():.3f} to {by_tensor.max():.3f}"
    related = [finding for finding in findings if "noise" in finding.name]
    if not related:
        normal = "normal, " if noise.sample.size >= noise_law.FEWEST_NUMBERS else ""
        size = f"{size}; {normal}no reuse in {seen.steps} steps"
    numbers = [
        Number("noise over told", share, error=error, limit=1.0),
        Number("noise over told, least tensor", float(by_tensor.min())),
        Number("noise over told, largest tensor", float(by_tensor.max())),
    ]
    return Row("noise", size, _tone(related)), numbers


def measured_clipping(seen: Seen, findings: Sequence[Finding]) -> Measured | None:
    """Return how exactly examples are clipped; None if no step was looked at."""
    looks = seen.looks
    if not looks:
        return None
    steps = len({look.step for look in looks})
    off = [look for look in looks if not look.holds]
    tone = _tone([finding for finding in findings if finding.name in _CLIPPING])
    numbers = [
        Number(
            "clipped sum, largest error",
            max(look.error for look in looks),
            limit=max(look.tolerance for look in looks),
        )
    ]
    if off:
        error = max(look.error for look in off)
        sentence = f"off at {len(off)} of {len(looks)} sums that were looked at (by {error:.0e})"
        return Row("clipping", sentence, tone), numbers
    sums = f"{len(looks)} sums in " if len(looks) != steps else ""
    norm = max(look.largest for look in looks)
    sentence = (
        f"exact in {sums}{steps} steps looked at, of {seen.steps}; an example adds at most "
        f"{norm:.3g} C"
    )
    return Row("clipping", sentence, tone), [*numbers, Number("most an example adds, in C", norm)]


def measured_batches(seen: Seen, findings: Sequence[Finding]) -> Measured | None:
    """Return how batches are drawn; None if their sizes, or the rate, are not known."""
    batches = poisson_batches.known_sizes(seen)
    if batches is None:
        return None
    sizes, told, examples = batches
    held = float(sizes.sum() / (examples * len(sizes)))
    sentence = f"{held:.4f} of {examples} examples"
    expected = float(told.mean())
    error = float(np.sqrt((told * (1 - told)).sum() / examples) / len(sizes))
    numbers = [Number("share of the data in a batch", held, error=error, limit=expected)]
    rates = poisson_batches.seen_rates(sizes, told, examples)
    if ((rates > 0) & (rates < 1)).all():
        dispersion, _ = poisson_batches.dispersion_p(sizes, told, examples)
        sentence = f"{sentence}, dispersion {float(dispersion):.2f}"
        numbers.append(Number("dispersion of the batches' sizes", float(dispersion), limit=1.0))
    shared = poisson_batches.shared_share(seen)
    if shared is not None:
        share, _ = shared
        sentence = f"{sentence}, shared with the next {share:.2f} of what Poisson batches do"
        numbers.append(Number("examples shared with the next batch", share, limit=1.0))
    tone = _tone([finding for finding in findings if finding.name in _BATCHES])
    return Row("batches", sentence, tone), numbers


# ------------------------------------------------------------------------- what was not looked at


def unlooked_of(seen: Seen, unlooked: Sequence[str]) -> list[str]:
    """Return what the way in could not look at, and what checks had too few data for."""
    remarks = [*unlooked]
    if not seen.steps:
        return [*remarks, "the training itself", *NEVER_SEEN]
    parts = {
        "noise": seen.noise is not None,
        "clipping": bool(seen.looks),
        "batches": poisson_batches.known_sizes(seen) is not None,
    }
    for part, is_known in parts.items():
        if not is_known and not any(part in remark for remark in unlooked):
            remarks.append(part)
    if seen.rates is not None and claim.told_epsilon(seen, delta_of(seen)) is None:
        remarks.append(f"ε (of more than {claim.MOST_KINDS} kinds of steps)")
    complete = all(prints is not None for prints in seen.batches.fingerprints)
    if complete and poisson_batches.known_prints(seen) is None:
        remarks.append("which examples a batch has (many inputs are equal)")
    return [*remarks, *NEVER_SEEN]
