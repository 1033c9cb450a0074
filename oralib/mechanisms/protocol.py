"""The names by which games and tables know a mechanism, and the datasets that it takes."""

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from oralib.ground import arguments
from oralib.ground.types import Array

__all__ = ["DiscreteMechanism", "Mechanism", "Signs", "sign_vectors"]

#: A dataset, or an array of datasets along the last axis.
Signs = NDArray[np.int8]


@runtime_checkable
class Mechanism(Protocol):
    """A mechanism that can play a game.

    Your own mechanism can be any object with these names; for an exact table it also needs
    ``outputs``, ``count_outputs`` and ``likelihood``. The signs that it is given are read-only.
    """

    @property
    def epsilon(self) -> float:
        """The privacy level ε(M) in nats; inf if the mechanism is not differentially private."""

    def run(self, signs: Signs, rng: Generator) -> Array:
        """Draw one random output for each dataset in ``signs``, shape (..., n)."""

    def privacy_loss(self, output: Array, n: int) -> Array:
        """Return ℓ_i(o) = ln P[o | s_i = -1] - ln P[o | s_i = 1] for each of the n elements."""

    def conditional_loss(self, output: Array, known: Signs, index: int) -> Array:
        """Return ℓ_i(o) for the element at ``index``, given known signs of others (0: unknown)."""

    def check_size(self, n: int) -> int:
        """Return ``n`` if the mechanism can take datasets of n elements, else a ValueError."""


@runtime_checkable
class DiscreteMechanism(Mechanism, Protocol):
    """A mechanism with finitely many outputs, so that it has an exact table."""

    def outputs(self, n: int) -> Array:
        """Return all possible outputs, one per row, in the form in which ``run`` returns them."""

    def count_outputs(self, n: int) -> int:
        """Return the number of possible outputs."""

    def likelihood(self, outputs: Array, signs: Signs) -> Array:
        """Return P[o | s] for each row o of ``outputs`` and each row s of ``signs``."""


def sign_vectors(n: int) -> Signs:
    """Return all 2^n vectors of signs, one per row, in lexicographic order from all -1 to all 1.

    Parameters
    ----------
    n : int
        The length of a vector.

    Examples
    --------
    >>> sign_vectors(2).tolist()
    [[-1, -1], [-1, 1], [1, -1], [1, 1]]
    """
    n = arguments.integer("n", n, 1, 24)
    bits = np.arange(2**n, dtype=np.int32)[:, None] >> np.arange(n)[::-1] & 1
    return (2 * bits - 1).astype(np.int8)
