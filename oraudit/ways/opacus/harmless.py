"""The promise that no error of an audit reaches the training."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

__all__ = ["harmless"]


def harmless(method: Callable[..., Any]) -> Callable[..., Any]:
    """Let no error of the audit reach the training: the audit ends, and its report says so.

    After each call without one the audit warns of what is new and exact.
    """

    @wraps(method)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self._over:
            return None
        try:
            result = method(self, *args, **kwargs)
        except Exception as error:
            self._over = True
            self._record.see("unwatched", f"{type(error).__name__}: {error}")
            return None
        self._warn()
        return result

    return guarded
