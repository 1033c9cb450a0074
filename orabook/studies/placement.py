"""A ceiling that knows d: how many right guesses any placement of canaries can reach on average.

A canary on a coordinate with load L, that is with L - 1 others, uses 1/L of it, and all canaries
together have d coordinates in each step. Before each step the auditor chooses a load for each
canary, or drops it for this step, by its score x: the log-likelihood ratio of all that it has seen,
so that the canary is included with probability p(x). In the end it takes k guesses.

Put a price λ_t on a coordinate in step t and a price μ on a guess. Then each canary is on its own,
and what it is worth is found backwards from the last step, p being the logistic function:

    V_T(x) = max(0, p(|x|) - μ),
    V_t(x) = max(V_{t+1}(x), max_L E V_{t+1}(x + what a step at load L adds) - λ_t / L).

For all prices >= 0 no policy has more right guesses on average than n V_0(0) + d Σ λ_t + k μ: it
keeps to the d coordinates and to the k guesses, so in the mean it has paid at most d Σ λ_t + k μ
(weak duality). The ceiling is the least such number that is found; any other one is valid too.

What is proved and what is assumed. The inequality holds in the *mean-field model*: in each step the
neighbours of a canary are in the batch with probability q/2, independently of each other and of the
past. Real neighbours were placed by scores that know a little about their coins, which changes the
variance of each, q/2 (1 - q/2), a little. Each canary sits on one coordinate in a step, with norm
1. V is computed on a grid, with cubic interpolation, and for loads in steps of 8%.
"""

from itertools import product
from math import ceil, sqrt
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from oralib import _check
from oralib.dpsgd.ratios import ratio_table
from oralib.dpsgd.training import DpSgd

Reals = NDArray[Any]  # of doubles

#: The search for prices has two rounds, in which they are interpolated between this many steps.
KNOTS = (2, 8)
#: In the search, log prices of coordinates count as much as STRETCH times the price of a guess.
STRETCH = 100.0
#: Each step of the training is followed on a grid, which takes time.
MOST_STEPS = 1000


def placement_ceiling(dpsgd: DpSgd, k: int) -> float:
    """No policy of placing n canaries on d coordinates has more right guesses of k on average.

    In the mean-field model that this module describes; up to the error of its grid.

    >>> dpsgd = DpSgd(n=200, d=100, steps=4, sample_rate=0.5, sigma=1.5)
    >>> round(placement_ceiling(dpsgd, 20), 1)
    16.0
    """
    k = _check.integer("k", k, 1, dpsgd.n)
    if dpsgd.steps > MOST_STEPS:
        raise ValueError(f"steps must be at most {MOST_STEPS}, got steps={dpsgd.steps}")
    _, prices, guess = _Placing(dpsgd).ceiling(k)
    value, _ = _Placing(dpsgd, cells=4.0).worth(prices, guess)  # all prices are valid: a finer grid
    return float(dpsgd.n * value + dpsgd.d * prices.sum() + k * guess)


class _Placing:
    """Scores on a grid, and for each load the law of what a step adds to them."""

    def __init__(self, dpsgd: DpSgd, cells: float = 2.0) -> None:
        """``cells`` is the number of cells per standard deviation of an isolated step."""
        self.dpsgd = dpsgd
        n, dense = dpsgd.n, min(dpsgd.n, 10 * dpsgd.per_coordinate)
        self.loads = np.unique(
            np.rint([*np.geomspace(1, dense, ceil(np.log(dense) / 0.08) + 1), *_doubled(dense, n)])
        )
        laws = [_increments(int(load), dpsgd) for load in self.loads]
        ratio, mass = laws[0]
        spread = sqrt(mass @ ratio**2)
        self.width = spread / cells
        reach = 8 * spread * sqrt(dpsgd.steps) + dpsgd.steps * spread**2
        self.middle = ceil(min(reach, 30) / self.width) + 1
        self.x = self.width * np.arange(-self.middle, self.middle + 1)
        self.right = 1 / (1 + np.exp(-np.abs(self.x)))
        self.radius = ceil(max(np.abs(ratio).max() for ratio, _ in laws) / self.width) + 2
        self.kernels = np.array([self._kernel(*law) for law in laws])
        far = self.width * np.arange(-self.middle - self.radius, self.middle + self.radius + 1)
        self.odds = 1 + np.exp(far)  # 1 / P[excluded | score]

    def _kernel(self, ratio: Reals, mass: Reals) -> Reals:
        """The law of what a step adds for an excluded canary, spread over four cells each."""
        cell = np.floor(ratio / self.width).astype(int)
        u = ratio / self.width - cell
        kernel = np.zeros(2 * self.radius + 1)
        cubic = -u * (u - 1) * (u - 2) / 6, (u + 1) * (u - 1) * (u - 2) / 2
        for shift, share in enumerate(
            (*cubic, -(u + 1) * u * (u - 2) / 2, (u + 1) * u * (u - 1) / 6)
        ):
            np.add.at(kernel, self.radius + cell + shift - 1, mass * share)
        return kernel

    def worth(self, prices: Reals, guess: float) -> tuple[float, list[NDArray[np.int64]]]:
        """V_0(0), and the best loads of each step and score, as indices; -1 where dropped."""
        value, best = np.maximum(0, self.right - guess), []
        inner = slice(self.radius, -self.radius)
        for price in prices[::-1]:
            # An included canary gets e^Δ times the density: one kernel serves for both coins.
            spread = np.pad(value, self.radius, mode="edge") * self.odds
            windows = np.lib.stride_tricks.sliding_window_view(spread, 2 * self.radius + 1)
            after = self.kernels @ windows.T / self.odds[inner] - price / self.loads[:, None]
            load = after.argmax(axis=0)
            after = after[load, np.arange(load.size)]
            best.append(np.where(after > value, load, -1))
            value = np.maximum(value, after)
        return float(value[self.middle]), best[::-1]

    def follow(self, best: list[NDArray[np.int64]], guess: float) -> tuple[Reals, float, float]:
        """The coordinates that are used in each step, the guesses, and how many are right."""
        n, odds = self.dpsgd.n, self.odds[self.radius : -self.radius]
        excluded, used = np.zeros(self.x.size), np.zeros(len(best))
        excluded[self.middle] = n / 2
        for t, load in enumerate(best):
            placed = load >= 0
            used[t] = (excluded * odds)[placed] @ (1 / self.loads[load[placed]])
            moved = np.zeros(self.odds.size)
            for each in np.unique(load[placed & (np.abs(excluded) > 0)]):
                moved += np.convolve(np.where(load == each, excluded, 0), self.kernels[each])
            excluded = np.where(placed, 0, excluded) + moved[self.radius : -self.radius]
        guessed = (excluded * odds)[self.right > guess]
        return used, guessed.sum(), guessed @ self.right[self.right > guess]

    def ceiling(self, k: int) -> tuple[float, Reals, float]:
        """The least dual value that is found, with its prices: of coordinates, and of a guess."""
        n, d, steps = self.dpsgd.n, self.dpsgd.d, self.dpsgd.steps
        found: list[Any] = [np.inf]

        def dual(prices: Reals, guess: float) -> tuple[float, list[NDArray[np.int64]]]:
            value, best = self.worth(prices, guess)
            total = n * value + d * prices.sum() + k * guess
            if total < found[0]:
                found[:] = total, prices, guess
            return total, best

        # A first guess: prices that fall by one factor.
        for scale, guess in product(range(-20, 1, 2), (0.55, 0.65, 0.75, 0.85, 0.95)):
            dual(np.exp(np.linspace(scale, scale - 3, steps)), guess)
        for count in KNOTS:
            knots = np.linspace(0, steps - 1, min(count, steps))
            shape = _splines(knots, np.arange(steps))

            def slope(z: Reals, shape: Reals = shape) -> tuple[float, Reals]:
                prices, guess = np.exp(np.clip(shape @ z[:-1], -40, 5)), z[-1] / STRETCH
                total, best = dual(prices, guess)
                used, guesses, _ = self.follow(best, guess)
                return total, np.append(shape.T @ ((d - used) * prices), (k - guesses) / STRETCH)

            start = np.interp(knots, np.arange(steps), np.log(found[1]))
            scipy.optimize.minimize(
                slope,
                np.append(start, STRETCH * found[2]),
                jac=True,
                method="L-BFGS-B",
                options={"maxfun": 25},
            )
        return float(found[0]), found[1], float(found[2])


def _splines(knots: Reals, at: Reals) -> Reals:
    """How the values at the knots, one a column, are interpolated at each point."""
    if knots.size < 4:
        return np.array([np.interp(at, knots, one) for one in np.eye(knots.size)]).T
    return scipy.interpolate.CubicSpline(knots, np.eye(knots.size))(at)


def _doubled(first: int, last: int) -> list[int]:
    """From ``first`` to ``last``, by factors of 2."""
    return [first] if first >= last else [first, *_doubled(min(2 * first, last), last)]


def _increments(load: int, dpsgd: DpSgd) -> tuple[Reals, Reals]:
    """Log-likelihood ratios of one step at this load, and their law for an excluded canary."""
    *_, ratio, density = ratio_table(load, dpsgd.sample_rate, dpsgd.sigma)
    mass = np.exp(density - density.max())
    mass /= mass.sum()
    kept = mass * (1 + np.exp(np.minimum(ratio, 700))) > 1e-13
    return ratio[kept], mass[kept] / mass[kept].sum()
