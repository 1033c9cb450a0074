"""A ceiling that knows d: how many right guesses any placement among strangers reaches on average.

A canary on a coordinate with load L, that is with L - 1 others, uses 1/L of it, and all canaries
together have d coordinates in each step. Before each step the auditor chooses a load for each
canary, or drops it for this step, by all that it has seen. In the end it takes k guesses.

Neighbours are strangers: in each step they are drawn afresh. So all that is known of a canary is
its score x, the log-likelihood ratio of what its own coordinates have shown. The chapter *How much
can one run show?* has the model. It proves, for all prices λ_t >= 0 of a coordinate in step t and
μ >= 0 of a guess, that no policy has more right guesses on average than n V_0(0) + d Σ λ_t + k μ.
What a canary is worth, V_t(x), is found backwards from the last step. The ceiling is the least such
number that is found; any other one is valid too.

**Rounding to the safe side.** V is computed on a grid of scores, and nothing there makes it too
small, but for rounding errors. As a function of p(x), V is convex: it is a maximum of means. So it
can only grow if the evidence of a step is replaced by stronger evidence. Each y in a cell of the
outputs, and then each score in a cell of the grid, is replaced by one of the two ends of its cell,
with probabilities that keep the mean for both coins. Where a score leaves the grid, the coin is
disclosed. A load that is left out is replaced by the one before it, which shows more, at its own
price or less.

Real neighbours are not strangers: :mod:`orabook.studies.decoding`.
"""

from functools import lru_cache, partial
from math import ceil, sqrt

import numpy as np
import scipy
from numpy.typing import NDArray

from oralib import _check
from oralib._jit import jit
from oralib._types import Array
from oralib.dpsgd.ratios import log_weights
from oralib.dpsgd.setting import DpSgd

Reals = Array  # of doubles

#: The stages of the search for prices: the grid's cells and loads, bends of prices, largest factor.
STAGES = ((2.0, 0.2, 2, 32.0), (4.0, 0.1, 8, 3.0))
#: Longer trainings take long; with less noise there are numbers below the range of doubles.
MOST_STEPS, LEAST_SIGMA = 1000, 0.05
#: The largest score of a grid, where the coin is certain but for exp(-20).
FARTHEST = 20.0
#: The most numbers in the table of a step at one load, and in all steps on the grid.
MOST_OF_A_STEP, MOST_OF_ALL = 5e6, 2e9


def placement_ceiling(dpsgd: DpSgd, k: int) -> float:
    """No policy of placing n canaries on d coordinates has more right guesses of k on average.

    In the model that this module describes, in which neighbours are drawn afresh in each step.

    >>> dpsgd = DpSgd(n=200, d=100, steps=4, sample_rate=0.5, sigma=1.5)
    >>> round(placement_ceiling(dpsgd, 20), 1)
    16.0
    """
    k = _check.integer("k", k, 1, dpsgd.n)
    if dpsgd.steps > MOST_STEPS:
        raise ValueError(f"steps must be at most {MOST_STEPS}, got steps={dpsgd.steps}")
    if dpsgd.sigma < LEAST_SIGMA:
        raise ValueError(f"sigma must be at least {LEAST_SIGMA}, got sigma={dpsgd.sigma:g}")
    fine, guess = _Placing(dpsgd, 160 / sqrt(max(dpsgd.steps, 100)), 0.02), 0.75
    # Where all can be isolated, coordinates are free; elsewhere, for a start, they are worth a
    # sixteenth of all guesses.
    free, uses = dpsgd.n <= dpsgd.d, dpsgd.d * dpsgd.steps
    prices = np.full(dpsgd.steps, 0.0 if free else k / (16 * uses))
    for cells, spacing, bends, factor in STAGES:
        prices, guess = _Placing(dpsgd, cells, spacing).better(prices, guess, k, bends, factor)
    return min(float(k), fine.dual(prices, guess, k)[0])  # all prices are valid


class _Placing:
    """Scores on a grid, and for each load the law of what a step adds to them."""

    def __init__(self, dpsgd: DpSgd, cells: float, spacing: float) -> None:
        """``cells`` per standard deviation of an isolated step, and loads in steps of ``spacing``.

        Each load stands for all from it to the next one, and pays for the last of them.
        """
        self.dpsgd, loads = dpsgd, [1]
        while loads[-1] < dpsgd.n:
            wide = spacing if loads[-1] < 10 * dpsgd.per_coordinate else 5 * spacing
            loads.append(min(dpsgd.n, max(loads[-1] + 1, int(loads[-1] * (1 + wide)))))
        self.shares = 1 / np.append(np.maximum(loads[:-1], np.array(loads[1:]) - 1), dpsgd.n)
        law = partial(_increments, rate=dpsgd.sample_rate, sigma=dpsgd.sigma)
        laws = [law(load) for load in loads[::-1]][::-1]  # the largest is refused first
        ratio, mass = laws[0]
        spread = sqrt(mass @ ratio**2 + (1 - mass.sum()) * FARTHEST**2)
        self.width = min(spread / cells, 0.25)
        reach = 8 * spread * sqrt(dpsgd.steps) + dpsgd.steps * spread**2
        middle = ceil(min(max(reach, *np.abs(ratio)), FARTHEST) / self.width) + 1
        farthest = max(np.abs(ratio).max(initial=0) for ratio, _ in laws)
        self.radius = ceil(farthest / self.width) + 1
        self.size = scipy.fft.next_fast_len(2 * (middle + self.radius) + 1, real=True)
        if len(loads) * self.size * max(dpsgd.steps, 20) > MOST_OF_ALL:
            raise ValueError(
                "dpsgd must have scores that fit on a grid: with more noise, larger batches or "
                f"fewer steps, got steps={dpsgd.steps}, sample_rate={dpsgd.sample_rate:g} and "
                f"sigma={dpsgd.sigma:g}"
            )
        x = self.width * np.arange(-middle, middle + 1)
        self.right, self.odds = 1 / (1 + np.exp(-np.abs(x))), 1 + np.exp(x)
        self.half = np.cosh(x / 2)
        self.kernels = np.array([self._kernel(*law) for law in laws])
        tilt = np.exp(self.width / 2 * np.arange(-self.radius, self.radius + 1))
        self.waves = scipy.fft.rfft(self.kernels * tilt, self.size).conj()
        #: How likely a coin is disclosed, by load and score: all that does not stay on the grid.
        self.disclosed = np.maximum(0, 1 - self._means(np.ones(x.size)))

    def _kernel(self, ratio: Reals, mass: Reals) -> Reals:
        """What a step adds for an excluded canary, on the ends of its cell."""
        cell = np.floor(ratio / self.width).astype(int)
        up = mass * np.expm1(ratio - cell * self.width) / np.expm1(self.width)
        kernel = np.zeros(2 * self.radius + 1)
        np.add.at(kernel, self.radius + cell, mass - up)
        np.add.at(kernel, self.radius + cell + 1, up)
        return kernel

    def _means(self, value: Reals) -> Reals:
        """Means over what a step adds, by load and score, where scores that leave the grid count 0.

        An included canary gets e^Δ times the density of an excluded one: one kernel serves for
        both. The factor is split evenly, which loses the fewest digits in Fourier transforms.
        """
        wave = scipy.fft.rfft(np.pad(value * self.half, self.radius), self.size)
        return scipy.fft.irfft(self.waves * wave, self.size)[:, : value.size] / self.half

    def worth(self, prices: Reals, guess: float) -> tuple[float, list[NDArray[np.int64]]]:
        """V_0(0), and the best loads of each step and score, as indices; -1 where dropped."""
        value, best, most = np.maximum(0, self.right - guess), [], max(0.0, 1 - guess)
        for price in prices[::-1]:
            after = self._means(value) + most * self.disclosed - price * self.shares[:, None]
            load = after.argmax(axis=0)
            after = after[load, np.arange(load.size)]
            best.append(np.where(after > value, load, -1))
            value = np.maximum(value, after)
        return float(value[value.size // 2]), best[::-1]

    def follow(self, best: list[NDArray[np.int64]], guess: float) -> tuple[Reals, float, float]:
        """The coordinates that are used in each step, the guesses, and how many are right."""
        excluded, used, sure = np.zeros(self.odds.size), np.zeros(len(best)), 0.0
        excluded[excluded.size // 2] = self.dpsgd.n / 2
        for t, load in enumerate(best):
            placed = np.flatnonzero(load >= 0)
            there = (excluded * self.odds)[placed]
            used[t] = there @ self.shares[load[placed]]
            sure += there @ self.disclosed[load[placed], placed]
            excluded = _move(excluded, load, self.kernels)
        sure *= guess < 1
        guessed = (excluded * self.odds)[self.right > guess]
        return used, guessed.sum() + sure, guessed @ self.right[self.right > guess] + sure

    def dual(self, prices: Reals, guess: float, k: int) -> tuple[float, list[NDArray[np.int64]]]:
        """What no policy exceeds, by these prices, and the best loads for them."""
        value, best = self.worth(prices, guess)
        return self.dpsgd.n * value + self.dpsgd.d * float(prices.sum()) + k * guess, best

    def better(
        self, prices: Reals, guess: float, k: int, bends: int, factor: float
    ) -> tuple[Reals, float]:
        """Prices with the least dual value that is found: the old ones times a line with bends.

        The dual value is convex: its tangents are nowhere above it. So the next prices are those
        where all tangents are lowest, or rather half-way from the best ones to these.
        """
        at = np.linspace(0, prices.size - 1, min(bends, prices.size))
        lines = [np.interp(np.arange(prices.size), at, one) for one in np.eye(at.size)]
        shape = prices[:, None] * np.array(lines).T
        z = np.append(np.ones(at.size), guess)
        box = [*[(0, factor)] * at.size, (0, 1), (None, None)]
        best, least, slopes, heights = z, np.inf, [], []
        for _ in range(25):
            total, loads = self.dual(shape @ z[:-1], z[-1], k)
            used, guesses, _ = self.follow(loads, z[-1])
            if total < least:
                best, least = z, total
            slopes.append(np.append(shape.T @ (self.dpsgd.d - used), [k - guesses, -1]))
            heights.append(slopes[-1][:-1] @ z - total)
            goal = np.append(0 * z, 1)
            lowest = scipy.optimize.linprog(goal, A_ub=slopes, b_ub=heights, bounds=box).x
            if lowest is None or least - lowest[-1] < 1e-5 * least:
                break
            z = (lowest[:-1] + best) / 2
        return shape @ best[:-1], float(best[-1])


@jit
def _move(mass: Array, load: Array, kernels: Array) -> Array:
    """Where the mass at each score goes by the kernel of its load; it stays where that is -1."""
    radius = kernels.shape[1] // 2
    moved = np.zeros(mass.size + 2 * radius)
    for i in range(mass.size):
        if load[i] < 0:
            moved[i + radius] += mass[i]
        elif mass[i] > 0:
            moved[i : i + 2 * radius + 1] += mass[i] * kernels[load[i]]
    return moved[radius:-radius]


@lru_cache(maxsize=2048)
def _increments(load: int, rate: float, sigma: float) -> tuple[Reals, Reals]:
    """Log-likelihood ratios of one step at this load, and their law for an excluded canary.

    It is a law of stronger evidence than y. In each of small cells of y the mean ratio is known.
    Since binomial laws are log-concave, the ratio rises with y; so in a cell it lies between the
    means of the cells before and after it, and each y is replaced by one of these two. Outermost
    cells and extreme ratios are left out: there the coin is disclosed.
    """
    first, logs = log_weights(load - 1, rate / 2)
    wide = sqrt(sigma**2 + load * rate / 4) if sigma >= 0.6 else 1.3 * sigma
    unit = ceil(32 / wide)  # cells from y - 1 to y
    low, high = first - 1 - 9 * sigma, first + logs.size + 9 * sigma
    y = np.arange(int(unit * low), int(unit * high)) / unit
    if y.size * logs.size > MOST_OF_A_STEP:
        raise ValueError(
            f"sigma must be larger for so many neighbours, got sigma={sigma:g} and n={load}"
        )
    z = (y[:, None] - first - np.arange(logs.size)) / sigma
    sides = np.diff(scipy.special.ndtr(z), axis=0), -np.diff(scipy.special.ndtr(-z), axis=0)
    without = np.where(z[1:] < 0, *sides) @ np.exp(logs)
    out, in_batch = without[unit:], without[:-unit]
    share = (1 - rate) * out + rate * in_batch
    ratio = np.maximum.accumulate(np.log(share) - np.log(out))
    up, span = (np.expm1(ratio[i : ratio.size - 2 + i] - ratio[:-2]) for i in (1, 2))
    up = out[1:-1] * np.divide(up, span, where=span > 0, out=np.zeros(up.size))
    mass = np.concatenate([out[1:-1] - up, [0, 0]]) + np.concatenate([[0, 0], up])
    both = mass * (1 + np.exp(np.minimum(ratio, 700)))
    kept = np.minimum(both.cumsum(), both[::-1].cumsum()[::-1]) > 1e-13
    kept &= np.abs(ratio) < 2 * FARTHEST
    return ratio[kept], mass[kept]
