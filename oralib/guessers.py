"""Maximum-likelihood guessers: from privacy losses to guesses of -1, 1, or 0 for an abstention.

The loss is ln P[o | -1] - ln P[o | 1], so the likelier value is minus its sign.
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from oralib.ground import arguments
from oralib.ground.rounding import ROUNDING, largest_first
from oralib.ground.types import Array


@runtime_checkable
class Guesser(Protocol):
    """Anything that turns losses, shape (..., n), into guesses of that shape: 1, -1 or 0 (none).

    A guesser that always makes the same number of guesses has a method ``fixed_number(n)`` that
    returns it. Without this method, or if it returns None, the output is taken to decide.

    >>> class Bold:
    ...     def guess(self, loss):
    ...         return np.where(loss > 0, -1, 1)
    >>> from oralib import LocalRandomizedResponse, one_run
    >>> int(one_run(LocalRandomizedResponse(1.0), Bold(), 100, seed=1).r[0])
    100
    """

    def guess(self, loss: Array) -> NDArray[np.int8]: ...


def fixed_number(guesser: Guesser, n: int) -> int | None:
    """How many of n elements a guesser guesses; None if the output decides.

    >>> fixed_number(TopGuesser(3), 10), fixed_number(ThresholdGuesser(1.0), 10)
    (3, None)
    """
    n = arguments.integer("n", n, 1)
    method = getattr(guesser, "fixed_number", None)
    number = None if method is None else method(n)
    return None if number is None else arguments.integer("fixed_number", number, 0, n)


@dataclass(frozen=True)
class ThresholdGuesser:
    """Guess every element whose loss is at least tau in absolute value, and no others.

    ``tau=0`` guesses all elements, ``tau=inf`` only those that the output gives away. The guess is
    minus the sign of the loss, and 1 if it is 0.

    >>> ThresholdGuesser(1.0).guess(np.array([-2.0, 0.5, 1.0])).tolist()
    [1, 0, -1]
    """

    tau: float = 0.0

    def __post_init__(self) -> None:
        arguments.store(self, tau=arguments.real("tau", self.tau, 0) + 0.0)  # -0.0 is 0.0

    def guess(self, loss: Array) -> NDArray[np.int8]:
        tau = self.tau if np.isinf(self.tau) else self.tau - ROUNDING * max(1.0, self.tau)
        return np.where(np.abs(loss) >= tau, _likelier(loss), np.int8(0))

    def fixed_number(self, n: int) -> int | None:
        """All n without a threshold; with one, the output decides."""
        return n if self.tau == 0 else None


@dataclass(frozen=True)
class TopGuesser:
    """Guess exactly the k elements with the largest absolute losses; among equals, the first.

    Among all guessers with k guesses this one has the largest mean accuracy (Theorem 5.2).

    >>> TopGuesser(2).guess(np.array([-2.0, 0.5, 1.0])).tolist()
    [1, 0, -1]
    """

    k: int

    def __post_init__(self) -> None:
        arguments.store(self, k=arguments.integer("k", self.k, 1))

    def guess(self, loss: Array) -> NDArray[np.int8]:
        arguments.integer("k", self.k, 1, np.shape(loss)[-1])
        guesses = _likelier(loss)
        np.put_along_axis(guesses, largest_first(np.abs(loss))[..., self.k :], 0, axis=-1)
        return guesses

    def fixed_number(self, n: int) -> int | None:
        """Always k."""
        return self.k


def _likelier(loss: Array) -> NDArray[np.int8]:
    return np.where(np.asarray(loss) > ROUNDING, np.int8(-1), np.int8(1))
