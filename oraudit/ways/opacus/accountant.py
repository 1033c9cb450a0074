"""The accountant of a private optimizer: what it is told of each step, and by whom."""

import inspect
import weakref
from typing import Any

__all__ = ["Account", "accountant_of"]

#: The most hooks that may be wrapped in each other around an accountant's.
_DEPTH = 4

#: The accounts of each accountant: several optimizers may tell one.
_ACCOUNTS: "weakref.WeakKeyDictionary[Any, weakref.WeakSet[Account]]" = weakref.WeakKeyDictionary()


class Account:
    """Counts the steps that an accountant is told while one optimizer makes them.

    Attributes
    ----------
    told
        The number of steps it was told in all windows from :meth:`open` to :meth:`close`.
    earlier
        The number of steps it knew before the first window.
    forgotten
        The number of steps it knew at the end of a window and no longer at the next one.
    """

    def __init__(self, accountant: Any) -> None:
        self.accountant = accountant
        self.told = 0
        self.earlier: int | None = None
        self.forgotten = 0
        self._last: int | None = None
        self._opened = 0
        _ACCOUNTS.setdefault(accountant, weakref.WeakSet()).add(self)

    @property
    def total(self) -> int:
        """The number of steps that the accountant knows, of all optimizers."""
        return int(sum(entry[2] for entry in self.accountant.history))

    def open(self) -> int:
        """Begin a window; return how many steps the accountant has forgotten since the last."""
        total = self.total
        lost = 0 if self._last is None else max(self._last - total, 0)
        self.forgotten += lost
        if self.earlier is None:
            self.earlier = total
        self._opened = total
        return lost

    def close(self) -> tuple[float, float] | None:
        """End a window; return the noise multiplier and the rate that were told, if any were."""
        self._last = self.total
        new_steps = self._last - self._opened
        self.told += new_steps
        if new_steps <= 0:
            return None
        sigma, rate, _ = self.accountant.history[-1]
        return float(sigma), float(rate)

    def all_told(self, steps: int) -> int:
        """Return the told steps, with the steps that the training told outside all windows."""
        told_by_others = sum(account.told for account in _ACCOUNTS[self.accountant])
        by_hand = self.total - (self.earlier or 0) - told_by_others + self.forgotten
        return self.told + max(min(by_hand, steps - self.told), 0)

    def state(self) -> dict[str, Any]:
        """Return what a resumed audit needs."""
        return {"told": self.told, "earlier": self.earlier, "last": self._last}

    def load(self, state: dict[str, Any]) -> None:
        """Go on from what :meth:`state` has returned."""
        self.told = state["told"]
        self.earlier = state["earlier"]
        self._last = state["last"]


def accountant_of(hook: Any, depth: int = _DEPTH) -> tuple[Any, float | None]:
    """Return the accountant and the rate that a step hook of Opacus was made with, if any.

    Other hooks may be around it.

    >>> accountant_of(None)
    (None, None)
    """
    if inspect.ismethod(hook):
        hook = hook.__func__
    if depth == 0 or not inspect.isfunction(hook):
        return None, None
    try:
        made_with = inspect.getclosurevars(hook).nonlocals
    except ValueError:  # a variable that has no value yet
        return None, None
    accountant = None
    rate = made_with.get("sample_rate")
    for value in made_with.values():
        owner = getattr(value, "accountant", value)
        if hasattr(owner, "history") and hasattr(owner, "step"):
            accountant = owner
        elif callable(value) and accountant is None:
            accountant, inner = accountant_of(value, depth - 1)
            rate = inner if rate is None else rate
    return accountant, rate
