"""The gradients, norms and sums of a library, held against gradients that are made beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oraudit.records import Record
from oraudit.records.clipping import example_norms
from oraudit.ways.opacus.beside import Beside, Made, NotMade
from oraudit.ways.opacus.fingerprints import prints

__all__ = ["RULE_EXAMPLES", "RULE_ROUNDING", "Rules"]

#: The examples whose gradients are made beside, to hold the layers' rules against them.
RULE_EXAMPLES = 16

#: The share of a gradient that a layer's rule may be off by rounding.
RULE_ROUNDING = 0.01


class Rules:
    """Holds the layers' rules of a library against gradients made without them.

    Parameters
    ----------
    beside
        The maker of the gradients; None if nothing can make them.
    record
        The record that events are written into.
    unmade
        The reason why no gradients are made, as the report says it.

    Attributes
    ----------
    made
        The number of batches whose gradients were made.
    """

    def __init__(
        self, beside: Beside | None, record: Record, unmade: str = "the model was not given"
    ) -> None:
        self.beside = beside
        self.unmade = unmade
        self.made = 0
        self._record = record

    def make(self, size: int, most: int | None = None) -> Made | None:
        """Return gradients of a batch of this size, of ``most`` examples; None if there are none.

        There are none, either, where examples depend on each other, which is noted.
        """
        if self.beside is None:
            return None
        try:
            made = self.beside.make(most)
        except NotMade as reason:
            self.unmade = str(reason)
            return None
        if made.size != size:
            self.unmade = f"the model's output has {made.size} rows, the batch {size} examples"
            return None
        self.made += 1
        if made.mixed > RULE_ROUNDING:
            self._record.see("examples-mix", number=made.mixed)
            return None
        return made

    def hold_gradients(self, gradients: Sequence[Any]) -> None:
        """Hold the gradients that are clipped against those made beside."""
        made = self.make(len(gradients[0]), RULE_EXAMPLES)
        if made is None:
            return
        total = float(prints(made.gradients).norm())
        pairs = zip(self._record.names, gradients, made.gradients, strict=True)
        for name, by_rule, by_itself in pairs:
            size = max(float(by_itself.norm()), RULE_ROUNDING * total)
            error = float((by_rule[made.rows] - by_itself).norm()) / size if size else 0.0
            if not error <= RULE_ROUNDING:  # NaN, too
                self._record.see("layer-rule", name, error)

    def hold_norms(self, made: Made, norms: Any) -> None:
        """Hold the norms that ghost clipping takes for examples against those of gradients."""
        real = example_norms(made.gradients)
        ratio = real / norms[made.rows].clamp(min=1e-12)
        worst = float(ratio[(ratio - 1).abs().argmax()])
        if abs(worst - 1) > RULE_ROUNDING and float(real.max()) > 0:
            self._record.see("ghost-norm", number=worst)

    def clear(self) -> None:
        """Forget the forward passes of the step that has ended."""
        if self.beside is not None:
            self.beside.clear()
