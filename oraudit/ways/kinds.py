"""Which audit the training of a private optimizer of Opacus gets."""

from __future__ import annotations

from typing import Any

from opacus.optimizers import DPOptimizer

from oraudit.ways.distributed import DistributedAudit
from oraudit.ways.opacus import OpacusAudit
from oraudit.ways.sharded import ShardedAudit

__all__ = ["audit"]


def audit(optimizer: Any, *args: Any, **options: Any) -> OpacusAudit:
    """The audit of a private optimizer, in one process or on one rank of many."""
    kind: type[OpacusAudit] = OpacusAudit
    if isinstance(optimizer, DPOptimizer):
        names = " ".join(base.__name__ for base in type(optimizer).__mro__)
        if "FSDP" in names:
            kind = ShardedAudit
        elif "Distributed" in names:
            kind = DistributedAudit
    return kind(optimizer, *args, **options)
