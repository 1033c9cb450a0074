"""A ceiling that knows d: how many right guesses any placement among strangers reaches on average.

A canary on a coordinate with load L, that is with L - 1 others, uses 1/L of it, and all canaries
together have d coordinates in each step. Before each step the auditor chooses a load for each
canary, or drops it for this step, by all that it has seen. In the end it takes k guesses.

**The model.** Neighbours are strangers: in each step they are drawn afresh. Each of the L - 1
others is in the batch with probability q/2, independently of each other, of all coins of the n
canaries and of the past. So all that is known of a canary is its score x, the log-likelihood ratio
of what its own coordinates have shown, and it is included with probability p(x), p being the
logistic function. Each canary sits on one coordinate in a step, with norm 1.

**The inequality.** Put a price λ_t >= 0 on a coordinate in step t and a price μ >= 0 on a guess.
Then each canary is on its own, and what it is worth is found backwards from the last step:

    V_T(x) = max(0, p(|x|) - μ),
    V_t(x) = max(V_{t+1}(x), max_L E V_{t+1}(x + what a step at load L adds) - λ_t / L).

For all prices >= 0 no policy has more right guesses on average than n V_0(0) + d Σ λ_t + k μ: it
keeps to the d coordinates and to the k guesses, so in the mean it has paid at most d Σ λ_t + k μ
(weak duality). The ceiling is the least such number that is found; any other one is valid too.

**Rounding to the safe side.** V is computed on a grid of scores, and nothing there makes it too
small, but for rounding errors. As a function of p(x), V is convex: it is a maximum of means. So it
can only grow if the evidence of a step is replaced by stronger evidence. Each y in a cell of the
outputs, and then each score in a cell of the grid, is replaced by one of the two ends of its cell,
with probabilities that keep the mean for both coins. Where a score leaves the grid, the coin is
disclosed. A load that is left out is replaced by the one before it, which shows more, at its own
price or less.

Real neighbours are not strangers: :mod:`orabook.studies.decoding`.
"""

from functools import lru_cache
from itertools import product
from math import ceil, erfc, exp, sqrt
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from oralib import _check
from oralib._jit import jit
from oralib.dpsgd.ratios import log_weights
from oralib.dpsgd.training import DpSgd
from oralib.mechanisms import Array

Reals = NDArray[Any]  # of doubles

#: The search for prices has two stages of this many rounds at most.
ROUNDS = 25
#: Each step of the training is followed on a grid, which takes time.
MOST_STEPS = 1000
#: With less noise the law of a step has more detail than a table of it.
LEAST_SIGMA = 0.05
#: The largest scores of a grid: the coin is certain but for exp(-20).
FARTHEST = 20.0
#: Evidence of a smaller probability discloses the coin.
NEGLIGIBLE = 1e-13
#: The largest product of the numbers of loads, of scores and of steps.
MOST_WORK = 1e9


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
    fine = _Placing(dpsgd, cells=16.0 if dpsgd.steps <= 200 else 8.0, spacing=0.02)
    placing = _Placing(dpsgd, cells=2.0, spacing=0.2)
    prices, guess = placing.first_prices(k)
    if dpsgd.n > dpsgd.d:  # otherwise coordinates are free
        prices, guess = placing.better_prices(prices, guess, k, knots=2, factor=10.0)
        placing = _Placing(dpsgd, cells=4.0, spacing=0.1)
        prices, guess = placing.better_prices(prices, guess, k, knots=8, factor=3.0)
    return min(float(k), fine.dual(prices, guess, k)[0])  # all prices are valid


class _Placing:
    """Scores on a grid, and for each load the law of what a step adds to them."""

    def __init__(self, dpsgd: DpSgd, cells: float, spacing: float) -> None:
        """``cells`` per standard deviation of an isolated step, and loads in steps of ``spacing``.

        Each load stands for all from it to the next one, and pays for the last of them.
        """
        self.dpsgd = dpsgd
        loads = [1]
        while loads[-1] < dpsgd.n:
            wide = spacing if loads[-1] < 10 * dpsgd.per_coordinate else 5 * spacing
            loads.append(min(dpsgd.n, max(loads[-1] + 1, int(loads[-1] * (1 + wide)))))
        self.shares = 1 / np.append(np.maximum(loads[:-1], np.array(loads[1:]) - 1), dpsgd.n)
        laws = [_increments(load, dpsgd.sample_rate, dpsgd.sigma) for load in loads]
        ratio, mass, disclosed = laws[0]
        spread = sqrt(mass @ ratio**2 + disclosed[0] * FARTHEST**2)
        self.width = min(spread / cells, 0.25)
        reach = 8 * spread * sqrt(dpsgd.steps) + dpsgd.steps * spread**2
        self.middle = ceil(min(max(reach, *np.abs(ratio)), FARTHEST) / self.width) + 1
        self.x = self.width * np.arange(-self.middle, self.middle + 1)
        self.right = 1 / (1 + np.exp(-np.abs(self.x)))
        farthest = max(np.abs(ratio).max(initial=0) for ratio, *_ in laws)
        self.radius = ceil(farthest / self.width) + 1
        self.size = scipy.fft.next_fast_len(self.x.size + 2 * self.radius, real=True)
        if len(loads) * self.size * max(dpsgd.steps, 20) > MOST_WORK:
            raise ValueError(
                "dpsgd must have scores that fit on a grid: with more noise, larger batches or "
                f"fewer steps, got steps={dpsgd.steps}, sample_rate={dpsgd.sample_rate:g} and "
                f"sigma={dpsgd.sigma:g}"
            )
        self.odds = 1 + np.exp(self.x)  # 1 / P[excluded | score]
        # Factors e^(x/2) are split evenly, which loses the fewest digits in Fourier transforms.
        jump = self.width * np.arange(-self.radius, self.radius + 1)
        self.half, tilt = 2 * np.cosh(self.x / 2), np.exp(jump / 2)
        self.kernels = np.array([self._kernel(*law[:2]) for law in laws])
        self.waves = scipy.fft.rfft(self.kernels * tilt, self.size).conj()
        gone = [
            _outside(mass, self.middle) + np.array([law[2][coin] for law in laws])[:, None]
            for coin, mass in enumerate((self.kernels, self.kernels * tilt**2))
        ]
        #: How likely a coin is disclosed, by load and score.
        self.disclosed = (gone[0] + gone[1] * np.exp(self.x)) / self.odds

    def _kernel(self, ratio: Reals, mass: Reals) -> Reals:
        """What a step adds for an excluded canary, on the ends of its cell."""
        cell = np.floor(ratio / self.width).astype(int)
        up = mass * np.expm1(ratio - cell * self.width) / np.expm1(self.width)
        kernel = np.zeros(2 * self.radius + 1)
        np.add.at(kernel, self.radius + cell, mass - up)
        np.add.at(kernel, self.radius + cell + 1, up)
        return kernel

    def worth(self, prices: Reals, guess: float) -> tuple[float, list[NDArray[np.int64]]]:
        """V_0(0), and the best loads of each step and score, as indices; -1 where dropped."""
        value, best, most = np.maximum(0, self.right - guess), [], max(0.0, 1 - guess)
        for price in prices[::-1]:
            # An included canary gets e^Δ times the density: one kernel serves for both coins.
            spread = np.pad(value * self.half, self.radius)
            after = scipy.fft.irfft(self.waves * scipy.fft.rfft(spread, self.size), self.size)
            after = after[:, : value.size] / self.half + most * self.disclosed
            after -= price * self.shares[:, None]
            load = after.argmax(axis=0)
            after = after[load, np.arange(load.size)]
            best.append(np.where(after > value, load, -1))
            value = np.maximum(value, after)
        return float(value[self.middle]), best[::-1]

    def follow(self, best: list[NDArray[np.int64]], guess: float) -> tuple[Reals, float, float]:
        """The coordinates that are used in each step, the guesses, and how many are right."""
        excluded, used, sure = np.zeros(self.x.size), np.zeros(len(best)), 0.0
        excluded[self.middle] = self.dpsgd.n / 2
        for t, load in enumerate(best):
            placed = np.flatnonzero(load >= 0)
            there, load_there = (excluded * self.odds)[placed], load[placed]
            used[t] = there @ self.shares[load_there]
            sure += there @ self.disclosed[load_there, placed]
            moved = _move(excluded, load, self.kernels)[self.radius : -self.radius]
            excluded = np.where(load >= 0, 0, excluded) + moved
        sure *= guess < 1
        guessed = (excluded * self.odds)[self.right > guess]
        return used, guessed.sum() + sure, guessed @ self.right[self.right > guess] + sure

    def dual(self, prices: Reals, guess: float, k: int) -> tuple[float, list[NDArray[np.int64]]]:
        """What no policy exceeds, by these prices, and the best loads for them."""
        value, best = self.worth(prices, guess)
        return self.dpsgd.n * value + self.dpsgd.d * float(prices.sum()) + k * guess, best

    def first_prices(self, k: int) -> tuple[Reals, float]:
        """Prices to begin with: free coordinates, where all are isolated, or ones that fall."""
        found: list[Any] = [np.inf]

        def total(prices: Reals, guess: float) -> float:
            value, _ = self.dual(prices, guess, k)
            if value < found[0]:
                found[:] = value, prices, guess
            return value

        steps, d = self.dpsgd.steps, self.dpsgd.d
        if self.dpsgd.n <= d:
            free = np.zeros(steps)
            scipy.optimize.minimize_scalar(lambda guess: total(free, guess), bounds=(0, 1))
        else:  # all coordinates together cost some share of what the guesses are worth
            for share, fall, guess in product(4.0 ** -np.arange(6), (0, 3), (0.55, 0.75, 0.95)):
                prices = np.exp(np.linspace(0, -fall, steps))
                total(share * k / d * prices / prices.sum(), guess)
        return found[1], float(found[2])

    def better_prices(
        self, prices: Reals, guess: float, k: int, *, knots: int, factor: float
    ) -> tuple[Reals, float]:
        """The least dual value that is found, with prices times factors that bend at ``knots``.

        The dual value is convex: the line through a point with its slope is below it everywhere.
        So the next point is where all such lines are lowest, or half-way from there to the best.
        """
        at = np.linspace(0, prices.size - 1, min(knots, prices.size))
        bends = [np.interp(np.arange(prices.size), at, one) for one in np.eye(at.size)]
        shape = prices[:, None] * np.array(bends).T
        z = np.append(np.ones(at.size), guess)  # the factors, and the price of a guess
        box = [*[(0, factor)] * at.size, (0, 1), (None, None)]
        best, least, slopes, heights = z, np.inf, [], []
        for _ in range(ROUNDS):
            total, loads = self.dual(shape @ z[:-1], z[-1], k)
            used, guesses, _ = self.follow(loads, z[-1])
            if total < least:
                best, least = z, total
            slope = np.append(shape.T @ (self.dpsgd.d - used), k - guesses)
            slopes.append(np.append(slope, -1))
            heights.append(slope @ z - total)
            goal = np.append(0 * z, 1)
            lowest = scipy.optimize.linprog(goal, A_ub=slopes, b_ub=heights, bounds=box).x
            if lowest is None or least - lowest[-1] < 1e-5 * least:
                break
            z = (lowest[:-1] + best) / 2
        return shape @ best[:-1], float(best[-1])


def _outside(kernels: Reals, middle: int) -> Reals:
    """The mass of each kernel that lands outside of -middle, ..., middle, from each place in it."""
    radius, at = kernels.shape[1] // 2, np.arange(-middle, middle + 1)
    low, high = (np.clip(radius + end - at, 0, 2 * radius + 1) for end in (-middle, middle + 1))
    zero = np.zeros((len(kernels), 1))
    before = np.hstack([zero, kernels.cumsum(axis=1)])
    after = np.hstack([kernels[:, ::-1].cumsum(axis=1)[:, ::-1], zero])
    return before[:, low] + after[:, high]


@jit
def _move(mass: Array, load: Array, kernels: Array) -> Array:
    """Where the mass at each score goes, with the kernel of its load; nowhere if that is -1."""
    moved = np.zeros(mass.size + kernels.shape[1] - 1)
    for i in range(mass.size):
        if load[i] >= 0 and mass[i] > 0:
            moved[i : i + kernels.shape[1]] += mass[i] * kernels[load[i]]
    return moved


@jit
def _sums(y: Array, first: int, weight: Array, sigma: float) -> tuple[Array, Array, Array]:
    """The density of a noisy count at y, up to a constant, and its probabilities on both sides."""
    density, below, above = np.zeros(y.size), np.zeros(y.size), np.zeros(y.size)
    for i in range(y.size):
        for m in range(weight.size):
            z = (y[i] - first - m) / sigma
            density[i] += weight[m] * exp(-0.5 * z * z)
            below[i] += weight[m] * 0.5 * erfc(-z / sqrt(2.0))
            above[i] += weight[m] * 0.5 * erfc(z / sqrt(2.0))
    return density, below, above


@lru_cache(maxsize=2048)
def _increments(load: int, rate: float, sigma: float) -> tuple[Reals, Reals, Reals]:
    """Log-likelihood ratios of one step at this load, and their law for an excluded canary.

    The third are the probabilities that an excluded and an included canary are disclosed. The
    law is one of stronger evidence than y: each y is replaced by one of the two ends of its cell.
    The ratio rises with y, since binomial laws are log-concave.
    """
    first, logs = log_weights(load - 1, rate / 2)
    low, high = first - 8 * sigma, first + logs.size + 8 * sigma
    wide = sqrt(sigma**2 + load * rate / 4) if sigma >= 0.6 else sigma
    unit = max(1, min(ceil(24 / wide), int(4096 / (high - low))))  # points from y - 1 to y
    y = low + np.arange(-unit, ceil(unit * (high - low)) + 1) / unit
    density, below, above = _sums(y, first, np.exp(logs), sigma)
    # The canary is not in the batch, or in it.
    below, above = (np.array([side[unit:], side[:-unit]]) for side in (below, above))
    gain = np.log(density[:-unit]) - np.log(density[unit:])
    with np.errstate(divide="ignore"):
        ratio = np.logaddexp(np.log1p(-rate), np.log(rate) + gain)
    both = np.array([[1.0, 0.0], [1 - rate, rate]])  # excluded, included
    below, above = both @ below, both @ above
    left = np.abs(below[0, :-1]) < 0.5
    out, in_ = np.where(left, np.diff(below), -np.diff(above))
    # The ends of a cell, e^lower and e^upper times as likely if included, keep both masses.
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.log(in_) - np.log(out) - ratio[:-1]
        up = np.expm1(mean) / np.expm1(np.diff(ratio))
    up = np.clip(np.where(np.isfinite(up), up, 1.0), 0, 1) * out
    mass = np.append(out - up, 0) + np.append(0, up)
    # Beyond the ends: what the last ratio does not account for is certain.
    ends = np.array([below[1, 0] * np.exp(-ratio[0]), above[0, -1]])
    mass[[0, -1]] += ends
    disclosed = [below[0, 0] - ends[0], above[1, -1] - ends[1] * np.exp(ratio[-1])]
    by_coin = mass * np.array([np.ones(ratio.size), np.exp(ratio)])
    total = by_coin.sum(axis=0)
    kept = np.minimum(total.cumsum(), total[::-1].cumsum()[::-1]) > NEGLIGIBLE
    kept &= np.abs(ratio) < 2 * FARTHEST  # beyond, all scores leave the grid
    disclosed = np.maximum(disclosed, 0) + by_coin[:, ~kept].sum(axis=1)
    # χ², which is too small if only the cell of y is seen, and here too large.
    shown = ((in_ - out) ** 2 / np.maximum(in_ + out, 1e-300)).sum()
    more = ((by_coin[1] - by_coin[0]) ** 2 / np.maximum(total, 1e-300))[kept].sum()
    if more + disclosed.sum() > 1.01 * shown:
        raise ValueError(
            "sigma must be larger for this many neighbours: their sum has more detail than a table "
            f"of it, got sigma={sigma:g} and n >= {load}"
        )
    return ratio[kept], mass[kept], disclosed
