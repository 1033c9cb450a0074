"""Trainings with FSDP2, where weights are spread over ranks, and each adds noise to its shards.

No rank has a whole gradient. So at some steps the whole weights and the whole sum are put together
on all ranks, and each rank computes the gradients of its own examples independently. Clipped and
added up over all ranks, they must give the sum before the noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.distributed.tensor import DTensor

from oraudit.records import Look
from oraudit.records.clipping import EXACT, example_norms, weighted_sum
from oraudit.records.factors import SMALL
from oraudit.ways.opacus.data_parallel import DistributedAudit
from oraudit.ways.opacus.fingerprints import shard
from oraudit.ways.opacus.harmless import harmless
from oraudit.ways.opacus.independent_gradients import IndependentGradients, due
from oraudit.ways.opacus.rules import Rules

__all__ = ["ShardedAudit", "ShardedGradients", "whole"]

#: The most weights of a model that are put together on each rank to look at its clipping.
MOST_WEIGHTS = 1_000_000


class ShardedGradients(IndependentGradients):
    """Computes gradients with the whole weights.

    Attributes
    ----------
    whole
        The whole weights by the ``id`` of their shards, to be set before :meth:`compute`.
    """

    whole: dict[int, torch.Tensor]

    def _value(self, parameter: torch.Tensor) -> torch.Tensor:
        return self.whole[id(parameter)]

    def _through_graph(self, edge: Any, gradient: torch.Tensor) -> list[list[Any]]:
        """Return no gradients: a backward pass of shards needs all ranks."""
        return []


class ShardedAudit(DistributedAudit):
    """An audit of one rank of a training with FSDP2, where each has weights of its own.

    Examples
    --------
    >>> audit = oraudit.attach(optimizer, model, loader)  # on each rank  # doctest: +SKIP
    >>> type(audit).__name__  # doctest: +SKIP
    'ShardedAudit'
    """

    _shared = False
    _meeting_at = "scale_grad"
    _gradients_class = ShardedGradients

    #: The sums of the step under way, where all ranks look at them together.
    _whole_sums: list[Any] | None = None

    def _join(self, numbers: torch.Tensor) -> torch.Tensor:
        return self.meeting.gather(numbers)

    def _names_of_all(self, names: Sequence[str]) -> list[str]:
        return [
            f"{name} of rank {rank}"
            for rank, counts in enumerate(self._layout.looked)
            for name, size in zip(names, counts, strict=True)
            if size
        ]

    # ------------------------------------------------------------------------ the chain of a step

    @harmless
    def _before_accumulating(self) -> None:
        norms = getattr(self._model, "per_sample_gradient_norms", None)
        if norms is not None:
            self._note_batch(len(norms))
            if self._parts == 1:
                self._record.around.note_norms(norms.detach(), self._clip())

    def _summed(self) -> list[torch.Tensor]:
        return [shard(tensor.detach()) for tensor in self._sums()]

    def _ride(self, **options: Any) -> None:
        if self._looks_together():
            # What follows may change these sums: canaries, and what adds no noise to them.
            self._whole_sums = [tensor.clone() for tensor in self._sums()]
        super()._ride(**options)

    def _sums(self) -> list[Any]:
        return [self._optimizer.grad_state[p]["summed_grad"] for p in self._params]

    # ---------------------------------------------------------------------------------- clipping

    def _looks_together(self) -> bool:
        """Return whether all ranks look at the clipping of this step together."""
        return due(self.meeting.steps + 1) and self._numbers <= MOST_WEIGHTS

    def _look_together(self, *, watching: bool) -> None:
        """Compare the sum of all ranks' shards with the examples' gradients on all ranks.

        All ranks call this in the same step, and each part of it that all take part in.
        """
        if not self._looks_together():
            return
        weights = whole([p.detach() for p in self._params])
        summed = whole(self._whole_sums or [p.grad for p in self._params])
        self._whole_sums = None
        added = torch.cat([tensor.reshape(-1) for tensor in summed]) * self._averaged
        part = self._clip_independently(weights) if watching else None
        total = torch.zeros_like(added) if part is None else part[0]
        norms = added.new_full((2,), torch.nan) if part is None else part[1]
        total = self.meeting.add_up(total)
        self._compare_sums(added, total, self.meeting.gather(norms))

    @harmless
    def _clip_independently(self, weights: list[torch.Tensor]) -> Any:
        """Return the sum of this rank's clipped gradients, and the sum and the largest of norms."""
        gradients = self._rules.gradients
        if gradients is None or self._parts != 1:
            return None
        assert isinstance(gradients, ShardedGradients)
        gradients.whole = {id(p): weight for p, weight in zip(self._params, weights, strict=True)}
        norms = self._model.per_sample_gradient_norms.detach()
        computed = self._rules.compute(len(norms)) if self._is_due() else None
        gradients.whole = {}
        if computed is None:
            return None
        self._rules.check_norms(computed, norms)
        if not computed.whole:
            return None
        real = example_norms(computed.gradients)
        factors = (self._clip() / (real + SMALL)).clamp(max=1.0)
        total = torch.cat([weighted_sum(gradient, factors) for gradient in computed.gradients])
        clipped = factors * real
        return total, torch.stack([clipped.sum(), clipped.max()])

    @harmless
    def _compare_sums(self, added: Any, total: Any, norms: Any) -> None:
        """Note how far the sum is off, on the first rank, if all ranks have computed gradients."""
        self._rules.clear()
        if self.meeting.rank or bool(norms.isnan().any()):
            return
        lengths = float(norms[:, 0].sum())
        distance = float((added - total).norm())
        self._record.looks.append(
            Look(
                step=self._record.step,
                error=distance / lengths if lengths > 0 else distance,
                tolerance=EXACT + SMALL / self._clip(),
                largest=float(norms[:, 1].max()) / self._clip(),
            )
        )

    def _made_rules(self) -> Rules:
        if self._numbers > MOST_WEIGHTS:
            reason = f"{self._numbers} sharded weights are too many to be put together"
            return Rules(None, self._record, reason)
        return super()._made_rules()


def whole(tensors: Sequence[Any]) -> list[torch.Tensor]:
    """Return tensors put together from the parts of all ranks, which must all call this."""
    return [t.full_tensor() if isinstance(t, DTensor) else t for t in tensors]
