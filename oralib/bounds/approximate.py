"""From counts to ε: v right guesses out of r give a lower bound on the privacy level.

Arguments are always (v, r), as scalars or as arrays that broadcast together. For δ > 0 this
module has four rules: three methods of :func:`p_value`, for r fixed in advance, and
:func:`epsilon_lower_bound_random_r`, where r may depend on the output. The chapter *The exact
(ε, δ) bound* has the theorems.

See the paper's Section 2, and Steinke, Nasr and Jagielski, "Privacy Auditing with One (1) Training
Run", NeurIPS 2023.
"""

from bisect import bisect_left
from functools import cache, partial
from math import expm1, inf, log, log1p, sqrt
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from oralib.bounds._arguments import flat_counts, float_if_single, for_distinct_rows, one_by_one
from oralib.bounds.crossing import LARGEST_WALK, any_order_p_value
from oralib.ground import arguments
from oralib.ground.binomial import best_window, log_pmf, odds, pmf, tail, tail_and_pmf
from oralib.ground.jit import formula, jit
from oralib.ground.types import P_VALUES, Array, PValue

#: The p-values: those of :func:`p_value`, then that of :func:`epsilon_lower_bound_random_r`.
RULES = (*P_VALUES, "random r")
#: Their numbers, by which kernels know them.
STEINKE, EXACT, ANY_ORDER, RANDOM_R = range(4)
#: If nobody says how many guesses to expect, the bound for an open number is made for this many.
_EXPECTED = 60
#: The b that are tried for counts of a pilot, as shares of the one that would be best if exactly
#: these counts came again.
_SHARES = np.geomspace(0.25, 1.1, 12)

#: No success probability that a double can hold has log-odds below this.
_LEAST_LOG_ODDS = -745.0


def clopper_pearson_lower(v: ArrayLike, r: ArrayLike, beta: ArrayLike = 0.05) -> Any:
    """The largest success probability q with P[Bin(r, q) >= v] <= β; 0 if there is none.

    The bound on ε for δ = 0 is its logit, where that is positive (Definition A.5).

    >>> round(clopper_pearson_lower(75, 100), 6)
    0.668678
    """
    beta, _ = arguments.betas_and_deltas(beta)
    shape, (v, r, beta) = flat_counts(v, r, beta=beta)
    zeros = np.zeros(v.size)
    log_odds = _bounds(EXACT, _LEAST_LOG_ODDS, v, r, beta, zeros, zeros)
    accuracy = np.where(v > 0, scipy.special.expit(log_odds), 0.0)
    return float_if_single(accuracy.reshape(shape))


def p_value(
    v: ArrayLike,
    r: ArrayLike,
    epsilon: ArrayLike,
    *,
    delta: ArrayLike = 0.0,
    n: ArrayLike | None = None,
    method: PValue = "steinke",
) -> Any:
    """An upper limit on P[v or more of r guesses are right] if the mechanism is (ε, δ)-DP.

    For δ = 0 this is f = P[W >= v], W ~ Bin(r, p(ε)), valid with at most one-way feedback, or if r
    was fixed in advance. For δ > 0 the number of guesses r must be fixed in advance, missing ones
    count as wrong, and

    - ``method="steinke"`` is f + 2 n δ max_i P[v > W >= v - i] / i, capped at 1, as in the paper's
      experiments: proved where it is at most 1/2;
    - ``method="exact"`` is 1 - (1 - f) max(0, 1 - n δ / B) with B = v P[W = v] / f: exactly the
      probability that the worst mechanism and guesser reach;
    - ``method="any order"`` also holds with full feedback, for r up to 200,000. It is the exact one
      for v = 1 and v = r. Otherwise it is f + n δ c, where :mod:`oralib.bounds.crossing` finds c.

    Parameters
    ----------
    v, r : int or array
        How many guesses were right, and how many were made, 0 <= v <= r.
    epsilon : float or array
        The hypothetical privacy level, >= 0.
    delta : float or array
        The δ of (ε, δ)-DP, in [0, 1].
    n : int or array, optional
        The number of elements, guessed or not, at least r; needed if δ > 0.
    method : str
        ``"steinke"``, ``"exact"`` or ``"any order"``; the same for δ = 0.

    Examples
    --------
    >>> round(p_value(75, 100, 0.5, delta=1e-4, n=1000), 6)
    0.014587
    >>> round(p_value(75, 100, 0.5, delta=1e-4, n=1000, method="exact"), 6)
    0.007542
    """
    epsilon, delta = arguments.reals("epsilon", epsilon, 0), arguments.reals("delta", delta, 0, 1)
    rule = RULES.index(arguments.one_of("method", method, P_VALUES))
    n, most = _number_of_elements(n, r, delta), _most_guesses(rule, delta)
    shape, (v, r, n, delta, epsilon) = flat_counts(
        v, r, most=most, n=n, delta=delta, epsilon=epsilon
    )
    if not shape:  # without a compiler, as in _bounds
        value, _ = _p_value(v.item(), r.item(), epsilon.item(), (n * delta).item(), rule, 0.0)
        return min(value, 1.0)
    values = _p_values(v, r, epsilon, n * delta, rule, np.zeros(v.size))
    return values.reshape(shape)


def epsilon_lower_bound(
    v: ArrayLike,
    r: ArrayLike,
    *,
    beta: ArrayLike = 0.05,
    delta: ArrayLike = 0.0,
    n: ArrayLike | None = None,
    method: PValue = "steinke",
) -> Any:
    """The paper's ε'_β(v, r); if δ > 0, or with full feedback, r must be fixed in advance.

    It is the largest ε whose :func:`p_value`, with its rounding errors, is at most β, or 0 if there
    is none. It exceeds the true privacy level with probability at most β. For δ > 0,
    ``method="steinke"`` is valid for β <= 1/2, and ``method="exact"`` is never worse there.

    Parameters
    ----------
    v, r, delta, n, method
        As in :func:`p_value`.
    beta : float or array
        How often the bound may fail, in (0, 1).

    Examples
    --------
    >>> round(epsilon_lower_bound(75, 100), 6)
    0.702214
    >>> round(epsilon_lower_bound(75, 100, delta=1e-4, n=1000), 6)
    0.672985
    >>> round(epsilon_lower_bound(75, 100, delta=1e-4, n=1000, method="exact"), 6)
    0.695126
    """
    beta, delta = arguments.betas_and_deltas(beta, delta)
    rule = RULES.index(arguments.one_of("method", method, P_VALUES))
    n, most = _number_of_elements(n, r, delta), _most_guesses(rule, delta)
    shape, (v, r, n, delta, beta) = flat_counts(v, r, most=most, n=n, delta=delta, beta=beta)
    return float_if_single(lower_bounds(v, r, beta, n * delta, rule).reshape(shape))


def epsilon_lower_bound_random_r(
    v: ArrayLike,
    r: ArrayLike,
    *,
    beta: ArrayLike = 0.05,
    delta: ArrayLike,
    n: ArrayLike,
    expected: int | tuple[int, int] | None = None,
) -> Any:
    """A lower bound on ε for δ > 0, valid also if the number of guesses depends on the output.

    It holds for audits without feedback or with one-way feedback. It is the largest ε whose p-value

        1 - (1 - f) max(0, 1 - n δ / max(b, log f / log p(ε))),   f, B as in :func:`p_value`,

    is at most β; counts with B < b have the p-value 1. Any b that is fixed before the
    audit is valid; it is planned from n δ, β and what is expected.

    Parameters
    ----------
    v, r, delta, n, beta
        As in :func:`p_value` and :func:`epsilon_lower_bound`.
    expected : int or (int, int), optional
        How many guesses are expected, or better how many right ones and how many, from a simulation
        or a pilot run, never from the audit itself. By default b is made for 60 guesses, and it is
        at least n δ / (0.6 β) instead of n δ / (0.8 β): larger, in case there are more.

    Examples
    --------
    >>> round(epsilon_lower_bound_random_r(160, 210, delta=1e-5, n=1000), 6)
    0.886749
    >>> round(epsilon_lower_bound_random_r(203, 268, delta=1e-5, n=20_000, expected=268), 6)
    0.887294
    >>> pilot = 210, 275
    >>> round(epsilon_lower_bound_random_r(203, 268, delta=1e-5, n=20_000, expected=pilot), 6)
    0.892122
    """
    beta, delta = arguments.betas_and_deltas(beta, delta)
    n = arguments.integers("n", n)
    shape, (v, r, n, delta, beta) = flat_counts(v, r, n=n, delta=delta, beta=beta)
    least_b = planned_b(n, n * delta, beta, expected)
    return float_if_single(lower_bounds(v, r, beta, n * delta, RANDOM_R, least_b).reshape(shape))


def planned_b(
    n: Array, n_delta: Array, beta: Array, expected: int | tuple[int, int] | None
) -> Array:
    """The b of :func:`epsilon_lower_bound_random_r`, for flat and checked arrays.

    It is made for counts near those that are expected. If only their number is, it is made for half
    of it, since there may be fewer.
    """
    if isinstance(expected, tuple):
        right = arguments.integer("expected right guesses", expected[0])
        expected = arguments.integer("expected", expected[1], 1)
        if right > expected / 2:
            pilots = np.full(n.shape, right), np.full(n.shape, expected)
            return for_distinct_rows(_best_b, *pilots, n_delta, beta)
    if expected is not None:
        expected = arguments.integer("expected", expected, 1)
        arguments.at_most("expected", np.full(n.shape, expected), "n", n)
    guesses = np.minimum(_EXPECTED, n) if expected is None else np.full(n.shape, expected)
    with np.errstate(over="ignore"):  # at a tiny β no count suffices
        least, most = n_delta / beta / (0.6 if expected is None else 0.8), n_delta / beta / 0.1
    return np.clip(for_distinct_rows(_b_at_zero, np.maximum(guesses // 2, 1), beta), least, most)


@one_by_one
@cache
def _b_at_zero(r: int, beta: float) -> float:
    """B at ε = 0 of the least of r coins that are too many right ones at level β, or of all."""
    least = bisect_left(range(1, r), True, key=lambda v: tail(v, r, 0.5, 0.5) <= beta) + 1
    return float(least / tail_and_pmf(least, r, 0.5, 0.5)[2])


@one_by_one
def _best_b(v: int, r: int, n_delta: float, beta: float) -> float:
    """The b with the largest mean bound for nine counts around those of a pilot, of a few b.

    For the very counts of the pilot, B at their exact bound would be best.
    """
    nodes = np.array([-1.0, 0.0, 1.0]) * sqrt(3)  # a Gaussian quadrature
    weights = np.outer([1, 4, 1], [1, 4, 1]).ravel()
    accuracy = (v + 0.5) / (r + 1)
    some_r = np.maximum(np.rint(r + nodes * sqrt(r)), 1).repeat(3)
    spread = np.sqrt(some_r * accuracy * (1 - accuracy))
    some_v = np.clip(np.rint(some_r * accuracy + np.tile(nodes, 3) * spread), 0, some_r)
    same = np.ones(9)
    counts = some_v.astype(np.int64), some_r.astype(np.int64), same * beta, same * n_delta
    pilot = np.array([v]), np.array([r]), np.array([beta]), np.array([n_delta])
    bound = float(lower_bounds(*pilot, EXACT)[0])
    largest = v / tail_and_pmf(v, r, *odds(bound))[2]

    def mean(b: float) -> float:
        return float(weights @ lower_bounds(*counts, RANDOM_R, same * b))

    return max((share * largest for share in _SHARES), key=mean)


def lower_bounds(
    v: Array, r: Array, beta: Array, n_delta: Array, rule: int, least_b: Array | None = None
) -> NDArray[np.float64]:
    """The largest ε whose p-value is at most β, or 0, for flat and checked counts."""
    least_b = np.zeros(v.size) if least_b is None else least_b
    return for_distinct_rows(partial(_bounds, rule, 0.0), v, r, beta, n_delta, least_b)


def _bounds(rule: int, least: float, *columns: Array) -> Array:
    """The bound of each count; that of a single one in plain Python, which needs no compiler."""
    if columns[0].size == 1:
        return np.array([_lower_bound(rule, least, *(column.item() for column in columns))])
    return np.asarray(_lower_bounds(rule, least, *columns))


def _most_guesses(rule: int, delta: Array) -> int:
    """The largest number of guesses for which the p-value can be computed in seconds."""
    return LARGEST_WALK if rule == ANY_ORDER and (delta > 0).any() else arguments.LARGEST_COUNT


def _number_of_elements(n: ArrayLike | None, r: ArrayLike, delta: Array) -> Array:
    """n, checked; if it is not given, and does not matter as δ = 0, the number of guesses."""
    if n is not None:
        return arguments.integers("n", n)
    if (delta > 0).any():
        raise ValueError(
            f"n must be given when delta > 0, got delta={delta.max():g} and n=None: "
            "the bound depends on the number of elements"
        )
    return arguments.integers("r", r)


@formula
def _p_value(
    v: int, r: int, epsilon: float, n_delta: float, rule: int, least_b: float
) -> tuple[float, float]:
    """(p-value before it is capped at 1, its derivative in ε), with n_delta = n δ."""
    if v == 0:
        return 1.0, 0.0
    q, qc = odds(epsilon)
    f, w, ratio = tail_and_pmf(v, r, q, qc)
    slope = v * w  # times qc: d/dε P[Bin(r, q) >= k] = k pmf(k) (1 - q)
    if n_delta == 0:
        return f, slope * qc
    if rule == STEINKE:
        start, alpha = best_window(v, r, q, qc)
        f += 2 * n_delta * alpha
        # The best window stays the best under a small change of ε, so only its ends matter.
        slope += 2 * n_delta / (v - start) * (start * pmf(start, r, q, qc) - slope)
        return f, slope * qc
    if rule == ANY_ORDER and 1 < v < r:
        value = any_order_p_value(v, r, epsilon, n_delta)
        step = 1e-6
        return value, (any_order_p_value(v, r, epsilon + step, n_delta) - value) / step
    b = v / ratio
    # d/dε log b = v - E[W | W >= v], and that mean is r q + (1 - q) b.
    b_slope = b * (v - r * q - qc * b)
    if rule == RANDOM_R:
        if b < least_b:
            return 1.0, 0.0
        log_q = log(q) if q < 0.5 else log1p(-qc)
        # f may be too small for a double, its logarithm never is.
        log_f = log(f) if f > 1e-300 else log_pmf(v, r, q, qc) + log(ratio)
        b_slope, b = (qc * b / log_q - log_f * qc / log_q**2, log_f / log_q)
        if not b > least_b:
            b, b_slope = least_b, 0.0
    if not n_delta < b:
        return 1.0, 0.0
    x = n_delta / b
    return f + x * (1 - f), slope * qc * (1 - x) - x * b_slope / b * (1 - f)


@formula
def _lower_bound(
    rule: int, least: float, v: int, r: int, beta: float, n_delta: float, least_b: float
) -> float:
    """The largest log-odds x >= least whose p-value is at most β, or ``least``.

    Newton's method on log p-value - log β, kept inside a bracket: a kernel that took a function, as
    ``oralib.ground.solve`` does, could not be cached. β is lowered by a few units in its last
    place, so that a p-value that equals β up to rounding does not pass.
    """
    beta *= 1 - 1e-15
    if v == 0 or _p_value(v, r, least, n_delta, rule, least_b)[0] > beta:
        return least
    low = least
    # The bound for r right of r guesses without δ, a closed form, exceeds that for any other count.
    y = -log(beta) / r
    high = 1e-9 - y - log(-expm1(-y))
    x = log((v + 0.5) / (r - v + 0.5)) - 1.6 * sqrt(1 / (v + 0.5) + 1 / (r - v + 0.5))
    rounds = 0
    while high - low > 1e-15 * (1 + abs(low)):
        rounds += 1
        if not low < x < high or rounds > 64:
            x = 0.5 * (low + high)
            if not low < x < high:
                break
        value, slope = _p_value(v, r, x, n_delta, rule, least_b)
        if value > beta:
            high = x
        else:
            low = x
        # A p-value or slope that underflows to 0 tells us nothing: bisect.
        step = value * log(beta / value) / slope if value > 0 and slope > 0 else inf
        if abs(step) <= 1e-15 * (1 + abs(x)):
            break
        x += step
    # The last point may lie a rounding error above the root: step back until it does not.
    x = min(max(x, low), high)
    back = 1e-16 * (1 + abs(x))
    while x > low and _p_value(v, r, x, n_delta, rule, least_b)[0] > beta:
        x -= back
        back *= 2
    return max(x, low)


@jit
def _p_values(
    v: Array, r: Array, epsilon: Array, n_delta: Array, rule: int, least_b: Array
) -> Array:
    out = np.empty(v.size)
    for i in range(v.size):
        out[i] = min(_p_value(v[i], r[i], epsilon[i], n_delta[i], rule, least_b[i])[0], 1.0)
    return out


@jit
def _lower_bounds(
    rule: int, least: float, v: Array, r: Array, beta: Array, n_delta: Array, least_b: Array
) -> Array:
    out = np.empty(v.size)
    for i in range(v.size):
        out[i] = _lower_bound(rule, least, v[i], r[i], beta[i], n_delta[i], least_b[i])
    return out
