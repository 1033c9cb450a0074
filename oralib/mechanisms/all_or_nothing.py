"""The whole dataset, or nothing."""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from oralib.ground import arguments
from oralib.ground.types import Array
from oralib.mechanisms._per_element import RevealedSigns
from oralib.mechanisms.protocol import Signs, sign_vectors

__all__ = ["AllOrNothing"]


@dataclass(frozen=True)
class AllOrNothing(RevealedSigns):
    """AON_p: the whole dataset is released with probability p, otherwise nothing (a vector of 0).

    Its ε is infinite for p > 0, its δ is p, and the best guesser is right with probability
    (1 + p) / 2 on average (Definition B.5).

    Attributes
    ----------
    p : float
        The probability that the whole dataset is released.

    Examples
    --------
    >>> from oralib import channel
    >>> round(channel(AllOrNothing(0.1), n=3).optimal_efficacy(), 6)
    0.55
    """

    p: float

    def __post_init__(self) -> None:
        arguments.store(self, p=arguments.real("p", self.p, 0, 1))

    @property
    def epsilon(self) -> float:
        return np.inf if self.p > 0 else 0.0

    def run(self, signs: Signs, rng: Generator) -> Array:
        return np.where(rng.random((*signs.shape[:-1], 1)) < self.p, signs, 0)

    def outputs(self, n: int) -> Array:
        return np.concatenate([np.zeros((1, n), dtype=np.int8), sign_vectors(n)])

    def count_outputs(self, n: int) -> int:
        return 2**n + 1

    def likelihood(self, outputs: Array, signs: Signs) -> Array:
        is_dataset = (outputs[:, None, :] == signs[None, :, :]).all(axis=2)
        is_nothing = (outputs == 0).all(axis=1)
        return np.where(is_nothing[:, None], 1 - self.p, self.p * is_dataset)
