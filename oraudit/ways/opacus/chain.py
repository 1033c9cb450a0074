"""The methods that a private step consists of, with a look before and after each of them.

Another library, or the training itself, may replace a method after the audit was attached. So the
chain stands around each method as it is found, and again around what has replaced it since.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

__all__ = ["Chain", "Looks", "call_once_after"]

#: The function to call before a method, and the one to call after it with what the first returned.
Looks = tuple[Callable[[], Any], Callable[[Any], Any]]


class Chain:
    """Stands around methods of an optimizer until :meth:`leave` takes it off.

    Parameters
    ----------
    optimizer
        The private optimizer.
    looks
        The functions to call before and after a method, by its name.
    """

    def __init__(self, optimizer: Any, looks: Mapping[str, Looks]) -> None:
        self._optimizer = optimizer
        self._looks = dict(looks)
        self._outermost: dict[str, Any] = {}
        self._replaced: dict[str, Any] = {}
        self._running: set[str] = set()
        self._left = False

    def is_outermost(self, name: str) -> bool:
        """Return whether a method of the optimizer is the chain's own."""
        return self._optimizer.__dict__.get(name) is self._outermost.get(name, self)

    def stand(self) -> None:
        """Stand around the methods of the optimizer, also around what replaced one of them."""
        for name in self._looks:
            if not self.is_outermost(name):
                self._replaced[name] = self._optimizer.__dict__.get(name)
                self._outermost[name] = self._around(name, getattr(self._optimizer, name))
                setattr(self._optimizer, name, self._outermost[name])

    def _around(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        """Return the method with looks before and after it; a call inside its own call has none."""
        before, after = self._looks[name]

        @wraps(method)
        def looked(*args: Any, **kwargs: Any) -> Any:
            if name in self._running or self._left:
                return method(*args, **kwargs)
            self._running.add(name)
            try:
                noted = before()
                result = method(*args, **kwargs)
                after(noted)
            finally:
                self._running.discard(name)
            return result

        return looked

    def leave(self) -> None:
        """Look no more, and give the optimizer back the methods that it had."""
        self._left = True
        for name, former in self._replaced.items():
            if self.is_outermost(name):
                _restore(self._optimizer, name, former)


def call_once_after(optimizer: Any, name: str, action: Callable[[], Any]) -> None:
    """Call ``action`` after the next call of a method, and then give the method back."""
    method = getattr(optimizer, name)
    former = optimizer.__dict__.get(name)

    @wraps(method)
    def last(*args: Any, **kwargs: Any) -> Any:
        result = method(*args, **kwargs)
        if optimizer.__dict__.get(name) is last:
            _restore(optimizer, name, former)
        action()
        return result

    setattr(optimizer, name, last)


def _restore(optimizer: Any, name: str, former: Any) -> None:
    """Give a method back to the object that had it, or to the class."""
    if former is None:
        delattr(optimizer, name)
    else:
        setattr(optimizer, name, former)
