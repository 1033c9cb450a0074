"""Tails of Λ of an isolated element, for the sum of all steps of DP-SGD.

Λ is an increasing function of the sum, which is normal, given the number of steps in which an
element is in the batch.
"""

from math import sqrt

import numpy as np
import scipy

from orabook.studies.tails import TAIL_DEPTH, Reals, Side

__all__ = ["sum_tails"]


def sum_tails(steps: int, rate: float, sigma: float) -> tuple[Side, Side]:
    """The tails of Λ above 0 and below, for the sum of all steps."""
    noise = sigma * sqrt(steps)
    total = np.arange(steps + 1)  # in how many steps an element can be
    log_weight = scipy.stats.binom.logpmf(total, steps, rate)
    is_likely = log_weight > -2 * TAIL_DEPTH
    total = total[is_likely]
    log_weight = log_weight[is_likely]

    def ratio(x: Reals) -> Reals:
        """Λ, which rises with the sum x."""
        return scipy.special.logsumexp(
            log_weight + (2 * x[:, None] * total - total**2) / (2 * noise**2), axis=1
        )

    def tail(side: int, included: bool, x: Reals) -> Reals:
        """log P[sum > x], or of sum < x if ``side`` is -1."""
        if not included:
            return scipy.special.log_ndtr(-side * x / noise)
        return scipy.special.logsumexp(
            log_weight + scipy.special.log_ndtr(-side * (x[:, None] - total) / noise), axis=1
        )

    zero = scipy.optimize.brentq(
        lambda x: ratio(np.array([x]))[0], -40 * noise, 40 * noise + steps, xtol=1e-12
    )
    reach = 1.3 * sqrt(2 * TAIL_DEPTH) * noise + steps
    x = zero + reach * np.linspace(0, 1, 1500) ** 1.5
    above = (ratio(x), tail(1, True, x), tail(1, False, x))
    x = zero - reach * np.linspace(0, 1, 1500) ** 1.5
    below = (-ratio(x), tail(-1, False, x), tail(-1, True, x))
    return above, below
