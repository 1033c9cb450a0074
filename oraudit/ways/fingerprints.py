"""Fingerprints of tensors, to see whether they move between two private steps or beside them.

The norm of each tensor, all in one call, where the tensors are: that costs a pass over them and
no memory. Two fingerprints are compared there, too; what came out is read when the training ends.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

__all__ = ["Watched", "changed", "prints"]


def prints(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """The fingerprints of some tensors."""
    if not tensors:
        return torch.zeros(0)
    with torch.no_grad():
        norms = torch._foreach_norm([each.detach() for each in tensors])
        return torch.stack([norm.to(norms[0]) for norm in norms])


def changed(before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
    """Which fingerprints differ; one that is not a number is no other one."""
    return (before != after) & ~(before.isnan() & after.isnan())


class Watched:
    """Tensors that ought not to change, by name; some may join later."""

    def __init__(self) -> None:
        self._tensors: dict[str, torch.Tensor] = {}
        self._first: dict[str, torch.Tensor] = {}
        self._joined: dict[str, int] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._tensors

    def add(self, named: dict[str, torch.Tensor], step: int) -> None:
        """Watch these from now on."""
        norms = prints(list(named.values()))
        for (name, tensor), norm in zip(named.items(), norms, strict=True):
            self._tensors[name] = tensor
            self._first[name] = norm
            self._joined[name] = step

    def changes(self) -> list[tuple[str, int]]:
        """The names of those that are not as they were at first, and the step of that first."""
        if not self._tensors:
            return []
        first = torch.stack([self._first[name].cpu() for name in self._tensors])
        moved = changed(first, prints(list(self._tensors.values())).cpu())
        names = [name for name, yes in zip(self._tensors, moved.tolist(), strict=True) if yes]
        return [(name, self._joined[name]) for name in names]


def local(numbers: Any) -> NDArray[Any]:
    """Some numbers of a device, here."""
    return np.asarray(numbers.detach().cpu())
