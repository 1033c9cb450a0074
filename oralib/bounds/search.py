"""The search for a bound: the largest ε whose p-value is at most β, by Newton's method.

Each rule that has its bound from here gives the formula of its p-value, a function of

    (v, r, epsilon, leak, least_b),

which returns the p-value before it is capped at 1, and its derivative in ε. The leak is n δ. Only
the random-r rule looks at ``least_b``, the b that was planned.
"""

from collections.abc import Callable
from math import expm1, inf, log, sqrt
from typing import Any, TypeAlias

import numpy as np

from oralib.bounds.columns import for_distinct_rows
from oralib.ground.jit import Kernel, formula, jit
from oralib.ground.types import Array

__all__ = ["by_search"]

#: The formula of a p-value.
Formula: TypeAlias = Callable[[int, int, float, float, float], tuple[float, float]]


def by_search(p_value: Formula) -> tuple[Callable[..., Array], Callable[..., Array]]:
    """Return the bounds and the p-values of a rule, functions of flat and checked columns.

    Both compute a single row in plain Python, which needs no compiler.
    """
    bounds_kernel, p_values_kernel = _kernels(p_value)

    def lower_bounds(
        v: Array,
        r: Array,
        beta: Array,
        leak: Array,
        least_b: Array | None = None,
        *,
        least: float = 0.0,
    ) -> Array:
        """Return the largest log-odds, at least ``least``, whose p-value is at most β."""
        planned = np.zeros(v.size) if least_b is None else least_b

        def search(*columns: Array) -> Array:
            return _run(bounds_kernel, *columns, least=least)

        return for_distinct_rows(search, v, r, beta, leak, planned)

    def p_values(
        v: Array, r: Array, epsilon: Array, leak: Array, least_b: Array | None = None
    ) -> Array:
        """Return the p-values, capped at 1."""
        planned = np.zeros(v.size) if least_b is None else least_b
        return _run(p_values_kernel, v, r, epsilon, leak, planned)

    return lower_bounds, p_values


def _run(kernel: Kernel, *columns: Array, **options: float) -> Array:
    if columns[0].size == 1:
        rows: Any = [column.tolist() for column in columns]
        return np.asarray(kernel.plain(*rows, *options.values()))
    return np.asarray(kernel(*columns, *options.values()))


def _kernels(p_value: Formula) -> tuple[Kernel, Kernel]:
    """Make the two loops of a rule.

    A kernel that took the formula as an argument could not be cached, so each rule has kernels of
    its own. Numba tells kernels apart by their names, in machine code and in its cache; so the name
    of the rule's module becomes a part of them.
    """

    def lower_bounds(
        v: Array, r: Array, beta: Array, leak: Array, least_b: Array, least: float
    ) -> Array:
        out = np.empty(len(v))
        for i in range(len(v)):
            # Slightly less than β, so that a p-value that equals β up to rounding does not pass.
            level = beta[i] * (1 - 1e-15)
            if v[i] == 0 or p_value(v[i], r[i], least, leak[i], least_b[i])[0] > level:
                out[i] = least
                continue
            low = least
            x, high = _start(v[i], r[i], level)
            rounds = 0
            while high - low > 1e-15 * (1 + abs(low)):
                rounds += 1
                if not low < x < high or rounds > 64:
                    x = 0.5 * (low + high)
                    if not low < x < high:
                        break
                value, slope = p_value(v[i], r[i], x, leak[i], least_b[i])
                if value > level:
                    high = x
                else:
                    low = x
                step = _newton_step(value, slope, level)
                if abs(step) <= 1e-15 * (1 + abs(x)):
                    break
                x += step
            # The last point may lie a rounding error above the root: step back until it does not.
            x = min(max(x, low), high)
            back = 1e-16 * (1 + abs(x))
            while x > low and p_value(v[i], r[i], x, leak[i], least_b[i])[0] > level:
                x -= back
                back *= 2
            out[i] = max(x, low)
        return out

    def p_values(v: Array, r: Array, epsilon: Array, leak: Array, least_b: Array) -> Array:
        out = np.empty(len(v))
        for i in range(len(v)):
            out[i] = min(p_value(v[i], r[i], epsilon[i], leak[i], least_b[i])[0], 1.0)
        return out

    owner = p_value.__module__.replace(".", "_")
    for function in (lower_bounds, p_values):
        function.__qualname__ = f"{function.__name__}_{owner}"
    return jit(lower_bounds), jit(p_values)


@formula
def _start(v: int, r: int, beta: float) -> tuple[float, float]:
    """Return a first guess of the bound, and a number that no bound exceeds.

    The latter is the bound for r right of r guesses without δ, which has a closed form.
    """
    y = -log(beta) / r
    high = 1e-9 - y - log(-expm1(-y))
    x = log((v + 0.5) / (r - v + 0.5)) - 1.6 * sqrt(1 / (v + 0.5) + 1 / (r - v + 0.5))
    return x, high


@formula
def _newton_step(value: float, slope: float, beta: float) -> float:
    """Return the step of Newton's method on log p-value - log β.

    It is inf if the p-value or its slope underflows to 0, which tells nothing: then bisect.
    """
    return value * log(beta / value) / slope if value > 0 and slope > 0 else inf
