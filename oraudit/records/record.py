"""All that an audit keeps of a training: what was told, what was seen, what could not be seen.

A way in writes into a :class:`Record` while the training runs; checks read the :class:`Seen`
that it becomes at the end. A way in knows no check, and a check no framework.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from oraudit.records.around import Around, AroundRecord
from oraudit.records.batches import Batches, BatchRecord
from oraudit.records.clipping import Look
from oraudit.records.noise import Noise, NoiseRecord
from oraudit.records.ranks import Ranks

__all__ = ["Earlier", "Event", "Kind", "Record", "Seen", "Told"]

#: What a way in can see without any statistics, exactly; a check says what it means.
Kind = Literal[
    "accountant-forgot",  # number: steps that the accountant knew and no longer knows
    "accountant-told",  # number: steps of this training that the accountant was told
    "apart-clip",  # number: the norm that examples are clipped at, as a share of the optimizer's C
    "buffer-changed",  # what: its name; not by a private step
    "earlier-steps",  # number: steps that the accountant knew before this training
    "examples-mix",  # number: how far the others of a batch move an example's output, of its size
    "ghost-norm",  # number: an example's norm over the norm that ghost clipping takes for it
    "late-parameter",  # what: its name; it joined the model after the private optimizer was made
    "layer-rule",  # what: a tensor; number: how far its examples' gradients are off, relative
    "outside-step",  # weights moved between two private steps
    "plain-step",  # an optimizer moved these weights without a private step
    "rate-told",  # number: the rate that the accountant was told, not the loop's, which is in what
    "replaced",  # what: a method of the chain that somebody replaced after the audit was attached
    "seeded",  # number: the seed that the generator of the noise has now
    "sigma-told",  # number: the noise multiplier that the accountant was told, not the optimizer's
    "thrown-away",  # gradients of a batch were computed, and cleared before any step used them
    "unprivate-parameter",  # what: its name; it changed, and no private optimizer has it
    "unwatched",  # what: the error that ended the watch of a step, or of all further ones
]


@dataclass(frozen=True)
class Told:
    """What the accountant is told of one step, and the number that the gradients are clipped at."""

    clip: float
    sigma: float
    rate: float | None = None


@dataclass(frozen=True)
class Event:
    """Something that a way in saw, exactly; ``step`` counts from 1."""

    kind: Kind
    step: int | None = None
    what: str = ""
    number: float | None = None


@dataclass(frozen=True)
class Earlier:
    """Another training of the same process, which came before.

    Attributes
    ----------
    steps
        How many private steps it had.
    sizes
        How many numbers each of its tensors has.
    sample
        The sample of its noise, a row for each step.
    goes_on
        Whether the training that is audited begins with the weights that this one ended with.
    """

    steps: int
    sizes: NDArray[np.int64]
    sample: NDArray[np.float32]
    goes_on: bool


@dataclass(frozen=True)
class Seen:
    """A training that has ended, as checks read it.

    Attributes
    ----------
    names
        Of the tensors, as the model calls them.
    told
        What the accountant was told of each step.
    noise
        The noise of each step; None if no step was seen.
    looks
        What clipping did to the examples, at the steps that were looked at.
    batches
        Sizes of batches, and which examples they share.
    events
        What was seen without statistics.
    examples
        How many examples the data has, if known.
    claim
        The (ε, δ) that the training is said to have, if given.
    around
        Numbers of each step that must not follow the batch, and numbers of the batch.
    earlier
        Trainings of the same process that came before.
    ranks
        What each process of a distributed training did; None if there is one process.
    """

    names: Sequence[str]
    told: Sequence[Told]
    noise: Noise | None
    looks: Sequence[Look]
    batches: Batches
    events: Sequence[Event]
    examples: int | None
    claim: tuple[float, float] | None
    around: Around | None = None
    earlier: Sequence[Earlier] = ()
    ranks: Ranks | None = None

    @property
    def steps(self) -> int:
        return len(self.told)

    @property
    def sigmas(self) -> NDArray[np.float64]:
        return np.array([step.sigma for step in self.told])

    @property
    def rates(self) -> NDArray[np.float64] | None:
        """The told rate of each step, or None if one is not known."""
        rates = [step.rate for step in self.told]
        return None if None in rates else np.array(rates, dtype=float)

    def of_kind(self, kind: Kind) -> list[Event]:
        return [event for event in self.events if event.kind == kind]


@dataclass
class Record:
    """What a way in has seen so far. One call of :meth:`end_step` closes each private step."""

    examples: int | None = None
    claim: tuple[float, float] | None = None
    names: list[str] = field(default_factory=list)
    noise: NoiseRecord = field(default_factory=NoiseRecord)
    batches: BatchRecord = field(default_factory=BatchRecord)
    around: AroundRecord = field(default_factory=AroundRecord)
    looks: list[Look] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    told: list[Told] = field(default_factory=list)

    @property
    def step(self) -> int:
        """The number of the step that is under way, counting from 1."""
        return len(self.told) + 1

    def see(self, kind: Kind, what: str = "", number: float | None = None) -> None:
        """Note an event at the step that is under way."""
        self.events.append(Event(kind, self.step, what, number))

    def end_step(
        self,
        clipped: Sequence[Any],
        noisy: Sequence[Any],
        told: Told,
        *,
        deviation: float | None = None,
    ) -> None:
        """Close a step: the sum before and after the noise, and what the accountant was told.

        ``deviation`` is that of the noise, if it is not ``told.sigma * told.clip``, as in adaptive
        clipping, where a part of the budget is spent on a count.
        """
        unit = told.sigma * told.clip if deviation is None else deviation
        self.noise.add(clipped, noisy, unit)
        self.close_step(told)

    def close_step(self, told: Told) -> None:
        """Close a step whose noise was noted before, as soon as there was any."""
        self.batches.end_step()
        self.around.end_step()
        self.told.append(told)

    def finished(self) -> Seen:
        """The whole training, as checks read it."""
        tensors = range(len(self.names) or 0)
        return Seen(
            names=[self.names[i] for i in tensors],
            told=tuple(self.told),
            # A step that nobody closed may have noise, and is none.
            noise=self.noise.finished(len(self.told)) if self.told else None,
            looks=tuple(self.looks),
            batches=self.batches.finished(),
            events=tuple(self.events),
            examples=self.examples,
            claim=self.claim,
            around=self.around.finished(),
        )

    def state(self) -> dict[str, Any]:
        """All that was seen, in lists, numbers, words and arrays of NumPy."""
        return {
            "names": list(self.names),
            "noise": self.noise.state(),
            "batches": self.batches.state(),
            "around": self.around.state(),
            "looks": [asdict(look) for look in self.looks],
            "events": [asdict(event) for event in self.events],
            "told": [asdict(told) for told in self.told],
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Go on from what :meth:`state` has returned in an earlier process."""
        if state["names"] != self.names:
            raise ValueError(
                f"the state is of an audit of the tensors {state['names']}, this one has "
                f"{self.names}"
            )
        self.noise.load(state["noise"])
        self.batches.load(state["batches"])
        self.around.load(state["around"])
        self.looks = [Look(**look) for look in state["looks"]]
        self.events = [Event(**event) for event in state["events"]]
        self.told = [Told(**told) for told in state["told"]]
