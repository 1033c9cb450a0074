"""Does a training run look like the stated one? Running sums over its noisy gradients.

A lower bound on ε claims a lot, and so needs a lot of evidence. These checks ask less: whether the
gradients are those of the stated training. Given the coins, the noisy gradient of a coordinate in a
step has the mean q m and the variance σ² + q (1 - q) m, where q is the sample rate and m of its
canaries are included, and the steps are independent. So three things can be checked:

- gradient: do included canaries add what they should, q clipping thresholds a step?
- noise: is there as much as there should be?
- steps: do neighbouring steps depend on each other, as they do if noise is used twice?

Coins are used here, but neither scores nor guesses depend on the outcome, so the bound stays valid.
"""

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from oralib.dpsgd import DpSgd
from oralib.ground.jit import jit
from oralib.ground.types import Array
from oralib.scores.seen import Check

#: With fewer numbers nothing is said: their sums are not nearly normal.
FEWEST = 100


class Look:
    """What the noisy gradients of a training run show, given the coins.

    Examples
    --------
    The noise multiplier is stated as 2, but is 1.8:

    >>> rng, look = np.random.default_rng(1), Look(DpSgd(n=500, d=500, steps=20, sigma=2.0))
    >>> included = rng.integers(0, 2, 500)
    >>> for step in range(20):
    ...     look.add(rng.binomial(included, 0.1) + rng.normal(scale=1.8, size=500), included)
    >>> [(check.name, check.fits) for check in look.checks()]
    [('gradient', True), ('noise', False), ('steps', True)]
    """

    def __init__(self, dpsgd: DpSgd) -> None:
        self.dpsgd, self.sums = dpsgd, np.zeros(9)
        # The errors of the step before, in standard deviations.
        self.last = np.zeros(dpsgd.used_coordinates)

    def add(self, y: NDArray[np.float64], ones: NDArray[np.int64]) -> None:
        """Take in a step: the gradient of each coordinate, and how many of its canaries are in."""
        self.sums += _sums(y, ones, self.last, self.dpsgd.sample_rate, self.dpsgd.sigma**2)

    def checks(self) -> tuple[Check, ...]:
        """How the gradients compare with what was stated."""
        numbers, squares, variance, of_squares, *sums = self.sums.tolist()
        pull, pull_squared, weight, products, products_squared = sums
        if numbers < FEWEST:
            return ()
        checks = []
        if pull_squared > 0:
            # Divided by what was seen and not by what was stated: wrong noise does not matter here.
            unit, error = self.dpsgd.sample_rate * weight, sqrt(pull_squared)
            checks.append(Check("gradient", 1 + pull / unit, error / unit, pull / error))
        # A sum of squares is nearly a gamma variable, the cube root of which is nearly normal.
        shape = variance**2 / of_squares
        ratio, spread = squares / variance, 1 / (9 * shape)
        z = (np.cbrt(ratio) - 1 + spread) / sqrt(spread)
        noise = numbers * self.dpsgd.sigma**2
        share = sqrt(max(squares - variance + noise, 0.0) / noise)
        checks.append(Check("noise", share, sqrt(of_squares) / (2 * noise), float(z)))
        pairs, error = numbers - self.last.size, sqrt(products_squared)
        if pairs >= FEWEST and error > 0:
            checks.append(Check("steps", products / pairs, error / pairs, products / error))
        return tuple(checks)


@jit
def _sums(y: Array, ones: Array, last: Array, q: float, noise: float) -> Array:
    """What a step adds to the sums; its errors are written to ``last``."""
    sums = np.zeros(9)
    for j in range(y.size):
        m = ones[j]
        of_batch = q * (1 - q) * m
        variance = noise + of_batch
        error = y[j] - q * m
        # The fourth moment of a normal number plus an independent binomial one, both centred.
        fourth = 3 * noise**2 + 6 * noise * of_batch + of_batch * (1 + (3 * m - 6) * q * (1 - q))
        pull, scaled = m * error / variance, error / np.sqrt(variance)
        product = scaled * last[j]
        last[j] = scaled
        sums[1] += error**2
        sums[2] += variance
        sums[3] += fourth - variance**2
        sums[4] += pull
        sums[5] += pull**2
        sums[6] += m * m / variance
        sums[7] += product  # 0 in the first step
        sums[8] += product**2
    sums[0] = y.size
    return sums
