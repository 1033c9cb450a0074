"""The worst mechanism, the worst rejection rate and the best guesser, by enumeration or formula."""

from dataclasses import dataclass
from functools import cache
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import scipy
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from oralib import Channel, _check
from oralib._binomial import log_pmfs, odds
from oralib._jit import jit
from oralib._rounding import snap
from oralib.bounds.approximate import _tail_and_ratio
from oralib.games import FEEDBACK
from oralib.mechanisms import Array, Signs, sign_vectors
from oralib.mechanisms.elements import _PerElement


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
        log_plain = log_pmfs(k, self.r, scipy.special.expit(self.level))
        # With logarithms: the tail from v on may be too small for a double.
        given = np.minimum(log_plain - scipy.special.logsumexp(log_plain[self.v :]), 0.0)
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


def worst_case_rejection(thresholds: ArrayLike, epsilon: float, *, delta: float, n: int) -> float:
    """At worst, how often an (ε, δ)-DP mechanism can make V reach a threshold that depends on R.

    The exact maximum of P[V >= c_R] over all mechanisms and all plain or one-way guessers that
    take at most as many guesses as there are thresholds: 1 - (1 - f) max(0, 1 - n δ / B) with the
    largest f = P[Bin(r, p(ε)) >= c_r] and the least B = c_r P[Bin(r, p(ε)) = c_r] / f.

    Parameters
    ----------
    thresholds : c_1, c_2, ... for r = 1, 2, ... guesses; a threshold above r is never reached.
    epsilon, delta : the privacy of the mechanism.
    n : the number of elements, at least as many as there are thresholds.

    Examples
    --------
    >>> round(worst_case_rejection([2, 2, 3], 0.0, delta=0.01, n=3), 6)
    0.26125
    """
    epsilon = _check.real("epsilon", epsilon, 0, np.inf, interval="[)")
    delta, n = _check.real("delta", delta, 0, 1), _check.integer("n", n, 1)
    c = _check.integers("thresholds", thresholds)
    if c.ndim != 1:
        raise ValueError(f"thresholds must be a list of numbers, got shape {c.shape}")
    r = np.arange(1, c.size + 1)
    _check.at_most("the number of thresholds", np.asarray(c.size), "n", np.asarray(n))
    if (c == 0).any():
        return 1.0
    reached = c <= r
    if not reached.any():
        return 0.0
    f, x = _worst_cases(c[reached], r[reached], epsilon, n * delta)
    return float(f + min(x, 1.0) * (1 - f))


@jit
def _worst_cases(c: Array, r: Array, epsilon: float, budget: float) -> tuple[float, float]:
    """The largest f and the largest n δ / B."""
    q, qc = odds(epsilon)
    most, largest = 0.0, 0.0
    for i in range(c.size):
        f, _, ratio = _tail_and_ratio(c[i], r[i], q, qc)
        most = max(most, f)
        if budget > 0:
            largest = max(largest, budget * ratio / c[i])
    return most, largest


def best_mean(channel: Channel, value: ArrayLike, *, feedback: str = "none") -> float:
    """The largest mean of value[V, R] over all guessers, with every possible strategy.

    With feedback the guesser may take the elements in any order. Dynamic programming over
    everything it can know, for tables of at most 5 elements.

    Parameters
    ----------
    value : entry [v, r] is what v right of r taken guesses are worth, shape (n + 1, n + 1).
    feedback : ``"none"`` (plain one-run auditing), ``"one-way"`` or ``"full"``.

    Examples
    --------
    >>> from oralib import Xor, best_mean, channel
    >>> one_right_guess = [[0, 0, 0], [0, 1, 0], [0, 0, 0]]
    >>> [best_mean(channel(Xor(), 2), one_right_guess, feedback=f) for f in ("none", "one-way")]
    [0.5, 1.0]
    """
    _check.instance("channel", channel, Channel, "channel(Count(), 4)")
    _check.one_of("feedback", feedback, ("none", *FEEDBACK))
    n, signs = _check.integer("n", channel.n, 1, 5), channel.signs
    if isinstance(value, np.ndarray) and value.dtype == bool:
        value = value.astype(float)  # truth values count as 0 and 1
    worth = _check.reals("value", value, interval="()")
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
            right = v + (2 * signs == entries).sum(axis=1)
            taken = r + (np.abs(entries) == 2).sum()
            return (joint * agrees) @ worth[right, taken]
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
