"""The counts of an audit, and how it was set up: what every rule takes."""

from dataclasses import dataclass, fields
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from oralib.bounds.columns import flat_counts
from oralib.ground import arguments
from oralib.ground.types import COINS, FEEDBACKS, SAID, Coins, Feedback, Said

__all__ = ["Counts", "Expected", "check_half_included", "checked_r_in", "leaks"]

#: What may be expected of an audit in which the output decides the number of guesses.
Expected: TypeAlias = "Counts | int | None"


@dataclass(frozen=True, eq=False)
class Counts:
    """The outcome of an audit, or of independent trials of one, and how it was set up.

    Attributes
    ----------
    v, r : int or array
        The numbers of right guesses and of all guesses; arrays have one entry per trial.
    n : int
        The number of elements, guessed or not, or of rounds of a classic audit.
    game : str
        The name of the game that was played.
    r_fixed : bool
        Whether the number of guesses was fixed before the audit: no more are made, and missing
        ones count as wrong. It is not fixed just because it happens to be the same in all trials.
    feedback : str
        What the guesser was told as it went: ``"none"``, ``"one-way"`` (the signs of elements that
        it abstained on), ``"full"`` (also of those it guessed), ``"list"`` (the same, with their
        order fixed before the first guess) or ``"all others"`` (all signs but that of the guess).
    coins : str
        How the elements were chosen: ``"independent"`` fair coins, as in all games here, or
        ``"balanced"``, exactly half of them included, which makes coins depend on each other.
    r_in : int or None
        The number of guesses that say "included", fixed before the audit; for balanced coins only.
    side : str
        ``"in"`` if all guesses say "included", also where a score is low, and this was fixed before
        the audit; ``"out"`` if all say "left out"; otherwise ``"both"``. Half of δ is then enough,
        so that bounds are larger. For independent coins only.

    Examples
    --------
    Your own counts: 75 right of 100 guesses, a number chosen before the training.

    >>> from oralib import valid_lower_bound
    >>> counts = Counts(75, 100, n=1000, r_fixed=True)
    >>> round(valid_lower_bound(counts, delta=1e-4), 3)
    0.695
    >>> one_sided = Counts(75, 100, n=1000, r_fixed=True, side="in")
    >>> round(valid_lower_bound(one_sided, delta=1e-4), 3)
    0.699
    """

    v: Any
    r: Any
    n: int
    game: str = "counts"
    r_fixed: bool = False
    feedback: Feedback = "none"
    coins: Coins = "independent"
    r_in: int | None = None
    side: Said = "both"

    def __post_init__(self) -> None:
        n = arguments.integer("n", self.n, 0)
        shape, (v, r, _) = flat_counts(self.v, self.r, n=np.asarray(n))
        if len(shape) > 1:
            raise ValueError(f"v and r must have one entry per trial, got shape {shape}")
        r_fixed = arguments.truth("r_fixed", self.r_fixed)
        if r_fixed and v.size and (r != r[0]).any():
            other = r[r != r[0]][0]
            raise ValueError(
                f"r must be the same in all trials if fixed in advance, got r={r[0]} and r={other}"
            )
        arguments.one_of("feedback", self.feedback, FEEDBACKS)
        arguments.one_of("side", self.side, SAID)
        if arguments.one_of("coins", self.coins, COINS) == "balanced":
            if self.side != "both":
                raise ValueError(
                    "side is for independent coins; give r_in instead, "
                    f"got side={self.side!r} and coins='balanced'"
                )
            check_half_included(np.asarray(n))
            arguments.store(self, r_in=checked_r_in(self.r_in, r.min(initial=n)))
        elif self.r_in is not None:
            raise ValueError(f"r_in is for balanced coins only, got r_in={self.r_in}")
        arguments.store(self, n=n, r_fixed=r_fixed)
        if shape:
            arguments.store(self, v=v, r=r)
        else:
            arguments.store(self, v=int(v[0]), r=int(r[0]))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Counts) and all(
            np.array_equal(getattr(self, field.name), getattr(other, field.name))
            for field in fields(self)
        )

    @property
    def trials(self) -> int:
        """The number of trials."""
        return int(np.size(self.v))

    @property
    def accuracy(self) -> Any:
        """The accuracy v / r of each trial; nan where no guess was made."""
        with np.errstate(invalid="ignore"):
            return np.divide(self.v, self.r)


def leaks(counts: Counts, d_in: Any, d_out: Any) -> Any:
    """Return what all elements together may leak to right guesses: n δ in the bounds.

    The two arguments are the δ of (ε, δ)-DP in either direction, "in" against "out" and the other
    way round. A right guess "in" leaks as much as the first allows, for half of the coins; a right
    guess "out" leaks as much as the second. This is for independent coins.
    """
    of_side = {"both": d_in + d_out, "in": d_in, "out": d_out}
    return counts.n * (of_side[counts.side] / 2)


def check_half_included(n: NDArray[np.int64]) -> None:
    """Raise an error unless exactly half of n elements can be included."""
    if (n % 2).any():
        first = n[n % 2 == 1].flat[0]
        raise ValueError(
            f"n must be even if exactly half of the elements were included, got n={first}"
        )


def checked_r_in(r_in: int | None, least_r: int) -> int:
    """Return the number of guesses that say "included", at most the number of guesses."""
    if r_in is None:
        raise ValueError(
            "r_in must be given for balanced coins: how many guesses say 'included', got r_in=None"
        )
    return arguments.integer("r_in", r_in, 0, int(least_r))
