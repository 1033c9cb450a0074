"""The audit of all trainings that Opacus makes private inside a block, with no line changed.

>>> with watch() as audits:  # doctest: +SKIP
...     train(epochs=1)
>>> audits.check()  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any

from opacus import PrivacyEngine

from oraudit.findings import CANNOT_TELL, FAILED, PASSED, Status
from oraudit.report import Result, refused
from oraudit.ways.opacus.attach import audit_class
from oraudit.ways.opacus.data_parallel import DistributedAudit
from oraudit.ways.opacus.one_process import OpacusAudit
from oraudit.ways.opacus.ranks import Meeting
from oraudit.ways.opacus.refused import CannotAttach

__all__ = ["Audits", "NothingPrivate", "Refused", "watch"]


#: The reason of a report where there is nothing to report on.
NOTHING_PRIVATE = "nothing was made private with Opacus"


class NothingPrivate(AssertionError):
    """The code inside :func:`watch` made nothing private."""


class Refused:
    """The stand-in for an audit where a private optimizer cannot be audited."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def result(self) -> Result:
        """Return a result that cannot tell."""
        return refused(self._reason)

    def detach(self) -> None:
        """Do nothing, as nothing was attached."""


class Audits(list[OpacusAudit | Refused]):
    """The audits of a process, in the order in which their optimizers were made private."""

    @property
    def status(self) -> Status:
        """The worst status of all; nothing can be told if there are none."""
        statuses = {audit.result().status for audit in self}
        for status in (FAILED, CANNOT_TELL, PASSED):
            if status in statuses:
                return status
        return CANNOT_TELL

    @property
    def meeting(self) -> Meeting | None:
        """The meeting of the ranks of a distributed training; None if there is one process."""
        meetings = [audit.meeting for audit in self if isinstance(audit, DistributedAudit)]
        return meetings[-1] if meetings else None

    def save(
        self,
        folder: str | Path,
        card: Mapping[str, object] | None = None,
        *,
        interrupted: str = "",
    ) -> None:
        """Write the report of a training into a new folder; of several, each into one of its own.

        The folders are ``1``, ``2``, ...; where a training has several processes, each writes into
        ``rank-0``, ``rank-1``, ... in them. ``card`` is what those who train say of it, as for
        :meth:`~oraudit.Result.save`; ``interrupted`` is why the end was not seen, if it was not.
        """
        results = [audit.result() for audit in self] or [refused(NOTHING_PRIVATE)]
        if interrupted:
            results = [result.interrupted(interrupted) for result in results]
        for number, result in enumerate(results, 1):
            place = Path(folder)
            if len(results) > 1:
                place /= str(number)
            if self.meeting is not None:
                place /= f"rank-{self.meeting.rank}"
            result.save(place, card)

    def check(self) -> None:
        """Return only if all audits passed; otherwise raise AssertionError with the reports."""
        if self.status != PASSED:
            raise AssertionError(str(self))

    def __str__(self) -> str:
        texts = [str(audit.result()) for audit in self]
        if not texts:
            return f"CANNOT TELL  {NOTHING_PRIVATE}"
        if len(texts) == 1:
            return texts[0]
        numbers: dict[str, list[str]] = {}
        for number, text in enumerate(texts, 1):
            numbers.setdefault(text, []).append(str(number))
        return "\n\n".join(
            f"training {', '.join(trainings)} of {len(texts)}\n{text}"
            for text, trainings in numbers.items()
        )


@contextmanager
def watch(
    *,
    canaries: int = 0,
    seed: int | None = None,
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
    canaries
        The number of canaries that join the clipped sums of each training and stay in them.
    seed
        The seed of the first training's canaries, and one more for each later one; None for seeds
        from the operating system.
    claim
        The (ε, δ) that each training is said to have.
    allow
        Names of findings that are post-processing and meant.
    required
        Raise ``NothingPrivate``, an AssertionError, if nothing was made private.

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
    unwatched = PrivacyEngine.__dict__["make_private"]

    @wraps(unwatched)
    def make_private(self: Any, *args: Any, **kwargs: Any) -> Any:
        parts = unwatched(self, *args, **kwargs)
        own_seed = None if seed is None else seed + len(audits)
        options = {"canaries": canaries, "seed": own_seed, "claim": claim, "allow": allow}
        audits.append(_audit(parts, audits, options))
        return parts

    PrivacyEngine.make_private = make_private
    try:
        yield audits
    finally:
        PrivacyEngine.make_private = unwatched
        for audit in audits:
            audit.detach()
    if required and not audits:
        raise NothingPrivate("nothing was made private with Opacus inside watch()")


def _audit(parts: Sequence[Any], audits: Audits, options: Any) -> OpacusAudit | Refused:
    """Return the audit of what ``make_private`` has returned."""
    model, optimizer, *_, loader = parts
    earlier = [audit for audit in audits if isinstance(audit, OpacusAudit)]
    try:
        return audit_class(optimizer)(optimizer, model, loader, **options, earlier=earlier)
    except CannotAttach as reason:
        return Refused(str(reason))
