"""The record of a training that an audit keeps: what was told, and what was seen.

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

#: The kinds of events that a way in sees exactly, without statistics; checks judge them.
Kind = Literal[
    "accountant-forgot",  # number: steps that the accountant knew and no longer knows
    "accountant-told",  # number: steps of this training that the accountant was told
    "apart-clip",  # number: the norm that examples are clipped at, as a share of the optimizer's C
    "buffer-changed",  # what: its name; not by a private step
    "earlier-steps",  # number: steps that the accountant knew before this training
    "examples-mix",  # number: the move of an output by other examples, as a share of outputs
    "ghost-norm",  # number: an example's norm over the norm that ghost clipping takes for it
    "late-parameter",  # what: its name; it joined the model after the private optimizer was made
    "layer-rule",  # what: a tensor; number: the relative error of its examples' gradients
    "outside-step",  # weights moved between two private steps
    "plain-step",  # an optimizer moved these weights without a private step
    "rate-told",  # number: the rate that the accountant was told; what: the other rate, of the loop
    "replaced",  # what: a method of the chain that somebody replaced after the audit was attached
    "seeded",  # number: the seed that the generator of the noise has now
    "sigma-told",  # number: the noise multiplier that the accountant was told, not the optimizer's
    "thrown-away",  # gradients of a batch were computed, and cleared before any step used them
    "unprivate-parameter",  # what: its name; it changed, and no private optimizer has it
    "unwatched",  # what: the error that ended the watch of a step, or of all later steps
]


@dataclass(frozen=True)
class Told:
    """The facts that the accountant is told of one step, and the norm of clipping."""

    clip: float
    sigma: float
    rate: float | None = None


@dataclass(frozen=True)
class Event:
    """A fact that a way in saw, exactly; ``step`` counts from 1."""

    kind: Kind
    step: int | None = None
    what: str = ""
    number: float | None = None


@dataclass(frozen=True)
class Earlier:
    """A training of the same process that came before.

    Attributes
    ----------
    steps
        The number of its private steps.
    sizes
        The number of weights in each of its tensors.
    sample
        The sample of its noise, a row for each step.
    goes_on
        True if the training that is audited begins with the weights that this one ended with.
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
        The names of the tensors, as the model calls them.
    told
        The facts of each step that the accountant was told.
    noise
        The noise of each step; None if no step was seen.
    looks
        The effect of clipping on the examples, at the steps that were looked at.
    batches
        The sizes of batches, and which examples they share.
    events
        The facts that were seen without statistics.
    examples
        The number of examples in the data, if known.
    claim
        The (ε, δ) that the training is said to have, if given.
    around
        The numbers of each step that must not follow the batch, and numbers of the batch.
    earlier
        The trainings of the same process that came before.
    ranks
        The part of each process of a distributed training; None if there is one process.
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
    """The facts that a way in has seen so far.

    Each private step is closed by :meth:`end_step`, or by :meth:`close_step` if its noise was noted
    before.
    """

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
        """Note the sum before and after the noise and what the accountant was told; close the step.

        ``deviation`` is the deviation of the noise if it is not ``told.sigma * told.clip``, as in
        adaptive clipping, where a part of the budget is spent on a count.
        """
        noise_deviation = told.sigma * told.clip if deviation is None else deviation
        self.noise.add(clipped, noisy, noise_deviation)
        self.close_step(told)

    def close_step(self, told: Told) -> None:
        """Close a step whose noise was noted when it was added."""
        self.batches.end_step()
        self.around.end_step()
        self.told.append(told)

    def finished(self) -> Seen:
        """Return the whole training, as checks read it."""
        return Seen(
            names=list(self.names),
            told=tuple(self.told),
            # A step that was never closed may have noise; it does not count.
            noise=self.noise.finished(len(self.told)) if self.told else None,
            looks=tuple(self.looks),
            batches=self.batches.finished(),
            events=tuple(self.events),
            examples=self.examples,
            claim=self.claim,
            around=self.around.finished(),
        )

    def state(self) -> dict[str, Any]:
        """Return all that was seen, in lists, numbers, words and arrays of NumPy."""
        return {
            "names": list(self.names),
            "noise": self.noise.state(),
            "batches": self.batches.state(),
            "around": self.around.state(),
            "looks": [asdict(look) for look in self.looks],
            "events": [asdict(event) for event in self.events],
            "told": [asdict(step) for step in self.told],
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
        self.told = [Told(**step) for step in state["told"]]
