"""The parts that mechanisms share which release one entry per element."""

import numpy as np

from oralib.ground import arguments
from oralib.ground.types import Array
from oralib.mechanisms.protocol import Signs


class PerElement:
    """The base of mechanisms that take datasets of any size and release one entry per element.

    The loss of an element depends on its entry alone.
    """

    def check_size(self, n: int) -> int:
        return arguments.integer("n", n, 1)

    def privacy_loss(self, output: Array, n: int) -> Array:
        return self._loss(output)

    def conditional_loss(self, output: Array, known: Signs, index: int) -> Array:
        return self._loss(output[..., index])

    def _loss(self, entry: Array) -> Array:
        """Return the loss of an element with this entry."""
        raise NotImplementedError


class RevealedSigns(PerElement):
    """The base of mechanisms whose entry for an element is its sign, or 0 for no information."""

    def _loss(self, entry: Array) -> Array:
        revealed = np.where(entry > 0, -np.inf, np.inf)
        return np.where(entry == 0, 0.0, revealed)
