"""What games, guessers and tables need to know about a mechanism."""

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from oralib.ground import arguments
from oralib.ground.types import Array

Signs = NDArray[np.int8]


@runtime_checkable
class Mechanism(Protocol):
    """What a game needs to know about a mechanism.

    Your own mechanism can be any object with these names; for an exact table it also needs
    ``outputs``, ``count_outputs`` and ``likelihood``. The signs that it is given are read-only.
    """

    @property
    def epsilon(self) -> float:
        """The privacy level ε(M) in nats; inf if the mechanism is not differentially private."""

    def run(self, signs: Signs, rng: Generator) -> Array:
        """One random output for each dataset in ``signs``, shape (..., n)."""

    def privacy_loss(self, output: Array, n: int) -> Array:
        """ℓ_i(o) = ln P[o | s_i = -1] - ln P[o | s_i = 1] for each of the n elements."""

    def conditional_loss(self, output: Array, known: Signs, index: int) -> Array:
        """ℓ_i(o) for the element at ``index``, given the known signs of others (0: unknown)."""

    def check_size(self, n: int) -> int:
        """``n`` if the mechanism can take datasets of n elements, else a ValueError."""


@runtime_checkable
class DiscreteMechanism(Mechanism, Protocol):
    """What an exact table needs to know about a mechanism."""

    def outputs(self, n: int) -> Array:
        """All possible outputs, one per row, in the form in which ``run`` returns them."""

    def count_outputs(self, n: int) -> int:
        """How many there are."""

    def likelihood(self, outputs: Array, signs: Signs) -> Array:
        """P[o | s] for each row o of ``outputs`` and each row s of ``signs``."""


class AnySize:
    """Takes datasets of any size."""

    def check_size(self, n: int) -> int:
        return arguments.integer("n", n, 1)


def sign_vectors(n: int) -> Signs:
    """All 2^n vectors of signs, one per row, from all -1 to all 1 in lexicographic order.

    >>> sign_vectors(2).tolist()
    [[-1, -1], [-1, 1], [1, -1], [1, 1]]
    """
    n = arguments.integer("n", n, 1, 24)
    bits = np.arange(2**n, dtype=np.int32)[:, None] >> np.arange(n)[::-1] & 1
    return (2 * bits - 1).astype(np.int8)
