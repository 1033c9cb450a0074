"""Local Laplace, whose outputs are real numbers: its guesses by distribution function and density.

Expected values that claims compare with the closed forms of the paper.
"""

from functools import cache
from math import inf

from scipy import integrate, stats

__all__ = ["laplace_by_quadrature", "laplace_success"]


def laplace_success(epsilon: float, tau: float) -> tuple[float, float]:
    """(success, chance of guessing) on Local Laplace where the loss is at least τ in size.

    The loss of an output o is -ε o, cut at ±ε.
    """
    edge = tau / epsilon
    scale = 2 / epsilon
    # Of a sign 1; by symmetry a sign -1 has the same chances.
    right_chance = stats.laplace.sf(edge, 1, scale)
    wrong_chance = stats.laplace.cdf(-edge, 1, scale)
    guess_chance = right_chance + wrong_chance
    return float(right_chance / guess_chance), float(guess_chance)


@cache
def laplace_by_quadrature(epsilon: float) -> float:
    """The efficacy of Local Laplace without abstentions, from its densities."""

    def larger(x: float, scale: float = 2 / epsilon) -> float:
        return float(max(stats.laplace.pdf(x, s, scale) for s in (-1, 1)) / 2)

    return float(2 * (integrate.quad(larger, 0, 1)[0] + integrate.quad(larger, 1, inf)[0]))
