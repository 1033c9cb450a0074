"""What counts of right guesses add to a report: findings, a verdict where only they are, rows."""

from oraudit.canaries.counted import Bound, Counted, StatedTest
from oraudit.checks import claim as claims
from oraudit.findings import CANNOT_TELL, FAILED, PASSED, Finding, Status
from oraudit.report.facts import Number, Row, Tone
from oraudit.report.words import epsilon_words, percent, range_of

__all__ = [
    "COUNTS",
    "PROVED",
    "bound_words",
    "canaries_row",
    "claim_of",
    "findings_of",
    "finds",
    "half_power",
    "headline_of",
    "numbers_of",
    "rows_of",
    "stated_epsilon",
    "stated_findings",
    "stated_row",
    "status_of",
]

#: The names of what counts find.
COUNTS = "counts"
PROVED = "proved"

#: An audit that finds half the noise less often than this has not looked.
LEAST_POWER = 0.5

#: The shares of the stated noise whose power is told.
HALF = 0.5
MORE = 0.7

#: Numbers of canaries that are proposed where there are too few.
PROPOSED = (100, 200, 500, 1_000, 2_000, 5_000, 20_000, 100_000)


# --------------------------------------------------------------------------------------- findings


def claim_of(
    counts: Counted, claim: tuple[float, float] | None = None
) -> tuple[float, float] | None:
    """The claimed (ε, δ): that of the counts, or else of the training."""
    return claim if counts.claim is None else counts.claim


def findings_of(counts: Counted, claim: tuple[float, float] | None = None) -> list[Finding]:
    """What the counts refute: what was stated, and a claimed ε that is below the bound."""
    found = []
    test = counts.test
    if test is not None and test.refuted:
        text = (
            f"the counts refute {_stated(counts)}: {test.right} of {test.guesses} guesses right, "
            f"{test.need} do"
        )
        limit = None if test.need is None else float(test.need)
        found.append(Finding(COUNTS, text, "less private", number=float(test.right), limit=limit))
    bound = counts.bound
    claimed = claim_of(counts, claim)
    # A bound at a smaller δ than the claimed one says nothing of the claim.
    if claimed is not None and bound.delta >= claimed[1] and bound.epsilon > claimed[0]:
        text = (
            f"{bound_words(bound)} at δ = {bound.delta:g}, more than the claimed "
            f"{claimed[0]:g}, with {percent(1 - counts.beta)} confidence"
        )
        found.append(Finding(PROVED, text, "less private", number=bound.epsilon, limit=claimed[0]))
    elif claimed is None:
        told = stated_epsilon(counts)
        if told is not None and bound.epsilon > told:
            text = (
                f"{bound_words(bound)} at δ = {bound.delta:g}, more than the {told:.3g} of the "
                f"stated training, with {percent(1 - counts.beta)} confidence"
            )
            found.append(Finding(PROVED, text, "less private", number=bound.epsilon, limit=told))
    return found


def stated_findings(counts: Counted) -> list[Finding]:
    """Whether the stated training is one of the claimed ε; a witness looks at this by itself."""
    told = stated_epsilon(counts)
    if told is None or counts.claim is None or told <= claims.MARGIN * counts.claim[0]:
        return []
    epsilon, delta = counts.claim
    text = f"the stated training has ε = {told:.3g} at δ = {delta:g}, not {epsilon:g}"
    return [Finding(claims.NAME, text, "less private", number=told, limit=epsilon)]


def _stated(counts: Counted) -> str:
    if counts.training is not None or counts.claim is None:
        return "the stated training"
    return f"the claimed ε = {counts.claim[0]:g} (δ = {counts.claim[1]:g})"


def stated_epsilon(counts: Counted) -> float | None:
    """The ε of the stated training for examples that are added or removed."""
    if counts.training is None or counts.adjacency == "replace":
        return None
    kinds = [(each.sigma, each.sample_rate, each.steps) for each in counts.training]
    return claims.epsilon_of_kinds(kinds, counts.bound.delta)


# ---------------------------------------------------------------------------------------- verdict


def half_power(counts: Counted) -> float | None:
    """How often such an audit finds half the noise; None if it is not known."""
    test = counts.test
    if test is None or test.need is None or counts.training is None:
        return None
    return test.power.get(HALF)


def status_of(counts: Counted, found: list[Finding]) -> Status:
    """The verdict where nothing but scores was seen.

    It passes only where a training with half the noise would have been found.
    """
    if found:
        return FAILED
    power = half_power(counts)
    return PASSED if power is not None and power >= LEAST_POWER else CANNOT_TELL


def headline_of(counts: Counted) -> str:
    """The reason of a verdict that does not accuse, where nothing but scores was seen."""
    test = counts.test
    if test is None:
        return (
            "no training was stated, and no ε claimed: there is nothing to hold the counts against"
        )
    if counts.training is None:
        return _headline_of_claim(counts, test)
    if test.need is None:
        return (
            f"even {test.guesses} of {test.guesses} right guesses would not refute the stated "
            f"training{_more_canaries(counts)}"
        )
    result = f"{test.right} of {test.guesses} guesses right; {test.need} would refute"
    power = half_power(counts)
    if power is None:
        return (
            f"{result} the stated training, but how often such an audit finds less noise is not "
            "known"
        )
    if power < LEAST_POWER:
        canaries = "canaries find" if counts.canaries > 1 else "canary finds"
        return (
            f"{counts.canaries:,} {canaries}{_at_best(counts)} half the noise in {percent(power)} "
            f"of audits{_more_canaries(counts)}"
        )
    return f"{result} the stated training; such audits {finds(counts, 'find')}"


def _headline_of_claim(counts: Counted, test: StatedTest) -> str:
    """A claimed ε alone: it says nothing of what a training with less noise would leak."""
    advice = (
        "; with the training stated (σ, rate, steps) the same scores test it, and the report says "
        "how often they find half the noise"
    )
    stated = _stated(counts)
    if test.need is None:
        return (
            f"even {test.guesses} of {test.guesses} right guesses would not refute {stated}{advice}"
        )
    return (
        f"{test.right} of {test.guesses} guesses right; {test.need} would refute {stated}{advice}"
    )


def _more_canaries(counts: Counted) -> str:
    """How many canaries would be enough, by the exact law; "" if that is not known."""
    best: tuple[int, float] | None = None
    for canaries in PROPOSED:
        if canaries <= counts.canaries:
            continue
        power = _expected_power(counts, canaries)
        if power is None:
            return ""
        best = (canaries, power)
        if power >= LEAST_POWER:
            break
    if best is None:
        return ""
    canaries, power = best
    least = "" if power >= LEAST_POWER else "even "
    finds = "find it" if half_power(counts) is not None else "canaries find half the noise"
    return f": {least}{canaries:,} {finds} in {percent(power)}"


def _expected_power(counts: Counted, canaries: int) -> float | None:
    from oraudit import expect

    if counts.training is None:
        return None
    expected = expect(
        counts.training, canaries, beta=counts.beta, delta=counts.bound.delta, side=counts.side
    )
    return expected.power.get(HALF)


# ------------------------------------------------------------------------------------------- rows


def finds(counts: Counted, verb: str) -> str:
    """What such audits find and how often; "" if that is not known."""
    half = half_power(counts)
    if half is None or counts.test is None:
        return ""
    words = f"{verb}{_at_best(counts)} half the noise in {percent(half)} of audits"
    more = counts.test.power.get(MORE)
    return words if more is None else f"{words}, {MORE:g} of it in {percent(more)}"


def _at_best(counts: Counted) -> str:
    """Scores of somebody else's making may be worse than those that the law is of."""
    return ", at best," if counts.origin == "scores" else ""


def rows_of(counts: Counted, claim: tuple[float, float] | None = None) -> list[Row]:
    """The rows of the two statements and of how they were made."""
    return [_counts_row(counts), _proved_row(counts, claim), canaries_row(counts)]


def _counts_row(counts: Counted) -> Row:
    test = counts.test
    if test is None:
        return Row(COUNTS, "no training was stated, and no ε claimed, to hold them against")
    words = f"{test.right} of {test.guesses} right; "
    stated = _stated(counts)
    if test.need is None:
        return Row(COUNTS, f"{words}even all right would not refute {stated}", "open")
    if test.refuted:
        chance = f"an honest one gets so many in at most {percent(counts.beta)} of audits"
        return Row(COUNTS, f"{words}{test.need} refute {stated} ({chance})", "bad")
    power = half_power(counts)
    often = finds(counts, "finds") or "how often it finds less noise is not known"
    tone: Tone = "good" if power is not None and power >= LEAST_POWER else "open"
    return Row(COUNTS, f"{words}{test.need} would refute {stated} ({often})", tone)


def _proved_row(counts: Counted, claim: tuple[float, float] | None) -> Row:
    bound = counts.bound
    what = "whatever is done to the sum" if counts.origin == "sum" else "whatever made the scores"
    words = (
        f"{bound_words(bound)} at δ = {bound.delta:g} ({bound.right} of {bound.guesses} right), "
        f"{what}, {percent(1 - counts.beta)}; a lower bound, not an estimate; all right would "
        f"prove {_rounded_down(bound.largest)}"
    )
    refuted = any(finding.name == PROVED for finding in findings_of(counts, claim))
    return Row(PROVED, words, "bad" if refuted else "plain")


def bound_words(bound: Bound) -> str:
    """The bound, rounded down: a bound that is rounded up is none.

    >>> bound_words(Bound(0.4999, 1e-5, 79, 127, 1.3))
    'ε ≥ 0.499'
    """
    return f"ε ≥ {_rounded_down(bound.epsilon)}"


def _rounded_down(number: float) -> str:
    return f"{int(number * 1000) / 1000:g}"


def canaries_row(counts: Counted) -> Row:
    """How many canaries there were, where, and how their counts were made."""
    what = "canary" if counts.canaries == 1 else "canaries"
    where = "in the training's own sum" if counts.origin == "sum" else "by their scores"
    words = f"{counts.canaries:,} {what} {where}"
    if counts.share_of_norm is not None:
        words += f", {counts.share_of_norm:.2g} of the norm of a step's noise"
    if counts.side == "in":
        words += "; every guess says included"
    if counts.coins == "balanced":
        words += "; exactly half of them included"
    if counts.adjacency == "replace":
        words += "; examples are replaced, not added"
    if counts.sees:
        words += f"; scores: {counts.sees}"
    words += f"; numbers of guesses by formula {counts.formula}"
    if counts.test is not None:
        words += (
            f"; each of the two statements fails in at most {percent(counts.beta)} of audits, one "
            f"of them in at most {percent(2 * counts.beta)}"
        )
    return Row("canaries", words)


def stated_row(counts: Counted) -> Row | None:
    """The stated training, or the claim alone, where nobody saw what an accountant was told."""
    claimed = "" if counts.claim is None else f"claimed {counts.claim[0]:g}"
    if counts.training is None:
        if counts.claim is None:
            return None
        return Row("stated", f"ε = {counts.claim[0]:g} at δ = {counts.claim[1]:g}, no training")
    sigmas = range_of([each.sigma for each in counts.training])
    rates = range_of([each.sample_rate for each in counts.training])
    steps = sum(each.steps for each in counts.training)
    words = f"σ {sigmas}, rate {rates}, {steps:,} steps"
    epsilon = stated_epsilon(counts)
    if epsilon is not None:
        words += f": {epsilon_words(epsilon)} at δ = {counts.bound.delta:g}"
    return Row("stated", f"{words} ({claimed})" if claimed else words)


def numbers_of(counts: Counted) -> list[Number]:
    """The numbers of the rows, with their limits."""
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
