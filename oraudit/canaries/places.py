"""The weights of canaries in the tensors of a model, and what is done to the sums there.

Each canary has a weight of its own. In a tensor they lie at equal distances, so that reading and
adding take one call for each tensor. Nothing here waits for a device.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from oraudit.records.arrays import namespace

__all__ = ["Places", "contiguous_copy", "spread", "to_device"]


class Places:
    """The weights of n canaries, of which this process may have only some.

    Parameters
    ----------
    n
        The number of canaries.
    sizes
        The numbers of weights of all tensors.
    tensors_here
        The numbers of the first tensor in this process, and of the one after the last.

    Attributes
    ----------
    own
        The canaries of this process.
    counts
        The number of canaries in each tensor of this process.
    slices
        The weights of the canaries in each of these tensors; None for a tensor without canaries.
    """

    def __init__(self, n: int, sizes: Sequence[int], tensors_here: tuple[int, int]) -> None:
        counts = spread(n, sizes)
        first, last = tensors_here
        begin = sum(counts[:first])
        self.own = slice(begin, begin + sum(counts[first:last]))
        self.counts = counts[first:last]
        self.slices = [
            _strided(size, count)
            for size, count in zip(sizes[first:last], self.counts, strict=True)
        ]

    def take(self, tensors: Sequence[Any]) -> Any:
        """Copy the numbers of tensors at the canaries' weights into a row."""
        xp = namespace(tensors[0])
        views = self._views(tensors)
        if not views:
            return np.zeros(0) if xp is np else tensors[0].new_zeros(0).float()
        row = xp.concatenate(views)
        if row.dtype.itemsize >= 4:
            return row
        return row.astype(np.float32) if xp is np else row.float()

    def add(self, tensors: Sequence[Any], row: Any) -> None:
        """Add a row of numbers to tensors at the canaries' weights, in place."""
        xp = namespace(tensors[0])
        if xp is np:
            for view, piece in zip(self._views(tensors), self._pieces(row), strict=True):
                view += piece.astype(view.dtype)
            return
        with xp.no_grad():
            rows = [tensor if tensor.is_contiguous() else tensor.contiguous() for tensor in tensors]
            xp._foreach_add_(self._views(rows), self._pieces(row))
            for tensor, copy in zip(tensors, rows, strict=True):
                if copy is not tensor:
                    tensor.copy_(copy)

    def with_row(self, tensors: Sequence[Any], row: Any) -> list[Any]:
        """Copy tensors, with a row of numbers at the canaries' weights."""
        copies = [contiguous_copy(tensor) for tensor in tensors]
        for view, piece in zip(self._views(copies), self._pieces(row), strict=True):
            view[:] = piece
        return copies

    def _views(self, tensors: Sequence[Any]) -> list[Any]:
        """Return each tensor's numbers at the canaries' weights; in place if it is contiguous."""
        xp = namespace(tensors[0])
        views = []
        for tensor, weights, count in zip(tensors, self.slices, self.counts, strict=True):
            if weights is None:
                continue
            if xp is not np and tensor.is_contiguous():  # one call of PyTorch instead of two
                views.append(tensor.as_strided((count,), (weights.step,), tensor.storage_offset()))
            else:
                views.append(tensor.reshape(-1)[weights])
        return views

    def _pieces(self, row: Any) -> Sequence[Any]:
        """Return the parts of a row that belong to the tensors with canaries."""
        counts = [count for count in self.counts if count]
        if namespace(row) is np:
            return np.split(row, np.cumsum(counts)[:-1]) if counts else []
        pieces: Sequence[Any] = row.split(counts)
        return pieces


def spread(n: int, sizes: Sequence[int]) -> list[int]:
    """Return the numbers of n canaries in each tensor, by its share of all weights.

    >>> spread(5, [10, 1, 89])
    [0, 0, 5]
    >>> spread(100, [10, 1, 89])
    [10, 1, 89]
    """
    ends = np.cumsum([0, *sizes], dtype=object)
    return [int(count) for count in np.diff(ends * n // ends[-1])]


def _strided(size: int, count: int) -> slice | None:
    """Return ``count`` places of a tensor, evenly spread; None if there are none."""
    if not count:
        return None
    stride = size // count
    return slice(0, count * stride, stride)


def contiguous_copy(array: Any) -> Any:
    """Return a copy of an array or tensor that is contiguous in memory."""
    if namespace(array) is np:
        return np.array(array, order="C")
    import torch

    return array.clone(memory_format=torch.contiguous_format)


def to_device(numbers: Any, device: Any) -> Any:
    """Return numbers of the host as a tensor on a device, without waiting for the device."""
    import torch

    tensor = torch.from_numpy(numbers)
    if device.type == "cuda":
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)
