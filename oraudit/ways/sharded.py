"""Weights that are spread over ranks, and gradients made beside with the whole ones."""

from collections.abc import Sequence
from typing import Any

import torch
from torch.distributed.tensor import DTensor

from oraudit.ways.beside import Beside

__all__ = ["MOST_WEIGHTS", "ShardedBeside", "local", "whole"]

#: The most weights of a model that are gathered on each rank to look at its clipping.
MOST_WEIGHTS = 1_000_000


def local(tensor: Any) -> torch.Tensor:
    """The part of a tensor that this process has."""
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def whole(tensors: Sequence[Any]) -> list[torch.Tensor]:
    """Tensors put together from the parts of all ranks, which must all call this."""
    return [each.full_tensor() if isinstance(each, DTensor) else each for each in tensors]


class ShardedBeside(Beside):
    """Makes gradients with whole weights; :attr:`whole` must have them, by the id of the shard."""

    whole: dict[int, torch.Tensor]

    def _value(self, parameter: torch.Tensor) -> torch.Tensor:
        return self.whole[id(parameter)]

    def _through_graph(self, edge: Any, gradient: torch.Tensor) -> list[list[Any]]:
        """Nothing: backward passes of shards are those of all ranks."""
        return []
