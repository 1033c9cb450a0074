"""The names by which games know a guesser."""

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from oralib.ground import arguments
from oralib.ground.types import Array

__all__ = ["Guesser", "fixed_number"]


@runtime_checkable
class Guesser(Protocol):
    """A guesser that can play a game.

    Your own guesser can be any object with a method ``guess``. One that always makes the same
    number of guesses also has a method ``fixed_number(n)`` that returns it. Without this method, or
    if it returns None, the output is taken to decide.

    >>> class Bold:
    ...     def guess(self, loss):
    ...         return np.where(loss > 0, -1, 1)
    >>> from oralib import LocalRandomizedResponse, one_run
    >>> int(one_run(LocalRandomizedResponse(1.0), Bold(), 100, seed=1).r[0])
    100
    """

    def guess(self, loss: Array) -> NDArray[np.int8]:
        """Turn losses, shape (..., n), into guesses of that shape: 1, -1, or 0 for none."""


def fixed_number(guesser: Guesser, n: int) -> int | None:
    """Return how many of n elements a guesser guesses; None if the output decides.

    Parameters
    ----------
    guesser : Guesser
        The guesser.
    n : int
        The number of elements.

    Examples
    --------
    >>> from oralib import ThresholdGuesser, TopGuesser
    >>> fixed_number(TopGuesser(3), 10), fixed_number(ThresholdGuesser(1.0), 10)
    (3, None)
    """
    arguments.instance("guesser", guesser, Guesser, "TopGuesser(10)")
    n = arguments.integer("n", n, 1)
    method = getattr(guesser, "fixed_number", None)
    number = None if method is None else method(n)
    return None if number is None else arguments.integer("fixed_number", number, 0, n)
