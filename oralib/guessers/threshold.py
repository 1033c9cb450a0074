"""The guesser with a threshold for each loss."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oralib.ground import arguments
from oralib.ground.rounding import ROUNDING
from oralib.ground.types import Array
from oralib.guessers._likelier import likelier_signs

__all__ = ["ThresholdGuesser"]


@dataclass(frozen=True)
class ThresholdGuesser:
    """Guess every element whose loss is at least tau in absolute value, and no others.

    ``tau=0`` guesses all elements, ``tau=inf`` only those that the output gives away. The guess is
    minus the sign of the loss, and 1 if it is 0.

    Attributes
    ----------
    tau : float
        The least absolute loss of an element that is guessed.

    Examples
    --------
    >>> ThresholdGuesser(1.0).guess(np.array([-2.0, 0.5, 1.0])).tolist()
    [1, 0, -1]
    """

    tau: float = 0.0

    def __post_init__(self) -> None:
        tau = arguments.real("tau", self.tau, 0)
        arguments.store(self, tau=tau + 0.0)  # -0.0 becomes 0.0

    def guess(self, loss: Array) -> NDArray[np.int8]:
        tau = self.tau if np.isinf(self.tau) else self.tau - ROUNDING * max(1.0, self.tau)
        return np.where(np.abs(loss) >= tau, likelier_signs(loss), np.int8(0))

    def fixed_number(self, n: int) -> int | None:
        """Return n without a threshold; None with one, as the output decides then."""
        return n if self.tau == 0 else None
