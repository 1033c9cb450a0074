"""The exact law of right guesses at canaries that have a weight each.

In a step a canary adds 1 to the sum at its weight, in units of the clipping threshold, if it is
included and in the batch; the sum with noise is y. The score of a canary is the sum over steps of

    L(y) = log(1 - q + q exp((2 y - 1) / (2 σ²))),

its log-likelihood ratio if σ is the noise. The noise that a score *assumes* may differ from the
actual noise. The law of a sum over steps is computed from a product of characteristic functions, by
one inverse Fourier transform.

The guesser guesses the k canaries with scores farthest from 0, each by the sign of its score; or,
if all guesses say "in", the k canaries with the largest scores. Given the k-th of these scores, the
k - 1 scores before it are independent draws of the law beyond it. So the number of right guesses is
binomial plus one coin, for the k-th guess; and the probability to be beyond the k-th score is a
beta variable, over which one integral remains.

Of one canary in a million something is known to about 1e-12; weights that interfere with each other
are not covered.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import log
from typing import Any, Literal, TypeAlias

import numpy as np
import scipy
from numpy.typing import NDArray

from oralib import Training
from oralib.bounds import Exact
from oralib.dpsgd.claim import stretches_of
from oralib.ground import arguments

__all__ = [
    "GuessSide",
    "RightGuesses",
    "ScoreLaw",
    "Stated",
    "Tails",
    "law_of_right",
    "score_law",
    "stretches",
    "tails",
]

Reals: TypeAlias = NDArray[np.float64]

#: The ways to give a stated training.
Stated: TypeAlias = Training | Sequence[Training] | tuple[float, float, int]
#: Whether guesses say "included" and "left out", or all of them "included".
GuessSide: TypeAlias = Literal["both", "in"]

#: The number of points of the law of a score.
_TABLE = 2**18
#: The number of points of y in a step.
_STEP = 2**17
#: With more stretches than this there are fewer points, as each stretch costs time.
_MANY_STRETCHES = 8
_SMALL_TABLE = 2**16
_SMALL_STEP = 2**13
#: Noise is integrated up to this number of deviations.
_REACH = 9.5
#: The table of a score's law leaves out scores that are rarer than exp(-_RARE).
_RARE = 32.0
#: Means leave out counts that are rarer than this.
_NEGLIGIBLE = 1e-12


def stretches(training: Stated) -> tuple[Training, ...]:
    """Return the stretches of a stated training, one for each noise and rate.

    >>> stretches((2.0, 0.1, 50))
    (Training(sigma=2.0, sample_rate=0.1, steps=50),)
    >>> stretches([Training(2.0, 0.1, 50), Training(1.0, 0.1, 10), Training(2.0, 0.1, 5)])[0].steps
    55
    """
    if isinstance(training, str | bytes) or not isinstance(training, Training | Sequence):
        raise TypeError(
            "training must be Training(2.4, 0.1, 100), a list of them, or (sigma, rate, steps), "
            f"got training={training!r}"
        )
    if not isinstance(training, Training):
        if len(training) == 3 and not any(isinstance(x, Training | Sequence) for x in training):
            training = Training(*training)
        else:
            training = [_stretch(part) for part in training]
    steps: dict[tuple[float, float], int] = {}
    for part in stretches_of(training):
        kind = part.sigma, part.sample_rate
        steps[kind] = steps.get(kind, 0) + part.steps
    return tuple(Training(*kind, number) for kind, number in steps.items())


def _stretch(part: Any) -> Training:
    """Return one stretch of a stated training."""
    if isinstance(part, Training):
        return part
    if not isinstance(part, Sequence) or isinstance(part, str) or len(part) != 3:
        raise TypeError(
            "training must be Training(2.4, 0.1, 100), a list of them, or (sigma, rate, steps), "
            f"got a stretch {part!r}"
        )
    return Training(*part)


@dataclass(frozen=True, eq=False)
class ScoreLaw:
    """The law of a canary's score on a grid: point i is the score (first + i) width."""

    first: int
    width: float
    included: Reals
    left_out: Reals


def score_law(
    training: tuple[Training, ...], share: float = 1.0, assumed: float | None = None
) -> ScoreLaw:
    """Compute the law of the score of an included canary, and of one that was left out.

    Parameters
    ----------
    training
        What was stated, in stretches.
    share : float
        The actual noise, as a share of what was stated.
    assumed : float or None
        The noise that scores assume, as a share of what was stated; by default the actual noise.
    """
    assumed = share if assumed is None else assumed
    points = _TABLE
    step_points = _STEP
    if len(training) > _MANY_STRETCHES:
        points = _SMALL_TABLE
        step_points = _SMALL_STEP
    steps = [_Step.of(part, share, assumed, step_points) for part in training]
    low, high = _range(steps)
    width = (high - low) / points
    first = int(np.floor(low / width))
    laws = []
    for kind in (0, 1):
        transform = np.ones(points // 2 + 1, dtype=complex)
        for step in steps:
            transform *= np.fft.rfft(step.table(kind, width, points)) ** step.steps
        # The transform gives values modulo the length of the table.
        mass = np.maximum(np.roll(np.fft.irfft(transform, points), -first), 0.0)
        laws.append(mass / mass.sum())
    return ScoreLaw(first, width, *laws)


@dataclass(frozen=True, eq=False)
class _Step:
    """The score of one step at many y, and the laws of y, included and left out."""

    steps: int
    score: Reals
    weights: tuple[Reals, Reals]

    @staticmethod
    def of(part: Training, share: float, assumed: float, points: int) -> "_Step":
        sigma = share * part.sigma
        rate = part.sample_rate
        y = np.linspace(-_REACH * sigma, 1 + _REACH * sigma, points)
        with np.errstate(divide="ignore"):  # at rate 1 no step is without the canary
            absent = np.log1p(-rate)
        exponent = (2 * y - 1) / (2 * (assumed * part.sigma) ** 2)
        score = np.logaddexp(absent, log(rate) + exponent)
        without = np.exp(-0.5 * (y / sigma) ** 2)
        joined = np.exp(-0.5 * ((y - 1) / sigma) ** 2)
        left_out = without / without.sum()
        included = (1 - rate) * left_out + rate * joined / joined.sum()
        return _Step(part.steps, score, (included, left_out))

    def table(self, kind: int, width: float, points: int) -> Reals:
        """Return the law of one step on a circle of points.

        The mass of each y is shared by the two points around its score, which keeps the mean.
        """
        place = self.score / width
        left = np.floor(place).astype(np.int64)
        part = place - left
        weight = self.weights[kind]
        first = np.bincount(left % points, weight * (1 - part), points)
        return np.asarray(first + np.bincount((left + 1) % points, weight * part, points))

    def moments(self, kind: int) -> tuple[float, float]:
        """Return the mean and the variance of the sum of all steps."""
        mean = self.weights[kind] @ self.score
        variance = self.weights[kind] @ (self.score - mean) ** 2
        return self.steps * float(mean), self.steps * float(variance)

    def cumulants(self, kind: int, theta: Reals) -> Reals:
        """Return log E[exp(θ times the sum of all steps)]."""
        sparse = slice(None, None, max(1, self.score.size // 2000))
        weight = self.weights[kind][sparse]
        terms = np.multiply.outer(theta, self.score[sparse])
        largest = terms.max(axis=1)
        mean = np.exp(terms - largest[:, None]) @ (weight / weight.sum())
        return np.asarray(self.steps * (np.log(mean) + largest))


def _range(steps: Sequence[_Step]) -> tuple[float, float]:
    """Return an interval around 0 with nearly all scores, by Chernoff's bound."""
    low = 0.0
    high = 0.0
    for kind in (0, 1):
        spread = float(np.sqrt(sum(step.moments(kind)[1] for step in steps)))
        theta = np.geomspace(0.01, 100, 60) / spread
        up = sum(step.cumulants(kind, theta) for step in steps)
        down = sum(step.cumulants(kind, -theta) for step in steps)
        high = max(high, float(((up + _RARE) / theta).min()))
        low = min(low, float((-(down + _RARE) / theta).max()))
    room = 0.001 * (high - low)
    return low - room, high + room


@dataclass(frozen=True, eq=False)
class Tails:
    """The probabilities that a canary is guessed right, and wrong, if guesses are beyond a level.

    The levels fall, so both probabilities rise; at the last level every canary is guessed.
    """

    right: Reals
    wrong: Reals

    def right_within(self, share: Any) -> Reals:
        """Return the probability of being right and among this share of the surest guesses."""
        return np.asarray(np.interp(share, self.right + self.wrong, self.right))


@lru_cache(maxsize=32)
def tails(
    training: tuple[Training, ...],
    share: float = 1.0,
    assumed: float | None = None,
    side: GuessSide = "both",
) -> Tails:
    """Compute the probabilities of right and wrong guesses, for the arguments of `score_law`."""
    law = score_law(training, share, assumed)
    if side == "in":
        included = np.cumsum(law.included[::-1]) / 2
        left_out = np.cumsum(law.left_out[::-1]) / 2
        return Tails(*arguments.read_only((included, left_out)))
    guessed_right = _folded(law.included, law.left_out, -law.first)
    guessed_wrong = _folded(law.left_out, law.included, -law.first)
    return Tails(*arguments.read_only((guessed_right, guessed_wrong)))


def _folded(above: Reals, below: Reals, zero: int) -> Reals:
    """Sum one law above 0 and another one below, each halved, from the farthest scores to 0."""
    by_distance = np.zeros(max(zero, above.size - zero - 1) + 1)
    by_distance[: above.size - zero] += above[zero:] / 2
    by_distance[: zero + 1] += below[zero::-1] / 2
    by_distance[0] /= 2  # of the scores at 0 half are guessed to be included
    return np.cumsum(by_distance[::-1])


@dataclass(frozen=True, eq=False)
class RightGuesses:
    """The law of right guesses at the k surest of n canaries: a mixture of binomial laws.

    Attributes
    ----------
    k : int
        The number of guesses.
    weight : array
        The weight of each of some values of the k-th score.
    accuracy, last : array
        For each of these values, the probability that a guess before the k-th is right, and that
        the k-th is right.
    """

    k: int
    weight: Reals
    accuracy: Reals
    last: Reals

    def at_least(self, v: int | None) -> float:
        """Return the probability of at least v right guesses; 0 for None."""
        if v is None or v > self.k:
            return 0.0
        beyond = scipy.stats.binom.sf
        with_it = beyond(v - 2, self.k - 1, self.accuracy)
        without = beyond(v - 1, self.k - 1, self.accuracy)
        return float(self.weight @ (self.last * with_it + (1 - self.last) * without))

    def probabilities(self) -> Reals:
        """Return the probabilities of 0, 1, ..., k right guesses."""
        v = np.arange(self.k + 1)
        mass = scipy.stats.binom.pmf
        with_it = mass(v - 1, self.k - 1, self.accuracy[:, None])
        without = mass(v, self.k - 1, self.accuracy[:, None])
        last = self.last[:, None]
        return np.asarray(self.weight @ (last * with_it + (1 - last) * without))

    def mean_bound(self, n: int, *, beta: float, delta: float, side: GuessSide = "both") -> float:
        """Return the mean of the exact bound on ε."""
        leak = delta / 2 if side == "in" else delta
        probability = self.probabilities()
        total = 0.0
        for v in np.flatnonzero(probability > _NEGLIGIBLE).tolist():
            bound = Exact().lower_bound(v, self.k, n=n, beta=beta, delta=leak)
            total += float(probability[v]) * bound
        return total


def law_of_right(
    training: tuple[Training, ...],
    n: int,
    k: int,
    *,
    share: float = 1.0,
    assumed: float | None = None,
    side: GuessSide = "both",
) -> RightGuesses:
    """Return the law of right guesses at the k surest of n canaries with a weight each.

    >>> stated = stretches((2.422402, 0.1, 100))
    >>> round(law_of_right(stated, 1000, 127, share=0.5).at_least(105), 2)
    0.95
    """
    guesses = tails(training, share, assumed, side)
    nodes, weight = np.polynomial.hermite_e.hermegauss(20 if k > 40 else 60)
    shape = (k, n - k + 1)
    below = np.where(
        nodes < 0,
        scipy.special.betaincinv(*shape, scipy.special.ndtr(nodes)),
        scipy.special.betainccinv(*shape, scipy.special.ndtr(-nodes)),
    )
    accuracy = np.clip(guesses.right_within(below) / below, 0, 1)
    # The k-th itself: right guesses between two shares around its own.
    low = 0.99 * below
    high = np.minimum(1.01 * below, 1.0)
    right = guesses.right_within(high) - guesses.right_within(low)
    last = np.clip(right / (high - low), 0, 1)
    return RightGuesses(k, weight / weight.sum(), accuracy, last)
