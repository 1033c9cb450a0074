"""A guesser and a mechanism that break ε'(v, r) under full feedback (Appendices A and E)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy
from numpy.random import Generator
from numpy.typing import NDArray

from oralib import p
from oralib.ground import arguments
from oralib.ground.types import Array
from oralib.mechanisms import Signs, sign_vectors

__all__ = ["SelfMutingResponse", "stop_or_oppose_law"]


def stop_or_oppose_law(epsilon: float, n: int, beta: float = 0.05) -> NDArray[np.float64]:
    """The law of (V, R) of an adaptive audit of randomized response that tosses a private coin.

    On heads it guesses what it sees, until its bound exceeds ε. On tails it guesses the opposite,
    everywhere. So V is stochastically dominated by Bin(R, p(ε)), and yet the bound fails too often:
    Lemma A.7 needs a correction.

    >>> float(stop_or_oppose_law(0.0, 6)[5, 5])
    0.015625
    """
    success = p(epsilon)
    law = np.zeros((n + 1, n + 1))
    law[:, n] = 0.5 * scipy.stats.binom.pmf(np.arange(n + 1), n, 1 - success)
    v = np.arange(n + 1)
    going = np.where(v == 0, 0.5, 0.0)  # P[v right so far, and not stopped]
    for r in range(1, n + 1):
        going = going * (1 - success) + np.append(0.0, going[:-1]) * success
        # The bound exceeds ε where the tail of Bin(r, p(ε)) is below β, by more than rounding.
        stops = (scipy.stats.binom.sf(v - 1, r, success) < beta * (1 - 1e-9)) | (r == n)
        law[stops, r] += going[stops]
        going[stops] = 0.0
    return law


@dataclass(frozen=True)
class SelfMutingResponse:
    """Randomized response at level ``rate`` that turns into fair coins once its record is good.

    It prints the signs one after another, each as it is with probability p(rate) and flipped
    otherwise, until v of the first r printed signs are right with v at least ``line[r - 1]``. From
    then on it prints fair coins. Its privacy level exceeds ``rate``, as a sign also affects when
    that begins; a table shows by how much. Given the earlier signs, the loss of an element is
    ±rate, or 0 from there on: a guesser with full feedback and the threshold ``rate`` falls silent
    while it is ahead.

    >>> from oralib import channel
    >>> round(channel(SelfMutingResponse(1.0, line=(1, 2, 3)), n=3).epsilon, 6)
    2.240229
    """

    rate: float
    line: tuple[int, ...]

    def __post_init__(self) -> None:
        rate = arguments.real("rate", self.rate, 0, 50, interval="(]")
        line = arguments.integers("line", self.line, 0)
        if line.ndim != 1 or not line.size:
            raise ValueError(f"line must be a sequence of thresholds, got line={self.line!r}")
        arguments.store(self, rate=rate, line=tuple(line.tolist()))

    #: Known only for a given number of elements, from the table.
    epsilon: ClassVar[float] = np.inf

    def check_size(self, n: int) -> int:
        return arguments.integer("n", n, 1, len(self.line))

    def _mute(self, output: Array, signs: Signs) -> Array:
        """Tell for each element whether the record of those before it is good."""
        v = np.cumsum(output == signs, axis=-1)
        is_good = np.logical_or.accumulate(v >= self.line[: v.shape[-1]], axis=-1)
        return np.insert(is_good[..., :-1], 0, False, axis=-1)

    def run(self, signs: Signs, rng: Generator) -> Array:
        output = np.where(rng.random(signs.shape) < scipy.special.expit(self.rate), signs, -signs)
        fair = np.where(rng.random(signs.shape) < 0.5, np.int8(-1), np.int8(1))
        return np.where(self._mute(output, signs), fair, output)

    def privacy_loss(self, output: Array, n: int) -> Array:
        # The chance, over fair signs, that the record is not good yet: it does not depend on the
        # output, as each printed sign is right with the same probability.
        truth = scipy.special.expit(self.rate)
        law = np.zeros(n + 1)  # P[v right so far, and the record is not good]
        law[0] = 1.0
        mute = np.zeros(n)
        for i in range(n):
            mute[i] = 1 - law.sum()
            law = law * (1 - truth) + np.append(0, law[:-1]) * truth
            law[self.line[i] :] = 0
        accuracy = 0.5 * mute + truth * (1 - mute)
        return np.where(output > 0, -1, 1) * scipy.special.logit(accuracy)

    def conditional_loss(self, output: Array, known: Signs, index: int) -> Array:
        if (known[..., :index] == 0).any():
            raise ValueError("known must hold all signs before index: the losses need the record")
        # The sign at the index itself does not affect what happened before it.
        mute = self._mute(output[..., : index + 1], known[..., : index + 1])[..., -1]
        return np.where(mute, 0.0, np.where(output[..., index] > 0, -self.rate, self.rate))

    def outputs(self, n: int) -> Array:
        return sign_vectors(n)

    def count_outputs(self, n: int) -> int:
        return 2**n

    def likelihood(self, outputs: Array, signs: Signs) -> Array:
        output = outputs[:, None, :]
        sign = signs[None, :, :]
        response = np.where(
            output == sign, scipy.special.expit(self.rate), scipy.special.expit(-self.rate)
        )
        return np.where(self._mute(output, sign), 0.5, response).prod(axis=2)
