"""The parity of all bits."""

from dataclasses import dataclass

from oralib.mechanisms._per_set import Parity

__all__ = ["Xor"]


@dataclass(frozen=True)
class Xor(Parity):
    """XOR: the exclusive or of all bits; every loss is 0 for n > 1 (Definition B.8).

    >>> from oralib import channel
    >>> table = channel(Xor(), n=3)
    >>> table.epsilon, table.ddp
    (inf, 0.0)
    """
