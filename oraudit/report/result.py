"""The result of an audit: a verdict, what was found, and the text that says so."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from oraudit.findings import CANNOT_TELL, FAILED, PASSED, Finding, Status, verdict
from oraudit.records import Seen

__all__ = ["EXIT", "Result", "judge"]

#: The exit status of a command for each verdict; 2 is a usage error, as of every command.
EXIT: dict[Status, int] = {"passed": 0, "failed": 1, "cannot tell": 3}


@dataclass(frozen=True)
class Result:
    """The result of an audit; ``str`` of it is the report.

    Attributes
    ----------
    status
        "passed", "failed" or "cannot tell".
    findings
        What is not as the accountant was told, causes before their consequences.
    report
        The report, or what makes it: it computes ε, which takes longer than all checks.
    """

    status: Status
    findings: tuple[Finding, ...]
    report: str | Callable[[], str]

    @cached_property
    def text(self) -> str:
        """The report."""
        return self.report if isinstance(self.report, str) else self.report()

    def check(self) -> None:
        """Return only if the audit passed; otherwise raise AssertionError with the report."""
        if self.status != "passed":
            raise AssertionError(self.text)

    def __str__(self) -> str:
        return self.text


def judge(seen: Seen, *, unlooked: Sequence[str] = (), allow: Sequence[str] = ()) -> Result:
    """Hold what was seen against what was told.

    ``unlooked`` is what the way in could not look at, and ``allow`` the names of findings that are
    post-processing and meant; they stay in the report.
    """
    # Checks load SciPy's distributions and the accountant's compiler, which a training needs not.
    from oraudit.checks import findings
    from oraudit.report.lines import report_lines

    # What decides the verdict stands first, and causes before their consequences.
    order = (FAILED, CANNOT_TELL, PASSED)
    found = tuple(sorted(findings(seen), key=lambda finding: order.index(finding.status)))
    status = verdict(found, steps_seen=seen.steps, allow=allow)
    return Result(status, found, lambda: "\n".join(report_lines(status, seen, found, unlooked)))
