"""The worst mechanism, the worst rejection rate and the best guesser, by enumeration or formula."""

from dataclasses import dataclass
from functools import cache
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from scipy import special, stats

from oralib import Channel, p
from oralib.ground import arguments
from oralib.ground.rounding import snap
from oralib.ground.types import PLAYED, Array
from oralib.mechanisms import Signs, sign_vectors

__all__ = ["ExtremalResponse", "best_mean", "worst_case_rejection"]


@dataclass(frozen=True)
class ExtremalResponse:
    """The (ε, δ)-DP mechanism that most often has at least v of r printed signs right.

    It prints r signs of a random set of elements and 0 for the others. The number of right signs
    has the law Bin(r, p(ε)), except that with probability x = min(1, n δ / B) it has that law given
    at least v, where B = v P[Bin = v] / P[Bin >= v]. Guessing what is printed attains the exact
    p-value.

    Examples
    --------
    >>> from oralib import TopGuesser, channel, p_value
    >>> from oralib.bounds import Exact
    >>> from oralib.games import one_run_law
    >>> law = one_run_law(channel(ExtremalResponse(0.5, 0.01, v=3, r=3), n=4), TopGuesser(3))
    >>> exact = p_value(3, 3, 0.5, delta=0.01, n=4, rule=Exact())
    >>> [round(x, 6) for x in (float(law[3, 3]), exact)]
    [0.251293, 0.251293]
    """

    level: float
    delta: float
    v: int
    r: int

    def __post_init__(self) -> None:
        r = arguments.integer("r", self.r, 1)
        level = arguments.real("level", self.level, 0, 50)
        v = arguments.integer("v", self.v, 1, r)
        delta = arguments.real("delta", self.delta, 0, 1)
        arguments.store(self, level=level, delta=delta, v=v, r=r)

    @property
    def epsilon(self) -> float:
        return self.level if self.delta == 0 else np.inf

    def _law(self, n: int) -> Array:
        """P[k of the printed signs are right], k = 0, ..., r."""
        k = np.arange(self.r + 1)
        log_binomial = stats.binom.logpmf(k, self.r, p(self.level))
        # With logarithms: the tail from v upwards may be too small for a double.
        log_high = np.minimum(log_binomial - special.logsumexp(log_binomial[self.v :]), 0.0)
        high = np.where(k >= self.v, np.exp(log_high), 0.0)  # the binomial law given at least v
        x = min(1.0, n * self.delta / (self.v * high[self.v]))
        law = (1 - x) * np.exp(log_binomial) + x * high
        return law / law.sum()

    def run(self, signs: Signs, rng: Generator) -> Array:
        *shape, n = signs.shape
        right_signs = rng.choice(self.r + 1, size=(*shape, 1), p=self._law(n))
        place = np.argsort(rng.random(signs.shape), axis=-1)  # a random order of the elements
        return np.where(place < self.r, np.where(place < right_signs, signs, -signs), 0)

    def privacy_loss(self, output: Array, n: int) -> Array:
        # A printed sign is right more often than not: any loss with the opposite sign says so.
        return np.sign(-output).astype(float)

    def conditional_loss(self, output: Array, known: Signs, index: int) -> Array:
        return self.privacy_loss(output[..., index], 1)

    def check_size(self, n: int) -> int:
        return arguments.integer("n", n, self.r)

    def outputs(self, n: int) -> Array:
        outputs = np.zeros((comb(n, self.r), 2**self.r, n), dtype=np.int8)
        for place, printed in enumerate(combinations(range(n), self.r)):
            outputs[place][:, printed] = sign_vectors(self.r)
        return outputs.reshape(-1, n)

    def count_outputs(self, n: int) -> int:
        return 2**self.r * comb(n, self.r)

    def likelihood(self, outputs: Array, signs: Signs) -> Array:
        n = signs.shape[1]
        right_signs = (outputs[:, None, :] == signs[None, :, :]).sum(axis=2)
        ways = np.array([comb(self.r, k) for k in range(self.r + 1)]) * comb(n, self.r)
        return (self._law(n) / ways)[right_signs]


def worst_case_rejection(thresholds: ArrayLike, epsilon: float, *, delta: float, n: int) -> float:
    """The largest probability that V reaches a threshold that depends on R, under (ε, δ)-DP.

    It is the exact maximum of P[V >= c_R] over all mechanisms and all guessers without or with
    one-way feedback that take at most as many guesses as there are thresholds:
    1 - (1 - f) max(0, 1 - nδ/B) with the largest f = P[Bin(r, p(ε)) >= c_r] and the least
    B = c_r P[Bin(r, p(ε)) = c_r] / f.

    Parameters
    ----------
    thresholds : list of int
        c_1, c_2, ... for r = 1, 2, ... guesses; a threshold above r is never reached.
    epsilon, delta : float
        The privacy of the mechanism.
    n : int
        The number of elements, at least as many as there are thresholds.

    Examples
    --------
    >>> round(worst_case_rejection([2, 2, 3], 0.0, delta=0.01, n=3), 6)
    0.26125
    """
    c = np.asarray(thresholds)
    r = np.arange(1, c.size + 1)
    arguments.at_most("the number of thresholds", np.asarray(c.size), "n", np.asarray(n))
    if (c == 0).any():
        return 1.0
    reachable = c <= r
    if not reachable.any():
        return 0.0
    c = c[reachable]
    r = r[reachable]
    f = stats.binom.sf(c - 1, r, p(epsilon)).max()
    x = 0.0
    if delta > 0:
        ratios = map(_tail_over_probability, c.tolist(), r.tolist(), [epsilon] * c.size)
        x = min(1.0, n * delta * max(ratio / v for ratio, v in zip(ratios, c, strict=True)))
    return float(f + x * (1 - f))


def _tail_over_probability(v: int, r: int, epsilon: float) -> float:
    """P[Bin(r, p(ε)) >= v] / P[Bin(r, p(ε)) = v], also where both are too small for a double."""
    j = np.arange(r - v)
    with np.errstate(over="ignore"):  # infinite where v is far below the mean
        return float(1 + np.cumprod((r - v - j) / (v + 1 + j) * np.exp(epsilon)).sum())


def best_mean(channel: Channel, value: ArrayLike, *, feedback: str = "none") -> float:
    """The largest mean of value[V, R] over all guessers, with every possible strategy.

    With feedback the guesser may take the elements in any order. Dynamic programming over
    everything it can know, for tables of at most 5 elements.

    Parameters
    ----------
    value : array
        Entry [v, r] is what v right of r guesses are worth, shape (n + 1, n + 1).
    feedback : str
        ``"none"`` (one-run auditing), ``"one-way"`` or ``"full"``.

    Examples
    --------
    >>> from oralib import Xor, channel
    >>> one_right_guess = [[0, 0, 0], [0, 1, 0], [0, 0, 0]]
    >>> [best_mean(channel(Xor(), 2), one_right_guess, feedback=f) for f in ("none", "one-way")]
    [0.5, 1.0]
    """
    arguments.one_of("feedback", feedback, PLAYED)
    n = arguments.integer("n", channel.n, 1, 5)
    signs = channel.signs
    worth = np.asarray(value, dtype=float)
    if worth.shape != (n + 1, n + 1):
        raise ValueError(f"value must have shape {(n + 1, n + 1)}, got shape {worth.shape}")
    joint = channel.table / len(signs)

    # What is known of an element: 0 nothing yet, ±1 its sign, which was revealed, ±2 that it was
    # guessed, 3 that it was passed over without any feedback. A state is worth, for each output,
    # the sum over the datasets that agree with it.
    @cache
    def best(state: tuple[int, ...], v: int, r: int) -> NDArray[np.float64]:
        if 0 not in state:
            entries = np.array(state)
            agrees = ((np.abs(entries) != 1) | (entries == signs)).all(axis=1)
            final_v = v + (2 * signs == entries).sum(axis=1)
            final_r = r + (np.abs(entries) == 2).sum()
            return (joint * agrees) @ worth[final_v, final_r]
        choices = []
        unseen = [i for i, entry in enumerate(state) if entry == 0]
        # Without feedback the order does not matter.
        for i in unseen[:1] if feedback == "none" else unseen:

            def then(entry: int, i: int = i, v: int = v, r: int = r) -> Any:
                return best((*state[:i], entry, *state[i + 1 :]), v, r)

            choices.append(then(3) if feedback == "none" else then(-1) + then(1))
            for guess in (-1, 1):
                if feedback == "full":
                    choices.append(then(guess, i, v + 1, r + 1) + then(-guess, i, v, r + 1))
                else:
                    choices.append(then(2 * guess))
        return np.max(choices, axis=0)

    return float(snap(best((0,) * n, 0, 0).sum()))
