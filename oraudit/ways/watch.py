"""Every training that Opacus makes private inside is audited, and not a line of it changed.

>>> with watch() as audits:  # doctest: +SKIP
...     train(epochs=1)
>>> audits.check()  # doctest: +SKIP
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any

from opacus import PrivacyEngine

from oraudit.findings import CANNOT_TELL, FAILED, PASSED, Finding, Status
from oraudit.report import Result
from oraudit.ways.distributed import DistributedAudit
from oraudit.ways.kinds import audit
from oraudit.ways.opacus import CannotAttach, OpacusAudit
from oraudit.ways.ranks import Meeting

__all__ = ["Audits", "NothingPrivate", "Refused", "watch"]


class NothingPrivate(AssertionError):
    """Nothing was made private inside :func:`watch`."""


class Refused:
    """What stands for an audit where a private optimizer cannot be audited."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def result(self) -> Result:
        """The result, which cannot tell."""
        finding = Finding("refused", self._reason, "side unknown", undecided=True)
        return Result(CANNOT_TELL, (finding,), f"CANNOT TELL  {self._reason}")

    def detach(self) -> None:
        """Do nothing, as nothing was attached."""


class Audits(list[OpacusAudit | Refused]):
    """The audits of a process, in the order in which their optimizers were made private."""

    @property
    def status(self) -> Status:
        """The worst status of all; nothing can be told if there are none."""
        found = {audit.result().status for audit in self}
        for status in (FAILED, CANNOT_TELL, PASSED):
            if status in found:
                return status
        return CANNOT_TELL

    @property
    def meeting(self) -> Meeting | None:
        """Where the ranks of a distributed training meet; None if there is one process."""
        meetings = [audit.meeting for audit in self if isinstance(audit, DistributedAudit)]
        return meetings[-1] if meetings else None

    def check(self) -> None:
        """Return only if all audits passed; otherwise raise AssertionError with the reports."""
        if self.status != PASSED:
            raise AssertionError(str(self))

    def __str__(self) -> str:
        texts = [str(audit.result()) for audit in self]
        if not texts:
            return "CANNOT TELL  nothing was made private with Opacus"
        if len(texts) == 1:
            return texts[0]
        numbers: dict[str, list[str]] = {}
        for number, text in enumerate(texts, 1):
            numbers.setdefault(text, []).append(str(number))
        return "\n\n".join(
            f"training {', '.join(same)} of {len(texts)}\n{text}" for text, same in numbers.items()
        )


@contextmanager
def watch(
    *,
    claim: tuple[float, float] | None = None,
    allow: Sequence[str] = (),
    required: bool = True,
) -> Iterator[Audits]:
    """Audit every training that ``PrivacyEngine.make_private`` begins inside.

    >>> with watch() as audits:  # doctest: +SKIP
    ...     train(epochs=1)
    >>> print(audits)  # the reports  # doctest: +SKIP
    >>> audits.status  # the worst of them  # doctest: +SKIP
    'passed'
    >>> audits.check()  # returns only if all passed: the line of a test  # doctest: +SKIP
    >>> [audit.result().status for audit in audits]  # doctest: +SKIP
    ['passed']

    Parameters
    ----------
    claim
        The (ε, δ) that each training is said to have.
    allow
        Names of findings that are post-processing and meant.
    required
        Raise :class:`NothingPrivate` if nothing was made private.

    Yields
    ------
    Audits
        A list of audits, one for each call of ``make_private``, to be asked inside or after the
        ``with``: ``str`` of it has all reports, ``.status`` is the worst ("failed", then "cannot
        tell", then "passed"), ``.check()`` raises AssertionError with the reports unless all have
        passed, and ``audits[0].result()`` is the result of the first. Each later one is compared
        with those before it: a training that goes on with an emptied accountant, or has the noise
        of an earlier one, fails.
    """
    audits = Audits()
    former = PrivacyEngine.__dict__["make_private"]

    @wraps(former)
    def make_private(self: Any, *args: Any, **kwargs: Any) -> Any:
        parts = former(self, *args, **kwargs)
        audits.append(_audit(parts, audits, claim=claim, allow=allow))
        return parts

    PrivacyEngine.make_private = make_private
    try:
        yield audits
    finally:
        PrivacyEngine.make_private = former
        for audit in audits:
            audit.detach()
    if required and not audits:
        raise NothingPrivate("nothing was made private with Opacus inside watch()")


def _audit(
    parts: Sequence[Any],
    audits: Audits,
    *,
    claim: tuple[float, float] | None,
    allow: Sequence[str],
) -> OpacusAudit | Refused:
    """The audit of what ``make_private`` has returned."""
    earlier = [audit for audit in audits if isinstance(audit, OpacusAudit)]
    try:
        return audit(parts[1], parts[0], parts[-1], claim=claim, allow=allow, earlier=earlier)
    except CannotAttach as reason:
        return Refused(str(reason))
