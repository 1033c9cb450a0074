"""The findings of checks, and the verdict of an audit that they become."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

__all__ = ["CANNOT_TELL", "FAILED", "PASSED", "Finding", "Side", "Status", "verdict"]

Side = Literal["less private", "safer", "side unknown"]
Status = Literal["passed", "failed", "cannot tell"]

PASSED: Status = "passed"
FAILED: Status = "failed"
CANNOT_TELL: Status = "cannot tell"


@dataclass(frozen=True)
class Finding:
    """A fact that differs from what the accountant was told.

    Attributes
    ----------
    name
        The short name of the check that found it, as in ``allow=("weights-outside",)``.
    text
        The sentence for the author of the training.
    side
        "less private" or "safer" than what the accountant was told, or "side unknown".
    step
        The first step that shows it, counting from 1; None if it concerns the whole training.
    number, error, limit
        The measured number, its standard error, and the limit that it passed; None if it is exact.
    allowed_by
        The name to pass as ``allow=`` if this may be post-processing that is meant; else "".
    undecided
        True if it decides nothing, as when the training took the audit off its chain of methods.
    """

    name: str
    text: str
    side: Side
    step: int | None = None
    number: float | None = None
    error: float | None = None
    limit: float | None = None
    allowed_by: str = ""
    undecided: bool = False

    @property
    def status(self) -> Status:
        """The status that this finding alone gives an audit.

        A training that is safer than told does not fail, nor does one whose finding may be
        post-processing that is meant.
        """
        if self.allowed_by or self.undecided:
            return CANNOT_TELL
        return PASSED if self.side == "safer" else FAILED


def verdict(
    findings: Sequence[Finding], *, anything_seen: bool, allow: Sequence[str] = ()
) -> Status:
    """Return the status of an audit: the worst of its findings, or that nothing was seen.

    >>> verdict([], anything_seen=False)
    'cannot tell'
    >>> verdict([Finding("noise-size", "no noise", "less private")], anything_seen=True)
    'failed'
    """
    if not anything_seen:
        return CANNOT_TELL
    statuses = {
        finding.status
        for finding in findings
        if finding.name not in allow or not finding.allowed_by
    }
    for status in (FAILED, CANNOT_TELL):
        if status in statuses:
            return status
    return PASSED
