"""The weights of a model between private steps: who moves them, and what else changes.

Between two private steps nothing may move the private weights. No step without noise may move the
other weights or buffers, and no parameter may join the model later without a private optimizer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from oraudit.records import Event, Record
from oraudit.records.arrays import here
from oraudit.ways.opacus.audited import is_audited
from oraudit.ways.opacus.fingerprints import Watched, changed, prints

__all__ = ["Weights"]

#: After the first steps, a survey looks for parameters that joined the model in each tenth step.
SURVEY_EVERY = 10
#: The first steps, in each of which a survey looks for them.
SURVEYED_FIRST = 5


class Weights:
    """The fingerprints of private weights around each step, and of what else the model has.

    Parameters
    ----------
    parameters
        The private ones.
    inner
        The model without its wrappers; None if it was not given.
    record
        The record that events are written into.
    """

    def __init__(
        self, parameters: Sequence[Any], inner: torch.nn.Module | None, record: Record
    ) -> None:
        self._parameters = parameters
        self._private = {id(p) for p in parameters}
        self._inner = inner
        self._record = record
        self._others = Watched()
        self._buffers = Watched()
        self._exposed: set[str] = set()
        self._at_begin: torch.Tensor | None = None
        self._after_step: torch.Tensor | None = None
        self._after_other: torch.Tensor | None = None
        # The step that ends a gap, and the fingerprints before and after the gap.
        self._gaps: list[tuple[int, Any, Any]] = []

    @property
    def begun(self) -> bool:
        """True from the first private step on."""
        return self._at_begin is not None

    def begin(self) -> None:
        """Watch from the first private step on: before it, checkpoints are loaded."""
        self._at_begin = prints(self._parameters)
        if self._inner is None:
            return
        parameters = self._inner.named_parameters()
        self._others.add({name: p for name, p in parameters if id(p) not in self._private}, 0)
        floats = {k: b for k, b in self._inner.named_buffers() if b.is_floating_point()}
        self._buffers.add(floats, 0)

    def before_step(self) -> None:
        """Keep the fingerprints before and after the gap, which are compared at the end.

        The gap began at the last private step, or at another optimizer's step since then.
        """
        current = prints(self._parameters)
        before = self._after_step if self._after_other is None else self._after_other
        self._after_other = None
        if before is not None:
            self._gaps.append((self._record.step, before, current))

    def after_step(self) -> None:
        """Keep the fingerprints of the weights that a private step has left."""
        self._after_step = prints(self._parameters)

    def survey(self) -> None:
        """Watch the parameters that joined the model; they are looked for in some steps only."""
        step = self._record.step
        if self._inner is None or (step > SURVEYED_FIRST and step % SURVEY_EVERY):
            return
        late = {
            name: p
            for name, p in self._inner.named_parameters()
            if id(p) not in self._private and name not in self._others
        }
        self._others.add(late, step)

    def after_other_step(self, optimizer: Any) -> None:
        """Note what another optimizer of this process may have moved."""
        groups = optimizer.param_groups
        moved = {id(p) for group in groups for p in group["params"] if p.grad is not None}
        if moved & self._private:
            if not is_audited(optimizer):
                self._record.see("plain-step")
            if self._after_step is not None:
                self._after_other = prints(self._parameters)
        if is_audited(optimizer) or self._inner is None or not self.begun:
            return
        for name, parameter in self._inner.named_parameters():
            if id(parameter) in moved - self._private and name not in self._exposed:
                self._exposed.add(name)
                from_begin = self._others.joined(name) == 0
                self._record.see("unprivate-parameter" if from_begin else "late-parameter", name)

    def forget(self) -> None:
        """Compare with no earlier weights: from here on moves cannot be attributed."""
        self._after_step = None
        self._after_other = None

    def goes_on_from(self, earlier: Weights) -> bool:
        """Return whether the first private step began where an earlier training ended."""
        end = earlier._after_step
        if end is None or self._at_begin is None or len(end) != len(self._at_begin):
            return False
        return not changed(end, self._at_begin).any()

    def changes(self) -> list[Event]:
        """Return events for all that changed and must not, compared at the end."""
        events = self._moved_outside()
        if self._inner is None or not self.begun:
            return events
        events += self._changed_parameters(dict(self._inner.named_parameters()))
        buffers = dict(self._inner.named_buffers())
        events += [
            Event("buffer-changed", None, name) for name, _ in self._buffers.changes(buffers)
        ]
        return events

    def _moved_outside(self) -> list[Event]:
        """Return the moves of private weights between two private steps."""
        gaps = list(self._gaps)
        before = self._after_step if self._after_other is None else self._after_other
        if before is not None:
            gaps.append((self._record.step, before, prints(self._parameters)))
        events = []
        for step, earlier, later in gaps:
            moved = changed(earlier, later)
            if moved.any():
                name = self._record.names[int(moved.argmax())]
                events.append(Event("outside-step", step, name))
        return events

    def _changed_parameters(self, parameters: dict[str, Any]) -> list[Event]:
        """Return events for parameters outside every private optimizer.

        They changed, or they joined late and have a gradient.
        """
        events = []
        for name, joined in self._others.changes(parameters):
            # Opacus gives a clipped sum to the parameters of every private optimizer.
            is_private = hasattr(parameters[name], "summed_grad")
            if name in self._exposed or is_private:
                continue
            if joined:
                events.append(Event("late-parameter", joined, name))
            else:
                events.append(Event("unprivate-parameter", None, name))
        for name, parameter in parameters.items():
            late = id(parameter) not in self._private and name not in self._others
            if late and parameter.grad is not None and name not in self._exposed:
                events.append(Event("late-parameter", None, name))
        return events

    def state(self) -> list[tuple[int, Any, Any]]:
        """Return the fingerprints around each gap, as a saved audit has them."""
        return [(step, here(before), here(after)) for step, before, after in self._gaps]

    def load(self, state: Sequence[Sequence[Any]]) -> None:
        """Go on from what :meth:`state` has returned."""
        self._gaps = [(step, before, after) for step, before, after in state]
