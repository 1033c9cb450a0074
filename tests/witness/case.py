"""A training whose truth is known, and what becomes of it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["HONEST", "MAYBE_HARMLESS", "Case", "Run", "Tool", "Truth", "is_named", "is_right"]

#: What is true of a training, whatever an audit says. Whoever looks from outside cannot tell what
#: may be post-processing from what is not.
Truth = Literal["less private", "safer", "side unknown", "may be post-processing", "honest"]

#: The tool that looks.
Tool = Literal["witness", "neighbour test"]

HONEST: Truth = "honest"
MAYBE_HARMLESS: Truth = "may be post-processing"

#: What each truth lets an audit answer, as statuses and sides of the first finding.
_RIGHT: dict[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    "less private": (("failed", ("less private", "side unknown")),),
    "side unknown": (("failed", ("side unknown",)),),
    "safer": (("passed", ("safer",)),),
    MAYBE_HARMLESS: (("cannot tell", ("side unknown", "less private", "safer")),),
    HONEST: (("passed", ("", "safer")),),
}


@dataclass(frozen=True)
class Case:
    """A training, as a function of its seed.

    Attributes
    ----------
    name
        What is wrong with it, or which honest variant it is.
    source
        Where it comes from; cases of one source stand together in the table.
    way
        What it is written with: Opacus, PyTorch, NumPy or JAX.
    truth
        What is true of it.
    cause
        Words of a first finding that names the cause; of several, any.
    witness
        The result of the witness for a seed; None if nothing is there to watch.
    neighbours
        The result of the neighbour test; None where it is not about one step.
    needs
        Packages without which it cannot run.
    """

    name: str
    source: str
    way: str
    truth: Truth
    cause: tuple[str, ...] = ()
    witness: Callable[[int], Any] | None = None
    neighbours: Callable[[int], Any] | None = None
    needs: tuple[str, ...] = ()

    @property
    def tools(self) -> tuple[Tool, ...]:
        found: list[Tool] = []
        if self.witness is not None:
            found.append("witness")
        if self.neighbours is not None:
            found.append("neighbour test")
        return tuple(found)

    def result(self, tool: Tool, seed: int) -> Any:
        """What a tool says of the training with this seed."""
        function = self.witness if tool == "witness" else self.neighbours
        assert function is not None
        return function(seed)


@dataclass(frozen=True)
class Run:
    """What a tool said of one training.

    Attributes
    ----------
    status
        "passed", "failed" or "cannot tell"; "error" if it ended in one.
    side
        Of the first finding; "" if there is none.
    words
        The first finding, or the error.
    versions
        Of the packages that it ran with.
    seconds
        How long it took.
    """

    case: str
    tool: Tool
    seed: int
    status: str
    side: str
    words: str
    versions: str
    seconds: float


def is_right(truth: Truth, run: Run) -> bool:
    """Whether a status and a side are what this truth lets an audit say."""
    return any(run.status == status and run.side in sides for status, sides in _RIGHT[truth])


def is_named(case: Case, run: Run) -> bool:
    """Whether the first finding says what is wrong, not only what it looks like."""
    return any(words in run.words for words in case.cause)
