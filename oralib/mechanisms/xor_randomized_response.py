"""Randomized response on the parity of all bits."""

from dataclasses import dataclass

from oralib.ground import arguments
from oralib.mechanisms._per_set import Parity

__all__ = ["XorRandomizedResponse"]


@dataclass(frozen=True)
class XorRandomizedResponse(Parity):
    """XRR_ε: randomized response on the exclusive or of all bits (Definition E.1).

    Attributes
    ----------
    epsilon : float
        The privacy level ε; inf releases the exclusive or as it is.

    Examples
    --------
    >>> from oralib import channel
    >>> table = channel(XorRandomizedResponse(1.0), n=3)
    >>> round(table.epsilon, 6), round(table.ddp, 6)
    (1.0, 0.0)
    """

    epsilon: float

    def __post_init__(self) -> None:
        arguments.store(self, epsilon=arguments.real("epsilon", self.epsilon, 0))
