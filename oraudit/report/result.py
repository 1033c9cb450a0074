"""The result of an audit: a verdict, its findings, and every way to write them down."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oraudit.findings import PASSED, Finding, Status
from oraudit.report.facts import EXIT, Facts

if TYPE_CHECKING:
    from oraudit.canaries.counted import Counted

__all__ = ["Result"]


@dataclass(frozen=True, eq=False)
class Result:
    """The result of an audit; ``str`` of it is the report.

    Attributes
    ----------
    status
        "passed", "failed" or "cannot tell".
    findings
        All that is not as it was stated, causes before their consequences.
    report
        The facts of the report, or a function that makes them when they are asked for: they have
        ε, which takes longer to compute than all checks.
    counts
        The counts of right guesses of canaries; None if there are no canaries.

    Examples
    --------
    >>> from oraudit import audit_counts
    >>> result = audit_counts(141, 158, 1000, training=(2.4224, 0.1, 100))
    >>> result.status, [finding.name for finding in result.findings]
    ('failed', ['counts'])
    """

    status: Status
    findings: tuple[Finding, ...]
    report: Facts | Callable[[], Facts]
    counts: "Counted | None" = None

    @cached_property
    def facts(self) -> Facts:
        """All that the report says."""
        return self.report if isinstance(self.report, Facts) else self.report()

    @property
    def text(self) -> str:
        """The report, as lines."""
        return self.facts.text

    @property
    def exit(self) -> int:
        """The exit status of a command with this result: 0, 1 or 3."""
        return EXIT[self.status]

    def check(self) -> None:
        """Return only if the audit passed; otherwise raise AssertionError with the report."""
        if self.status != PASSED:
            raise AssertionError(self.text)

    def __str__(self) -> str:
        return self.text

    def __eq__(self, other: object) -> bool:
        """Compare two results, but not the cards of their trainings."""
        if not isinstance(other, Result):
            return NotImplemented
        return self._content() == other._content()

    def __hash__(self) -> int:
        return hash((self.status, self.findings))

    def _content(self) -> Any:
        from oraudit.report.plain import as_plain

        # In lists and words NaN is equal to itself.
        return as_plain((self.status, self.findings, self.counts, self.text))

    # ------------------------------------------------------------------------------- written down

    def with_card(self, card: Mapping[str, object]) -> "Result":
        """Return the result with answers of those who trained on the card of the training.

        Keys are ``model``, ``data``, ``commit``, ``who``, ``date``, ``hardware``, ``seeds`` (are
        they secret?), ``released`` (are the released weights those that were audited?), or
        questions of your own.
        """
        from oraudit.report.card import filled

        return replace(self, report=replace(self.facts, card=filled(self.facts, card)))

    def interrupted(self, reason: str) -> "Result":
        """Return the result of a training that ended early: it has not passed, but may fail."""
        from oraudit.report.contents import interrupted_facts

        finding = Finding("interrupted", reason, "side unknown", undecided=True)
        facts = interrupted_facts(self.facts, reason)
        return replace(self, status=facts.status, findings=(*self.findings, finding), report=facts)

    def json(self) -> str:
        """Write everything for a machine, with the format's version and a digest of itself."""
        from oraudit.report.saved import written

        return written(self.facts, self.findings, self.counts)

    def html(self) -> str:
        """Write a page that needs no other file."""
        from oraudit.report.page import page

        return page(self.facts)

    def _repr_html_(self) -> str:
        from oraudit.report.page import fragment

        return fragment(self.facts)

    def markdown(self) -> str:
        """Write a section for a model card."""
        from oraudit.report.markdown import section

        return section(self.facts)

    def junit(self) -> str:
        """Write a JUnit test suite with one test: an error where nothing can be told."""
        from oraudit.report.junit import suite

        return suite(self.facts)

    def save(self, folder: str | Path, card: Mapping[str, object] | None = None) -> None:
        """Write the report in all five ways into a new folder; FileExistsError if there is one.

        ``card`` is what those who train say of the training: see :meth:`with_card`.
        """
        result = self.with_card(card or {})
        files = {
            "report.txt": f"{result.text}\n",
            "report.html": result.html(),
            "report.md": result.markdown(),
            "junit.xml": result.junit(),
            "report.json": result.json(),
        }
        folder = Path(folder)
        folder.mkdir(parents=True)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")

    @staticmethod
    def load(path: str | Path) -> "Result":
        """Read a result from a folder that :meth:`save` has made, or from its report.json.

        A file that is not what :meth:`json` writes, or was changed, raises ValueError in one line.
        """
        from oraudit.report.saved import read

        facts, findings, counts = read(Path(path))
        return Result(facts.status, findings, facts, counts)
