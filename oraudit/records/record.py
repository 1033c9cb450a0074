"""All that an audit keeps of a training: what was told, what was seen, what could not be seen.

A way in writes into a :class:`Record` while the training runs; checks read the :class:`Seen`
that it becomes at the end. A way in knows no check, and a check no framework.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from oraudit.records.batches import Batches, BatchRecord
from oraudit.records.clipping import Look
from oraudit.records.noise import Noise, NoiseRecord

__all__ = ["Event", "Kind", "Record", "Seen", "Told"]

#: What a way in can see without any statistics, exactly; a check says what it means.
Kind = Literal[
    "accountant-told",  # number: steps that the accountant was told while this training ran
    "buffer-changed",  # what: its name; not by a private step
    "earlier-steps",  # number: steps that the accountant knew before this training
    "late-parameter",  # what: its name; it joined the model after the private optimizer was made
    "outside-step",  # weights moved between two private steps
    "plain-step",  # the optimizer stepped without a private step
    "replaced",  # what: a method of the chain that somebody replaced after the audit was attached
    "seeded",  # number: the seed that the generator of the noise has now
    "unprivate-parameter",  # what: its name; it changed, and no private optimizer has it
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
    """

    names: Sequence[str]
    told: Sequence[Told]
    noise: Noise | None
    looks: Sequence[Look]
    batches: Batches
    events: Sequence[Event]
    examples: int | None
    claim: tuple[float, float] | None

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
        self.batches.end_step()
        self.told.append(told)

    def finished(self) -> Seen:
        """The whole training, as checks read it."""
        tensors = range(len(self.names) or 0)
        return Seen(
            names=[self.names[i] for i in tensors],
            told=tuple(self.told),
            noise=self.noise.finished() if len(self.noise) else None,
            looks=tuple(self.looks),
            batches=self.batches.finished(),
            events=tuple(self.events),
            examples=self.examples,
            claim=self.claim,
        )
