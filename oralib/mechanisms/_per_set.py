"""The parts that mechanisms share which release one entry per set of elements."""

from functools import reduce
from itertools import product
from math import prod
from typing import ClassVar

import numpy as np
import scipy
from numpy.random import Generator

from oralib.ground import arguments
from oralib.ground.types import Array
from oralib.mechanisms.protocol import Signs


class PerSet:
    """The base of mechanisms that split the elements, by their order, into sets of size s.

    The last set is smaller if s does not divide n. The entry of a set depends on how many of its
    elements are 1, so within a set they are exchangeable.
    """

    def check_size(self, n: int) -> int:
        return arguments.integer("n", n, 1)

    def run(self, signs: Signs, rng: Generator) -> Array:
        return self._release(self._count_ones(signs), rng)

    def privacy_loss(self, output: Array, n: int) -> Array:
        sizes = self._sizes(n)
        return np.repeat(self._loss(output, sizes, np.asarray(0)), sizes, axis=-1)

    def conditional_loss(self, output: Array, known: Signs, index: int) -> Array:
        size = self._set_size(known.shape[-1])
        start = index - index % size
        other_signs = np.delete(known[..., start : start + size], index - start, axis=-1)
        unknown = 1 + (other_signs == 0).sum(axis=-1)
        known_ones = (other_signs > 0).sum(axis=-1)
        return self._loss(output[..., index // size], unknown, known_ones)

    def _set_size(self, n: int) -> int:
        """Return the size s of a set; by default one set has all n elements."""
        return n

    def _release(self, ones: Array, rng: Generator) -> Array:
        """Draw the entry of each set from the number of its elements that are 1."""
        raise NotImplementedError

    def _loss(self, entry: Array, unknown: Array, known_ones: Array) -> Array:
        """Return the loss of an unknown element of a set with this entry.

        ``unknown`` counts the unknown elements of the set, ``known_ones`` those known to be 1.
        """
        raise NotImplementedError

    def _sizes(self, n: int) -> Array:
        """Return the sizes of all sets."""
        return np.diff(np.arange(0, n, self._set_size(n)), append=n)

    def _count_ones(self, signs: Signs) -> Array:
        """Return how many elements of each set are 1."""
        n = signs.shape[-1]
        starts = np.arange(0, n, self._set_size(n))
        return np.add.reduceat(signs > 0, starts, axis=-1, dtype=np.int64)


class DiscretePerSet(PerSet):
    """The base of those with finitely many entries: an output is a choice of one for each set."""

    def outputs(self, n: int) -> Array:
        return np.array(list(product(*map(self._entries, self._sizes(n)))))

    def count_outputs(self, n: int) -> int:
        return prod(len(self._entries(size)) for size in self._sizes(n))

    def likelihood(self, outputs: Array, signs: Signs) -> Array:
        ones = self._count_ones(signs).T
        entries = zip(outputs.T[:, :, None], ones[:, None, :], strict=True)
        return reduce(np.multiply, (self._entry_likelihood(*pair) for pair in entries))

    def _entries(self, size: int) -> Array:
        """Return all possible entries of a set of this size."""
        raise NotImplementedError

    def _entry_likelihood(self, entry: Array, ones: Array) -> Array:
        """Return P[entry | number of ones in the set]."""
        raise NotImplementedError


class Parity(DiscretePerSet):
    """The base of mechanisms that release each set's parity by ε-randomized response."""

    #: With ε = inf every parity is right.
    epsilon: float = np.inf

    def _release(self, ones: Array, rng: Generator) -> Array:
        truth = rng.random(ones.shape) < scipy.special.expit(self.epsilon)
        return np.where(truth, ones % 2, 1 - ones % 2)

    def _loss(self, entry: Array, unknown: Array, known_ones: Array) -> Array:
        # One more unknown element hides everything; otherwise the parity gives the last one away.
        last = (entry + known_ones) % 2
        return np.where(unknown > 1, 0.0, np.where(last == 1, -self.epsilon, self.epsilon))

    def _entries(self, size: int) -> Array:
        return np.array([0, 1])

    def _entry_likelihood(self, entry: Array, ones: Array) -> Array:
        truth = scipy.special.expit(self.epsilon)
        return np.where(entry == ones % 2, truth, scipy.special.expit(-self.epsilon))


class Counting(DiscretePerSet):
    """The base of mechanisms that release how many elements of each set are 1."""

    epsilon: ClassVar[float] = np.inf

    def _release(self, ones: Array, rng: Generator) -> Array:
        return ones

    def _loss(self, entry: Array, unknown: Array, known_ones: Array) -> Array:
        ones = entry - known_ones
        with np.errstate(divide="ignore"):
            return np.log((unknown - ones) / ones)

    def _entries(self, size: int) -> Array:
        return np.arange(size + 1)

    def _entry_likelihood(self, entry: Array, ones: Array) -> Array:
        return (entry == ones).astype(float)
