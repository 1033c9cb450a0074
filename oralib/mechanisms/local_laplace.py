"""Laplace noise on each sign."""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from oralib.ground import arguments
from oralib.ground.types import Array
from oralib.mechanisms._per_element import PerElement
from oralib.mechanisms.protocol import Signs

__all__ = ["LocalLaplace"]


@dataclass(frozen=True)
class LocalLaplace(PerElement):
    """LLP_ε: Laplace noise of scale 2/ε is added to each sign.

    o_i = s_i + Lap(2/ε), so that ℓ_i(o) = -ε min(1, max(-1, o_i)) (Definition C.12). It is ε-DP,
    and a guess without abstention is right with probability 1 - e^(-ε/2) / 2, less than p(ε).

    Attributes
    ----------
    epsilon : float
        The privacy level ε.

    Examples
    --------
    >>> mechanism = LocalLaplace(2.0)
    >>> mechanism.privacy_loss(np.array([-3.0, 0.25, 1.5]), 3).tolist()
    [2.0, -0.5, -2.0]
    """

    epsilon: float

    def __post_init__(self) -> None:
        arguments.store(self, epsilon=arguments.real("epsilon", self.epsilon, 0, interval="()"))

    def run(self, signs: Signs, rng: Generator) -> Array:
        return signs + rng.laplace(scale=2 / self.epsilon, size=signs.shape)

    def _loss(self, entry: Array) -> Array:
        # The same as (|o - 1| - |o + 1|) ε / 2, and exactly ∓ε beyond ±1.
        return -self.epsilon * np.clip(entry, -1, 1)
