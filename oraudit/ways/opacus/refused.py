"""The optimizers that cannot be audited, each refused by its name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opacus.optimizers import DPOptimizer
from torch.distributed.tensor import DTensor

__all__ = ["CannotAttach", "check_optimizer", "check_placement"]


class CannotAttach(TypeError):
    """The optimizer cannot be audited; the text says why."""


def check_optimizer(optimizer: Any) -> None:
    """Refuse an optimizer that is none of Opacus, or that wraps one without hooks."""
    kind = type(optimizer).__name__
    if not isinstance(optimizer, DPOptimizer):
        raise CannotAttach(
            f"optimizer is {kind}, not an optimizer of opacus.optimizers: give what "
            "PrivacyEngine.make_private has returned"
        )
    wrapped = optimizer.original_optimizer
    if not hasattr(wrapped, "_optimizer_step_pre_hooks"):  # as that of Accelerate, which is a shell
        raise CannotAttach(
            f"optimizer is made of {type(wrapped).__name__}, whose steps have no hooks: give "
            "PrivacyEngine.make_private the optimizer itself, before another library wraps it"
        )


def check_placement(optimizer: Any, parameters: Sequence[Any], *, shared: bool) -> None:
    """Refuse weights that are not placed as DDP (``shared``) or FSDP2 place them."""
    kind = type(optimizer).__name__
    sharded = sum(isinstance(p, DTensor) for p in parameters)
    expected = 0 if shared else len(parameters)
    if sharded != expected:
        raise CannotAttach(
            f"optimizer is {kind}: {sharded} of {len(parameters)} weights are sharded"
        )
    for p in parameters:
        if isinstance(p, DTensor) and (p.device_mesh.ndim != 1 or not p.placements[0].is_shard()):
            raise CannotAttach(
                f"optimizer is {kind}: its weights are placed as {p.placements}, and only shards "
                "of all ranks can be joined"
            )
