"""Random numbers of PyTorch, held fixed for each example while another one is taken out.

Dropout and augmentation draw a random number for each number of the batch. Without care, an
example that is taken out would shift the random numbers of all others, and the step would move for
that reason alone. So random numbers are drawn for the whole batch, and those of absent examples
are dropped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

__all__ = ["FixedRandomNumbers"]

_aten = torch.ops.aten

#: Operations that fill their first argument with random numbers.
_IN_PLACE = {
    _aten.bernoulli_.float,
    _aten.bernoulli_.Tensor,
    _aten.normal_.default,
    _aten.uniform_.default,
    _aten.exponential_.default,
    _aten.random_.default,
    _aten.random_.to,
    getattr(_aten.random_, "from"),
}

#: Operations that return random numbers in the shape of their first argument.
_LIKE = {_aten.bernoulli.default, _aten.rand_like.default, _aten.randn_like.default}

#: Operations that return random numbers in the shape that their first argument says.
_SHAPED = {_aten.rand.default, _aten.randn.default}


class FixedRandomNumbers(TorchDispatchMode):
    """Draws for a batch of ``size`` examples, and uses the numbers of the examples at ``keep``."""

    def __init__(self, size: int, keep: Sequence[int], seed: int = 0) -> None:
        super().__init__()
        self._size = size
        self._keep = torch.as_tensor(keep)
        self._seed = seed
        self._calls = 0

    def __torch_dispatch__(
        self,
        function: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        options = dict(kwargs or {})
        if function in _IN_PLACE and self._is_batch(args[0].shape):
            target = args[0]
            rest = [self._enlarged(argument) for argument in args[1:]]
            options["generator"] = self._generator(target.device)
            drawn = function(target.new_empty((self._size, *target.shape[1:])), *rest, **options)
            return target.copy_(drawn[self._keep])
        if function in _LIKE and self._is_batch(args[0].shape):
            self._seed_anew(args[0].device)
            return function(self._enlarged(args[0]), *args[1:], **options)[self._keep]
        if function in _SHAPED and self._is_batch(args[0]):
            self._seed_anew(options.get("device") or torch.device("cpu"))
            return function([self._size, *args[0][1:]], *args[1:], **options)[self._keep]
        return function(*args, **options)

    def _is_batch(self, shape: Sequence[int]) -> bool:
        return len(shape) > 0 and shape[0] == len(self._keep)

    def _enlarged(self, value: Any) -> Any:
        """Return values for the whole batch, such as probabilities that numbers are drawn with."""
        if not isinstance(value, torch.Tensor) or not self._is_batch(value.shape):
            return value
        whole = value.new_zeros((self._size, *value.shape[1:]))
        whole[self._keep] = value
        return whole

    def _generator(self, device: torch.device) -> torch.Generator:
        self._calls += 1
        return torch.Generator(device).manual_seed(self._seed + self._calls)

    def _seed_anew(self, device: torch.device) -> None:
        self._calls += 1
        torch.manual_seed(self._seed + self._calls)
