"""The parity of each pair of bits."""

from dataclasses import dataclass
from typing import ClassVar

from oralib.ground import arguments
from oralib.mechanisms._per_set import Parity

__all__ = ["XorInPairs"]


@dataclass(frozen=True)
class XorInPairs(Parity):
    """XIP: the exclusive or of each pair of neighbouring bits, (1, 2), (3, 4), ...; n is even.

    A guesser that is shown one sign of each pair knows the other (Definition E.6).

    >>> from oralib import ThresholdGuesser, adaptive
    >>> counts = adaptive(XorInPairs(), ThresholdGuesser(float("inf")), 100, seed=1)
    >>> int(counts.v[0]), int(counts.r[0])
    (50, 50)
    """

    s: ClassVar[int] = 2

    def check_size(self, n: int) -> int:
        n = super().check_size(n)
        arguments.multiple("n", n, self.s, "the size of a pair")
        return n

    def _set_size(self, n: int) -> int:
        return self.s
