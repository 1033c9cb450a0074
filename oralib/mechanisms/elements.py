"""Mechanisms that release one entry per element."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy
from numpy.random import Generator

from oralib.ground import arguments
from oralib.ground.types import Array
from oralib.mechanisms.protocol import AnySize, Signs, sign_vectors


class _PerElement(AnySize):
    """Outputs one entry per element; the loss of an element depends on its entry alone."""

    #: The size of the loss of an element for which a sign is printed; by default it is the element.
    _sure = np.inf

    def _loss(self, entry: Array) -> Array:
        return np.where(entry == 0, 0.0, np.where(entry > 0, -self._sure, self._sure))

    def privacy_loss(self, output: Array, n: int) -> Array:
        return self._loss(output)

    def conditional_loss(self, output: Array, known: Signs, index: int) -> Array:
        return self._loss(output[..., index])


@dataclass(frozen=True)
class LocalRandomizedResponse(_PerElement):
    """LRR_ε: each sign is released as it is with probability p(ε), and flipped otherwise.

    The loss of an element is ±ε (Definition 4.2).

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
        truth, lie = scipy.special.expit(self.epsilon), scipy.special.expit(-self.epsilon)
        return truth ** (signs.shape[1] - flipped) * lie**flipped


@dataclass(frozen=True)
class NameAndShame(_PerElement):
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


@dataclass(frozen=True)
class AllOrNothing(_PerElement):
    """AON_p: the whole dataset is released with probability p, otherwise nothing (a vector of 0).

    Its ε is infinite for p > 0, its δ is p, and the best guesser is right with probability
    (1 + p) / 2 on average (Definition B.5).

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
        shown = (outputs[:, None, :] == signs[None, :, :]).all(axis=2)
        return np.where((outputs == 0).all(axis=1)[:, None], 1 - self.p, self.p * shown)


@dataclass(frozen=True)
class LocalLaplace(_PerElement):
    """LLP_ε: Laplace noise of scale 2/ε is added to each sign.

    o_i = s_i + Lap(2/ε), so that ℓ_i(o) = -ε min(1, max(-1, o_i)) (Definition C.12). It is ε-DP,
    and a guess without abstention is right with probability 1 - e^(-ε/2) / 2, less than p(ε).

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
