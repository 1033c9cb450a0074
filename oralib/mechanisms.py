"""The paper's mechanisms, each as a frozen dataclass that can be run and, if discrete, tabulated.

A dataset is a vector of signs s in {-1, 1}^n: the auditor's coins. Where the paper works with
bits, -1 stands for 0 and 1 for 1. Leading axes are independent runs.

What a guesser needs is the distributional privacy loss of an element given the output,

    ℓ_i(o) = ln P[O = o | S_i = -1] - ln P[O = o | S_i = 1],

negative where S_i = 1 is the likelier value. There are two families: in the first the output has
one entry per element and only that entry matters; in the second the elements come in sets, and
all that matters is the set's output, how many of its elements are unknown, and how many of the
known ones are 1.
"""

from dataclasses import dataclass
from functools import reduce
from itertools import product
from math import comb
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import special, stats

from oralib import _check

__all__ = [
    "AllOrNothing",
    "Count",
    "CountInSets",
    "ExtremalResponse",
    "LocalLaplace",
    "LocalRandomizedResponse",
    "Mechanism",
    "NameAndShame",
    "NoisyCountInSets",
    "Xor",
    "XorInPairs",
    "XorRandomizedResponse",
    "sign_vectors",
]

Signs = NDArray[np.int8]
Array = NDArray[Any]


@runtime_checkable
class Mechanism(Protocol):
    """What a game needs to know of a mechanism."""

    @property
    def epsilon(self) -> float:
        """The privacy level ε(M) in nats; inf if the mechanism is not differentially private."""

    def run(self, signs: Signs, rng: Generator) -> Array:
        """One random output for each dataset in ``signs``, shape (..., n)."""

    def privacy_loss(self, output: Array, n: int) -> Array:
        """ℓ_i(o) for each of the n elements, when nothing is known of the others."""

    def conditional_loss(self, output: Array, known: Signs, index: int) -> Array:
        """ℓ_i(o) for one element, given the known signs of others (0 where unknown).

        An entry of ``known`` at ``index`` itself is ignored.
        """

    def check_size(self, n: int) -> int:
        """``n`` if the mechanism can take datasets of n elements, else a ValueError."""


@runtime_checkable
class DiscreteMechanism(Mechanism, Protocol):
    """What an exact table needs to know of a mechanism."""

    def outputs(self, n: int) -> Array:
        """All possible outputs, one a row, in the form in which ``run`` returns them."""

    def count_outputs(self, n: int) -> int:
        """How many there are."""

    def likelihood(self, outputs: Array, signs: Signs) -> Array:
        """P[o | s] for each row o of ``outputs`` and each row s of ``signs``."""


def sign_vectors(n: int) -> Signs:
    """All 2^n vectors of signs, one a row, from all -1 to all 1 in lexicographic order."""
    n = _check.integer("n", n, 1, 24)
    rows = np.arange(2**n, dtype=np.int32)
    signs = np.empty((2**n, n), dtype=np.int8)
    for i in range(n):
        signs[:, i] = 2 * (rows >> (n - 1 - i) & 1) - 1
    return signs


# ---------------------------------------------------------------- one output entry per element


class _PerElement:
    """Outputs one entry per element; the loss of an element depends on its entry alone."""

    def _loss(self, entry: Array) -> Array:
        raise NotImplementedError

    def privacy_loss(self, output: Array, n: int) -> Array:
        return self._loss(output)

    def conditional_loss(self, output: Array, known: Signs, index: int) -> Array:
        return self._loss(output[..., index])

    def check_size(self, n: int) -> int:
        return _check.integer("n", n, 1)


@dataclass(frozen=True)
class LocalRandomizedResponse(_PerElement):
    """LRR_ε: each sign is released as it is with probability p(ε), and flipped otherwise."""

    epsilon: float

    def __post_init__(self) -> None:
        _check.store(self, epsilon=_check.real("epsilon", self.epsilon, 0))

    def run(self, signs: Signs, rng: Generator) -> Array:
        return np.where(rng.random(signs.shape) < special.expit(self.epsilon), signs, -signs)

    def _loss(self, entry: Array) -> Array:
        return np.where(entry > 0, -self.epsilon, self.epsilon)

    def outputs(self, n: int) -> Array:
        return sign_vectors(n)

    def count_outputs(self, n: int) -> int:
        return 2**n

    def likelihood(self, outputs: Array, signs: Signs) -> Array:
        flipped = (outputs[:, None, :] != signs[None, :, :]).sum(axis=2)
        truth, lie = special.expit(self.epsilon), special.expit(-self.epsilon)
        return truth ** (signs.shape[1] - flipped) * lie**flipped


@dataclass(frozen=True)
class NameAndShame(_PerElement):
    """NAS: one element, chosen at random, is released as it is.

    The elements are distinct, so that the output says which one it was: it is a vector with that
    element's sign in its place and 0 elsewhere.
    """

    epsilon: ClassVar[float] = np.inf

    def run(self, signs: Signs, rng: Generator) -> Array:
        chosen = rng.integers(signs.shape[-1], size=(*signs.shape[:-1], 1))
        return np.where(np.arange(signs.shape[-1]) == chosen, signs, 0)

    def _loss(self, entry: Array) -> Array:
        return _certain(entry)

    def outputs(self, n: int) -> Array:
        one = np.eye(n, dtype=np.int8)
        return np.concatenate([-one, one])

    def count_outputs(self, n: int) -> int:
        return 2 * n

    def likelihood(self, outputs: Array, signs: Signs) -> Array:
        return (outputs @ signs.T.astype(np.int64) == 1) / signs.shape[1]


@dataclass(frozen=True)
class AllOrNothing(_PerElement):
    """AON_p: the whole dataset is released with probability p, else nothing (a vector of 0)."""

    p: float

    def __post_init__(self) -> None:
        _check.store(self, p=_check.real("p", self.p, 0, 1))

    @property
    def epsilon(self) -> float:
        return np.inf if self.p > 0 else 0.0

    def run(self, signs: Signs, rng: Generator) -> Array:
        return np.where(rng.random((*signs.shape[:-1], 1)) < self.p, signs, 0)

    def _loss(self, entry: Array) -> Array:
        return _certain(entry)

    def outputs(self, n: int) -> Array:
        return np.concatenate([np.zeros((1, n), dtype=np.int8), sign_vectors(n)])

    def count_outputs(self, n: int) -> int:
        return 2**n + 1

    def likelihood(self, outputs: Array, signs: Signs) -> Array:
        shown = (outputs[:, None, :] == signs[None, :, :]).all(axis=2)
        return np.where((outputs == 0).all(axis=1)[:, None], 1 - self.p, self.p * shown)


@dataclass(frozen=True)
class LocalLaplace(_PerElement):
    """LLP_ε: Laplace noise of scale 2/ε is added to each sign."""

    epsilon: float

    def __post_init__(self) -> None:
        epsilon = _check.real("epsilon", self.epsilon, 0, np.inf, interval="()")
        _check.store(self, epsilon=epsilon)

    def run(self, signs: Signs, rng: Generator) -> Array:
        return signs + rng.laplace(scale=2 / self.epsilon, size=signs.shape)

    def _loss(self, entry: Array) -> Array:
        # The same as (|o - 1| - |o + 1|) ε / 2, and exactly ∓ε beyond ±1.
        return -self.epsilon * np.clip(entry, -1, 1)


@dataclass(frozen=True)
class ExtremalResponse(_PerElement):
    """The (ε, δ)-DP mechanism that most often has at least v of r printed signs right.

    It prints r signs of a random set of elements and 0 for the others. How many are right has the
    law Bin(r, p(ε)), but with probability x = min(1, n δ / B) that law given at least v, where
    B = v P[Bin = v] / P[Bin >= v]. Guessing what is printed attains the exact p-value of
    :func:`oralib.p_value`.
    """

    level: float
    delta: float
    v: int
    r: int

    def __post_init__(self) -> None:
        r = _check.integer("r", self.r, 1)
        _check.store(
            self,
            level=_check.real("level", self.level, 0, 50),
            delta=_check.real("delta", self.delta, 0, 1),
            v=_check.integer("v", self.v, 1, r),
            r=r,
        )

    @property
    def epsilon(self) -> float:
        return self.level if self.delta == 0 else np.inf

    def _law(self, n: int) -> Array:
        """P[k of the printed signs are right], k = 0, ..., r."""
        k = np.arange(self.r + 1)
        plain = stats.binom.pmf(k, self.r, special.expit(self.level))
        high = np.where(k >= self.v, plain, 0.0)
        high /= high.sum()
        x = min(1.0, n * self.delta / (self.v * high[self.v]))
        return (1 - x) * plain + x * high

    def run(self, signs: Signs, rng: Generator) -> Array:
        shape, n = signs.shape[:-1], signs.shape[-1]
        right = rng.choice(self.r + 1, size=(*shape, 1), p=self._law(n))
        place = np.argsort(rng.random(signs.shape), axis=-1)  # a random order of the elements
        return np.where(place < self.r, np.where(place < right, signs, -signs), 0)

    def _loss(self, entry: Array) -> Array:
        # Printed signs are more often right than not: any positive number says so.
        return np.where(entry == 0, 0.0, np.where(entry > 0, -1.0, 1.0))

    def check_size(self, n: int) -> int:
        return _check.integer("n", n, self.r)

    def outputs(self, n: int) -> Array:
        entries = np.array(list(product((-1, 0, 1), repeat=n)), dtype=np.int8)
        return entries[np.abs(entries).sum(axis=1) == self.r]

    def count_outputs(self, n: int) -> int:
        return 2**self.r * comb(n, self.r)

    def likelihood(self, outputs: Array, signs: Signs) -> Array:
        n = signs.shape[1]
        right = (outputs[:, None, :] == signs[None, :, :]).sum(axis=2)
        ways = special.comb(self.r, np.arange(self.r + 1)) * comb(n, self.r)
        return (self._law(n) / ways)[right]


def _certain(entry: Array) -> Array:
    """The loss of an element whose sign is shown (infinite), or is not (an entry of 0)."""
    return np.where(entry == 0, 0.0, np.where(entry > 0, -np.inf, np.inf))


# ------------------------------------------------------------------ one output entry per set


class _PerSet:
    """Splits the elements, by their order, into sets of one size and releases one entry per set.

    The entry depends on how many elements of the set are 1, so within a set they are exchangeable.
    """

    def _set_size(self, n: int) -> int:
        """How many elements a set has; by default there is one set of all."""
        return n

    def _release(self, ones: Array, rng: Generator) -> Array:
        """The output entry of a set with so many ones."""
        raise NotImplementedError

    def _loss(self, entry: Array, unknown: Array, known_ones: Array) -> Array:
        """The loss of an element of a set with so many unknown elements, itself included."""
        raise NotImplementedError

    def run(self, signs: Signs, rng: Generator) -> Array:
        return self._release(self._ones(signs), rng)

    def _ones(self, signs: Signs) -> Array:
        size = self._set_size(signs.shape[-1])
        return (signs.reshape(*signs.shape[:-1], -1, size) > 0).sum(axis=-1)

    def privacy_loss(self, output: Array, n: int) -> Array:
        size = self._set_size(n)
        return np.repeat(self._loss(output, np.asarray(size), np.asarray(0)), size, axis=-1)

    def conditional_loss(self, output: Array, known: Signs, index: int) -> Array:
        size = self._set_size(known.shape[-1])
        start = index - index % size
        others = np.delete(known[..., start : start + size], index - start, axis=-1)
        unknown = 1 + (others == 0).sum(axis=-1)
        return self._loss(output[..., index // size], unknown, (others > 0).sum(axis=-1))

    def check_size(self, n: int) -> int:
        n = _check.integer("n", n, 1)
        _check.multiple("n", n, self._set_size(n), "the size of a set")
        return n


class _DiscretePerSet(_PerSet):
    """Releases one of finitely many entries per set: an output is a choice of one for each."""

    def _entries(self, size: int) -> Array:
        """All possible output entries of a set."""
        raise NotImplementedError

    def _entry_likelihood(self, entry: Array, ones: Array) -> Array:
        """P[entry | number of ones in the set]."""
        raise NotImplementedError

    def outputs(self, n: int) -> Array:
        size = self._set_size(n)
        return np.array(list(product(self._entries(size), repeat=n // size)))

    def count_outputs(self, n: int) -> int:
        size = self._set_size(n)
        return len(self._entries(size)) ** (n // size)

    def likelihood(self, outputs: Array, signs: Signs) -> Array:
        ones = self._ones(signs)
        return reduce(
            np.multiply,
            (
                self._entry_likelihood(outputs[:, j, None], ones[None, :, j])
                for j in range(outputs.shape[1])
            ),
        )


class _Parity(_DiscretePerSet):
    """Releases the parity of each set, possibly by randomized response at the level ``_noise``."""

    @property
    def _noise(self) -> float:
        return np.inf

    def _release(self, ones: Array, rng: Generator) -> Array:
        truth = rng.random(ones.shape) < special.expit(self._noise)
        return np.where(truth, ones % 2, 1 - ones % 2)

    def _loss(self, entry: Array, unknown: Array, known_ones: Array) -> Array:
        # One more unknown element hides everything; otherwise the parity gives the last one away.
        last = (entry + known_ones) % 2
        return np.where(unknown > 1, 0.0, np.where(last == 1, -self._noise, self._noise))

    def _entries(self, size: int) -> Array:
        return np.array([0, 1])

    def _entry_likelihood(self, entry: Array, ones: Array) -> Array:
        truth = special.expit(self._noise)
        return np.where(entry == ones % 2, truth, special.expit(-self._noise))


@dataclass(frozen=True)
class Xor(_Parity):
    """XOR: the exclusive or of all bits."""

    epsilon: ClassVar[float] = np.inf


@dataclass(frozen=True)
class XorInPairs(_Parity):
    """XIP: the exclusive or of each pair of neighbouring bits, (1, 2), (3, 4), ..."""

    epsilon: ClassVar[float] = np.inf

    def _set_size(self, n: int) -> int:
        return 2


@dataclass(frozen=True)
class XorRandomizedResponse(_Parity):
    """XRR_ε: randomized response on the exclusive or of all bits."""

    epsilon: float

    def __post_init__(self) -> None:
        _check.store(self, epsilon=_check.real("epsilon", self.epsilon, 0))

    @property
    def _noise(self) -> float:
        return self.epsilon


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
    """The number of ones in the whole dataset."""


@dataclass(frozen=True)
class CountInSets(_Counting):
    """CIS_s: the number of ones in each set of s neighbouring elements; s must divide n."""

    s: int

    def __post_init__(self) -> None:
        _check.store(self, s=_check.integer("s", self.s, 1))

    def _set_size(self, n: int) -> int:
        return self.s


@dataclass(frozen=True)
class NoisyCountInSets(_PerSet):
    """Count-in-Sets with Gaussian noise of standard deviation sigma on each count.

    This is one full-batch step of DP-SGD with s Dirac canaries per coordinate, whose noise
    multiplier is sigma.
    """

    s: int
    sigma: float

    def __post_init__(self) -> None:
        s, sigma = _check.integer("s", self.s, 1), _check.real("sigma", self.sigma, 1e-3, 1e6)
        _check.store(self, s=s, sigma=sigma)

    epsilon: ClassVar[float] = np.inf

    def _set_size(self, n: int) -> int:
        return self.s

    def _release(self, ones: Array, rng: Generator) -> Array:
        return ones + self.sigma * rng.standard_normal(ones.shape)

    def _loss(self, entry: Array, unknown: Array, known_ones: Array) -> Array:
        rest = np.asarray(entry - known_ones)
        return self._log_density(rest, unknown) - self._log_density(rest - 1, unknown)

    def _log_density(self, entry: Array, unknown: Array) -> Array:
        """log density, up to a constant, of the noisy count of all unknown elements but one."""
        others = np.arange(self.s)
        log_weight = stats.binom.logpmf(others, np.asarray(unknown)[..., None] - 1, 0.5)
        return special.logsumexp(
            log_weight - (entry[..., None] - others) ** 2 / (2 * self.sigma**2), axis=-1
        )
