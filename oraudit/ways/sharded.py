"""Trainings with FSDP2, where weights are spread over ranks, and each adds noise to its shards.

No rank has a whole gradient. So at some steps the whole weights and the whole sum are put together
on all ranks, each makes the gradients of its own examples beside, and the sum of these is what the
sum before the noise must be.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.distributed.tensor import DTensor

from oraudit.records import Look
from oraudit.records.causes import SMALL
from oraudit.records.clipping import EXACT, example_norms, weighted_sum
from oraudit.ways.beside import Beside, due
from oraudit.ways.distributed import DistributedAudit
from oraudit.ways.fingerprints import shard
from oraudit.ways.opacus import RULE_ROUNDING, _harmless

__all__ = ["ShardedAudit"]

#: The most weights of a model that are put together on each rank to look at its clipping.
MOST_WEIGHTS = 1_000_000


class ShardedBeside(Beside):
    """Makes gradients with whole weights; :attr:`whole` must have them, by the id of the shard."""

    whole: dict[int, torch.Tensor]

    def _value(self, parameter: torch.Tensor) -> torch.Tensor:
        return self.whole[id(parameter)]

    def _through_graph(self, edge: Any, gradient: torch.Tensor) -> list[list[Any]]:
        """Nothing: backward passes of shards are those of all ranks."""
        return []


class ShardedAudit(DistributedAudit):
    """An audit of one rank of a training with FSDP2, where each has weights of its own."""

    _shared = False
    _meeting_at = "scale_grad"
    _maker = ShardedBeside

    #: The sums of the step under way, where all ranks look at them together.
    _kept: list[Any] | None = None

    def _join(self, numbers: torch.Tensor) -> torch.Tensor:
        return self.meeting.gather(numbers)

    def _names_of_all(self, names: Sequence[str]) -> list[str]:
        return [
            f"{name} of rank {rank}"
            for rank, counts in enumerate(self._counts)
            for name, size in zip(names, counts, strict=True)
            if size
        ]

    # ------------------------------------------------------------------------ the chain of a step

    @_harmless
    def _before_accumulating(self) -> None:
        norms = getattr(self._model, "per_sample_gradient_norms", None)
        if norms is not None:
            self._note_batch(len(norms))
            if self._parts == 1:
                self._record.around.note_norms(norms.detach(), self._clip())

    def _summed(self) -> list[torch.Tensor]:
        return [shard(each.detach()) for each in self._sums()]

    def _ride(self, **options: Any) -> None:
        if self._looks_together():
            # What follows may change these sums: canaries, and what adds no noise to them.
            self._kept = [each.clone() for each in self._sums()]
        super()._ride(**options)

    def _sums(self) -> list[Any]:
        return [self._optimizer.grad_state[p]["summed_grad"] for p in self._params]

    # ---------------------------------------------------------------------------------- clipping

    def _looks_together(self) -> bool:
        """Whether all ranks look at the clipping of this step together."""
        return due(self.meeting.steps + 1) and self._numbers <= MOST_WEIGHTS

    def _look_together(self, *, watching: bool) -> None:
        """Hold the sum of all ranks' shards against the examples' gradients on all ranks.

        All ranks call this in the same step, and each part of it that all take part in.
        """
        if not self._looks_together():
            return
        weights = whole([p.detach() for p in self._params])
        summed = whole(self._kept or [p.grad for p in self._params])
        self._kept = None
        added = torch.cat([each.reshape(-1) for each in summed]) * self._averaged
        own = self._clip_beside(weights) if watching else None
        total = torch.zeros_like(added) if own is None else own[0]
        norms = added.new_full((2,), torch.nan) if own is None else own[1]
        total = self.meeting.add_up(total)
        self._compare_sums(added, total, self.meeting.gather(norms))

    @_harmless
    def _clip_beside(self, weights: list[torch.Tensor]) -> Any:
        """The sum of this rank's clipped gradients, made beside; the sum and largest of norms."""
        if self._beside is None or self._parts != 1:
            return None
        assert isinstance(self._beside, ShardedBeside)
        self._beside.whole = {id(p): each for p, each in zip(self._params, weights, strict=True)}
        norms = self._model.per_sample_gradient_norms.detach()
        made = self._make(len(norms), None)
        self._beside.whole = {}
        if made is None:
            return None
        if made.mixed > RULE_ROUNDING:
            self._record.see("examples-mix", number=made.mixed)
            return None
        self._hold_norms(made, norms)
        if not made.whole:
            return None
        real = example_norms(made.gradients)
        factors = (self._clip() / (real + SMALL)).clamp(max=1.0)
        total = torch.cat([weighted_sum(each, factors) for each in made.gradients])
        clipped = factors * real
        return total, torch.stack([clipped.sum(), clipped.max()])

    @_harmless
    def _compare_sums(self, added: Any, total: Any, norms: Any) -> None:
        """Note how far the sum is off, on the first rank, if all ranks have made gradients."""
        self._beside_clear()
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

    def _make_beside(self) -> Beside | None:
        if self._numbers > MOST_WEIGHTS:
            self._unmade = f"{self._numbers} sharded weights are too many to be put together"
            return None
        return super()._make_beside()


def whole(tensors: Sequence[Any]) -> list[torch.Tensor]:
    """Tensors put together from the parts of all ranks, which must all call this."""
    return [each.full_tensor() if isinstance(each, DTensor) else each for each in tensors]
