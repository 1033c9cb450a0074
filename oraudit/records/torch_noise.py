"""The numbers of a step's noise for tensors of PyTorch, in few calls and without waiting.

It returns what :func:`oraudit.records.noise.step_numbers` returns, which is the same in plain
words. On a GPU a call takes longer than its work, so all tensors share one call, and the gradient
is copied once, for the noise itself. On a CPU reading takes longest, so all is computed of a block
of numbers while it is in the cache, and nothing is copied.
"""

import itertools
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import torch

__all__ = ["alike", "step_numbers"]

#: Of models with at most so many numbers all tensors are copied into one row: their steps are
#: short, and a call for each tensor would show. Larger ones have no room for a second copy.
SMALL = 1_000_000

#: So many numbers are summed at a time on a CPU, where long sums in single precision are off by
#: more than chance.
BLOCK = 65_536


def alike(tensors: Sequence[Any]) -> bool:
    """Whether all tensors are ordinary ones of one kind, with numbers in them."""
    first = tensors[0]
    return all(
        type(each) in (torch.Tensor, torch.nn.Parameter)
        and each.dtype == first.dtype
        and each.device == first.device
        and each.numel() > 0
        for each in tensors
    )


@torch.no_grad()
def step_numbers(
    clipped: Sequence[Any], noisy: Sequence[Any], unit: float, places: Sequence[slice], head: int
) -> tuple[Any, ...]:
    """The numbers that are kept of a step, on the device of its tensors."""
    precision = torch.finfo(clipped[0].dtype).eps
    measure = _in_blocks if clipped[0].device.type == "cpu" else _together
    sums, largest, sample, beneath, heads = measure(clipped, noisy, places, head)
    squares, products, squares_before = sums / unit**2
    sample = sample.div_(unit)
    rounding = precision * (beneath.div_(unit).abs_() + sample.abs()).max()
    return (
        squares,
        products,
        squares_before,
        largest / unit,
        sample.float(),
        rounding,
        heads.div_(unit).float(),
    )


def _in_blocks(
    clipped: Sequence[Any], noisy: Sequence[Any], places: Sequence[slice], head: int
) -> tuple[Any, ...]:
    """Sums of squares, products and squares of the sum; largest numbers; and the samples."""
    before = [_flat(each) for each in clipped]
    after = [_flat(each) for each in noisy]
    numbers = []
    counts = []
    for whole, its_noisy in zip(before, after, strict=True):
        blocks = whole.split(BLOCK)
        counts.append(len(blocks))
        for block, its_end in zip(blocks, its_noisy.split(BLOCK), strict=True):
            noise = its_end - block
            numbers += [torch.dot(noise, noise), torch.dot(noise, block), torch.dot(block, block)]
            numbers += torch.aminmax(noise)
    table = torch.stack(numbers).reshape(-1, 5)
    if len(table) == len(before):
        sums = table[:, :3]
        ends = table[:, 3:]
    else:
        tensors = table.split(counts)
        sums = torch.stack([each[:, :3].sum(0) for each in tensors])
        ends = torch.stack([each[:, 3:].abs().amax(0) for each in tensors])
    beneath = torch.cat([each[where] for each, where in zip(before, places, strict=True)])
    sample = torch.cat([each[where] for each, where in zip(after, places, strict=True)])
    heads = torch.cat([each[:head] for each in after])
    heads -= torch.cat([each[:head] for each in before])
    return sums.T, ends.abs().amax(1), sample.sub_(beneath), beneath, heads


def _together(
    clipped: Sequence[Any], noisy: Sequence[Any], places: Sequence[slice], head: int
) -> tuple[Any, ...]:
    """The same of all tensors in one call each."""
    sizes = [each.numel() for each in clipped]
    if sum(sizes) <= SMALL:
        row = _joined(clipped)
        difference = _joined(noisy).sub_(row)
        steps = tuple(where.step for where in places)
        sampled, begun = _indices(tuple(sizes), steps, head, row.device)
        beneath = row[sampled]
        sample = difference[sampled]
        heads = difference[begun]
        before = list(row.split(sizes))
        noise = list(difference.split(sizes))
    else:
        before = [_flat(each) for each in clipped]
        # The only copy of the gradient; in the end it becomes the products of noise and sum.
        noise = list(torch._foreach_sub([_flat(each) for each in noisy], before))
        beneath = torch.cat([each[where] for each, where in zip(before, places, strict=True)])
        sample = torch.cat([each[where] for each, where in zip(noise, places, strict=True)])
        heads = torch.cat([each[:head] for each in noise])
    sums, largest = _use_up(noise, before)
    return sums, largest, sample, beneath, heads


def _use_up(noise: list[Any], before: list[Any]) -> tuple[Any, Any]:
    """Sums of squares, products and squares of the sum, and largest numbers; the noise is lost.

    There is no such call for the sum of signed numbers: it is twice the sum of the positive ones
    less the sum of all without their signs.
    """
    lengths = torch._foreach_norm(noise)
    largest = torch._foreach_norm(noise, float("inf"))
    lengths_before = torch._foreach_norm(before)
    torch._foreach_mul_(noise, before)
    without_signs = torch._foreach_norm(noise, 1)
    torch._foreach_clamp_min_(noise, 0.0)
    positive = torch._foreach_norm(noise, 1)
    columns = (lengths, lengths_before, largest, without_signs, positive)
    table = torch.stack([each for column in columns for each in column]).reshape(len(columns), -1)
    return torch.stack([table[0] ** 2, 2 * table[4] - table[3], table[1] ** 2]), table[2]


def _joined(tensors: Sequence[Any]) -> Any:
    """A copy of all numbers in a row; those of low precision as single-precision ones."""
    row = torch._C._nn.flatten_dense_tensors(list(tensors))
    if len(tensors) == 1:  # which may be the tensor itself
        row = row.clone()
    return row.float() if row.dtype.itemsize < 4 else row


@lru_cache(maxsize=8)
def _indices(
    sizes: tuple[int, ...], steps: tuple[int, ...], head: int, device: Any
) -> tuple[Any, Any]:
    """Where the sample and the beginnings of tensors stand in a row of all their numbers."""
    ends = itertools.accumulate(sizes)
    beginnings = [end - size for end, size in zip(ends, sizes, strict=True)]
    sampled = [
        torch.arange(first, first + size, step)
        for first, size, step in zip(beginnings, sizes, steps, strict=True)
    ]
    begun = [
        torch.arange(first, first + min(size, head))
        for first, size in zip(beginnings, sizes, strict=True)
    ]
    return torch.cat(sampled).to(device), torch.cat(begun).to(device)


def _flat(tensor: Any) -> Any:
    """All numbers in a row; those of low precision as single-precision ones."""
    row = tensor.detach().reshape(-1)
    return row.float() if row.dtype.itemsize < 4 else row
