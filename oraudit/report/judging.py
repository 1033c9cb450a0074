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

# Imported inside functions: SciPy and the accountant are slow to load and needed only for a result.


def judge(
    seen: Seen,
    *,
    counts: "Counted | None" = None,
    unlooked: Sequence[str] = (),
    allow: Sequence[str] = (),
) -> Result:
    """Compare what was seen of a training with what its accountant was told.

    ``counts`` are the right guesses of canaries: they may add a failure, and decide nothing else.
    ``unlooked`` lists what this integration could not inspect, and ``allow`` the names of findings
    that are post-processing and meant; they stay in the report.
    """
    from oraudit.checks import findings
    from oraudit.report.contents import facts_of_training
    from oraudit.report.counts_verdict import findings_of

    refutations = [] if counts is None else findings_of(counts, seen.claim)
    unsorted = [*findings(seen), *refutations]
    # The sort is stable: causes stay before their consequences.
    ordered = tuple(sorted(unsorted, key=lambda finding: _ORDER.index(finding.status)))
    # A refutation by the guesses stands even if no step was seen.
    anything_seen = seen.steps > 0 or bool(refutations)
    status = verdict(ordered, anything_seen=anything_seen, allow=allow)
    make_facts = partial(facts_of_training, status, seen, ordered, counts, unlooked, allow)
    return Result(status, ordered, make_facts, counts)


def judge_counts(counts: "Counted", *, unlooked: Sequence[str] = ()) -> Result:
    """Judge a training by the scores of its canaries alone.

    It passes only if most audits would have found a training with half the noise.
    """
    from oraudit.report.contents import facts_of_counts
    from oraudit.report.counts_verdict import findings_of, stated_findings, status_of

    findings = (*findings_of(counts), *stated_findings(counts))
    status = status_of(counts, findings)
    make_facts = partial(facts_of_counts, status, findings, counts, unlooked)
    return Result(status, findings, make_facts, counts)


def refused(reason: str) -> Result:
    """Return the result of an audit that could not be made."""
    from oraudit.report.contents import facts_of_refusal

    finding = Finding("refused", reason, "side unknown", undecided=True)
    return Result(CANNOT_TELL, (finding,), facts_of_refusal(reason))
