"""DP-SGD with Dirac canaries, step by step (Algorithm 3), and its plain audit."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, log1p
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from oralib import _check
from oralib._jit import jit
from oralib._streams import BLOCK, play
from oralib.accounting import SIGMAS
from oralib.bounds import Counts
from oralib.mechanisms import Array


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
        steps, sigma = (
            _check.integer("steps", self.steps, 1),
            _check.real("sigma", self.sigma, *SIGMAS),
        )
        rate = _check.real("sample_rate", self.sample_rate, 0, 1, interval="(]")
        _check.store(self, n=n, d=d, steps=steps, sample_rate=rate, sigma=sigma)

    @property
    def per_coordinate(self) -> int:
        """The number of elements that share a coordinate."""
        return max(1, self.n // self.d)

    @property
    def used_coordinates(self) -> int:
        """The number of coordinates that any element uses."""
        return min(self.n, self.d)


# --------------------------------------------------------------------- DP-SGD step by step


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
    included : which of the n elements are in the training data.
    clip : the clipping threshold of the gradients' norm.
    learning_rate : how far a step goes.
    gradient : the size of the canaries before clipping.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> weights = run_dpsgd(DpSgd(n=20, d=10, steps=5), rng.random(20) < 0.5, rng)
    >>> weights.shape
    (6, 10)
    """
    _check.instance("dpsgd", dpsgd, DpSgd, "DpSgd(n=1000)")
    _check.instance("rng", rng, Generator, "numpy.random.default_rng(1)")
    coordinates = np.flatnonzero(_check.coins("included", included, dpsgd.n)) % dpsgd.d
    given = {"clip": clip, "learning_rate": learning_rate, "gradient": gradient}
    sizes = tuple(_check.real(name, x, 0, inf, interval="()") for name, x in given.items())
    training = dpsgd.d, dpsgd.steps, dpsgd.sample_rate, dpsgd.sigma
    return _train(coordinates, training, sizes, rng)


@jit
def _train(coordinate: Array, training: Any, sizes: Any, rng: Generator) -> Array:
    d, steps, sample_rate, sigma = training
    clip, learning_rate, gradient = sizes
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


def simulate_training(
    dpsgd: DpSgd,
    k: int,
    *,
    trials: int = 1,
    seed: int,
    clip: float = 1.0,
    learning_rate: float = 1.0,
) -> Counts:
    """Like :func:`audit`, but training step by step and guessing element by element.

    It is much slower and has the same law: it is there to be read, and to test :func:`audit`.

    Examples
    --------
    >>> counts = simulate_training(DpSgd(n=200, d=100, sigma=0.5), 20, trials=5, seed=1)
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
        weights = run_dpsgd(
            dpsgd, included, rng, clip=clip, learning_rate=learning_rate, gradient=clip
        )
        update = (weights[0] - weights[-1]) / learning_rate
        # The elements in ascending order of their coordinate's update.
        order = (np.argsort(update[:used], kind="stable")[:, None] + elements).ravel()
        high, low = order[dpsgd.n - (k - k // 2) :], order[: k // 2]
        return int(included[high].sum() + (~included[low]).sum())

    def block(size: int, rng: Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return np.array([trial(rng) for _ in range(size)]), np.full(size, k)

    key = dpsgd, trials, seed, k, "step by step"
    return play_counts("one-run DP-SGD", block, *key, r_fixed=True)


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
    """The counts of a game on DP-SGD, played in blocks with their own streams."""
    v, r = play(block, trials, seed, game, dpsgd, *key, largest=largest)
    return Counts(v, r, dpsgd.n, game, r_fixed=r_fixed, feedback=feedback)


def numbers_of_guesses(guesses: Sequence[int], most: int) -> NDArray[np.int64]:
    """Numbers of guesses for the same trainings, checked: each is smaller than the one before."""
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
