"""The hooks of PyTorch that do not keep their audit alive, and are gone when it is gone."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["remove_hooks", "weak_hook"]


def weak_hook(method: Any) -> Callable[..., None]:
    """Return a hook that calls the method as long as its object is alive."""
    reference = weakref.WeakMethod(method)

    def hook(*args: Any) -> None:
        bound = reference()
        if bound is not None:
            bound(*args)

    return hook


def remove_hooks(handles: Sequence[Any]) -> None:
    """Remove the hooks that these handles are of."""
    for handle in handles:
        handle.remove()
