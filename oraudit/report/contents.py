"""The contents of a report: its facts, put together from rows, sentences and the card."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from oraudit.canaries.counted import Counted
from oraudit.findings import CANNOT_TELL, FAILED, Finding, Status
from oraudit.records import Seen
from oraudit.report import card, sentences, witness
from oraudit.report.counts_rows import numbers_of, rows_of, stated_row
from oraudit.report.counts_verdict import COUNTS, PROVED, headline_of
from oraudit.report.facts import Facts, Number, Row

__all__ = ["facts_of_counts", "facts_of_refusal", "facts_of_training", "interrupted_facts"]


def facts_of_training(
    status: Status,
    seen: Seen,
    findings: Sequence[Finding],
    counts: Counted | None,
    unlooked: Sequence[str],
    allow: Collection[str],
) -> Facts:
    """Return the facts of a training that was watched."""
    headline, rows = witness.verdict_rows(status, seen.steps, findings, allow)
    of_witness = [
        finding
        for finding in findings
        if finding.name not in (COUNTS, PROVED) and witness.stands(finding, allow) == finding.status
    ]
    numbers: list[Number] = []
    measured: list[str] = []
    training = ""
    if seen.steps:
        told, numbers = witness.told_rows(seen, of_witness)
        rows += told
        training = told[0].words
        for measure in (
            witness.measured_noise,
            witness.measured_clipping,
            witness.measured_batches,
        ):
            measurement = measure(seen, of_witness)
            if measurement is not None:
                row, shown = measurement
                rows.append(row)
                measured.append(row.name)
                numbers += shown
    if counts is not None:
        rows += rows_of(counts, seen.claim)
        numbers += numbers_of(counts)
    elif seen.steps:
        rows.append(Row("canaries", "none: for a lower bound on ε, canaries=1000"))
    remarks = witness.unlooked_of(seen, unlooked)
    allowed = witness.set_aside(findings, allow)
    if allowed:
        remarks.insert(0, f"what whoever ran the audit has set aside ({', '.join(allowed)})")
    rows.append(Row("unlooked", "; ".join(remarks)))
    epsilons = {number.name: number.value for number in numbers}
    epsilon = epsilons.get("told epsilon")
    questions = card.asked(seen, delta=witness.delta_of(seen), epsilon=epsilon, training=training)
    return Facts(
        status,
        headline,
        tuple(rows),
        looked=sentences.looked(seen, counts, measured),
        findable=sentences.findable(seen, counts, numbers, measured),
        unlooked=sentences.unlooked(remarks, scores_only=False),
        estimate=sentences.estimate(
            seen,
            counts,
            epsilon,
            calculated="epsilon with what was seen" in epsilons,
            failed=status == FAILED,
        ),
        card=card.answered(questions),
        numbers=tuple(numbers),
    )


def facts_of_counts(
    status: Status, findings: Sequence[Finding], counts: Counted, unlooked: Sequence[str]
) -> Facts:
    """Return the facts of a training from the scores of its canaries alone."""
    rows = []
    if findings:
        headline, *further = (f"{finding.text}: {finding.side}" for finding in findings)
        rows += [Row("also", sentence, "bad") for sentence in further]
    else:
        headline = headline_of(counts)
    stated = stated_row(counts)
    if stated is not None:
        rows.append(stated)
    rows += rows_of(counts)
    rows.append(Row("unlooked", "; ".join(["everything but the scores", *unlooked])))
    numbers = numbers_of(counts)
    epsilon = {number.name: number.value for number in numbers}.get("stated epsilon")
    training = stated.words if stated is not None and counts.training is not None else ""
    questions = card.asked(None, delta=counts.bound.delta, epsilon=epsilon, training=training)
    return Facts(
        status,
        headline,
        tuple(rows),
        looked=sentences.looked(None, counts, ()),
        findable=sentences.findable(None, counts, numbers, ()),
        unlooked=sentences.unlooked(unlooked, scores_only=True),
        estimate=sentences.estimate(
            None, counts, epsilon, calculated=False, failed=status == FAILED
        ),
        card=card.answered(questions),
        numbers=tuple(numbers),
    )


def facts_of_refusal(reason: str) -> Facts:
    """Return the facts of an audit that could not be made."""
    return Facts(
        CANNOT_TELL,
        reason,
        (),
        looked=sentences.NOTHING,
        findable="Nothing.",
        unlooked="Everything.",
        estimate="No: the report has no ε.",
    )


def interrupted_facts(facts: Facts, reason: str) -> Facts:
    """Return the facts of a training that ended early: failed if it had, else "cannot tell"."""
    unlooked = f"{reason[:1].upper()}{reason[1:]}. {facts.unlooked}"
    if facts.status == FAILED:
        rows = (Row("also", reason, "open"), *facts.rows)
        return replace(facts, rows=rows, unlooked=unlooked)
    rows = (Row("until", f"{facts.verdict}: {facts.headline}"), *facts.rows)
    return replace(facts, status=CANNOT_TELL, headline=reason, rows=rows, unlooked=unlooked)
