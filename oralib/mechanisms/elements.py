"""Mechanisms that release one entry per element."""

from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from oralib import _check, _special
from oralib.mechanisms.protocol import AnySize, Array, Signs, sign_vectors


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


class _SignsAsOutput:
    """Prints a sign for each element."""

    def outputs(self, n: int) -> Array:
        return sign_vectors(n)

    def count_outputs(self, n: int) -> int:
        return 2**n


@dataclass(frozen=True)
class LocalRandomizedResponse(_SignsAsOutput, _PerElement):
    """LRR_ε: each sign is released as it is with probability p(ε), and flipped otherwise.

    The loss of an element is ±ε (Definition 4.2). No ε-DP mechanism makes more guesses right, and
    its audits are asymptotically tight.

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

    def likelihood(self, outputs: Array, signs: Signs) -> Array:
        flipped = (outputs[:, None, :] != signs[None, :, :]).sum(axis=2)
        truth, lie = _special.expit(self.epsilon), _special.expit(-self.epsilon)
        return truth ** (signs.shape[1] - flipped) * lie**flipped


@dataclass(frozen=True)
class NameAndShame(_PerElement):
    """NAS: one element, chosen at random, is released as it is.

    The output has that element's sign in its place and 0 elsewhere. The loss is ∓∞ for that element
    and 0 for all others. This is not differentially private, yet a guesser that must guess every
    element is hardly better than a coin (Definition B.2).

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
        _check.store(self, epsilon=_check.real("epsilon", self.epsilon, 0, interval="()"))

    def run(self, signs: Signs, rng: Generator) -> Array:
        return signs + rng.laplace(scale=2 / self.epsilon, size=signs.shape)

    def _loss(self, entry: Array) -> Array:
        # The same as (|o - 1| - |o + 1|) ε / 2, and exactly ∓ε beyond ±1.
        return -self.epsilon * np.clip(entry, -1, 1)


@dataclass(frozen=True)
class ExtremalResponse(_PerElement):
    """The (ε, δ)-DP mechanism that most often has at least v of r printed signs right.

    It prints r signs of a random set of elements and 0 for the others. The number of right signs
    has the law Bin(r, p(ε)), except that with probability x = min(1, n δ / B) it has that law given
    at least v, where B = v P[Bin = v] / P[Bin >= v]. Guessing what is printed attains the exact
    p-value.

    Examples
    --------
    >>> from oralib import TopGuesser, channel, one_run_law, p_value
    >>> law = one_run_law(channel(ExtremalResponse(0.5, 0.01, v=3, r=3), n=4), TopGuesser(3))
    >>> exact = p_value(3, 3, 0.5, delta=0.01, n=4, method="exact")
    >>> [round(x, 6) for x in (float(law[3, 3]), exact)]
    [0.251293, 0.251293]
    """

    level: float
    delta: float
    v: int
    r: int

    #: Printed signs are more often right than not: any positive number expresses that.
    _sure = 1.0

    def __post_init__(self) -> None:
        r, level = _check.integer("r", self.r, 1), _check.real("level", self.level, 0, 50)
        v, delta = _check.integer("v", self.v, 1, r), _check.real("delta", self.delta, 0, 1)
        _check.store(self, level=level, delta=delta, v=v, r=r)

    @property
    def epsilon(self) -> float:
        return self.level if self.delta == 0 else np.inf

    def _law(self, n: int) -> Array:
        """P[k of the printed signs are right], k = 0, ..., r."""
        k = np.arange(self.r + 1)
        log_plain = _special.binomial_log_pmf(k, self.r, _special.expit(self.level))
        # With logarithms: the tail from v on may be too small for a double.
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

    def check_size(self, n: int) -> int:
        return _check.integer("n", n, self.r)

    def outputs(self, n: int) -> Array:
        outputs = np.zeros((comb(n, self.r), 2**self.r, n), dtype=np.int8)
        for place, printed in enumerate(combinations(range(n), self.r)):
            outputs[place][:, printed] = sign_vectors(self.r)
        return outputs.reshape(-1, n)

    def count_outputs(self, n: int) -> int:
        return 2**self.r * comb(n, self.r)

    def likelihood(self, outputs: Array, signs: Signs) -> Array:
        n = signs.shape[1]
        right = (outputs[:, None, :] == signs[None, :, :]).sum(axis=2)
        ways = np.array([comb(self.r, k) for k in range(self.r + 1)]) * comb(n, self.r)
        return (self._law(n) / ways)[right]


@dataclass(frozen=True)
class SelfMutingResponse(_SignsAsOutput):
    """Randomized response at level ``rate`` that turns into fair coins once its record is good.

    It prints the signs one after another, each as it is with probability p(rate) and flipped
    otherwise, until v of the first r printed signs are right with v at least ``line[r - 1]``. From
    then on it prints fair coins. Its privacy level exceeds ``rate``, as a sign also affects when
    that begins; a table shows by how much. Given the earlier signs, the loss of an element is
    ±rate, or 0 from there on: a guesser with full feedback and the threshold ``rate`` falls silent
    while it is ahead.

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

    #: Known only for a given number of elements, from the table.
    epsilon: ClassVar[float] = np.inf

    def check_size(self, n: int) -> int:
        return _check.integer("n", n, 1, len(self.line))

    def _mute(self, output: Array, signs: Signs) -> Array:
        """For each element whether the record of those before it is good."""
        right = np.cumsum(output == signs, axis=-1)
        good = np.logical_or.accumulate(right >= self.line[: right.shape[-1]], axis=-1)
        return np.insert(good[..., :-1], 0, False, axis=-1)

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
        if (known[..., :index] == 0).any():
            raise ValueError("known must hold all signs before index: the losses need the record")
        # The sign at the index itself does not affect what happened before it.
        mute = self._mute(output[..., : index + 1], known[..., : index + 1])[..., -1]
        return np.where(mute, 0.0, np.where(output[..., index] > 0, -self.rate, self.rate))

    def likelihood(self, outputs: Array, signs: Signs) -> Array:
        output, sign = outputs[:, None, :], signs[None, :, :]
        told = np.where(output == sign, _special.expit(self.rate), _special.expit(-self.rate))
        return np.where(self._mute(output, sign), 0.5, told).prod(axis=2)
