"""The fingerprints of tensors, to see whether the tensors move outside the private steps.

A fingerprint is the norm of a tensor. The norms of all tensors are computed in one call on their
own device, which costs a pass over the numbers and next to no memory. The fingerprints stay on the
device until the training has ended, and are compared then.
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
    """Return for each tensor whether its fingerprints differ; NaN is equal to NaN.

    Called when the training has ended, as it waits for the device.
    """
    first = here(before)
    second = here(after)
    return (first != second) & ~(np.isnan(first) & np.isnan(second))


class Watched:
    """The tensors that must not change, by name: a model may put another tensor under a name."""

    def __init__(self) -> None:
        self._first: dict[str, torch.Tensor] = {}
        self._joined: dict[str, int] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._first

    def joined(self, name: str) -> int | None:
        """Return the step in which a tensor joined: 0 from the beginning, None if not watched."""
        return self._joined.get(name)

    def add(self, named: Mapping[str, torch.Tensor], step: int) -> None:
        """Watch these tensors from now on."""
        norms = prints(list(named.values()))
        for name, norm in zip(named, norms, strict=True):
            self._first[name] = norm
            self._joined[name] = step

    def changes(self, named: Mapping[str, torch.Tensor]) -> list[tuple[str, int]]:
        """Return the names of tensors that have changed, each with the step in which it joined."""
        names = [name for name in self._first if name in named]
        if not names:
            return []
        first = torch.stack([self._first[name].cpu() for name in names])
        moved = changed(first, prints([named[name] for name in names]))
        return [
            (name, self._joined[name])
            for name, has_moved in zip(names, moved.tolist(), strict=True)
            if has_moved
        ]
