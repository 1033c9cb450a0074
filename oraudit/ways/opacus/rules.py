"""Checks of a library's gradients and norms against gradients that are computed independently."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oraudit.records import Record
from oraudit.records.clipping import example_norms
from oraudit.ways.opacus.fingerprints import prints as norms_of_tensors
from oraudit.ways.opacus.independent_gradients import (
    ExampleGradients,
    IndependentGradients,
    NotComputed,
)

__all__ = ["RULE_EXAMPLES", "RULE_ROUNDING", "Rules"]

#: The examples of a batch whose gradients are computed independently to check the layers' rules.
RULE_EXAMPLES = 16

#: The largest error of a layer's rule that rounding explains, as a share of a gradient or norm.
RULE_ROUNDING = 0.01

#: A norm below this is 0 up to rounding.
_LEAST_NORM = 1e-12


class Rules:
    """Checks the layers' rules of a library against gradients that are computed without them.

    Parameters
    ----------
    gradients
        The independent gradients of single examples; None if they cannot be computed.
    record
        The record that events are written into.
    reason
        The reason why nothing was compared so far, as the report says it.

    Attributes
    ----------
    compared
        The number of batches whose gradients were computed independently.
    """

    def __init__(
        self,
        gradients: IndependentGradients | None,
        record: Record,
        reason: str = "no step was due",
    ) -> None:
        self.gradients = gradients
        self.reason = reason
        self.compared = 0
        self._record = record

    def compute(self, size: int, most: int | None = None) -> ExampleGradients | None:
        """Return the gradients of up to ``most`` examples of this batch of ``size`` examples.

        Returns None if they cannot be computed, and also if examples depend on each other, which
        the record notes.
        """
        if self.gradients is None:
            return None
        try:
            computed = self.gradients.compute(most)
        except NotComputed as error:
            self.reason = str(error)
            return None
        if computed.size != size:
            self.reason = f"the model's output has {computed.size} rows, the batch {size} examples"
            return None
        self.compared += 1
        if computed.mixed > RULE_ROUNDING:
            self._record.see("examples-mix", number=computed.mixed)
            return None
        return computed

    def check_gradients(self, gradients: Sequence[Any]) -> None:
        """Compare the gradients that are clipped with the independent ones, tensor by tensor."""
        computed = self.compute(len(gradients[0]), RULE_EXAMPLES)
        if computed is None:
            return
        total = float(norms_of_tensors(computed.gradients).norm())
        # A tensor with hardly any gradient is mostly rounding: compare it with all tensors.
        least = RULE_ROUNDING * total
        tensors = zip(self._record.names, gradients, computed.gradients, strict=True)
        for name, by_rule, independent in tensors:
            norm = max(float(independent.norm()), least)
            distance = float((by_rule[computed.rows] - independent).norm())
            error = distance / norm if norm else 0.0
            if not error <= RULE_ROUNDING:  # also if it is NaN
                self._record.see("layer-rule", name, error)

    def check_norms(self, computed: ExampleGradients, norms: Any) -> None:
        """Compare the norms of examples in ghost clipping with those of independent gradients.

        An example is left out if neither norm is finite: then the sum is not finite, either, and
        the check "not-finite" reports it.
        """
        expected = example_norms(computed.gradients)
        norm = norms[computed.rows]
        is_close = (expected - norm).abs() <= RULE_ROUNDING * norm + _LEAST_NORM  # False for NaN
        agrees = is_close & norm.isfinite()
        is_wrong = ~agrees & (expected.isfinite() | norm.isfinite())
        if not is_wrong.any():
            return
        ratios = expected[is_wrong] / norm[is_wrong].clamp(min=_LEAST_NORM)
        # The farthest from 1; NaN only if no other ratio is wrong.
        worst = (ratios - 1).abs().nan_to_num(nan=-1.0).argmax()
        self._record.see("ghost-norm", number=float(ratios[worst]))

    def clear(self) -> None:
        """Forget the forward passes of the step that has ended."""
        if self.gradients is not None:
            self.gradients.clear()
