"""The sign of one element, chosen at random."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from oralib.ground.types import Array
from oralib.mechanisms._per_element import RevealedSigns
from oralib.mechanisms.protocol import Signs

__all__ = ["NameAndShame"]


@dataclass(frozen=True)
class NameAndShame(RevealedSigns):
    """NAS: one element, chosen at random, is released as it is; 0 stands for all others.

    This is not differentially private, yet a guesser that must guess every element is hardly better
    than a coin (Definition B.2).

    >>> from oralib import channel
    >>> table = channel(NameAndShame(), n=4)
    >>> table.epsilon, table.optimal_efficacy(), table.optimal_efficacy(k=1)
    (inf, 0.625, 1.0)
    """

    epsilon: ClassVar[float] = np.inf

    def run(self, signs: Signs, rng: Generator) -> Array:
        chosen = rng.integers(signs.shape[-1], size=(*signs.shape[:-1], 1))
        return np.where(np.arange(signs.shape[-1]) == chosen, signs, 0)

    def outputs(self, n: int) -> Array:
        one = np.eye(n, dtype=np.int8)
        return np.concatenate([-one, one])

    def count_outputs(self, n: int) -> int:
        return 2 * n

    def likelihood(self, outputs: Array, signs: Signs) -> Array:
        return (outputs @ signs.T.astype(np.int64) == 1) / signs.shape[1]
