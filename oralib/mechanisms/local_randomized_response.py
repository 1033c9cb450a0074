"""Randomized response on each sign."""

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.random import Generator

from oralib.ground import arguments
from oralib.ground.types import Array
from oralib.mechanisms._per_element import PerElement
from oralib.mechanisms.protocol import Signs, sign_vectors

__all__ = ["LocalRandomizedResponse"]


@dataclass(frozen=True)
class LocalRandomizedResponse(PerElement):
    """LRR_ε: each sign is released as it is with probability p(ε), and flipped otherwise.

    The loss of an element is ±ε (Definition 4.2).

    Attributes
    ----------
    epsilon : float
        The privacy level ε.

    Examples
    --------
    >>> from oralib import channel
    >>> table = channel(LocalRandomizedResponse(1.0), n=2)
    >>> round(table.epsilon, 6), round(table.optimal_efficacy(), 6)
    (1.0, 0.731059)
    """

    epsilon: float

    def __post_init__(self) -> None:
        arguments.store(self, epsilon=arguments.real("epsilon", self.epsilon, 0))

    def run(self, signs: Signs, rng: Generator) -> Array:
        return np.where(rng.random(signs.shape) < scipy.special.expit(self.epsilon), signs, -signs)

    def _loss(self, entry: Array) -> Array:
        return np.where(entry > 0, -self.epsilon, self.epsilon)

    def outputs(self, n: int) -> Array:
        return sign_vectors(n)

    def count_outputs(self, n: int) -> int:
        return 2**n

    def likelihood(self, outputs: Array, signs: Signs) -> Array:
        flipped = (outputs[:, None, :] != signs[None, :, :]).sum(axis=2)
        truth = scipy.special.expit(self.epsilon)
        lie = scipy.special.expit(-self.epsilon)
        return truth ** (signs.shape[1] - flipped) * lie**flipped
