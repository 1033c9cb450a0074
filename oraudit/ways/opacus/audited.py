"""The optimizers that private ones wrap, each with its audit: their steps are private ones."""

from __future__ import annotations

import weakref
from typing import Any, Protocol

__all__ = ["Detachable", "is_audited", "release", "take_over"]


class Detachable(Protocol):
    """An audit that can be taken off its optimizer."""

    def detach(self) -> None:
        """Take the audit off."""


_AUDITS: weakref.WeakKeyDictionary[Any, weakref.ref[Any]] = weakref.WeakKeyDictionary()


def is_audited(optimizer: Any) -> bool:
    """Return whether a private optimizer with an audit wraps this one."""
    return optimizer in _AUDITS


def take_over(optimizer: Any, audit: Detachable) -> None:
    """Make this audit the one of an optimizer, and take a former one off.

    There is a former one where make_private was called again: its training has ended.
    """
    former = _AUDITS[optimizer]() if optimizer in _AUDITS else None
    if former is not None:
        former.detach()
    _AUDITS[optimizer] = weakref.ref(audit)


def release(optimizer: Any) -> None:
    """Note that the optimizer has no audit any more."""
    _AUDITS.pop(optimizer, None)
