"""The findings from counts of right guesses, and the verdict of audits that have nothing else."""

from collections.abc import Sequence

from oraudit.canaries.counted import Bound, Counted, StatedTest
from oraudit.canaries.expect import expect
from oraudit.checks import claim as claims
from oraudit.findings import CANNOT_TELL, FAILED, PASSED, Finding, Status
from oraudit.report.words import percent

__all__ = [
    "COUNTS",
    "LEAST_POWER",
    "PROVED",
    "bound_words",
    "findings_of",
    "half_power",
    "headline_of",
    "power_words",
    "rounded_down",
    "stated_epsilon",
    "stated_findings",
    "stated_words",
    "status_of",
]

#: The names of the two findings of counts, and of the rows that show them.
COUNTS = "counts"
PROVED = "proved"

#: The smallest probability of finding half the noise with which an audit by counts may pass.
LEAST_POWER = 0.5

#: The shares of the stated noise for which a report gives the power.
HALF = 0.5
MORE = 0.7

#: The numbers of canaries that a headline proposes where there are too few.
PROPOSED = (100, 200, 500, 1_000, 2_000, 5_000, 20_000, 100_000)


# --------------------------------------------------------------------------------------- findings


def findings_of(counts: Counted, claim: tuple[float, float] | None = None) -> list[Finding]:
    """Return what counts refute: what was stated, and a claimed ε that is below the bound.

    ``claim`` is the claimed (ε, δ) of the training, if the counts have none of their own.
    """
    findings = []
    test = counts.test
    if test is not None and test.refuted:
        text = (
            f"the counts refute {stated_words(counts)}: {test.right} of {test.guesses} guesses "
            f"right, {test.need} do"
        )
        limit = None if test.need is None else float(test.need)
        findings.append(
            Finding(COUNTS, text, "less private", number=float(test.right), limit=limit)
        )
    bound = counts.bound
    claimed = claim if counts.claim is None else counts.claim
    if claimed is not None:
        epsilon, delta = claimed
        # A bound at a smaller δ than the claimed one says nothing of the claim.
        if bound.delta >= delta and bound.epsilon > epsilon:
            text = (
                f"{bound_words(bound)} at δ = {bound.delta:g}, more than the claimed {epsilon:g}, "
                f"with {percent(1 - counts.beta)} confidence"
            )
            findings.append(
                Finding(PROVED, text, "less private", number=bound.epsilon, limit=epsilon)
            )
        return findings
    stated = stated_epsilon(counts)
    if stated is not None and bound.epsilon > stated:
        text = (
            f"{bound_words(bound)} at δ = {bound.delta:g}, more than the {stated:.3g} of the "
            f"stated training, with {percent(1 - counts.beta)} confidence"
        )
        findings.append(Finding(PROVED, text, "less private", number=bound.epsilon, limit=stated))
    return findings


def stated_findings(counts: Counted) -> list[Finding]:
    """Return a finding if the stated training has more than the claimed ε.

    Only audits of scores need it: where the training was watched, the check of the claim does this.
    """
    stated = stated_epsilon(counts)
    if stated is None or counts.claim is None or stated <= claims.MARGIN * counts.claim[0]:
        return []
    epsilon, delta = counts.claim
    text = f"the stated training has ε = {stated:.3g} at δ = {delta:g}, not {epsilon:g}"
    return [Finding(claims.NAME, text, "less private", number=stated, limit=epsilon)]


def stated_words(counts: Counted) -> str:
    """Return what the counts test, in words."""
    if counts.training is not None or counts.claim is None:
        return "the stated training"
    return f"the claimed ε = {counts.claim[0]:g} (δ = {counts.claim[1]:g})"


def stated_epsilon(counts: Counted) -> float | None:
    """Return the ε of the stated training, if it is known: for adding or removing an example."""
    if counts.training is None or counts.adjacency == "replace":
        return None
    kinds = [(part.sigma, part.sample_rate, part.steps) for part in counts.training]
    return claims.epsilon_of_kinds(kinds, counts.bound.delta)


def bound_words(bound: Bound) -> str:
    """Return the bound, rounded down: a bound that is rounded up is none.

    >>> bound_words(Bound(0.4999, 1e-5, 79, 127, 1.3))
    'ε ≥ 0.499'
    """
    return f"ε ≥ {rounded_down(bound.epsilon)}"


def rounded_down(number: float) -> str:
    """Return a number with at most three decimals, none of them rounded up."""
    return f"{int(number * 1000) / 1000:g}"


# ------------------------------------------------------------------------------------------ power


def half_power(counts: Counted) -> float | None:
    """Return the probability that such an audit finds half the noise; None if it is not known."""
    test = counts.test
    if test is None or test.need is None or counts.training is None:
        return None
    return test.power.get(HALF)


def power_words(counts: Counted, verb: str) -> str:
    """Return, after a verb, what such audits find and how often; "" if that is not known."""
    half = half_power(counts)
    if half is None or counts.test is None:
        return ""
    half_words = f"{verb}{_at_best(counts)} half the noise in {percent(half)} of audits"
    more = counts.test.power.get(MORE)
    return half_words if more is None else f"{half_words}, {MORE:g} of it in {percent(more)}"


def _at_best(counts: Counted) -> str:
    """Return "at best" for scores from elsewhere: they may be worse than the law assumes."""
    return ", at best," if counts.origin == "scores" else ""


# ---------------------------------------------------------------------------------------- verdict


def status_of(counts: Counted, findings: Sequence[Finding]) -> Status:
    """Return the verdict of an audit of scores alone.

    It passes only if it would find a training with half the noise in most audits.
    """
    if findings:
        return FAILED
    power = half_power(counts)
    return PASSED if power is not None and power >= LEAST_POWER else CANNOT_TELL


def headline_of(counts: Counted) -> str:
    """Return the reason of a verdict that does not accuse, for an audit of scores alone."""
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
            f"training{_proposal(counts)}"
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
            f"of audits{_proposal(counts)}"
        )
    return f"{result} the stated training; such audits {power_words(counts, 'find')}"


def _headline_of_claim(counts: Counted, test: StatedTest) -> str:
    """Return the headline for a claimed ε alone: it says nothing of trainings with less noise."""
    advice = (
        "with the training stated (σ, rate, steps) the same scores test it, and the report says "
        "how often they find half the noise"
    )
    claimed = stated_words(counts)
    if test.need is None:
        return (
            f"even {test.guesses} of {test.guesses} right guesses would not refute {claimed}; "
            f"{advice}"
        )
    return (
        f"{test.right} of {test.guesses} guesses right; {test.need} would refute {claimed}; "
        f"{advice}"
    )


def _proposal(counts: Counted) -> str:
    """Propose a number of canaries that is enough, by the exact law; "" if none is known."""
    proposal: tuple[int, float] | None = None
    for canaries in PROPOSED:
        if canaries <= counts.canaries:
            continue
        power = _expected_power(counts, canaries)
        if power is None:
            return ""
        proposal = (canaries, power)
        if power >= LEAST_POWER:
            break
    if proposal is None:
        return ""
    canaries, power = proposal
    even = "" if power >= LEAST_POWER else "even "
    finds = "find it" if half_power(counts) is not None else "canaries find half the noise"
    return f": {even}{canaries:,} {finds} in {percent(power)}"


def _expected_power(counts: Counted, canaries: int) -> float | None:
    if counts.training is None:
        return None
    expected = expect(
        counts.training, canaries, beta=counts.beta, delta=counts.bound.delta, side=counts.side
    )
    return expected.power.get(HALF)
