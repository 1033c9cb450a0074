"""The probability that a bound fails if guessing may stop at will.

Each guess, whatever came before it, is right with probability at most p(ε). So (v, r) is dominated
by a random walk, and a bound fails at most with the probability that the walk crosses the line
where the bound exceeds ε. The chapter *Making adaptive auditing valid* has the proof.
"""

from math import inf
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from oralib.bounds.anytime import Anytime, anytime_line
from oralib.bounds.columns import float_if_single
from oralib.bounds.pure import TIE, Pure, pure_line
from oralib.ground import arguments
from oralib.ground.binomial import odds
from oralib.ground.jit import jit
from oralib.ground.types import Array

__all__ = ["adaptive_failure_probability"]

#: The largest number of guesses, which takes seconds.
LARGEST_N = 10**6
#: Places that the walk reaches more rarely are dropped: all together they stay far below 1e-12.
_LEAST_PROBABILITY = 1e-25
#: The rule of the paper's bound for δ = 0.
_PURE = Pure()


def adaptive_failure_probability(
    epsilon: float, n: ArrayLike, beta: float = 0.05, *, rule: Pure | Anytime = _PURE
) -> Any:
    """Return W_n(ε, β), the worst-case probability that a bound exceeds ε if guessing may stop.

    It is the probability that a walk with n independent steps, each a success with probability
    p(ε), ever meets counts (v, r) whose bound exceeds ε. ε-randomized response attains it.

    Parameters
    ----------
    epsilon : float
        The true privacy level, >= 0.
    n : int or array
        The number of elements, up to 10^6.
    beta : float
        The failure probability that the bound is made for, in (0, 1).
    rule : Pure or Anytime
        The rule of the bound, by default :class:`oralib.bounds.Pure`.

    Examples
    --------
    >>> from oralib.bounds import Anytime
    >>> round(adaptive_failure_probability(1.0, 1000), 6)
    0.321355
    >>> round(adaptive_failure_probability(1.0, 1000, rule=Anytime()), 6)
    0.037696
    """
    epsilon = arguments.real("epsilon", epsilon, 0)
    sizes = arguments.integers("n", n, 0, LARGEST_N)
    beta, _ = arguments.beta_and_delta(beta)
    if not isinstance(rule, Pure | Anytime):
        raise TypeError(f"rule must be Pure() or Anytime(), got rule={rule!r}")
    if epsilon == inf or not sizes.size:
        return float_if_single(np.zeros(sizes.shape))
    largest = int(sizes.max())
    if isinstance(rule, Anytime):
        line = anytime_line(largest, epsilon + TIE * (1 + epsilon), beta)
    else:
        line = pure_line(largest, epsilon, beta)
    return float_if_single(_crossing(line, epsilon)[sizes])


@jit
def _crossing(line: Array, epsilon: float) -> Array:
    """Return the probability that the walk has met the line by its step r, for each r."""
    q, qc = odds(epsilon)
    n = line.size - 1
    met = np.zeros(n + 1)
    inside = np.zeros(n + 2)  # by v: the probability of being there without having met the line
    if line[0] <= 0:
        met[:] = 1.0
        return met
    inside[0] = 1.0
    low = 0
    high = 0
    for r in range(1, n + 1):
        high += 1
        for v in range(high, low, -1):
            inside[v] = inside[v] * qc + inside[v - 1] * q
        inside[low] *= qc
        met[r] = met[r - 1]
        while high >= low and high >= line[r]:
            met[r] += inside[high]
            inside[high] = 0.0
            high -= 1
        while low < high and inside[low] < _LEAST_PROBABILITY:
            inside[low] = 0.0
            low += 1
    return met
