"""Exact laws of the counts (V, R) of audits that are too large for a table.

Their mean bounds are the exact curves around which the simulated points of the experiments scatter.
"""

from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from oralib import DpSgd
from oralib.bounds import Rule, Steinke
from oralib.dpsgd.ratios import log_mixture
from oralib.dpsgd.sums import joint_law
from oralib.ground import arguments
from oralib.ground.binomial import log_pmf, log_pmfs
from oralib.ground.jit import jit
from oralib.ground.rounding import ROUNDING
from oralib.ground.types import PLAYED, Array, Feedback

__all__ = ["Law", "count_in_sets_law", "local_laplace_law", "mean_bound", "sums_law"]

Reals = NDArray[Any]  # of doubles

#: Laws leave out outcomes with a smaller probability.
NEGLIGIBLE_PROBABILITY = 1e-15
#: The rule of the paper's bound.
_STEINKE = Steinke()


@dataclass(frozen=True, eq=False)
class Law:
    """The outcomes (v, r) of an audit of n elements, and their probabilities.

    Attributes
    ----------
    v, r : array of int
        Right guesses, and guesses, of each outcome.
    probability : array of float
        The probability of each outcome.
    n : int
        The number of elements.

    Examples
    --------
    >>> law = local_laplace_law(2.0, 1000)
    >>> round(float(law.probability @ (law.v / law.r)), 6)
    0.81606
    """

    v: NDArray[np.int64]
    r: NDArray[np.int64]
    probability: NDArray[np.float64]
    n: int

    def __post_init__(self) -> None:
        v = np.atleast_1d(arguments.integers("v", self.v))
        r = np.atleast_1d(arguments.integers("r", self.r))
        probability = np.atleast_1d(arguments.reals("probability", self.probability, 0, 1))
        n = arguments.integer("n", self.n, 0)
        if not v.shape == r.shape == probability.shape or v.ndim != 1:
            raise ValueError(
                "v, r and probability must have one entry for each outcome, "
                f"got shapes {v.shape}, {r.shape} and {probability.shape}"
            )
        arguments.at_most("v", v, "r", r)
        arguments.at_most("r", r, "n", np.broadcast_to(n, r.shape))
        if not abs(probability.sum() - 1) <= 1e-3:  # large laws are summed in strides
            raise ValueError(f"probability must sum to 1, got a sum of {probability.sum():.6g}")
        arguments.store(self, v=v, r=r, probability=probability, n=n)


def mean_bound(law: Law, *, beta: float = 0.05, delta: float = 0.0, rule: Rule = _STEINKE) -> float:
    """The exact mean of the bound ε'_β(V, R), over all outcomes.

    The options are those of :func:`oralib.epsilon_lower_bound`. For δ > 0 that bound is proved for
    a number of guesses fixed in advance.

    Parameters
    ----------
    law : Law
        The outcomes and their probabilities.
    beta, delta, rule
        As in :func:`oralib.epsilon_lower_bound`.

    Examples
    --------
    >>> round(mean_bound(count_in_sets_law(2, 100, "full")), 4)
    3.9029
    """
    arguments.instance("law", law, Law, "count_in_sets_law(2, 100)")
    arguments.instance("rule", rule, Rule, "oralib.bounds.Exact()")
    bounds = rule.lower_bound(law.v, law.r, beta=beta, delta=delta, n=law.n)
    return float(law.probability @ bounds)


def local_laplace_law(epsilon: float, n: int) -> Law:
    """Local Laplace without abstentions: V ~ Bin(n, 1 - exp(-ε/2) / 2) (Proposition C.13).

    Parameters
    ----------
    epsilon : float
        The privacy level of the mechanism.
    n : int
        The number of elements.

    Examples
    --------
    >>> round(mean_bound(local_laplace_law(2.0, 1000)), 4)
    1.3556
    """
    epsilon = arguments.real("epsilon", epsilon, 0, np.inf, interval="()")
    n = arguments.integer("n", n, 1)
    accuracy = 1 - float(np.exp(-epsilon / 2)) / 2
    v = likely_counts(n, accuracy)
    return law_of(v, np.full(v.size, n), np.exp(log_pmfs(v, n, accuracy)), n)


def count_in_sets_law(s: int, sets: int, feedback: Feedback = "none") -> Law:
    """Count-in-Sets with threshold τ = ∞, where every guess is right (Appendix E.3).

    Without feedback a set is guessed whole if all its elements agree. With feedback, one-way or
    full, the last run of equal signs in each set is guessed.

    Parameters
    ----------
    s : int
        The size of a set.
    sets : int
        The number of sets.
    feedback : str
        ``"none"``, ``"one-way"`` or ``"full"``.

    Examples
    --------
    >>> law = count_in_sets_law(2, 100)
    >>> round(float(law.probability @ law.r), 6)
    100.0
    """
    s = arguments.integer("s", s, 1)
    sets = arguments.integer("sets", sets, 1)
    arguments.one_of("feedback", feedback, PLAYED)
    n = arguments.integer("s * sets", s * sets, 1)
    if feedback == "none":
        agree = 2.0 ** (1 - s)
        whole_sets = likely_counts(sets, agree)
        r = s * whole_sets
        probability = np.exp(log_pmfs(whole_sets, sets, agree))
    else:
        longest = min(s, 1100)  # a longer run of signs has a probability too small for a double
        of_one_set = np.exp2(-np.arange(longest + 1.0))
        of_one_set[0] = 0.0
        if longest == s:
            of_one_set[s] *= 2
        first, probability = _law_of_sum(sets, of_one_set)
        r = first + np.arange(probability.size)
    return law_of(r, r, probability, n)


def _law_of_sum(times: int, law: NDArray[np.float64]) -> tuple[int, NDArray[np.float64]]:
    """The law of a sum of independent numbers of one law, as its first value and probabilities.

    It is the power of the law by repeated squaring, without negligible ends.
    """
    first = 0
    total = np.ones(1)
    first_of_power = 0
    power = law
    while True:
        if times & 1:
            first, total = _without_ends(first + first_of_power, np.convolve(total, power))
        times >>= 1
        if not times:
            return first, total
        first_of_power, power = _without_ends(2 * first_of_power, np.convolve(power, power))


def _without_ends(first: int, law: NDArray[np.float64]) -> tuple[int, NDArray[np.float64]]:
    """Leave out the ends that are far rarer than any outcome that the final law keeps."""
    places = np.flatnonzero(law > 1e-20 * NEGLIGIBLE_PROBABILITY)
    return first + int(places[0]), law[places[0] : places[-1] + 1]


def single_step_law(dpsgd: DpSgd, tau: float) -> Law:
    """The law of a plain audit of one full-batch step of DP-SGD, with threshold tau.

    >>> law = single_step_law(DpSgd(n=4000, steps=1, sample_rate=1.0, sigma=1.0), tau=1.0)
    >>> round(float(law.probability @ law.v) / float(law.probability @ law.r), 4)
    0.8011
    """
    s = dpsgd.per_coordinate
    d = dpsgd.used_coordinates
    distance = guess_distances(dpsgd, tau, last=True)[-1]
    ones = np.arange(s + 1)
    weight = np.exp(log_pmfs(ones, s, 0.5))
    guessed_in = weight * special.ndtr((ones - s / 2 - distance) / dpsgd.sigma)
    guessed_out = weight * special.ndtr((s / 2 - distance - ones) / dpsgd.sigma)
    # The law of the right guesses of a coordinate, where it is guessed.
    right_guesses = guessed_in + guessed_out[::-1]
    guessed = right_guesses.sum()
    chances = np.exp(log_pmfs(np.arange(d + 1), d, guessed))
    law = np.ones(1)  # of the right guesses of all guessed coordinates
    outcomes = []
    for coordinates, chance in enumerate(chances):
        if chance > NEGLIGIBLE_PROBABILITY:
            v = np.arange(len(law))
            outcomes.append((v, np.full(len(v), s * coordinates), chance * law))
        elif coordinates > d * guessed:
            break
        if guessed > 0:
            law = np.convolve(law, right_guesses / guessed)
    v, r, probability = (np.concatenate(column) for column in zip(*outcomes, strict=True))
    return law_of(v, r, probability, dpsgd.n)


def guess_distances(dpsgd: DpSgd, tau: float, *, last: bool = False) -> NDArray[np.float64]:
    """Return the distances from which a guesser with threshold tau guesses, by unknown coins.

    Entry u, for u = 0, ..., s, is the least distance at which it guesses, between the noisy count
    of u elements with unknown coins and its mean u/2. The loss is an odd and monotone function of
    that distance, so |loss| >= tau there and beyond. With ``last`` only the entry of u = s is
    computed. Entries not computed are inf.
    """
    arguments.instance("dpsgd", dpsgd, DpSgd, "DpSgd(n=1000, sigma=1.0)")
    if dpsgd.steps != 1 or dpsgd.sample_rate != 1:
        raise ValueError(
            "dpsgd must be a single full-batch step, with steps=1 and sample_rate=1, "
            f"got steps={dpsgd.steps} and sample_rate={dpsgd.sample_rate}"
        )
    tau = arguments.real("tau", tau, 1e-6, 1e3)
    s = dpsgd.per_coordinate
    # ThresholdGuesser allows the same rounding.
    goal = tau - ROUNDING * max(1.0, tau)
    return np.asarray(_distances(s if last else 1, s, dpsgd.sigma, goal))


@jit
def _distances(first: int, s: int, sigma: float, goal: float) -> Array:
    distance = np.full(s + 1, inf)
    for u in range(first, s + 1):
        log_weight = np.array([log_pmf(j, u - 1, 0.5, 0.5) for j in range(u)])
        low = 0.0
        high = 1.0
        # Bisection is written out, as a kernel that takes a function cannot be cached.
        while _loss_at(high, log_weight, sigma) < goal:
            low = high
            high = 2 * high
        while high - low > 1e-14 * (1 + high):
            middle = 0.5 * (low + high)
            if _loss_at(middle, log_weight, sigma) < goal:
                low = middle
            else:
                high = middle
        distance[u] = high
    return distance


@jit
def _loss_at(below: float, log_weight: Array, sigma: float) -> float:
    """Return the loss of an element where the noisy count lies ``below`` under its mean u/2.

    The count is of u = log_weight.size elements. :class:`oralib.NoisyCountInSets` gives the same
    loss a hundred times slower, and the tests compare the two.
    """
    count = 0.5 * log_weight.size - below  # of all u elements, this one included or not
    without = log_mixture(count, 0, log_weight, sigma)
    return without - log_mixture(count - 1, 0, log_weight, sigma)


#: Scores per standard deviation of the noise, between which `sums_law` interpolates shares.
_SCORES_PER_DEVIATION = 32
#: Points of the integral of `sums_law` over the score at one end of the order.
_NODES = 48


def sums_law(dpsgd: DpSgd, guesses: int) -> Law:
    """The audit of :func:`oralib.simulate_dpsgd`: the highest and the lowest coordinates by sums.

    The coordinates are independent and alike. Given the score of the last one that is guessed at
    the high end, those beyond it are independent draws of the law beyond it; likewise at the low
    end. So the counts are convolutions, and an integral over these two scores is left.

    Parameters
    ----------
    dpsgd : DpSgd
        The training.
    guesses : int
        The number of guesses.

    Examples
    --------
    >>> law = sums_law(DpSgd(n=8000, sigma=2.422402), 100)
    >>> round(mean_bound(law, delta=1e-5), 3)
    0.605
    """
    arguments.instance("dpsgd", dpsgd, DpSgd, "DpSgd(n=1000, sigma=1.0)")
    k = arguments.integer("guesses", guesses, 1, dpsgd.n)
    used = dpsgd.used_coordinates
    s = dpsgd.per_coordinate
    high = _End(k - k // 2, s)
    low = _End(k // 2, s)
    if high.coordinates + low.coordinates > used:
        raise ValueError(
            "guesses must be few enough that no coordinate is guessed from both ends, "
            f"got guesses={k}, n={dpsgd.n} and d={dpsgd.d}"
        )
    # The probability of each number m of included elements together with each sum N ...
    m, total, probability = joint_law(s, dpsgd.steps, dpsgd.sample_rate)
    joint = np.zeros((s + 1, total.max() + 1))
    joint[m, total] = probability / probability.sum()
    # ... and with a score beyond each of the values `score`, or at it.
    noise = dpsgd.sigma * np.sqrt(dpsgd.steps)
    score = np.arange(-9 * noise, total.max() + 9 * noise, noise / _SCORES_PER_DEVIATION)
    z = (score - np.arange(total.max() + 1)[:, None]) / noise
    below = joint @ special.ndtr(z)
    above = joint @ special.ndtr(-z)
    at = joint @ np.exp(-z * z / 2)

    x, weight = np.polynomial.legendre.leggauss(_NODES)
    quantile = (x + 1) / 2
    weight = weight / 2
    # The share of the scores above the last one at the high end, and below that at the low end.
    share = stats.beta.ppf(quantile, high.coordinates, used + 1 - high.coordinates)
    size = k + 1
    waves = high.waves(np.log(share), score, above[:, ::-1], at[:, ::-1], size)
    if low.coordinates:
        between = used + 1 - high.coordinates - low.coordinates
        share_of_rest = stats.beta.ppf(quantile, low.coordinates, between)
        log_shares = np.log((1 - share[:, None]) * share_of_rest)
        # At this end a guess is right if its element is not included.
        waves_of_low = low.waves(log_shares, score, below[::-1], at[::-1], size)
        waves = waves * (weight @ waves_of_low)
    law = np.fft.irfft(weight @ waves, size)
    v = np.arange(size)
    return law_of(v, np.full(size, k), np.clip(law, 0, 1), dpsgd.n)


@dataclass(frozen=True)
class _End:
    """The elements that are guessed at one end of the order of coordinates."""

    elements: int
    s: int

    @property
    def coordinates(self) -> int:
        """The number of coordinates that are guessed, the last of them perhaps in part."""
        return -(-self.elements // self.s)

    def waves(
        self, log_share: Reals, score: Reals, beyond: Reals, at: Reals, size: int
    ) -> NDArray[np.complex128]:
        """The Fourier transforms of the number of right guesses, a row for each share.

        ``beyond`` and ``at`` have a row for each number of right guesses of a coordinate, and a
        column for each score, the most extreme one first.
        """
        share = beyond.sum(axis=0)
        is_positive = share > 1e-290
        place = np.interp(log_share, np.log(share[is_positive]), np.flatnonzero(is_positive))
        left = np.minimum(place.astype(int), share.size - 2)
        part = (place - left)[..., None]

        def interpolated(joint: Reals) -> Reals:
            """The law of right guesses, given a score, between two of the scores."""
            law = joint / np.maximum(joint.sum(axis=0), 1e-300)
            return (1 - part) * law.T[left] + part * law.T[left + 1]

        ones = np.arange(self.s + 1)
        guesses_of_last = self.elements - (self.coordinates - 1) * self.s
        values = np.arange(guesses_of_last + 1)
        drawn = stats.hypergeom.pmf(values, self.s, ones[:, None], guesses_of_last)
        of_full = np.fft.rfft(interpolated(beyond), size) ** (self.coordinates - 1)
        return np.asarray(of_full * np.fft.rfft(interpolated(at) @ drawn, size))


def likely_counts(r: int, q: Any) -> NDArray[np.int64]:
    """The values of Bin(r, q) that are not negligible; for several q, those of all of them."""
    mean = r * q
    spread = 8.5 * np.sqrt(r * q * (1 - q)) + 30
    first = max(0, int(np.min(mean - spread)))
    last = min(r, int(np.max(mean + spread)) + 1)
    return np.arange(first, last + 1)


def law_of(
    v: NDArray[np.int64], r: NDArray[np.int64], probability: NDArray[np.float64], n: int
) -> Law:
    """A law without its negligible outcomes."""
    likely = probability > NEGLIGIBLE_PROBABILITY
    return Law(v[likely], r[likely], probability[likely], n)
