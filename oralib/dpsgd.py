"""DP-SGD with Dirac canaries, audited in one run: white box, gradient canaries (Section 6).

Each of the n elements is a gradient that is zero but for one coordinate. Elements are included
by the auditor's coins, the model trains on them alone, and all its weights are seen. With n <= d
every element has a coordinate of its own, with n > d each coordinate has n / d of them.

Two forms of the same experiment:

- :func:`train` is DP-SGD step by step, as Algorithm 3 is written; :func:`audit_training` audits it.
- :func:`audit` draws what the guesser looks at, and nothing else. The guesser sorts coordinates
  by the sum of their T noisy gradients (in units of the clipping threshold), which is

      N + σ √T Z,   N ~ Bin(m T, sample rate),   m ~ Bin(n / d, 1/2),   Z normal,

  independently for each coordinate, m being how many of its elements are included.

See Also
--------
oralib.mechanisms.NoisyCountInSets : a single full-batch step as a mechanism for any game.
"""

import logging
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, inf, log, log1p, sqrt
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import optimize

from oralib import _check
from oralib._binomial import log_pmf
from oralib._jit import jit
from oralib._random import play
from oralib.bounds import Counts
from oralib.games import FEEDBACK, adaptive_game, check_budget
from oralib.guessers import ROUNDING
from oralib.mechanisms import Array, NoisyCountInSets

__all__ = [
    "DpSgd",
    "audit",
    "audit_single_step",
    "audit_training",
    "noise_multiplier",
    "train",
]


@dataclass(frozen=True)
class DpSgd:
    """A training of DP-SGD on n Dirac canaries in d dimensions.

    Attributes
    ----------
    n : the number of elements: at most d, or a multiple of d.
    d : the number of coordinates of the model.
    steps : the number of steps, T.
    sample_rate : how likely an included element is in the batch of a step, in (0, 1].
    sigma : the noise multiplier: the noise's standard deviation over the clipping threshold.
    """

    n: int
    d: int = 1000
    steps: int = 100
    sample_rate: float = 0.1
    sigma: float = 1.0

    def __post_init__(self) -> None:
        n, d = _check.integer("n", self.n, 1), _check.integer("d", self.d, 1)
        if n > d:
            _check.multiple("n", n, d, "d, if n exceeds it")
        _check.store(
            self,
            n=n,
            d=d,
            steps=_check.integer("steps", self.steps, 1),
            sample_rate=_check.real("sample_rate", self.sample_rate, 0, 1, interval="(]"),
            sigma=_check.real("sigma", self.sigma, 1e-3, 1e6),
        )

    @property
    def per_coordinate(self) -> int:
        """The number of elements that share a coordinate."""
        return max(1, self.n // self.d)

    @property
    def used_coordinates(self) -> int:
        """The number of coordinates that any element uses."""
        return min(self.n, self.d)


def noise_multiplier(epsilon: float, delta: float, steps: int, sample_rate: float) -> float:
    """The smallest noise multiplier that makes DP-SGD (ε, δ)-DP, by an RDP accountant.

    The accountant is that of dp-accounting, for Poisson-sampled batches and neighbours that add
    or remove one element. The result is rounded up to six decimals, so that it is the same number
    on every machine.

    Examples
    --------
    >>> round(noise_multiplier(2.0, 1e-5, 100, 0.1), 4)
    2.4224
    """
    return _noise_multiplier(
        _check.real("epsilon", epsilon, 0, 1000, interval="(]"),
        _check.real("delta", delta, 0, 1, interval="()"),
        _check.integer("steps", steps, 1),
        _check.real("sample_rate", sample_rate, 1e-12, 1),  # below it the accountant is lost
    )


@lru_cache(maxsize=1024)
def _noise_multiplier(epsilon: float, delta: float, steps: int, sample_rate: float) -> float:
    import dp_accounting  # here, because it takes a second to import and few need it
    from dp_accounting import mechanism_calibration, rdp

    def training(sigma: float) -> dp_accounting.DpEvent:
        step = dp_accounting.GaussianDpEvent(sigma)
        batch = dp_accounting.PoissonSampledDpEvent(sample_rate, step)
        return dp_accounting.SelfComposedDpEvent(batch, steps)

    # On its way the accountant warns of orders that it leaves out; the result stays an upper bound.
    # Each call has a filter of its own, so that threads do not disturb each other.
    logger = logging.getLogger("absl")

    def is_error(record: logging.LogRecord) -> bool:
        return record.levelno >= logging.ERROR

    logger.addFilter(is_error)
    try:
        sigma = dp_accounting.calibrate_dp_mechanism(
            rdp.RdpAccountant, training, epsilon, delta, tol=1e-9
        )
    except mechanism_calibration.NoBracketIntervalFoundError:
        raise ValueError(
            "epsilon and delta must allow for a noise multiplier; the accountant finds none, "
            f"got epsilon={epsilon:g} and delta={delta:g} for steps={steps}, "
            f"sample_rate={sample_rate:g}"
        ) from None
    finally:
        logger.removeFilter(is_error)
    return ceil(sigma * 1e6) / 1e6


# --------------------------------------------------- the guesser with k guesses, collapsed form


def audit(dpsgd: DpSgd, k: int, *, trials: int = 1, seed: int) -> Counts:
    """Audit DP-SGD with k guesses: 1 for the k/2 highest elements, -1 for the k/2 lowest.

    For odd k the highest get one more. Elements that share a coordinate have the same score;
    which of them are taken at the border does not matter, as they are exchangeable.
    """
    _check.instance("dpsgd", dpsgd, DpSgd, "DpSgd(n=1000)")
    k = _check.integer("k", k, 1, dpsgd.n)
    law = _coordinate_law(dpsgd.per_coordinate, dpsgd.steps, dpsgd.sample_rate)
    noise = dpsgd.sigma * sqrt(dpsgd.steps)

    def block(size: int, rng: Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        v = _audit_block(size, dpsgd.used_coordinates, dpsgd.per_coordinate, k, noise, *law, rng)
        return v, np.full(size, k)

    return _counts("one-run DP-SGD", block, dpsgd, trials, seed, k, r_fixed=True)


@lru_cache(maxsize=64)
def _coordinate_law(
    s: int, steps: int, sample_rate: float
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
    """The joint law of (m, N) as an alias table: m, N, and for each entry a cut and an alias."""
    # m and N are spread over some 21 standard deviations, see _NEGLIGIBLE.
    spread_m, spread_n = min(s, 11 * sqrt(s)), 21 * sqrt(s * steps * sample_rate) + 1
    if spread_m * spread_n > 3e7:
        raise ValueError(
            "n / d and steps must be small enough to tabulate the law of a coordinate, "
            f"got n / d = {s} and steps={steps}"
        )
    m, total, probability = _joint_law(s, steps, sample_rate)
    return m, total, *_alias(probability)


#: Log-probability that no draw can notice: a uniform double has 53 bits.
_NEGLIGIBLE = log(1e-25)


@jit
def _joint_law(s: int, steps: int, sample_rate: float) -> tuple[Array, Array, Array]:
    """All (m, N) that are not negligible, and their probabilities."""
    ms, totals, levels = [0], [0], [0.0]
    for m in _around(s // 2, s, 0.5, 0.0):
        weight = log_pmf(m, s, 0.5, 0.5)
        if sample_rate == 1:
            ms.append(m)
            totals.append(m * steps)
            levels.append(weight)
            continue
        mean = int(m * steps * sample_rate)
        for total in _around(mean, m * steps, sample_rate, weight):
            ms.append(m)
            totals.append(total)
            levels.append(weight + log_pmf(total, m * steps, sample_rate, 1 - sample_rate))
    return np.array(ms[1:]), np.array(totals[1:]), np.exp(np.array(levels[1:]))


@jit
def _around(start: int, r: int, q: float, weight: float) -> list[int]:
    """The counts of Bin(r, q), from ``start`` outwards, that are not negligible."""
    first = start
    while first > 0 and weight + log_pmf(first - 1, r, q, 1 - q) > _NEGLIGIBLE:
        first -= 1
    last = start
    while last < r and weight + log_pmf(last + 1, r, q, 1 - q) > _NEGLIGIBLE:
        last += 1
    return list(range(first, last + 1))


@jit
def _alias(probability: Array) -> tuple[Array, Array]:
    """Walker's alias method: entry i yields i if a uniform lies below cut[i], else alias[i]."""
    size = probability.size
    cut = probability * (size / probability.sum())
    alias = np.arange(size)
    small = [i for i in range(size) if cut[i] < 1]
    large = [i for i in range(size) if cut[i] >= 1]
    while len(small) > 0 and len(large) > 0:
        poor, rich = small.pop(), large[-1]
        alias[poor] = rich
        cut[rich] -= 1 - cut[poor]
        if cut[rich] < 1:
            small.append(large.pop())
    for i in small:  # only rounding has left them
        cut[i] = 1.0
    for i in large:
        cut[i] = 1.0
    return cut, alias


@jit
def _audit_block(
    trials: int,
    d: int,
    s: int,
    k: int,
    noise: float,
    m: Array,
    total: Array,
    cut: Array,
    alias: Array,
    rng: Generator,
) -> Array:
    v = np.empty(trials, dtype=np.int64)
    included = np.empty(d, dtype=np.int64)
    score = np.empty(d)
    for trial in range(trials):
        for j in range(d):
            x = rng.random() * cut.size
            entry = int(x)
            if x - entry >= cut[entry]:
                entry = alias[entry]
            included[j] = m[entry]
            score[j] = total[entry] + noise * rng.standard_normal()
        v[trial] = _count_right(score, included, s, k, rng)
    return v


@jit
def _count_right(score: Array, included: Array, s: int, k: int, rng: Generator) -> int:
    """How many of the k guesses are right, given each coordinate's score and included elements."""
    d = score.size
    high, low = k - k // 2, k // 2
    # Whole coordinates are taken from both ends of the order; at most two only in part.
    first, last = min(low // s, d - 1), max(d - 1 - high // s, 0)
    order = _split(score, first, last)
    right = 0
    for j in range(d - high // s, d):
        right += included[order[j]]
    for j in range(low // s):
        right += s - included[order[j]]
    high, low = high % s, low % s
    ones = included[order[last]]
    if first == last:  # both parts fall into one coordinate
        drawn = _ones_among(high, ones, s, rng)
        return right + drawn + low - _ones_among(low, ones - drawn, s - high, rng)
    right += _ones_among(high, ones, s, rng)
    return right + low - _ones_among(low, included[order[first]], s, rng)


@jit
def _split(score: Array, first: int, last: int) -> Array:
    """The coordinates ordered so far that those at, below ``first`` and above ``last`` are right.

    Selection instead of sorting: only the two borders matter, not the order beyond them.
    """
    order = np.argpartition(score, first)
    if last > first:
        rest = order[first + 1 :].copy()
        order[first + 1 :] = rest[np.argpartition(score[rest], last - first - 1)]
    return order


@jit
def _ones_among(draws: int, ones: int, size: int, rng: Generator) -> int:
    """How many of ``draws`` elements are included, out of ``size`` of which ``ones`` are."""
    drawn = 0
    for i in range(draws):
        drawn += rng.random() * (size - i) < ones - drawn
    return drawn


# --------------------------------------------------------------------- DP-SGD step by step


def train(
    dpsgd: DpSgd,
    included: NDArray[np.bool_],
    rng: Generator,
    *,
    clip: float = 1.0,
    learning_rate: float = 1.0,
    gradient: float = 1.0,
) -> NDArray[np.float64]:
    """DP-SGD (Algorithm 3) on the included elements: all weights w_0, ..., w_T, one a row.

    Element i has the gradient ``gradient`` in coordinate i % d and 0 elsewhere, whatever the
    weights are.

    Parameters
    ----------
    included : which of the n elements are in the training data.
    clip : the clipping threshold of the gradients' norm.
    learning_rate : how far a step goes.
    gradient : the size of the canaries before clipping.
    """
    _check.instance("dpsgd", dpsgd, DpSgd, "DpSgd(n=1000)")
    _check.instance("rng", rng, Generator, "numpy.random.default_rng(1)")
    try:
        included = np.asarray(included)
    except ValueError:  # rows of different lengths
        included = np.zeros(0, dtype=bool)
    if included.dtype != bool or included.shape != (dpsgd.n,):
        raise ValueError(
            f"included must be a boolean vector of length n={dpsgd.n}, "
            f"got {included.dtype} of shape {included.shape}"
        )
    return _train(
        np.flatnonzero(included) % dpsgd.d,
        dpsgd.d,
        dpsgd.steps,
        dpsgd.sample_rate,
        dpsgd.sigma,
        _check.real("clip", clip, 0, inf, interval="()"),
        _check.real("learning_rate", learning_rate, 0, inf, interval="()"),
        _check.real("gradient", gradient, 0, inf, interval="()"),
        rng,
    )


@jit
def _train(
    coordinate: Array,
    d: int,
    steps: int,
    sample_rate: float,
    sigma: float,
    clip: float,
    learning_rate: float,
    gradient: float,
    rng: Generator,
) -> Array:
    weights = np.zeros((steps + 1, d))
    clipped = min(1.0, clip / gradient) * gradient
    rate = -log1p(-sample_rate)  # inf for a full batch: every gap is 0
    noisy_sum = np.empty(d)
    for t in range(steps):
        for j in range(d):
            noisy_sum[j] = sigma * clip * rng.standard_normal()
        # Each element joins the batch with probability sample_rate, so the gaps between members
        # are geometric: jump from member to member.
        i = np.floor(rng.standard_exponential() / rate)
        while i < coordinate.size:
            noisy_sum[coordinate[int(i)]] += clipped
            i += 1 + np.floor(rng.standard_exponential() / rate)
        for j in range(d):
            weights[t + 1, j] = weights[t, j] - learning_rate * noisy_sum[j]
    return weights


def audit_training(
    dpsgd: DpSgd,
    k: int,
    *,
    trials: int = 1,
    seed: int,
    clip: float = 1.0,
    learning_rate: float = 1.0,
) -> Counts:
    """As :func:`audit`, but training step by step and guessing element by element.

    Much slower, and of the same law: it is there to be read, and to test :func:`audit`.
    """
    _check.instance("dpsgd", dpsgd, DpSgd, "DpSgd(n=1000)")
    k = _check.integer("k", k, 1, dpsgd.n)
    clip = _check.real("clip", clip, 0, inf, interval="()")
    learning_rate = _check.real("learning_rate", learning_rate, 0, inf, interval="()")
    used = dpsgd.used_coordinates
    elements = dpsgd.d * np.arange(dpsgd.per_coordinate)

    def trial(rng: Generator) -> int:
        included = rng.random(dpsgd.n) < 0.5
        weights = train(dpsgd, included, rng, clip=clip, learning_rate=learning_rate, gradient=clip)
        update = (weights[0] - weights[-1]) / learning_rate
        # The elements in ascending order of their coordinate's update.
        order = (np.argsort(update[:used])[:, None] + elements).ravel()
        high, low = order[dpsgd.n - (k - k // 2) :], order[: k // 2]
        return int(included[high].sum() + (~included[low]).sum())

    def block(size: int, rng: Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return np.array([trial(rng) for _ in range(size)]), np.full(size, k)

    return _counts("one-run DP-SGD", block, dpsgd, trials, seed, k, "step by step", r_fixed=True)


# ------------------------------------------- the guesser with a threshold, one full-batch step


def audit_single_step(
    dpsgd: DpSgd,
    tau: float,
    *,
    feedback: str = "none",
    budget: int | None = None,
    trials: int = 1,
    seed: int,
) -> Counts:
    """Audit one full-batch step of DP-SGD, guessing where the privacy loss is at least tau.

    Parameters
    ----------
    dpsgd : a training with steps=1 and sample_rate=1.
    tau : the threshold on the distributional privacy loss, in [1e-6, 1000].
    feedback : what the guesser is told on its way through the elements of a coordinate: nothing
        (``"none"``, plain one-run auditing), the coins of the elements that it abstained from
        (``"one-way"``), or all coins (``"full"``, the paper's adaptive auditing).
    budget : with feedback, a number of guesses fixed in advance, as in :func:`oralib.adaptive`.

    See Also
    --------
    oralib.adaptive : the same game played slowly with :class:`oralib.NoisyCountInSets`.
    """
    _check.one_of("feedback", feedback, ("none", *FEEDBACK))
    distance = guess_distances(dpsgd, tau)
    s, d = dpsgd.per_coordinate, dpsgd.used_coordinates
    most = check_budget(budget, dpsgd.n)
    if feedback == "none" and budget is not None:
        raise ValueError(f"budget needs feedback, got budget={budget} and feedback='none'")
    full = feedback == "full"

    def block(size: int, rng: Generator) -> Any:
        if feedback == "none":
            return _plain_block(size, d, s, dpsgd.sigma, distance, rng)
        v, r = _adaptive_block(size, d, s, dpsgd.sigma, distance, full, most, rng)
        return v, r if budget is None else np.full_like(r, most)

    game = "one-run" if feedback == "none" else f"{adaptive_game(feedback, budget)},"
    key = (float(tau),) if budget is None else (float(tau), most)
    return _counts(
        *(f"{game} DP-SGD", block, dpsgd, trials, seed, *key),
        r_fixed=budget is not None,
        feedback=feedback,
    )


def guess_distances(dpsgd: DpSgd, tau: float) -> NDArray[np.float64]:
    """For u = 0, ..., n/d unknown elements, how far their noisy count must be from its mean u/2.

    The loss is an odd and monotone function of that distance, so |loss| >= tau there and beyond.
    """
    _check.instance("dpsgd", dpsgd, DpSgd, "DpSgd(n=1000)")
    if dpsgd.steps != 1 or dpsgd.sample_rate != 1:
        raise ValueError(
            "dpsgd must be a single full-batch step, with steps=1 and sample_rate=1, "
            f"got steps={dpsgd.steps} and sample_rate={dpsgd.sample_rate}"
        )
    tau = _check.real("tau", tau, 1e-6, 1e3)
    return _guess_distances(dpsgd.per_coordinate, dpsgd.sigma, tau)


@lru_cache(maxsize=64)
def _guess_distances(s: int, sigma: float, tau: float) -> NDArray[np.float64]:
    distance = np.full(s + 1, inf)
    high = 1.0
    for u in range(1, s + 1):
        mechanism = NoisyCountInSets(u, sigma)

        def excess(x: float, mechanism: NoisyCountInSets = mechanism, u: int = u) -> float:
            loss = mechanism.privacy_loss(np.array([u / 2 - x]), u)
            return float(loss[0]) - tau + ROUNDING * max(1.0, tau)  # as ThresholdGuesser

        # The distance changes little from one u to the next: look around the last one first.
        low, high = 0.98 * high, 1.02 * high
        while excess(high) < 0:
            low, high = high, 2 * high
        while excess(low) > 0:
            low, high = low / 2, low
        high = distance[u] = optimize.brentq(excess, low, high, xtol=1e-13)
    return distance


@jit
def _plain_block(
    trials: int, d: int, s: int, sigma: float, distance: Array, rng: Generator
) -> tuple[Array, Array]:
    v, r = np.zeros(trials, dtype=np.int64), np.zeros(trials, dtype=np.int64)
    for trial in range(trials):
        for _ in range(d):
            ones = rng.binomial(s, 0.5)
            x = ones + sigma * rng.standard_normal() - s / 2
            if abs(x) >= distance[s]:
                r[trial] += s
                v[trial] += ones if x > 0 else s - ones
    return v, r


@jit
def _adaptive_block(
    trials: int,
    d: int,
    s: int,
    sigma: float,
    distance: Array,
    full: bool,
    budget: int,
    rng: Generator,
) -> tuple[Array, Array]:
    v, r = np.zeros(trials, dtype=np.int64), np.zeros(trials, dtype=np.int64)
    for trial in range(trials):
        for _ in range(d):
            if r[trial] == budget:
                break
            ones = rng.binomial(s, 0.5)
            rest = ones + sigma * rng.standard_normal()
            for unknown in range(s, 0, -1):
                x = rest - unknown / 2
                guessed = abs(x) >= distance[unknown] and r[trial] < budget
                if guessed and not full:
                    # A guess reveals nothing, so the next element looks the same: guess them all,
                    # as far as the budget goes.
                    taken = min(unknown, budget - r[trial])
                    if taken < unknown:
                        ones = _ones_among(taken, ones, unknown, rng)
                    r[trial] += taken
                    v[trial] += ones if x > 0 else taken - ones
                    break
                bit = _ones_among(1, ones, unknown, rng)
                if guessed:
                    r[trial] += 1
                    v[trial] += bit == (x > 0)
                rest -= bit
                ones -= bit
    return v, r


def _counts(
    game: str,
    block: Any,
    dpsgd: DpSgd,
    trials: int,
    seed: int,
    *key: object,
    r_fixed: bool,
    feedback: str = "none",
) -> Counts:
    v, r = play(block, trials, seed, game, dpsgd, *key)
    return Counts(v, r, dpsgd.n, game, r_fixed=r_fixed, feedback=feedback)
