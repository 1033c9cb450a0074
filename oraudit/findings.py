"""What a check finds, and how the findings of an audit become one verdict."""

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
    """One thing that is not as the accountant was told.

    Attributes
    ----------
    name
        The short name of the check that found it, as in ``allow=("weights-outside",)``.
    text
        What was seen, in words for the author of the training.
    side
        Whether what ran is less private than what was told, safer, or neither can be said.
    step
        The first step that shows it, counting from 1; None if it is of the whole training.
    number, error, limit
        What was measured, its standard error, and the limit that it passed; None if it is exact.
    allowed_by
        What to pass as ``allow=`` if this is post-processing that is meant; else "".
    undecided
        Whether nothing can be told from this, as where the training took the audit off its chain.
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
        """What this finding alone makes of an audit.

        What is safer than told fails no training, and what may be post-processing accuses nobody.
        """
        if self.allowed_by or self.undecided:
            return CANNOT_TELL
        return PASSED if self.side == "safer" else FAILED


def verdict(findings: Sequence[Finding], *, steps_seen: int, allow: Sequence[str] = ()) -> Status:
    """The status of an audit: the worst of its findings, or that nothing was seen.

    >>> verdict([], steps_seen=0)
    'cannot tell'
    >>> verdict([Finding("noise-size", "no noise", "less private")], steps_seen=100)
    'failed'
    """
    if not steps_seen:
        return CANNOT_TELL
    found = {each.status for each in findings if each.name not in allow or not each.allowed_by}
    for status in (FAILED, CANNOT_TELL):
        if status in found:
            return status
    return PASSED
