"""The largest number that passes a test, in few steps, for tests that are slow."""

from collections.abc import Callable
from math import nan


def largest_passing(
    excess: Callable[[float], float], low: float, high: float, *, guess: float, precision: float
) -> float:
    """A multiple of ``precision`` in [low, high] where ``excess`` is at most 0, the next one fails.

    ``excess`` was computed there, so that no rounding error lets a number pass. It is ``high`` if
    that passes, and ``low`` if nothing does that was tried. After the guess, each point is where
    the parabola through the last three, as a function of ``excess``, has its value at 0. After ten
    rounds every other one halves what is left. Kernels have their own searches: one that took a
    function could not be cached by Numba.
    """
    fails, passes = high, low - precision  # so far; the latter stands for nothing that passes
    seen = [(excess(high), high)]
    if seen[0][0] <= 0:
        return high
    x, rounds = guess, 0
    while fails - passes > 1.5 * precision:
        x = min(max(round(x / precision) * precision, passes + precision), fails - precision)
        seen = [*seen[-2:], (excess(x), x)]
        passes, fails = (x, fails) if seen[-1][0] <= 0 else (passes, x)
        rounds += 1
        # Below all that fails nothing is known: go down twice as far.
        x = (passes + fails) / 2 if passes >= low else 2 * fails - high
        if rounds <= 10 or rounds % 2:
            inside = (point for point in (_root(seen), _root(seen[-2:])) if passes < point < fails)
            x = next(inside, x)
    return max(passes, low)


def _root(points: list[tuple[float, float]]) -> float:
    """Where the polynomial x(value) through some points (value, x) is, at the value 0."""
    total = 0.0
    for i, (value, x) in enumerate(points):
        for j, (other, _) in enumerate(points):
            if i != j:
                if value == other:
                    return nan
                x *= other / (other - value)
        total += x
    return total
