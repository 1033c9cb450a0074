"""The numbers of a step's noise for tensors of PyTorch, in few calls and without waiting.

It measures the same numbers as :func:`oraudit.records.noise.step_numbers`, the plain version.

On a GPU a call takes longer than its work. So all tensors are copied into one table, which first
has the clipped sum, then the noise, then their products; each of these takes one call. On a CPU
this is done for models whose table stays in the cache. For larger models reading takes longest
there, so all numbers of a block are computed while it is in the cache, and nothing is copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import torch
from torch import nn

__all__ = ["Bench", "alike"]

#: The most weights of a model that stay in the cache of a CPU, and are measured at once there.
SMALL = 262_144

#: The numbers of a block: longer sums in single precision have a rounding error that would show.
BLOCK = 65_536

#: The fewest numbers of a block on the bench.
NARROWEST = 256

#: The most blocks of a tensor on the bench.
MOST_BLOCKS = 512


def alike(tensors: Sequence[Any]) -> bool:
    """Return whether all tensors are ordinary, not empty, and of one type and device."""
    first = tensors[0]
    return all(
        type(tensor) in (torch.Tensor, torch.nn.Parameter)
        and tensor.dtype == first.dtype
        and tensor.device == first.device
        and tensor.numel() > 0
        for tensor in tensors
    )


class Bench:
    """Measures the noise of steps whose tensors are like those of the first.

    Parameters
    ----------
    tensors
        The tensors of the first step.
    places
        The places of the sample in each tensor.
    head
        The most numbers that are kept of the beginning of each tensor.
    """

    def __init__(self, tensors: Sequence[Any], places: Sequence[slice], head: int) -> None:
        first = tensors[0]
        self._shapes = [tensor.shape for tensor in tensors]
        self._kind = (first.dtype, first.device)
        self._precision = torch.finfo(first.dtype).eps
        self._places = list(places)
        self._head = head
        self._blocks: torch.Tensor | None = None
        if first.device.type != "cpu" or sum(tensor.numel() for tensor in tensors) <= SMALL:
            self._lay_out(tensors)

    def _lay_out(self, tensors: Sequence[Any]) -> None:
        """Give each tensor whole rows of one table, so that sums of rows are sums of tensors."""
        first = tensors[0]
        sizes = [tensor.numel() for tensor in tensors]
        width = max(-(-max(sizes) // MOST_BLOCKS), NARROWEST)
        rows = [-(-size // width) for size in sizes]
        starts = [0, *accumulate(rows)]
        dtype = first.dtype if first.dtype.itemsize >= 4 else torch.float32
        self._blocks = torch.zeros(starts[-1], width, dtype=dtype, device=first.device)
        self._flat = self._blocks.view(-1)
        self._views = [
            self._flat[start * width :][:size].view(tensor.shape)
            for start, size, tensor in zip(starts, sizes, tensors, strict=False)
        ]
        # The rows of each tensor; a short tensor gets the last row, of zeros, for the missing ones.
        owned = torch.full((len(sizes), max(rows)), starts[-1])
        for place, (start, end) in enumerate(pairwise(starts)):
            owned[place, : end - start] = torch.arange(start, end)
        self._owned = owned.to(first.device)
        beginnings = [start * width for start in starts[:-1]]
        sampled = [
            torch.arange(first, first + size, places.step)
            for first, size, places in zip(beginnings, sizes, self._places, strict=True)
        ]
        heads = [
            torch.arange(first, first + min(size, self._head))
            for first, size in zip(beginnings, sizes, strict=True)
        ]
        # Of the numbers that are kept, the first ones are the sample, and the others are heads.
        self._sampled = sum(map(len, sampled))
        self._kept = torch.cat([*sampled, *heads]).to(first.device)

    def fits(self, tensors: Sequence[Any]) -> bool:
        """Return whether these tensors can be measured here."""
        return (
            [tensor.shape for tensor in tensors] == self._shapes
            and alike(tensors)
            and (tensors[0].dtype, tensors[0].device) == self._kind
        )

    @torch.no_grad()
    def measure(self, clipped: Sequence[Any], noisy: Sequence[Any]) -> tuple[Any, Any, Any]:
        """Return a step's numbers for :meth:`finish`, and samples of its clipped sum and noise."""
        if self._blocks is None:
            return self._in_blocks(clipped, noisy)
        return self._at_once(self._blocks, list(clipped), list(noisy))

    @torch.no_grad()
    def finish(self, measured: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Return the numbers that are kept of each step, from what :meth:`measure` returned."""
        if self._blocks is None:
            return list(measured)
        return self._of_tensors(self._blocks, torch.stack(list(measured)))

    @torch.no_grad()
    def sample(self, tensors: Sequence[Any]) -> Any:
        """Return the numbers of tensors at the places of the sample."""
        if self._blocks is None:
            return self._sample([_flat(tensor) for tensor in tensors])
        torch._foreach_copy_(self._views, list(tensors))
        return self._flat.index_select(0, self._kept[: self._sampled])

    def _sample(self, rows: Sequence[Any]) -> Any:
        pairs = zip(rows, self._places, strict=True)
        return torch.cat([row[places] for row, places in pairs])

    def _at_once(self, blocks: Any, clipped: list[Any], noisy: list[Any]) -> tuple[Any, Any, Any]:
        views = self._views
        torch._foreach_copy_(views, clipped)
        lengths_before = torch.linalg.vector_norm(blocks, dim=1)
        beneath = self._flat.index_select(0, self._kept)
        torch._foreach_sub_(views, noisy)
        # Now the table has clipped minus noisy: the noise with its sign turned.
        lengths = torch.linalg.vector_norm(blocks, dim=1)
        largest = _largest(blocks)
        noise = self._flat.index_select(0, self._kept).neg_()
        torch._foreach_mul_(views, clipped)
        products = blocks.sum(1).neg_()
        measured = torch.cat([lengths, products, lengths_before, largest, noise, beneath])
        return measured, beneath[: self._sampled], noise[: self._sampled]

    def _of_tensors(self, blocks: Any, measured: Any) -> list[tuple[Any, ...]]:
        """Sum up the numbers of a tensor's rows, for each tensor and step."""
        rows = len(blocks)
        of_rows = measured[:, : 4 * rows].unflatten(1, (4, rows))
        of_tensors = nn.functional.pad(of_rows, (0, 1))[:, :, self._owned]
        lengths, products, lengths_before, largest = of_tensors.unbind(1)
        noise, beneath = measured[:, 4 * rows :].chunk(2, 1)
        sample, heads = noise.tensor_split([self._sampled], 1)
        magnitudes = sample.abs() + beneath[:, : self._sampled].abs()
        parts = [
            (lengths**2).sum(2),
            products.sum(2),
            (lengths_before**2).sum(2),
            largest.amax(2),
            sample,
            self._precision * magnitudes.amax(1, keepdim=True),
            heads,
        ]
        # All in one, as memory of a GPU is given in pieces of half a kilobyte.
        table = torch.cat(parts, 1).float()
        columns = table.split([part.shape[1] for part in parts], 1)
        return list(zip(*columns, strict=True))

    def _in_blocks(self, clipped: Sequence[Any], noisy: Sequence[Any]) -> tuple[Any, Any, Any]:
        before = [_flat(tensor) for tensor in clipped]
        after = [_flat(tensor) for tensor in noisy]
        numbers = []
        counts = []
        for whole, whole_after in zip(before, after, strict=True):
            blocks = whole.split(BLOCK)
            counts.append(len(blocks))
            for block, block_after in zip(blocks, whole_after.split(BLOCK), strict=True):
                noise = block_after - block
                numbers += [torch.dot(noise, noise), torch.dot(noise, block)]
                numbers += [torch.dot(block, block), *torch.aminmax(noise)]
        tensors = torch.stack(numbers).reshape(-1, 5).split(counts)
        sums = torch.stack([part[:, :3].sum(0) for part in tensors], 1)
        largest = torch.stack([part[:, 3:].abs().amax() for part in tensors])
        beneath = self._sample(before)
        sample = self._sample(after).sub_(beneath)
        heads = torch.cat([tensor[: self._head] for tensor in after])
        heads -= torch.cat([tensor[: self._head] for tensor in before])
        rounding = self._precision * (beneath.abs() + sample.abs()).amax(0, keepdim=True)
        return (*sums, largest, sample.float(), rounding, heads.float()), beneath, sample


def _largest(rows: Any) -> Any:
    """Return the largest absolute number of each row."""
    if rows.is_cpu:  # which is slow at norms other than the usual one
        return rows.abs().amax(1)
    return torch.linalg.vector_norm(rows, float("inf"), dim=1)


def _flat(tensor: Any) -> Any:
    """Return all numbers in one row, in single precision at least."""
    row = tensor.detach().reshape(-1)
    return row.float() if row.dtype.itemsize < 4 else row
