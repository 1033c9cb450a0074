"""The result of an audit: a verdict, what was found, and every way to write it down."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oraudit.findings import CANNOT_TELL, FAILED, PASSED, Finding, Status, verdict
from oraudit.records import Seen
from oraudit.report.facts import Facts, Number, Row

if TYPE_CHECKING:
    from oraudit.canaries.counted import Counted

__all__ = ["EXIT", "Result", "judge", "judge_counts", "refused"]

#: The exit status of a command for each verdict; 2 is a usage error, as of every command.
EXIT: dict[Status, int] = {"passed": 0, "failed": 1, "cannot tell": 3}


@dataclass(frozen=True, eq=False)
class Result:
    """The result of an audit; ``str`` of it is the report.

    Attributes
    ----------
    status
        "passed", "failed" or "cannot tell".
    findings
        What is not as it was stated, causes before their consequences.
    report
        What the report says, or what makes it: it computes ε, which takes longer than all checks.
    counts
        What the right guesses of canaries say; None if there were none.

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
        """Whether two results say the same, whatever is on the cards of their trainings."""
        if not isinstance(other, Result):
            return NotImplemented
        return self._said() == other._said()

    def __hash__(self) -> int:
        return hash((self.status, self.findings))

    def _said(self) -> Any:
        from oraudit.report.plain import as_plain

        # Lists and numbers in words: NaN is then equal to itself.
        return as_plain((self.status, self.findings, self.counts, self.text))

    # ------------------------------------------------------------------------------- written down

    def with_card(self, card: Mapping[str, object]) -> "Result":
        """The same result with what those who train say of the training.

        Keys are ``model``, ``data``, ``commit``, ``who``, ``date``, ``hardware``, ``seeds`` (are
        they secret?), ``released`` (are the released weights those that were audited?), or
        questions of your own.
        """
        from oraudit.report.card import filled

        facts = replace(self.facts, card=filled(self.facts, card))
        return replace(self, report=facts)

    def interrupted(self, reason: str) -> "Result":
        """The result where the training ended early: no longer passed, but failed if it was."""
        finding = Finding("interrupted", reason, "side unknown", undecided=True)
        facts = self.facts
        unlooked = f"{reason[:1].upper()}{reason[1:]}. {facts.unlooked}"
        if self.status == FAILED:
            rows = (Row("also", reason, "open"), *facts.rows)
            facts = replace(facts, rows=rows, unlooked=unlooked)
        else:
            rows = (Row("until", f"{facts.verdict}: {facts.headline}"), *facts.rows)
            facts = replace(
                facts, status=CANNOT_TELL, headline=reason, rows=rows, unlooked=unlooked
            )
        return replace(self, status=facts.status, findings=(*self.findings, finding), report=facts)

    def json(self) -> str:
        """Everything, for a machine, with the format's version and a digest of itself."""
        from oraudit.report.saved import written

        return written(self)

    def html(self) -> str:
        """A page that needs nothing beside itself."""
        from oraudit.report.page import page

        return page(self)

    def _repr_html_(self) -> str:
        from oraudit.report.page import fragment

        return fragment(self)

    def markdown(self) -> str:
        """A section for a model card."""
        from oraudit.report.markdown import section

        return section(self)

    def junit(self) -> str:
        """A test suite with one test, in the XML of JUnit: an error where nothing can be told."""
        from oraudit.report.junit import suite

        return suite(self)

    def save(self, folder: str | Path, card: Mapping[str, object] | None = None) -> None:
        """Write all of them into a new folder; FileExistsError if there is one.

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

        return read(Path(path))


# ----------------------------------------------------------------------------------------- verdicts


def judge(
    seen: Seen,
    *,
    counts: "Counted | None" = None,
    unlooked: Sequence[str] = (),
    allow: Sequence[str] = (),
) -> Result:
    """Hold what was seen against what was told.

    ``counts`` is what the right guesses of canaries say: they may add a failure, and decide
    nothing else. ``unlooked`` is what the way in could not look at, and ``allow`` the names of
    findings that are post-processing and meant; they stay in the report.
    """
    # Checks load SciPy's distributions and the accountant's compiler, which a training needs not.
    from oraudit.checks import findings
    from oraudit.report.counts import findings_of

    refuted = [] if counts is None else findings_of(counts, seen.claim)
    # What decides the verdict stands first, and causes before their consequences.
    order = (FAILED, CANNOT_TELL, PASSED)
    every = [*findings(seen), *refuted]
    found = tuple(sorted(every, key=lambda finding: order.index(finding.status)))
    # What counts refute stands without any step that was seen.
    status = verdict(found, steps_seen=seen.steps + len(refuted), allow=allow)
    return Result(
        status, found, lambda: _witnessed(status, seen, found, counts, unlooked, allow), counts
    )


def judge_counts(counts: "Counted", *, unlooked: Sequence[str] = ()) -> Result:
    """Judge where nothing but scores was seen.

    It passes only where a training with half the noise would have been found in most audits.
    """
    from oraudit.report.counts import findings_of, stated_findings, status_of

    found = [*findings_of(counts), *stated_findings(counts)]
    status = status_of(counts, found)
    return Result(status, tuple(found), lambda: _counted(status, found, counts, unlooked), counts)


def refused(reason: str) -> Result:
    """The result of an audit that could not be made."""
    from oraudit.report.sentences import NOTHING

    finding = Finding("refused", reason, "side unknown", undecided=True)
    facts = Facts(
        CANNOT_TELL,
        reason,
        (),
        looked=NOTHING,
        findable="Nothing.",
        unlooked="Everything.",
        estimate="No: the report has no ε.",
    )
    return Result(CANNOT_TELL, (finding,), facts)


# -------------------------------------------------------------------------------------------- facts


def _witnessed(
    status: Status,
    seen: Seen,
    found: Sequence[Finding],
    counts: "Counted | None",
    unlooked: Sequence[str],
    allow: Collection[str],
) -> Facts:
    """The report of a training that was watched."""
    from oraudit.report import card, sentences, witness
    from oraudit.report.counts import COUNTS, PROVED, numbers_of, rows_of

    headline, rows = witness.verdict_rows(status, seen.steps, found, allow)
    # What the rows of the witness are about.
    own = [each for each in found if each.name not in (COUNTS, PROVED)]
    own = [each for each in own if witness.stands(each, allow) == each.status]
    numbers: list[Number] = []
    measured: list[str] = []
    told = ""
    if seen.steps:
        stated, numbers = witness.told_row(seen, own)
        rows += stated
        told = stated[0].words
        for measure in (
            witness.measured_noise,
            witness.measured_clipping,
            witness.measured_batches,
        ):
            if (part := measure(seen, own)) is not None:
                rows.append(part[0])
                measured.append(part[0].name)
                numbers += part[1]
    if counts is not None:
        rows += rows_of(counts, seen.claim)
        numbers += numbers_of(counts)
    elif seen.steps:
        rows.append(Row("canaries", "none: for a lower bound on ε, canaries=1000"))
    words = witness.unlooked_of(seen, unlooked)
    if names := witness.set_aside(found, allow):
        words.insert(0, f"what whoever ran the audit has set aside ({', '.join(names)})")
    rows.append(Row("unlooked", "; ".join(words)))
    epsilons = {number.name: number.value for number in numbers}
    epsilon = epsilons.get("told epsilon")
    return Facts(
        status,
        headline,
        tuple(rows),
        looked=sentences.looked(seen, counts, measured),
        findable=sentences.findable(seen, counts, numbers, measured),
        unlooked=sentences.unlooked(words, scores_only=False),
        estimate=sentences.estimate(
            seen,
            counts,
            epsilon,
            calculated="epsilon with what was seen" in epsilons,
            failed=status == FAILED,
        ),
        card=card.answered(
            card.asked(seen, delta=witness.delta_of(seen), epsilon=epsilon, told=told)
        ),
        numbers=tuple(numbers),
    )


def _counted(
    status: Status, found: Sequence[Finding], counts: "Counted", unlooked: Sequence[str]
) -> Facts:
    """The report of scores alone."""
    from oraudit.report import card, sentences
    from oraudit.report.counts import headline_of, numbers_of, rows_of, stated_row

    rows = []
    headline = ""
    if found:
        first, *others = (f"{finding.text}: {finding.side}" for finding in found)
        headline = first
        rows += [Row("also", words, "bad") for words in others]
    else:
        headline = headline_of(counts)
    stated = stated_row(counts)
    if stated is not None:
        rows.append(stated)
    rows += rows_of(counts)
    numbers = numbers_of(counts)
    rows.append(Row("unlooked", "; ".join(["everything but the scores", *unlooked])))
    epsilon = {number.name: number.value for number in numbers}.get("stated epsilon")
    told = stated.words if stated is not None and counts.training is not None else ""
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
        card=card.answered(card.asked(None, delta=counts.bound.delta, epsilon=epsilon, told=told)),
        numbers=tuple(numbers),
    )
