"""The model of a training with Opacus, and the tensors of its private optimizer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

__all__ = ["cloned", "detached", "example_count", "parameter_names", "unwrapped"]


def unwrapped(model: Any) -> torch.nn.Module | None:
    """Return the model without the wrappers of ``torch.compile`` and Opacus."""
    model = getattr(model, "_orig_mod", model)
    model = getattr(model, "_module", model)
    return getattr(model, "_orig_mod", model)


def parameter_names(optimizer: Any, inner: torch.nn.Module | None) -> list[str]:
    """Return the name of each private parameter in the model.

    A parameter is named by its number where the model has none for it, or there is no model.
    """
    names = {}
    if inner is not None:
        names = {id(p): name for name, p in inner.named_parameters()}
    return [names.get(id(p), str(place)) for place, p in enumerate(optimizer.params)]


def example_count(grad_sample: Any) -> int:
    """Return the number of examples whose gradients a parameter holds, of one batch or several."""
    if isinstance(grad_sample, list):
        return sum(len(part) for part in grad_sample)
    return len(grad_sample)


def detached(tensors: Sequence[Any]) -> list[Any]:
    """Return the tensors without the graph that some may come from."""
    return [tensor.detach() if tensor.requires_grad else tensor for tensor in tensors]


def cloned(tensor: Any) -> Any:
    """Return a copy of a tensor, and None for None."""
    return None if tensor is None else tensor.clone()
