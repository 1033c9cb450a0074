"""The steps that an accountant was told, compared with what the loop says of each step."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from oraudit.records import Event, Seen

__all__ = ["History"]

#: The relative difference below which a number of the accountant and one of the loop are equal.
CLOSE = 1e-6


@dataclass(frozen=True)
class _Entry:
    sigma: float
    rate: float
    steps: int


class History:
    """The steps that an accountant knows: a list, or an object whose ``history`` is one.

    Each entry is (noise multiplier, rate, steps). A list states this training; what an object
    knew before the audit began belongs to an earlier one.
    """

    def __init__(self, accountant: Any) -> None:
        self._accountant = accountant
        self.earlier = 0
        entries = self._entries()
        if hasattr(accountant, "history"):
            self.earlier = sum(entry.steps for entry in entries)

    def _entries(self) -> list[_Entry]:
        history = getattr(self._accountant, "history", self._accountant)
        wanted = "a list of (sigma, rate, steps), or an object with such a list as .history"
        if not isinstance(history, Sequence) or isinstance(history, str):
            raise ValueError(f"accountant is {self._accountant!r}; it must be {wanted}")
        entries = []
        for entry in history:
            try:
                sigma, rate, steps = entry
                entries.append(_Entry(float(sigma), float(rate), int(steps)))
            except (TypeError, ValueError):
                raise ValueError(
                    f"accountant has the entry {entry!r}; it must be {wanted}"
                ) from None
        return entries

    def compared(self, seen: Seen) -> Seen:
        """Return the training as the accountant was told it, and an event for each difference."""
        told_steps = _from(self._entries(), self.earlier, seen.steps)
        total = sum(entry.steps for entry in self._entries()) - self.earlier
        events = [Event("accountant-told", None, "", float(total))]
        if self.earlier:
            events.append(Event("earlier-steps", None, "", float(self.earlier)))
        steps = list(seen.told)
        scale = np.ones(seen.steps)
        for place, (step, entry) in enumerate(zip(seen.told, told_steps, strict=False)):
            if _differ(entry.sigma, step.sigma):
                events.append(Event("sigma-told", place + 1, f"{step.sigma:.4g}", entry.sigma))
            if step.rate is not None and _differ(entry.rate, step.rate):
                events.append(Event("rate-told", place + 1, f"{step.rate:.4g}", entry.rate))
            steps[place] = replace(step, sigma=entry.sigma, rate=entry.rate)
            scale[place] = _unit(step.sigma * step.clip) / _unit(entry.sigma * step.clip)
        noise = None if seen.noise is None else seen.noise.rescaled(scale)
        return replace(seen, told=tuple(steps), noise=noise, events=(*seen.events, *events))


def _from(entries: Sequence[_Entry], first: int, most: int) -> list[_Entry]:
    """Return at most ``most`` single steps of a history, after the first ``first`` of them."""
    steps: list[_Entry] = []
    for entry in entries:
        left_out = min(first, entry.steps)
        first -= left_out
        steps += [entry] * min(entry.steps - left_out, most - len(steps))
    return steps


def _differ(a: float, b: float) -> bool:
    return abs(a - b) > CLOSE * max(abs(a), abs(b))


def _unit(deviation: float) -> float:
    return deviation if deviation > 0 else 1.0
