"""Types that modules share: arrays, and the words that an option allows."""

from typing import Any, Literal, TypeAlias, get_args

from numpy.typing import NDArray

__all__ = ["ACCOUNTANTS", "COINS", "FEEDBACKS", "Accountant", "Array", "Coins", "Feedback"]
__all__ += ["PLAYED", "SAID", "VIEWS", "Said", "View"]

Array: TypeAlias = NDArray[Any]

#: The feedback that a guesser may get, as :class:`oralib.Counts` explains. The games can be played
#: with that in ``PLAYED``.
Feedback: TypeAlias = Literal["none", "one-way", "list", "full", "all others"]
FEEDBACKS: tuple[Feedback, ...] = get_args(Feedback)
PLAYED: tuple[Feedback, ...] = ("none", "one-way", "full")

#: The ways to choose the included elements, as :class:`oralib.Counts` explains.
Coins: TypeAlias = Literal["independent", "balanced"]
COINS: tuple[Coins, ...] = get_args(Coins)

#: The sides that guesses may take, as :class:`oralib.Counts` explains.
Said: TypeAlias = Literal["both", "in", "out"]
SAID: tuple[Said, ...] = get_args(Said)

#: The accountants, as :mod:`oralib.dpsgd.accounting` explains, the default first.
Accountant: TypeAlias = Literal["rdp", "pld"]
ACCOUNTANTS: tuple[Accountant, ...] = get_args(Accountant)

#: The outputs that a guesser may see: the sum of the noisy gradients of a coordinate, or all.
View: TypeAlias = Literal["sum", "steps"]
VIEWS: tuple[View, ...] = get_args(View)
