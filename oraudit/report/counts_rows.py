"""The rows and numbers of counts in a report."""

from oraudit.canaries.counted import Counted
from oraudit.report.counts_verdict import (
    COUNTS,
    LEAST_POWER,
    PROVED,
    bound_words,
    findings_of,
    half_power,
    power_words,
    rounded_down,
    stated_epsilon,
    stated_words,
)
from oraudit.report.facts import Number, Row, Tone
from oraudit.report.words import epsilon_words, percent, range_of

__all__ = ["canaries_row", "numbers_of", "rows_of", "stated_row"]


def rows_of(counts: Counted, claim: tuple[float, float] | None = None) -> list[Row]:
    """Return the rows of the test, of the bound, and of the canaries behind both."""
    return [_counts_row(counts), _proved_row(counts, claim), canaries_row(counts)]


def _counts_row(counts: Counted) -> Row:
    test = counts.test
    if test is None:
        return Row(COUNTS, "no training was stated, and no ε claimed, to hold them against")
    stated = stated_words(counts)
    right = f"{test.right} of {test.guesses} right"
    if test.need is None:
        return Row(COUNTS, f"{right}; even all right would not refute {stated}", "open")
    if test.refuted:
        chance = f"an honest one gets so many in at most {percent(counts.beta)} of audits"
        return Row(COUNTS, f"{right}; {test.need} refute {stated} ({chance})", "bad")
    power = half_power(counts)
    powers = power_words(counts, "finds") or "how often it finds less noise is not known"
    tone: Tone = "good" if power is not None and power >= LEAST_POWER else "open"
    return Row(COUNTS, f"{right}; {test.need} would refute {stated} ({powers})", tone)


def _proved_row(counts: Counted, claim: tuple[float, float] | None) -> Row:
    bound = counts.bound
    scope = "whatever is done to the sum" if counts.origin == "sum" else "whatever made the scores"
    sentence = (
        f"{bound_words(bound)} at δ = {bound.delta:g} ({bound.right} of {bound.guesses} right), "
        f"{scope}, {percent(1 - counts.beta)}; a lower bound, not an estimate; all right would "
        f"prove {rounded_down(bound.largest)}"
    )
    refuted = any(finding.name == PROVED for finding in findings_of(counts, claim))
    return Row(PROVED, sentence, "bad" if refuted else "plain")


def canaries_row(counts: Counted) -> Row:
    """Return the row on the canaries: how many, where, and how their counts were made."""
    noun = "canary" if counts.canaries == 1 else "canaries"
    place = "in the training's own sum" if counts.origin == "sum" else "by their scores"
    number = f"{counts.canaries:,} {noun} {place}"
    if counts.share_of_norm is not None:
        number = f"{number}, {counts.share_of_norm:.2g} of the norm of a step's noise"
    parts = [number]
    if counts.side == "in":
        parts.append("every guess says included")
    if counts.coins == "balanced":
        parts.append("exactly half of them included")
    if counts.adjacency == "replace":
        parts.append("examples are replaced, not added")
    if counts.sees:
        parts.append(f"scores: {counts.sees}")
    parts.append(f"numbers of guesses by formula {counts.formula}")
    if counts.test is not None:
        parts.append(
            f"each of the two statements fails in at most {percent(counts.beta)} of audits, one "
            f"of them in at most {percent(2 * counts.beta)}"
        )
    return Row("canaries", "; ".join(parts))


def stated_row(counts: Counted) -> Row | None:
    """Return the stated training, or the claim alone, where nobody saw an accountant."""
    if counts.training is None:
        if counts.claim is None:
            return None
        return Row("stated", f"ε = {counts.claim[0]:g} at δ = {counts.claim[1]:g}, no training")
    sigmas = range_of([part.sigma for part in counts.training])
    rates = range_of([part.sample_rate for part in counts.training])
    steps = sum(part.steps for part in counts.training)
    training = f"σ {sigmas}, rate {rates}, {steps:,} steps"
    epsilon = stated_epsilon(counts)
    if epsilon is not None:
        training = f"{training}: {epsilon_words(epsilon)} at δ = {counts.bound.delta:g}"
    if counts.claim is not None:
        training = f"{training} (claimed {counts.claim[0]:g})"
    return Row("stated", training)


def numbers_of(counts: Counted) -> list[Number]:
    """Return the numbers of the rows, with their limits."""
    bound = counts.bound
    numbers = [
        Number("canaries", counts.canaries),
        Number("bound on epsilon", bound.epsilon, limit=bound.largest),
    ]
    test = counts.test
    if test is not None:
        limit = None if test.need is None else float(test.need)
        numbers.append(Number("right guesses", test.right, limit=limit))
        numbers += [
            Number(f"power at {share:g} of the noise", power)
            for share, power in sorted(test.power.items())
        ]
    epsilon = stated_epsilon(counts)
    if epsilon is not None:
        limit = None if counts.claim is None else counts.claim[0]
        numbers.append(Number("stated epsilon", epsilon, limit=limit))
    return numbers
