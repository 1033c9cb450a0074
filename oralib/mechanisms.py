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
from itertools import combinations, product
from math import comb, prod
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from oralib import _check, _special

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
    "SelfMutingResponse",
    "Xor",
    "XorInPairs",
    "XorRandomizedResponse",
    "sign_vectors",
]

Signs = NDArray[np.int8]
Array = NDArray[Any]


@runtime_checkable
class Mechanism(Protocol):
    """What a game needs to know of a mechanism.

    The privacy loss of element i at output o is ℓ_i(o) = ln P[o | s_i = -1] - ln P[o | s_i = 1],
    the other signs being fair coins, or known where it is said that they are. A mechanism of your
    own is any object with these names; for an exact table it also needs ``outputs``,
    ``count_outputs`` and ``likelihood``. The signs that it is given are read-only: copy what you
    want to change.

    Examples
    --------
    >>> from oralib import LocalLaplace
    >>> isinstance(LocalLaplace(1.0), Mechanism)
    True
    """

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
    """All 2^n vectors of signs, one a row, from all -1 to all 1 in lexicographic order.

    Examples
    --------
    >>> sign_vectors(2).tolist()
    [[-1, -1], [-1, 1], [1, -1], [1, 1]]
    """
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
    """LRR_ε: each sign is released as it is with probability p(ε), and flipped otherwise.

    P[o_i = s_i] = p(ε), independently for each element, so that the loss of an element is ±ε
    (Definition 4.2). No ε-DP mechanism makes more guesses right, and its audits are asymptotically
    tight.

    Examples
    --------
    >>> from oralib import channel
    >>> table = channel(LocalRandomizedResponse(1.0), n=2)
    >>> round(table.epsilon, 6), round(table.optimal_efficacy(), 6)
    (1.0, 0.731059)
    """

    epsilon: float

    def __post_init__(self) -> None:
        _check.store(self, epsilon=_check.real("epsilon", self.epsilon, 0))

    def run(self, signs: Signs, rng: Generator) -> Array:
        return np.where(rng.random(signs.shape) < _special.expit(self.epsilon), signs, -signs)

    def _loss(self, entry: Array) -> Array:
        return np.where(entry > 0, -self.epsilon, self.epsilon)

    def outputs(self, n: int) -> Array:
        return sign_vectors(n)

    def count_outputs(self, n: int) -> int:
        return 2**n

    def likelihood(self, outputs: Array, signs: Signs) -> Array:
        flipped = (outputs[:, None, :] != signs[None, :, :]).sum(axis=2)
        truth, lie = _special.expit(self.epsilon), _special.expit(-self.epsilon)
        return truth ** (signs.shape[1] - flipped) * lie**flipped


@dataclass(frozen=True)
class NameAndShame(_PerElement):
    """NAS: one element, chosen at random, is released as it is.

    The elements are distinct, so that the output says which one it was: it is a vector with that
    element's sign in its place and 0 elsewhere.

    The loss is ∓∞ at the element that is named and 0 at all others: not differentially private, and
    yet a guesser that must guess them all is hardly better than a coin (Definition B.2).

    Examples
    --------
    >>> from oralib import channel
    >>> table = channel(NameAndShame(), n=4)
    >>> table.epsilon, table.optimal_efficacy(), table.optimal_efficacy(k=1)
    (inf, 0.625, 1.0)
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
    """AON_p: the whole dataset is released with probability p, else nothing (a vector of 0).

    P[o = s] = p and P[o = 0] = 1 - p. Its ε is infinite for p > 0, its δ is p, and the best guesser
    is right with probability (1 + p) / 2 on average (Definition B.5).

    Examples
    --------
    >>> from oralib import channel
    >>> round(channel(AllOrNothing(0.1), n=3).optimal_efficacy(), 6)
    0.55
    """

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
    """LLP_ε: Laplace noise of scale 2/ε is added to each sign.

    o_i = s_i + Lap(2/ε), so that ℓ_i(o) = -ε min(1, max(-1, o_i)) (Definition C.12). It is ε-DP,
    and a guess without abstention is right with probability 1 - e^(-ε/2) / 2, less than p(ε).

    Examples
    --------
    >>> mechanism = LocalLaplace(2.0)
    >>> mechanism.privacy_loss(np.array([-3.0, 0.25, 1.5]), 3).tolist()
    [2.0, -0.5, -2.0]
    """

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

    Examples
    --------
    >>> from oralib import TopGuesser, channel, one_run_law, p_value
    >>> law = one_run_law(channel(ExtremalResponse(0.5, 0.01, v=3, r=3), n=4), TopGuesser(3))
    >>> round(float(law[3:, 3].sum()), 6)
    0.251293
    >>> round(p_value(3, 3, 0.5, delta=0.01, n=4, method="exact"), 6)
    0.251293
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
        log_plain = _special.binomial_log_pmf(k, self.r, _special.expit(self.level))
        # By logarithms: the tail from v on may be too small for a double.
        given = np.minimum(log_plain - _special.logsumexp(log_plain[self.v :]), 0.0)
        high = np.where(k >= self.v, np.exp(given), 0.0)
        x = min(1.0, n * self.delta / (self.v * high[self.v]))
        law = (1 - x) * np.exp(log_plain) + x * high
        return law / law.sum()

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
        printed = np.array(list(combinations(range(n), self.r)))
        signs = sign_vectors(self.r)
        outputs = np.zeros((len(printed), len(signs), n), dtype=np.int8)
        np.put_along_axis(outputs, printed[:, None, :], signs[None], axis=2)
        return outputs.reshape(-1, n)

    def count_outputs(self, n: int) -> int:
        return 2**self.r * comb(n, self.r)

    def likelihood(self, outputs: Array, signs: Signs) -> Array:
        n = signs.shape[1]
        right = (outputs[:, None, :] == signs[None, :, :]).sum(axis=2)
        ways = np.array([comb(self.r, k) for k in range(self.r + 1)]) * comb(n, self.r)
        return (self._law(n) / ways)[right]


@dataclass(frozen=True)
class SelfMutingResponse:
    """Randomized response of level ``rate`` that turns into fair coins once its record is good.

    It prints the signs one after another, each as it is with probability p(rate) and flipped
    otherwise, until v of the first r printed signs are right with v at least ``line[r - 1]``. From
    then on it prints fair coins, which say nothing. Its privacy level exceeds ``rate`` where a
    sign also decides on when the printing of fair coins begins; a table tells by how much.

    It is made for a guesser with full feedback. Given the earlier signs, the loss of an element is
    ±rate, or 0 from where the record is good on: the guesser with the constant threshold ``rate``
    falls silent while it is ahead.

    Examples
    --------
    >>> from oralib import channel
    >>> round(channel(SelfMutingResponse(1.0, line=(1, 2, 3)), n=3).epsilon, 6)
    2.240229
    """

    rate: float
    line: tuple[int, ...]

    def __post_init__(self) -> None:
        rate = _check.real("rate", self.rate, 0, 50, interval="(]")
        line = _check.integers("line", self.line, 0)
        if line.ndim != 1 or not line.size:
            raise ValueError(f"line must be a sequence of thresholds, got line={self.line!r}")
        _check.store(self, rate=rate, line=tuple(line.tolist()))

    #: Known for a given number of elements only, from the table.
    epsilon: ClassVar[float] = np.inf

    def check_size(self, n: int) -> int:
        return _check.integer("n", n, 1, len(self.line))

    def _mute(self, output: Array, signs: Signs) -> Array:
        """For each element whether the record of those before it is good."""
        right = np.cumsum(output == signs, axis=-1)
        good = right >= np.array(self.line[: right.shape[-1]])
        before = np.zeros_like(good)
        before[..., 1:] = np.logical_or.accumulate(good, axis=-1)[..., :-1]
        return before

    def run(self, signs: Signs, rng: Generator) -> Array:
        output = np.where(rng.random(signs.shape) < _special.expit(self.rate), signs, -signs)
        fair = np.where(rng.random(signs.shape) < 0.5, np.int8(-1), np.int8(1))
        return np.where(self._mute(output, signs), fair, output)

    def privacy_loss(self, output: Array, n: int) -> Array:
        # The chance, over fair signs, that the record is not good yet: it does not depend on the
        # output, as each printed sign is right with the same probability.
        v, silent = np.zeros(n + 1), np.zeros(n)
        v[0], truth = 1.0, _special.expit(self.rate)
        for i in range(n):
            silent[i] = 1 - v.sum()
            v = v * (1 - truth) + np.append(0, v[:-1]) * truth
            v[self.line[i] :] = 0
        accuracy = 0.5 * silent + truth * (1 - silent)
        return np.where(output > 0, -1, 1) * _special.logit(accuracy)

    def conditional_loss(self, output: Array, known: Signs, index: int) -> Array:
        before = known[..., :index]
        if (before == 0).any():
            raise ValueError("known must hold all signs before index: the losses need the record")
        printed = output[..., : index + 1]
        # The entry at the index itself does not matter to what happened before it.
        mute = self._mute(printed, np.append(before, printed[..., -1:], axis=-1))[..., -1]
        return np.where(mute, 0.0, np.where(printed[..., -1] > 0, -self.rate, self.rate))

    def outputs(self, n: int) -> Array:
        return sign_vectors(n)

    def count_outputs(self, n: int) -> int:
        return 2**n

    def likelihood(self, outputs: Array, signs: Signs) -> Array:
        output, sign = outputs[:, None, :], signs[None, :, :]
        told = np.where(output == sign, _special.expit(self.rate), _special.expit(-self.rate))
        return np.where(self._mute(output, sign), 0.5, told).prod(axis=2)


def _certain(entry: Array) -> Array:
    """The loss of an element whose sign is shown (infinite), or is not (an entry of 0)."""
    return np.where(entry == 0, 0.0, np.where(entry > 0, -np.inf, np.inf))


# ------------------------------------------------------------------ one output entry per set


class _PerSet:
    """Splits the elements, by their order, into sets of one size and releases one entry per set.

    The last set is smaller if the size does not divide n. The entry depends on how many elements
    of the set are 1, so within a set they are exchangeable.
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

    def _sizes(self, n: int) -> Array:
        """The sizes of all sets."""
        size = self._set_size(n)
        return np.diff(np.append(np.arange(0, n, size), n))

    def run(self, signs: Signs, rng: Generator) -> Array:
        return self._release(self._ones(signs), rng)

    def _ones(self, signs: Signs) -> Array:
        n = signs.shape[-1]
        starts = np.arange(0, n, self._set_size(n))
        return np.add.reduceat(signs > 0, starts, axis=-1, dtype=np.int64)

    def privacy_loss(self, output: Array, n: int) -> Array:
        sizes = self._sizes(n)
        return np.repeat(self._loss(output, sizes, np.asarray(0)), sizes, axis=-1)

    def conditional_loss(self, output: Array, known: Signs, index: int) -> Array:
        size = self._set_size(known.shape[-1])
        start = index - index % size
        others = np.delete(known[..., start : start + size], index - start, axis=-1)
        unknown = 1 + (others == 0).sum(axis=-1)
        return self._loss(output[..., index // size], unknown, (others > 0).sum(axis=-1))

    def check_size(self, n: int) -> int:
        return _check.integer("n", n, 1)


class _DiscretePerSet(_PerSet):
    """Releases one of finitely many entries per set: an output is a choice of one for each."""

    def _entries(self, size: int) -> Array:
        """All possible output entries of a set."""
        raise NotImplementedError

    def _entry_likelihood(self, entry: Array, ones: Array) -> Array:
        """P[entry | number of ones in the set]."""
        raise NotImplementedError

    def outputs(self, n: int) -> Array:
        return np.array(list(product(*map(self._entries, self._sizes(n)))))

    def count_outputs(self, n: int) -> int:
        return prod(len(self._entries(size)) for size in self._sizes(n))

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
        truth = rng.random(ones.shape) < _special.expit(self._noise)
        return np.where(truth, ones % 2, 1 - ones % 2)

    def _loss(self, entry: Array, unknown: Array, known_ones: Array) -> Array:
        # One more unknown element hides everything; otherwise the parity gives the last one away.
        last = (entry + known_ones) % 2
        return np.where(unknown > 1, 0.0, np.where(last == 1, -self._noise, self._noise))

    def _entries(self, size: int) -> Array:
        return np.array([0, 1])

    def _entry_likelihood(self, entry: Array, ones: Array) -> Array:
        truth = _special.expit(self._noise)
        return np.where(entry == ones % 2, truth, _special.expit(-self._noise))


@dataclass(frozen=True)
class Xor(_Parity):
    """XOR: the exclusive or of all bits.

    o = s_1 ··· s_n, the product of the signs (Definition B.8). Its ε is infinite, and one who knows
    nothing of the others learns nothing of any element: every loss is 0 for n > 1.

    Examples
    --------
    >>> from oralib import channel
    >>> table = channel(Xor(), n=3)
    >>> table.epsilon, table.ddp
    (inf, 0.0)
    """

    epsilon: ClassVar[float] = np.inf


@dataclass(frozen=True)
class XorInPairs(_Parity):
    """XIP: the exclusive or of each pair of neighbouring bits, (1, 2), (3, 4), ...; n is even.

    o_j = s_(2j-1) s_(2j) (Definition E.6). A guesser who is shown one sign of each pair knows the
    other.

    Examples
    --------
    >>> from oralib import ThresholdGuesser, adaptive
    >>> counts = adaptive(XorInPairs(), ThresholdGuesser(float("inf")), 100, seed=1)
    >>> int(counts.v[0]), int(counts.r[0])
    (50, 50)
    """

    epsilon: ClassVar[float] = np.inf

    def _set_size(self, n: int) -> int:
        return 2

    def check_size(self, n: int) -> int:
        n = super().check_size(n)
        _check.multiple("n", n, 2, "the size of a pair")
        return n


@dataclass(frozen=True)
class XorRandomizedResponse(_Parity):
    """XRR_ε: randomized response on the exclusive or of all bits.

    o = s_1 ··· s_n with probability p(ε), else its opposite (Definition E.1). It is ε-DP.

    Examples
    --------
    >>> from oralib import channel
    >>> table = channel(XorRandomizedResponse(1.0), n=3)
    >>> round(table.epsilon, 6), round(table.ddp, 6)
    (1.0, 0.0)
    """

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
    """The number of ones in the whole dataset.

    o is the number of i with s_i = 1. Its losses are ℓ_i(o) = ln((n - o) / o).

    Examples
    --------
    >>> from oralib import channel
    >>> channel(Count(), n=4).privacy_loss[:, 0].round(3).tolist()
    [inf, 1.099, 0.0, -1.099, -inf]
    """


@dataclass(frozen=True)
class CountInSets(_Counting):
    """CIS_s: the number of ones in each set of s neighbouring elements.

    The last set is smaller if s does not divide n.

    In each set the losses are those of :class:`Count` with s elements (Definition 6.1).

    Examples
    --------
    >>> from oralib import channel
    >>> table = channel(CountInSets(2), n=4)
    >>> table.epsilon, table.optimal_efficacy()
    (inf, 0.75)
    """

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

    Examples
    --------
    >>> from oralib import ThresholdGuesser, one_run
    >>> counts = one_run(NoisyCountInSets(4, sigma=1.0), ThresholdGuesser(1.0), 1000, seed=1)
    >>> int(counts.r[0])
    240
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
        log_weight = _special.binomial_log_pmf(others, np.asarray(unknown)[..., None] - 1, 0.5)
        return _special.logsumexp(
            log_weight - (entry[..., None] - others) ** 2 / (2 * self.sigma**2), axis=-1
        )
