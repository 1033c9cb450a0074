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

#: p-values for a number of guesses fixed in advance, as :func:`oralib.p_value` explains; in the
#: order of their numbers in :mod:`oralib.bounds.approximate`.
PValue: TypeAlias = Literal["steinke", "exact", "any order"]
P_VALUES: tuple[PValue, ...] = get_args(PValue)

#: Accountants, as :mod:`oralib.accounting` explains, the default first.
Accountant: TypeAlias = Literal["rdp", "pld"]
ACCOUNTANTS: tuple[Accountant, ...] = get_args(Accountant)

#: What a guesser may look at: the sum of the noisy gradients of a coordinate, or all of them.
View: TypeAlias = Literal["sum", "steps"]
VIEWS: tuple[View, ...] = get_args(View)

#: Which scores are guessed, as :func:`oralib.audit_scores` explains.
Side: TypeAlias = Literal["both", "included", "farthest"]
SIDES: tuple[Side, ...] = get_args(Side)

#: What a claim may protect: an example that is added or removed, or replaced by another.
Adjacency: TypeAlias = Literal["add-remove", "replace"]
ADJACENCIES: tuple[Adjacency, ...] = get_args(Adjacency)

#: How the number of guesses was chosen: before, from a grid, on canaries set aside, by the output.
Choice: TypeAlias = Literal["fixed", "grid", "split", "output"]

#: What a plan can aim for: the largest bound, or refuting the claim if the noise is wrong.
Aim: TypeAlias = Literal["bound", "refute"]
AIMS: tuple[Aim, ...] = get_args(Aim)

#: How canaries enter a training: in the sum of its clipped gradients, just before its noise;
#: or as examples among its data.
Way: TypeAlias = Literal["sum", "examples"]
WAYS: tuple[Way, ...] = get_args(Way)
