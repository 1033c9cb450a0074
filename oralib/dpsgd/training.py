"""DP-SGD with Dirac canaries, step by step (Algorithm 3), its noise, and its plain audit."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, inf, log1p, sqrt
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from oralib import _check
from oralib._jit import jit
from oralib._streams import BLOCK, play
from oralib.bounds import Counts
from oralib.mechanisms import Array

__all__ = [
    "DpSgd",
    "audit_training",
    "certified_epsilon",
    "falling",
    "fixed_counts",
    "noise_multiplier",
    "ones_among",
    "play_counts",
    "train",
]


#: The noise multipliers of a training.
_SIGMAS = 1e-3, 1e6


@dataclass(frozen=True)
class DpSgd:
    """A training of DP-SGD on n Dirac canaries in d dimensions.

    In each step every included element is in the batch with probability q; the sum of their clipped
    gradients, of norm 1 in units of the clipping threshold, gets normal noise with standard
    deviation σ in each coordinate. Element i has its gradient on coordinate i % d.

    Attributes
    ----------
    n : the number of elements: at most d, or a multiple of d.
    d : the number of coordinates of the model.
    steps : the number of steps, T.
    sample_rate : how likely an included element is in the batch of a step, in (0, 1].
    sigma : the noise multiplier: the noise's standard deviation over the clipping threshold.

    Examples
    --------
    >>> dpsgd = DpSgd(n=4000, sigma=2.4224)
    >>> dpsgd.per_coordinate, dpsgd.used_coordinates
    (4, 1000)
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
            sigma=_check.real("sigma", self.sigma, *_SIGMAS),
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


#: How far a noise multiplier may be from the smallest one, before it is rounded up.
_TOLERANCE = 1e-9


@lru_cache(maxsize=1024)
def _noise_multiplier(epsilon: float, delta: float, steps: int, sample_rate: float) -> float:
    import dp_accounting  # here, because it takes a second to import and few need it
    from dp_accounting import mechanism_calibration, rdp

    def training(sigma: float) -> dp_accounting.DpEvent:
        return _event(sigma, steps, sample_rate)

    def calibrated(orders: NDArray[np.float64]) -> float:
        return float(
            dp_accounting.calibrate_dp_mechanism(
                lambda: rdp.RdpAccountant(orders), training, epsilon, delta, tol=_TOLERANCE
            )
        )

    def from_few_orders(orders: NDArray[np.float64]) -> float | None:
        few = orders[::-10]
        for _ in range(2):
            try:
                sigma = calibrated(few)
            except mechanism_calibration.NoBracketIntervalFoundError:
                return None
            if sigma <= 2 * _TOLERANCE:
                return None
            less = rdp.RdpAccountant(orders).compose(training(sigma - 2 * _TOLERANCE))
            reached, best = less.get_epsilon_and_optimal_order(delta)
            if reached > epsilon:
                return sigma
            place = int(np.abs(orders - best).argmin())
            few = orders[max(place - 2, 0) : place + 3]
        return None

    # The accountant's ε is the least over its orders, so a few of them claim no less. If all of
    # them say that a hair less noise than these few ask for is too little, the few are right. That
    # takes a quarter of the time.
    all_orders = rdp.RdpAccountant().orders
    limits = (
        f"epsilon and delta must ask for a noise multiplier in [{_SIGMAS[0]:g}, {_SIGMAS[1]:g}]"
    )
    given = (
        f"got epsilon={epsilon:g} and delta={delta:g} for steps={steps}, "
        f"sample_rate={sample_rate:g}"
    )
    none = (
        f"epsilon and delta must allow for a noise multiplier; the accountant finds none, {given}"
    )
    with _quiet_accountant():  # the search for what is out of reach is long, or has no end
        most = training(_SIGMAS[1])
        if all(
            rdp.RdpAccountant(orders).compose(most).get_epsilon(delta) > epsilon
            for orders in (all_orders[::-10], all_orders)  # mostly a few of them are enough
        ):
            raise ValueError(f"{limits}, {given}, which ask for more")
    try:
        with _quiet_accountant():
            sigma = from_few_orders(all_orders) or calibrated(all_orders)
            lost = _is_lost(rdp.RdpAccountant().compose(training(sigma)))
    except mechanism_calibration.NoBracketIntervalFoundError:
        raise ValueError(none) from None
    if not _SIGMAS[0] <= sigma <= _SIGMAS[1]:
        raise ValueError(f"{limits}, {given}, which ask for {sigma:g}")
    if lost:
        raise ValueError(none)
    return ceil(sigma * 1e6) / 1e6


#: The accountants of :func:`certified_epsilon`.
ACCOUNTANTS = ("pld", "rdp")


def certified_epsilon(dpsgd: DpSgd, delta: float, *, accountant: str = "pld") -> float:
    """The ε for which an accountant certifies a training as (ε, δ)-DP.

    Parameters
    ----------
    dpsgd : the training; its n and d do not matter.
    delta : the δ, in [1e-12, 1).
    accountant : ``"pld"``, which follows the law of the privacy loss through all steps and is exact
        but for a discretisation on the safe side, of less than 0.001 (coarser where there is hardly
        any privacy, at an ε of a hundred and more); or ``"rdp"``, which is larger, and which
        :func:`noise_multiplier` uses, as the paper does. Both are those of dp-accounting.

    Examples
    --------
    >>> training = DpSgd(n=1000, sigma=noise_multiplier(2.0, 1e-5, 100, 0.1))
    >>> round(certified_epsilon(training, 1e-5), 3)
    1.815
    >>> round(certified_epsilon(training, 1e-5, accountant="rdp"), 3)
    2.0
    """
    _check.instance("dpsgd", dpsgd, DpSgd, "DpSgd(n=1000)")
    delta = _check.real("delta", delta, 1e-12, 1, interval="[)")
    _check.one_of("accountant", accountant, ACCOUNTANTS)
    _check.real("the sample_rate of dpsgd", dpsgd.sample_rate, 1e-12, 1)
    return _certified_epsilon(dpsgd.steps, dpsgd.sample_rate, dpsgd.sigma, delta, accountant)


@lru_cache(maxsize=256)
def _certified_epsilon(
    steps: int, sample_rate: float, sigma: float, delta: float, accountant: str
) -> float:
    from dp_accounting import pld, rdp

    if sample_rate == 1 and accountant == "pld":  # one step with less noise is the same
        steps, sigma = 1, sigma / sqrt(steps)
    # The losses of a step, and of all of them, have to fit into tables.
    spread = sqrt(sample_rate * (1 - sample_rate) * steps) * max(0.0, 0.5 / sigma**2 - 2)
    one, together = 1 / sigma**2, max(spread, sample_rate * sqrt(steps) / sigma)
    interval = 1e-4 * max(1.0, one / 16, together / 16)
    with _quiet_accountant(), _named_if_too_large(accountant, steps, sample_rate, sigma):
        spent = (
            pld.PLDAccountant(value_discretization_interval=interval)
            if accountant == "pld"
            else rdp.RdpAccountant()
        )
        spent.compose(_event(sigma, steps, sample_rate))
        found, lost = float(spent.get_epsilon(delta)), accountant == "rdp" and _is_lost(spent)
    if lost:
        raise ValueError(
            "dpsgd must show more than the rounding errors of the accountant 'rdp', got "
            f"steps={steps}, sample_rate={sample_rate:g} and sigma={sigma:g}; 'pld' can tell it"
        )
    return found


@contextmanager
def _named_if_too_large(
    accountant: str, steps: int, sample_rate: float, sigma: float
) -> Iterator[None]:
    try:
        yield
    except (MemoryError, OverflowError):
        raise ValueError(
            f"dpsgd must have losses that the accountant {accountant!r} can hold, got "
            f"steps={steps}, sample_rate={sample_rate:g} and sigma={sigma:g}"
        ) from None


def _is_lost(accountant: Any) -> bool:
    """Whether an RDP accountant has only rounding errors before it.

    Where they make a divergence negative, it takes ε for 0, whatever δ is; with so small a δ it
    never does that for another reason.
    """
    return bool(accountant.get_epsilon(1e-300) == 0)


def _event(sigma: float, steps: int, sample_rate: float) -> Any:
    """The training as dp-accounting knows it."""
    import dp_accounting

    step = dp_accounting.GaussianDpEvent(sigma)
    batch = dp_accounting.PoissonSampledDpEvent(sample_rate, step)
    return dp_accounting.SelfComposedDpEvent(batch, steps)


@contextmanager
def _quiet_accountant() -> Iterator[None]:
    """Without warnings of orders that are left out on the way: the result stays an upper bound.

    Each call has a filter of its own, so that threads do not disturb each other.
    """
    logger = logging.getLogger("absl")

    def is_error(record: logging.LogRecord) -> bool:
        return record.levelno >= logging.ERROR

    logger.addFilter(is_error)
    try:
        yield
    finally:
        logger.removeFilter(is_error)


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

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> weights = train(DpSgd(n=20, d=10, steps=5), rng.random(20) < 0.5, rng)
    >>> weights.shape
    (6, 10)
    """
    _check.instance("dpsgd", dpsgd, DpSgd, "DpSgd(n=1000)")
    _check.instance("rng", rng, Generator, "numpy.random.default_rng(1)")
    return _train(
        np.flatnonzero(_check.coins("included", included, dpsgd.n)) % dpsgd.d,
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

    Examples
    --------
    >>> counts = audit_training(DpSgd(n=200, d=100, sigma=0.5), 20, trials=5, seed=1)
    >>> counts.r.tolist()
    [20, 20, 20, 20, 20]
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
        order = (np.argsort(update[:used], kind="stable")[:, None] + elements).ravel()
        high, low = order[dpsgd.n - (k - k // 2) :], order[: k // 2]
        return int(included[high].sum() + (~included[low]).sum())

    def block(size: int, rng: Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return np.array([trial(rng) for _ in range(size)]), np.full(size, k)

    return play_counts(
        "one-run DP-SGD", block, dpsgd, trials, seed, k, "step by step", r_fixed=True
    )


def play_counts(
    game: str,
    block: Any,
    dpsgd: DpSgd,
    trials: int,
    seed: int,
    *key: object,
    r_fixed: bool,
    feedback: str = "none",
    largest: int = BLOCK,
) -> Counts:
    """The counts of a game on DP-SGD, played in blocks with streams of its own."""
    v, r = play(block, trials, seed, game, dpsgd, *key, largest=largest)
    return Counts(v, r, dpsgd.n, game, r_fixed=r_fixed, feedback=feedback)


def falling(guesses: Sequence[int], most: int) -> NDArray[np.int64]:
    """Numbers of guesses that are fixed in advance, checked: each is smaller than the last."""
    ks = _check.integers("guesses", guesses, 1)
    if ks.ndim != 1 or not ks.size or (np.diff(ks) >= 0).any() or ks[0] > most:
        raise ValueError(
            f"guesses must be falling numbers of at most {most}, got guesses={guesses!r}"
        )
    return ks


def fixed_counts(
    v: NDArray[np.int64], ks: NDArray[np.int64], n: int, game: str, feedback: str = "none"
) -> list[Counts]:
    """The counts for each number of guesses, from a column of right ones for each."""
    return [
        Counts(v[:, i], np.full(len(v), k), n, game, r_fixed=True, feedback=feedback)
        for i, k in enumerate(ks.tolist())
    ]


@jit
def ones_among(draws: int, ones: int, size: int, rng: Generator) -> int:
    """How many of ``draws`` elements are included, out of ``size`` of which ``ones`` are."""
    drawn = 0
    for i in range(draws):
        drawn += rng.random() * (size - i) < ones - drawn
    return drawn
