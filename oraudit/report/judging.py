"""The judgement of what was seen of a training, or of the scores of its canaries."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from oraudit.findings import CANNOT_TELL, FAILED, PASSED, Finding, verdict
from oraudit.records import Seen
from oraudit.report.result import Result

if TYPE_CHECKING:
    from oraudit.canaries.counted import Counted

__all__ = ["judge", "judge_counts", "refused"]

#: The statuses of findings in the order of reports: what decides the verdict stands first.
_ORDER = (FAILED, CANNOT_TELL, PASSED)

# Checks load SciPy's distributions and the accountant's compiler, which a training does without:
# functions import them, and what needs them, when a result is asked for.


def judge(
    seen: Seen,
    *,
    counts: "Counted | None" = None,
    unlooked: Sequence[str] = (),
    allow: Sequence[str] = (),
) -> Result:
    """Compare what was seen of a training with what its accountant was told.

    ``counts`` of the canaries' right guesses may make the audit fail, but never pass.
    ``unlooked`` is what the way in could not look at. ``allow`` has the names of findings that the
    user declares to be post-processing; they stay in the report.
    """
    from oraudit.checks import findings
    from oraudit.report.contents import facts_of_training
    from oraudit.report.counts_verdict import findings_of

    refutations = [] if counts is None else findings_of(counts, seen.claim)
    unsorted = [*findings(seen), *refutations]
    # The sort is stable: causes stay before their consequences.
    ordered = tuple(sorted(unsorted, key=lambda finding: _ORDER.index(finding.status)))
    # A refutation by counts needs no step that was seen.
    status = verdict(ordered, steps_seen=seen.steps + len(refutations), allow=allow)
    facts = partial(facts_of_training, status, seen, ordered, counts, unlooked, allow)
    return Result(status, ordered, facts, counts)


def judge_counts(counts: "Counted", *, unlooked: Sequence[str] = ()) -> Result:
    """Judge a training from the scores of its canaries alone.

    It passes only where a training with half the noise would have been found in most audits.
    """
    from oraudit.report.contents import facts_of_counts
    from oraudit.report.counts_verdict import findings_of, stated_findings, status_of

    findings = (*findings_of(counts), *stated_findings(counts))
    status = status_of(counts, findings)
    facts = partial(facts_of_counts, status, findings, counts, unlooked)
    return Result(status, findings, facts, counts)


def refused(reason: str) -> Result:
    """Return the result of an audit that could not be made."""
    from oraudit.report.contents import facts_of_refusal

    finding = Finding("refused", reason, "side unknown", undecided=True)
    return Result(CANNOT_TELL, (finding,), facts_of_refusal(reason))
