"""DP-SGD with Dirac canaries, step by step (Algorithm 3), and its audit as written."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf, log1p
from typing import Self

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from oralib import _check
from oralib._jit import jit
from oralib._streams import play
from oralib.accounting import SIGMA_RANGE, noise_multiplier
from oralib.bounds import Counts
from oralib.mechanisms import Array


@dataclass(frozen=True)
class DpSgd:
    """A training run of DP-SGD on n Dirac canaries in d dimensions.

    In each step every included element is in the batch with probability q; the sum of their clipped
    gradients, of norm 1 in units of the clipping threshold, gets normal noise with standard
    deviation σ in each coordinate. Element i has its gradient on coordinate i % d.

    Attributes
    ----------
    n : int
        The number of elements: at most d, or a multiple of d.
    d : int
        The number of coordinates of the model.
    steps : int
        The number of steps, T.
    sample_rate : float
        How likely an included element is in the batch of a step, in (0, 1].
    sigma : float
        The noise multiplier: the noise's standard deviation over the clipping threshold.

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
    sigma: float = field(kw_only=True)

    def __post_init__(self) -> None:
        n, d = _check.integer("n", self.n, 1), _check.integer("d", self.d, 1)
        if n > d:
            _check.multiple("n", n, d, "d, if n exceeds it")
        steps = _check.integer("steps", self.steps, 1)
        rate = _check.real("sample_rate", self.sample_rate, 0, 1, interval="(]")
        sigma = _check.real("sigma", self.sigma, *SIGMA_RANGE)
        _check.store(self, n=n, d=d, steps=steps, sample_rate=rate, sigma=sigma)

    @classmethod
    def calibrated(
        cls,
        epsilon: float,
        delta: float,
        *,
        n: int,
        d: int = 1000,
        steps: int = 100,
        sample_rate: float = 0.1,
        accountant: str = "rdp",
    ) -> Self:
        """A training run with the noise of an (ε, δ) claim, by :func:`oralib.noise_multiplier`.

        Examples
        --------
        >>> DpSgd.calibrated(2.0, 1e-5, n=4000)
        DpSgd(n=4000, d=1000, steps=100, sample_rate=0.1, sigma=2.422402)
        """
        sigma = noise_multiplier(epsilon, delta, steps, sample_rate, accountant=accountant)
        return cls(n, d, steps, sample_rate, sigma=sigma)

    @property
    def per_coordinate(self) -> int:
        """The number of elements that share a coordinate."""
        return max(1, self.n // self.d)

    @property
    def used_coordinates(self) -> int:
        """The number of coordinates that any element uses."""
        return min(self.n, self.d)


def run_dpsgd(
    dpsgd: DpSgd,
    included: NDArray[np.bool_],
    rng: Generator,
    *,
    clip: float = 1.0,
    learning_rate: float = 1.0,
    gradient: float = 1.0,
) -> NDArray[np.float64]:
    """DP-SGD (Algorithm 3) on the included elements: all weights w_0, ..., w_T, one per row.

    Element i has the gradient ``gradient`` in coordinate i % d and 0 elsewhere, whatever the
    weights are.

    Parameters
    ----------
    included : array
        Which of the n elements are in the training data.
    rng : Generator
        The random numbers of the batches and the noise.
    clip, learning_rate : float
        The clipping threshold of the gradients' norm, and how far a step goes.
    gradient : float
        The size of the canaries before clipping.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> weights = run_dpsgd(DpSgd(n=20, d=10, steps=5, sigma=1.0), rng.random(20) < 0.5, rng)
    >>> weights.shape
    (6, 10)
    """
    _check.instance("dpsgd", dpsgd, DpSgd, "DpSgd(n=1000, sigma=1.0)")
    _check.instance("rng", rng, Generator, "numpy.random.default_rng(1)")
    coins = _check.coins("included", included, dpsgd.n)
    clip = _check.real("clip", clip, 0, inf, interval="()")
    learning_rate = _check.real("learning_rate", learning_rate, 0, inf, interval="()")
    gradient = _check.real("gradient", gradient, 0, inf, interval="()")
    where, clipped = np.flatnonzero(coins) % dpsgd.d, min(1.0, clip / gradient) * gradient
    run = dpsgd.d, dpsgd.steps, dpsgd.sample_rate, dpsgd.sigma * clip
    return _train(where, *run, clipped, learning_rate, rng)


@jit
def _train(
    coordinates: Array,
    d: int,
    steps: int,
    sample_rate: float,
    noise: float,
    clipped: float,
    learning_rate: float,
    rng: Generator,
) -> Array:
    """Simulate Algorithm 3; ``coordinates`` has one entry for each included element.

    In each step

    1. draw the normal noise of each coordinate;
    2. draw the batch, and add ``clipped`` to the coordinate of each element in it;
    3. move the weights by the learning rate times this noisy sum.
    """
    weights = np.zeros((steps + 1, d))
    rate = -log1p(-sample_rate)  # inf for a full batch: every gap is 0
    noisy_sum = np.empty(d)
    for t in range(steps):
        for j in range(d):
            noisy_sum[j] = noise * rng.standard_normal()
        # Each element joins the batch with probability sample_rate, so the gaps between members
        # are geometric: jump from member to member.
        i = np.floor(rng.standard_exponential() / rate)
        while i < coordinates.size:
            noisy_sum[coordinates[int(i)]] += clipped
            i += 1 + np.floor(rng.standard_exponential() / rate)
        for j in range(d):
            weights[t + 1, j] = weights[t, j] - learning_rate * noisy_sum[j]
    return weights


def simulate_training(
    dpsgd: DpSgd,
    k: int,
    *,
    trials: int = 1,
    seed: int,
    clip: float = 1.0,
    learning_rate: float = 1.0,
) -> Counts:
    """Like :func:`simulate_dpsgd`, but training step by step and guessing element by element.

    It is much slower and has the same law: it is there to be read, and as a test of
    :func:`simulate_dpsgd`.

    Examples
    --------
    >>> counts = simulate_training(DpSgd(n=200, d=100, sigma=0.5), 20, trials=5, seed=1)
    >>> counts.r.tolist()
    [20, 20, 20, 20, 20]
    """
    _check.instance("dpsgd", dpsgd, DpSgd, "DpSgd(n=1000, sigma=1.0)")
    elements = dpsgd.d * np.arange(dpsgd.per_coordinate)
    run = partial(run_dpsgd, dpsgd, clip=clip, learning_rate=learning_rate, gradient=clip)

    def trial(ks: NDArray[np.int64], rng: Generator) -> list[int]:
        included = rng.random(dpsgd.n) < 0.5
        weights = run(included, rng)
        update = (weights[0] - weights[-1])[: dpsgd.used_coordinates] / learning_rate
        # The elements in ascending order of their coordinate's update.
        order = (np.argsort(update, kind="stable")[:, None] + elements).ravel()
        ends = [(order[dpsgd.n - (k - k // 2) :], order[: k // 2]) for k in ks.tolist()]
        return [int(included[high].sum() + (~included[low]).sum()) for high, low in ends]

    def block(ks: NDArray[np.int64], size: int, rng: Generator) -> NDArray[np.int64]:
        return np.array([trial(ks, rng) for _ in range(size)])

    key = dpsgd, [k], dpsgd.n, trials, seed, "step by step"
    return play_audits("one-run DP-SGD", block, *key)[0]


def play_audits(
    game: str,
    block: Callable[[NDArray[np.int64], int, Generator], NDArray[np.int64]],
    dpsgd: DpSgd,
    guesses: Sequence[int],
    most: int,
    trials: int,
    seed: int,
    *key: object,
    feedback: str = "none",
) -> list[Counts]:
    """Counts of a game with a fixed number of guesses, for each of several such numbers.

    ``block(ks, size, rng)`` plays ``size`` training runs and counts the right guesses: a row for
    each run and a column for each number of guesses. These must fall, from ``most`` at most. The
    random numbers also depend on ``key``.
    """
    ks = _check.integers("k", guesses, 1)
    if ks.ndim != 1 or not ks.size or (np.diff(ks) >= 0).any():
        raise ValueError(f"k must be falling numbers, got k={guesses!r}")
    if ks[0] > most:
        raise ValueError(f"k must lie in [1, {most}], got k={ks[0]}")
    numbers = ks.tolist()

    def rows(size: int, rng: Generator) -> tuple[NDArray[np.int64]]:
        return (block(ks, size, rng),)

    (v,) = play(rows, trials, seed, game, dpsgd, *numbers, *key)
    return [
        Counts(v[:, i], np.full(len(v), k), dpsgd.n, game, r_fixed=True, feedback=feedback)
        for i, k in enumerate(numbers)
    ]


@jit
def ones_among(draws: int, ones: int, size: int, rng: Generator) -> int:
    """How many of ``draws`` elements are included, out of ``size`` of which ``ones`` are."""
    drawn = 0
    for i in range(draws):
        drawn += rng.random() * (size - i) < ones - drawn
    return drawn
