"""The largest number that passes a slow test, found in few calls of the test."""

from collections.abc import Callable
from math import nan

__all__ = ["largest_passing"]


def largest_passing(
    excess: Callable[[float], float], low: float, high: float, *, guess: float, precision: float
) -> float:
    """Return the largest multiple of ``precision`` in [low, high] with ``excess`` <= 0.

    ``excess``, which rises, was computed there, so that no rounding error lets a number pass. It is
    ``high`` if that passes, and ``low`` if no number passed that was tried. After the guess, the
    next point is where the parabola through the last three points, as a function of ``excess``, has
    its value at 0. After ten rounds every other round halves the interval. Kernels have their own
    searches: one that took a function could not be cached by Numba.
    """
    points = [(excess(high), high)]
    if points[0][0] <= 0:
        return high
    fails = high
    passes = low - precision  # no number that passes is known
    x = guess
    rounds = 0
    while fails - passes > 1.5 * precision:
        x = min(max(round(x / precision) * precision, passes + precision), fails - precision)
        value = excess(x)
        points = [*points[-2:], (value, x)]
        if value <= 0:
            passes = x
        else:
            fails = x
        rounds += 1
        # While no number passes, go down twice as far.
        x = (passes + fails) / 2 if passes >= low else 2 * fails - high
        if rounds <= 10 or rounds % 2:
            roots = (_root(points), _root(points[-2:]))
            x = next((root for root in roots if passes < root < fails), x)
    return max(passes, low)


def _root(points: list[tuple[float, float]]) -> float:
    """Return x(0) for the polynomial x(value) through some points (value, x), by Lagrange."""
    total = 0.0
    for i, (value, x) in enumerate(points):
        term = x
        for j, (other_value, _) in enumerate(points):
            if i != j:
                if value == other_value:
                    return nan
                term *= other_value / (other_value - value)
        total += term
    return total
