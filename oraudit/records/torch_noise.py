"""The numbers of a step's noise for tensors of PyTorch, in few calls and without waiting.

It returns what :func:`oraudit.records.noise.step_numbers` returns, which is the same in plain
words. On a GPU a call takes longer than its work, so all tensors share one call; on a CPU each
tensor is read while it is in the cache. One copy of the gradient is made, the noise itself.
"""

from collections.abc import Sequence
from typing import Any

import torch

__all__ = ["alike", "step_numbers"]

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
    before = [_flat(each) for each in clipped]
    # The only copy of the gradient; in the end it becomes the products of noise and sum.
    noise: list[Any] = list(torch._foreach_sub([_flat(each) for each in noisy], before))
    parts = [each[where] for each, where in zip(noise, places, strict=True)]
    sample = torch.cat(parts).div_(unit)
    heads = torch.cat([each[:head] for each in noise]).div_(unit)
    beneath = torch.cat([each[where] for each, where in zip(before, places, strict=True)])
    rounding = precision * (beneath.div_(unit).abs_() + sample.abs()).max()
    sums = _sums_of_many if noise[0].is_cuda else _sums_of_each
    squares, products, sums_before, largest = sums(noise, before)
    return (
        squares / unit**2,
        products / unit**2,
        sums_before / unit**2,
        largest / unit,
        sample.float(),
        rounding,
        heads.float(),
    )


def _flat(tensor: Any) -> Any:
    """All numbers in a row; those of low precision as single-precision ones."""
    row = tensor.detach().reshape(-1)
    return row.float() if row.dtype.itemsize < 4 else row


def _sums_of_each(noise: list[Any], before: list[Any]) -> tuple[Any, ...]:
    """Squares, products, squares of the sum, and largest numbers, a tensor after the other."""
    squares = torch.stack([_dot(each, each) for each in noise])
    products = torch.stack([_dot(a, b) for a, b in zip(noise, before, strict=True)])
    sums = torch.stack([_dot(each, each) for each in before])
    largest = torch.stack([torch.stack(torch.aminmax(each)).abs_().amax() for each in noise])
    return squares, products, sums, largest


def _dot(left: Any, right: Any) -> Any:
    if len(left) <= BLOCK:
        return torch.dot(left, right)
    blocks = zip(left.split(BLOCK), right.split(BLOCK), strict=True)
    return torch.stack([torch.dot(a, b) for a, b in blocks]).sum()


def _sums_of_many(noise: list[Any], before: list[Any]) -> tuple[Any, ...]:
    """The same for all tensors together; the noise is used up.

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
    squares = table[:2] ** 2
    return squares[0], 2 * table[4] - table[3], squares[1], table[2]
