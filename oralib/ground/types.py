"""Types that modules share: arrays, and the words that choose between a few ways."""

from typing import Any, Literal, TypeAlias, get_args

from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]

#: What a guesser may be told, as :class:`oralib.Counts` explains; and how the games are played.
Feedback: TypeAlias = Literal["none", "one-way", "list", "full", "all others"]
FEEDBACKS: tuple[Feedback, ...] = get_args(Feedback)
PLAYED: tuple[Feedback, ...] = ("none", "one-way", "full")

#: How elements may have been chosen, as :class:`oralib.Counts` explains.
Coins: TypeAlias = Literal["independent", "balanced"]
COINS: tuple[Coins, ...] = get_args(Coins)

#: What guesses may say, as :class:`oralib.Counts` explains.
Said: TypeAlias = Literal["both", "in", "out"]
SAID: tuple[Said, ...] = get_args(Said)

#: Accountants, as :mod:`oralib.dpsgd.accounting` explains, the default first.
Accountant: TypeAlias = Literal["rdp", "pld"]
ACCOUNTANTS: tuple[Accountant, ...] = get_args(Accountant)

#: What a guesser may look at: the sum of the noisy gradients of a coordinate, or all of them.
View: TypeAlias = Literal["sum", "steps"]
VIEWS: tuple[View, ...] = get_args(View)
