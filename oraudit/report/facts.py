"""The facts of a report, before they are written as text, as a page, or as a file for a machine.

Every way of writing a report is made from the same :class:`Facts`, so no two of them can disagree.
"""

from dataclasses import dataclass
from typing import Literal

from oraudit.findings import CANNOT_TELL, FAILED, PASSED, Status

__all__ = ["EXIT", "MEANING", "VERDICTS", "Facts", "Number", "Row", "Tone", "tone_of"]

#: The tone of a row: good or bad news about the training, an open question, or plain information.
Tone = Literal["good", "bad", "open", "plain"]

#: The first word of a report.
VERDICTS: dict[Status, str] = {PASSED: "PASSED", FAILED: "FAILED", CANNOT_TELL: "CANNOT TELL"}

#: The exit status of a command for each verdict; 2 is a usage error, as of every command.
EXIT: dict[Status, int] = {PASSED: 0, FAILED: 1, CANNOT_TELL: 3}

#: The verdict for somebody who never trained a model.
MEANING: dict[Status, str] = {
    PASSED: "Nothing that was looked at contradicts what was stated about this training; that is "
    "no proof of privacy.",
    FAILED: "What was seen contradicts what was stated about this training: do not rely on its ε.",
    CANNOT_TELL: "This audit can neither confirm nor contradict what was stated.",
}

_TONES: dict[Status, Tone] = {PASSED: "good", FAILED: "bad", CANNOT_TELL: "open"}


def tone_of(status: Status) -> Tone:
    """Return the tone of a verdict."""
    return _TONES[status]


@dataclass(frozen=True)
class Row:
    """A line of a report: a short name, what it says, and its tone."""

    name: str
    words: str
    tone: Tone = "plain"

    def __post_init__(self) -> None:
        _on_one_line(self, "words")


def _on_one_line(target: object, *names: str) -> None:
    """Put attributes on one line: names and errors that they quote may have line ends."""
    for name in names:
        object.__setattr__(target, name, " ".join(getattr(target, name).split()))


@dataclass(frozen=True)
class Number:
    """A number of a report, with its standard error and the limit that it is compared with."""

    name: str
    value: float
    error: float | None = None
    limit: float | None = None


@dataclass(frozen=True)
class Facts:
    """All that a report says.

    Attributes
    ----------
    status
        The verdict.
    headline
        The verdict's reason, in one line.
    rows
        The other lines.
    looked, findable, unlooked, estimate
        A sentence each for the one who signs: what was looked at, what could have been found, what
        was not looked at, and whether a number is an estimate.
    card
        What is known of the training, as pairs of a question and its answer.
    numbers
        Every number that the rows show.
    """

    status: Status
    headline: str
    rows: tuple[Row, ...]
    looked: str
    findable: str
    unlooked: str
    estimate: str
    card: tuple[tuple[str, str], ...] = ()
    numbers: tuple[Number, ...] = ()

    def __post_init__(self) -> None:
        _on_one_line(self, "headline", "looked", "findable", "unlooked", "estimate")

    @property
    def verdict(self) -> str:
        """The verdict in capital letters."""
        return VERDICTS[self.status]

    @property
    def tone(self) -> Tone:
        """The tone of the verdict."""
        return tone_of(self.status)

    @property
    def text(self) -> str:
        """The report as lines; the first is the verdict."""
        lines = [
            (f"{self.verdict} ", self.headline),
            *((row.name, row.words) for row in self.rows),
        ]
        return "\n".join(f"{name:<9} {content}" for name, content in lines)

    @property
    def answers(self) -> tuple[tuple[str, str], ...]:
        """The four questions and answers, in an order that puts three on a telephone's screen."""
        return (
            ("What was looked at?", self.looked),
            ("What was not looked at?", self.unlooked),
            ("Is a number here an estimate?", self.estimate),
            ("What could it have found?", self.findable),
        )
