"""The number of ones in each set of elements."""

from dataclasses import dataclass

from oralib.ground import arguments
from oralib.mechanisms._per_set import Counting

__all__ = ["CountInSets"]


@dataclass(frozen=True)
class CountInSets(Counting):
    """CIS_s: the number of ones in each set of s neighbouring elements (Definition 6.1).

    The last set is smaller if s does not divide n.

    Attributes
    ----------
    s : int
        The size of a set.

    Examples
    --------
    >>> from oralib import channel
    >>> table = channel(CountInSets(2), n=4)
    >>> table.epsilon, table.optimal_efficacy()
    (inf, 0.75)
    """

    s: int

    def __post_init__(self) -> None:
        arguments.store(self, s=arguments.integer("s", self.s, 1))

    def _set_size(self, n: int) -> int:
        return self.s
