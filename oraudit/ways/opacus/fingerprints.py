"""The fingerprints of tensors, to see whether they move between two private steps or beside them.

The norm of each tensor, all in one call, where the tensors are: that costs a pass over them and
no memory. They stay there, and are compared when the training has ended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from oraudit.records.arrays import here

__all__ = ["Watched", "changed", "prints", "shard"]


def prints(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return the fingerprints of tensors."""
    if not tensors:
        return torch.zeros(0)
    with torch.no_grad():
        norms = torch._foreach_norm([shard(tensor) for tensor in tensors])
        first = norms[0]
        if any(norm.dtype != first.dtype or norm.device != first.device for norm in norms):
            norms = [norm.to(first) for norm in norms]
        return torch.stack(norms)


def shard(tensor: Any) -> torch.Tensor:
    """Return the part of a tensor that this process has, if it is spread over processes."""
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


def changed(before: Any, after: Any) -> NDArray[np.bool_]:
    """Return which fingerprints differ, when the training has ended; NaN is equal to NaN."""
    first = here(before)
    second = here(after)
    return (first != second) & ~(np.isnan(first) & np.isnan(second))


class Watched:
    """The tensors that ought not to change, by name, as a name may get another tensor."""

    def __init__(self) -> None:
        self._first: dict[str, torch.Tensor] = {}
        self._joined: dict[str, int] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._first

    def add(self, named: Mapping[str, torch.Tensor], step: int) -> None:
        """Watch these tensors from now on."""
        norms = prints(list(named.values()))
        for name, norm in zip(named, norms, strict=True):
            self._first[name] = norm
            self._joined[name] = step

    def changes(self, named: Mapping[str, torch.Tensor]) -> list[tuple[str, int]]:
        """Return the names of tensors that are not as at first, and the step of that first."""
        names = [name for name in self._first if name in named]
        if not names:
            return []
        first = torch.stack([self._first[name].cpu() for name in names])
        moved = changed(first, prints([named[name] for name in names]))
        return [
            (name, self._joined[name])
            for name, yes in zip(names, moved.tolist(), strict=True)
            if yes
        ]
