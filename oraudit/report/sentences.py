"""Sentences for the person who signs for a training, and who may never have trained a model.

They say what was looked at, what the audit could have found, what was not looked at, and whether a
number is an estimate. They are made from the parts that this audit really had.
"""

import re
from collections.abc import Sequence
from math import isfinite

from oraudit.canaries.counted import Counted
from oraudit.checks import levels
from oraudit.records import Seen
from oraudit.report.counts_verdict import bound_words, power_words
from oraudit.report.facts import Number
from oraudit.report.words import epsilon_words, joined, percent

__all__ = ["NOTHING", "estimate", "findable", "looked", "unlooked"]

#: The answer to "What was looked at?" where nothing could be watched.
NOTHING = "Nothing: no step of a private training was seen."

#: The number of standard errors by which noise must be off to be found in most audits, at the level
#: of the checks.
STANDARD_ERRORS = 6

#: The remarks on what was not looked at, for those who never trained a model.
_PLAIN = {
    "secrecy of seeds": "whether the random seeds were kept secret",
    "which data": "which data went in (and what was tried on it before)",
    "noise": "the noise",
    "clipping": "how much a single record adds",
    "batches": "how records are drawn for each step",
    "the batches": "how records are drawn for each step",
    "the rate": "what share of the records a step has",
    "the sizes of batches": "how many records each step has",
    "which examples are in a batch": "which records each step has",
    "which examples a batch has": "which records each step has",
    "the accountant": "what the accounting software was told",
    "buffers": "what the model stores besides its weights",
    "how gradients are made": "how a record's part in a step is computed",
}

#: The canaries, for those who never trained a model.
_CANARIES = "test records, each put in or left out by the toss of a coin"


def looked(seen: Seen | None, counts: Counted | None, names: Sequence[str]) -> str:
    """Say what was looked at; ``names`` are those of the rows that were measured."""
    if seen is None or not seen.steps:
        nothing = "" if seen is None else NOTHING
        if counts is None:
            return nothing
        only_scores = (
            f"Only scores, not the training itself: {counts.canaries:,} canaries ({_CANARIES}) "
            "were scored, and from the scores it was guessed which of them were in."
        )
        return f"{nothing} {only_scores}".strip()
    parts = []
    if "noise" in names:
        parts.append("the random noise that is added for privacy")
    if "clipping" in names:
        steps = len({look.step for look in seen.looks})
        parts.append(f"how much a single record of the data adds (in {steps:,} steps)")
    if "batches" in names:
        parts.append("how records are drawn for each step")
    if seen.of_kind("accountant-told"):
        parts.append("what the accounting software, which calculates ε, was told")
    if parts:
        steps_seen = f"{seen.steps:,} steps of the training, while it ran: {joined(parts)}."
    else:
        steps_seen = (
            f"{seen.steps:,} steps of the training, while it ran, but neither its noise nor its "
            "batches."
        )
    if counts is None:
        return steps_seen
    return (
        f"{steps_seen} In addition, {counts.canaries:,} canaries ({_CANARIES}) were added, and "
        "from the results it was guessed which of them were in."
    )


def findable(
    seen: Seen | None, counts: Counted | None, numbers: Sequence[Number], names: Sequence[str]
) -> str:
    """Say what the audit could have found, and how often it accuses an honest training."""
    sentences = []
    parts = []
    by_name = {number.name: number for number in numbers}
    if "noise" in names:
        error = by_name["noise over told"].error or 0.0
        difference = percent(STANDARD_ERRORS * error)
        parts.append(f"noise that is missing, used twice, or off by more than {difference} in all")
    if "clipping" in names:
        parts.append("a record that adds more than it may")
    if "batches" in names:
        parts.append("records that are clearly not drawn as stated")
    if parts:
        sentences.append(
            f"In what it looked at: {'; '.join(parts)}. It wrongly accuses at most 1 of "
            f"{1 / levels.LEVEL:,.0f} trainings that are as stated."
        )
    elif seen is not None and seen.steps:
        sentences.append("Only steps and weights that go around the private optimizer.")
    if counts is not None:
        sentences.append(_findable_by_counts(counts))
    return " ".join(sentences) or "Nothing."


def _findable_by_counts(counts: Counted) -> str:
    """Say what canaries could have found."""
    error = f"Their lower limit for ε is too high in at most {percent(counts.beta)} of audits."
    if counts.test is not None:
        share = percent(2 * counts.beta)
        error = f"They wrongly accuse at most {share} of trainings that are as stated."
    if counts.test is not None and counts.test.need is None:
        return f"Even if all guesses were right, they would not contradict what was stated. {error}"
    powers = power_words(counts, "a training with")
    if not powers:
        return f"How often the canaries show too little noise is not known. {error}"
    return f"The canaries would show {powers}. {error}"


def unlooked(remarks: Sequence[str], *, scores_only: bool) -> str:
    """Say what was not looked at, without the details for those who write the training."""
    if scores_only:
        return (
            "Everything but the scores: the training's code, its noise, how much a record adds, "
            "how records are drawn, whether the random seeds were kept secret, and which data "
            "went in."
        )
    stripped = [re.sub(r"\s*\([^()]*\)", "", remark) for remark in remarks]
    plain = [_PLAIN.get(remark, remark) for remark in stripped]
    return f"Among other things, {joined(plain)}. The verdict says nothing of them."


def estimate(
    seen: Seen | None,
    counts: Counted | None,
    told: float | None,
    *,
    calculated: bool,
    failed: bool,
) -> str:
    """Say that no number of the report estimates what the training really leaks, and why."""
    sentences = []
    if told is not None and isfinite(told):
        source = "was stated" if seen is None else "the accounting software was told"
        holds = ", and need not hold for what ran" if failed else ""
        sentences.append(
            f"The privacy loss {epsilon_words(told)} is calculated from what {source}, not "
            f"measured{holds}."
        )
    if calculated:
        sentences.append("The ε under “seen” is a calculation, too.")
    if counts is not None:
        confidence = percent(1 - counts.beta)
        if counts.bound.epsilon > 0:
            sentences.append(
                f"{bound_words(counts.bound)} is a lower limit, with {confidence} confidence: the "
                "true ε may be much larger."
            )
        else:
            sentences.append(
                "The lower limit for ε is 0, which says nothing: the true ε may be of any size."
            )
    return " ".join(
        ["No number for ε is one.", *sentences] if sentences else ["No: the report has no ε."]
    )
