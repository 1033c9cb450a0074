"""Mechanisms that release one entry per set of elements: parities and counts."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from itertools import product
from math import prod
from typing import ClassVar

import numpy as np
import scipy
from numpy.random import Generator

from oralib.ground import arguments
from oralib.ground.binomial import log_pmfs
from oralib.ground.types import Array
from oralib.mechanisms.protocol import AnySize, Signs


class _PerSet(AnySize):
    """Splits the elements, by their order, into sets of size s and releases one entry per set.

    The last set is smaller if s does not divide n. The entry depends on how many elements of the
    set are 1, so within a set they are exchangeable.
    """

    #: From the number of ones in a set and a generator: its entry of the output.
    _release: Callable[..., Array]
    #: From an entry, the number of unknown elements and of known 1s: the loss of an unknown one.
    _loss: Callable[..., Array]

    def _set_size(self, n: int) -> int:
        return getattr(self, "s", n)  # without an s there is one set of all elements

    def _sizes(self, n: int) -> Array:
        return np.diff(np.arange(0, n, self._set_size(n)), append=n)

    def _ones(self, signs: Signs) -> Array:
        """How many elements of each set are 1."""
        n = signs.shape[-1]
        starts = np.arange(0, n, self._set_size(n))
        return np.add.reduceat(signs > 0, starts, axis=-1, dtype=np.int64)

    def run(self, signs: Signs, rng: Generator) -> Array:
        return self._release(self._ones(signs), rng)

    def privacy_loss(self, output: Array, n: int) -> Array:
        sizes = self._sizes(n)
        return np.repeat(self._loss(output, sizes, np.asarray(0)), sizes, axis=-1)

    def conditional_loss(self, output: Array, known: Signs, index: int) -> Array:
        size = self._set_size(known.shape[-1])
        start = index - index % size
        others = np.delete(known[..., start : start + size], index - start, axis=-1)
        unknown = 1 + (others == 0).sum(axis=-1)
        return self._loss(output[..., index // size], unknown, (others > 0).sum(axis=-1))


class _DiscretePerSet(_PerSet):
    """Releases one of finitely many entries per set: an output is a choice of one for each set."""

    #: From the size of a set: all possible entries.
    _entries: Callable[..., Array]
    #: From an entry and the number of ones in the set: P[entry | number of ones].
    _entry_likelihood: Callable[..., Array]

    def outputs(self, n: int) -> Array:
        return np.array(list(product(*map(self._entries, self._sizes(n)))))

    def count_outputs(self, n: int) -> int:
        return prod(len(self._entries(size)) for size in self._sizes(n))

    def likelihood(self, outputs: Array, signs: Signs) -> Array:
        ones = self._ones(signs).T
        entries = zip(outputs.T[:, :, None], ones[:, None, :], strict=True)
        return reduce(np.multiply, (self._entry_likelihood(*pair) for pair in entries))


class _Parity(_DiscretePerSet):
    """Releases the parity of each set by ε-randomized response, which may be inf."""

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


@dataclass(frozen=True)
class Xor(_Parity):
    """XOR: the exclusive or of all bits; every loss is 0 for n > 1 (Definition B.8).

    >>> from oralib import channel
    >>> table = channel(Xor(), n=3)
    >>> table.epsilon, table.ddp
    (inf, 0.0)
    """


@dataclass(frozen=True)
class XorInPairs(_Parity):
    """XIP: the exclusive or of each pair of neighbouring bits, (1, 2), (3, 4), ...; n is even.

    A guesser that is shown one sign of each pair knows the other (Definition E.6).

    >>> from oralib import ThresholdGuesser, adaptive
    >>> counts = adaptive(XorInPairs(), ThresholdGuesser(float("inf")), 100, seed=1)
    >>> int(counts.v[0]), int(counts.r[0])
    (50, 50)
    """

    s: ClassVar[int] = 2

    def check_size(self, n: int) -> int:
        arguments.multiple("n", super().check_size(n), 2, "the size of a pair")
        return int(n)


@dataclass(frozen=True)
class XorRandomizedResponse(_Parity):
    """XRR_ε: randomized response on the exclusive or of all bits (Definition E.1).

    >>> from oralib import channel
    >>> table = channel(XorRandomizedResponse(1.0), n=3)
    >>> round(table.epsilon, 6), round(table.ddp, 6)
    (1.0, 0.0)
    """

    epsilon: float

    def __post_init__(self) -> None:
        arguments.store(self, epsilon=arguments.real("epsilon", self.epsilon, 0))


class _Counting(_DiscretePerSet):
    """Releases how many elements of each set are 1."""

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


@dataclass(frozen=True)
class Count(_Counting):
    """The number o of ones in the whole dataset, with losses ℓ_i(o) = ln((n - o) / o).

    >>> from oralib import channel
    >>> channel(Count(), n=4).privacy_loss[:, 0].round(3).tolist()
    [inf, 1.099, 0.0, -1.099, -inf]
    """


@dataclass(frozen=True)
class CountInSets(_Counting):
    """CIS_s: the number of ones in each set of s neighbouring elements (Definition 6.1).

    The last set is smaller if s does not divide n.

    >>> from oralib import channel
    >>> table = channel(CountInSets(2), n=4)
    >>> table.epsilon, table.optimal_efficacy()
    (inf, 0.75)
    """

    s: int

    def __post_init__(self) -> None:
        arguments.store(self, s=arguments.integer("s", self.s, 1))


@dataclass(frozen=True)
class NoisyCountInSets(_PerSet):
    """Count-in-Sets with Gaussian noise of standard deviation sigma on each count.

    This is one full-batch step of DP-SGD with s Dirac canaries per coordinate.

    >>> from oralib import ThresholdGuesser, one_run
    >>> counts = one_run(NoisyCountInSets(4, sigma=1.0), ThresholdGuesser(1.0), 1000, seed=1)
    >>> int(counts.r[0])
    240
    """

    s: int
    sigma: float

    def __post_init__(self) -> None:
        s, sigma = arguments.integer("s", self.s, 1), arguments.real("sigma", self.sigma, 1e-3, 1e6)
        arguments.store(self, s=s, sigma=sigma)

    epsilon: ClassVar[float] = np.inf

    def _release(self, ones: Array, rng: Generator) -> Array:
        return ones + self.sigma * rng.standard_normal(ones.shape)

    def _loss(self, entry: Array, unknown: Array, known_ones: Array) -> Array:
        rest = np.asarray(entry - known_ones)
        return self._log_density(rest, unknown) - self._log_density(rest - 1, unknown)

    def _log_density(self, entry: Array, unknown: Array) -> Array:
        """log density, up to a constant, of the noisy count of all unknown elements but one."""
        others = np.arange(self.s)
        log_weight = log_pmfs(others, np.asarray(unknown)[..., None] - 1, 0.5)
        return scipy.special.logsumexp(
            log_weight - (entry[..., None] - others) ** 2 / (2 * self.sigma**2), axis=-1
        )
