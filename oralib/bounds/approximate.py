"""From counts to ε: v right of r taken guesses give a lower bound on the privacy level.

Arguments are always (v, r), as scalars or as arrays that broadcast together.

For δ > 0 there are four rules. Which of them is a theorem depends on how the number of guesses r
came about:

- ``method="steinke"``: the p-value of Steinke et al., r fixed in advance. The paper uses it.
- ``method="exact"``: the smallest p-value for r fixed in advance (that falls with v).
- ``method="any order"``: for a guesser who was told which guesses were right, and chose by that
  which elements to guess next; r fixed in advance.
- :func:`epsilon_lower_bound_random_r`: r may depend on the output, as with a threshold on the loss.

See Also
--------
Keinan, Shenfeld and Ligett, "How Well Can Differential Privacy Be Audited in One Run?", Section 2.
Steinke, Nasr and Jagielski, "Privacy Auditing with One (1) Training Run", NeurIPS 2023.
"""

from math import log
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from oralib import _check
from oralib._binomial import best_mean_of_tails, best_window, odds, pmf, tail, tail_and_pmf
from oralib._jit import jit
from oralib.bounds._arguments import distinct_rows, flat_counts, float_if_single

__all__ = [
    "clopper_pearson_lower",
    "epsilon_lower_bound",
    "epsilon_lower_bound_random_r",
    "p_value",
]

Array = NDArray[Any]

#: The p-values: those of :func:`p_value`, then that of :func:`epsilon_lower_bound_random_r`.
P_VALUES = ("steinke", "exact", "any order", "split")
#: Their numbers, by which kernels know them.
STEINKE, EXACT, ANY_ORDER, SPLIT = range(4)

#: No success probability that a double can hold has log-odds below this.
_LEAST_LOG_ODDS = -745.0


def clopper_pearson_lower(v: ArrayLike, r: ArrayLike, beta: ArrayLike = 0.05) -> Any:
    """The largest success probability q with P[Bin(r, q) >= v] <= beta; 0 if there is none.

    With probability 1 - β it does not exceed the success probability of r independent trials, v of
    which succeeded (Definition A.5). The bound on ε for δ = 0 is its logit, where that is positive.

    Examples
    --------
    >>> round(clopper_pearson_lower(75, 100), 6)
    0.668678
    """
    beta, _ = _check.betas_and_deltas(beta)
    shape, (v, r, beta) = flat_counts(v, r, beta=beta)
    log_odds = _lower_bounds(v, r, beta, np.zeros(v.size), STEINKE, 0.0, _LEAST_LOG_ODDS)
    accuracy = np.where(v > 0, scipy.special.expit(log_odds), 0.0)
    return float_if_single(accuracy.reshape(shape))


def p_value(
    v: ArrayLike,
    r: ArrayLike,
    epsilon: ArrayLike,
    *,
    delta: ArrayLike = 0.0,
    n: ArrayLike | None = None,
    method: str = "steinke",
) -> Any:
    """At most how likely v or more of r guesses are right if the mechanism is (ε, δ)-DP.

    For δ = 0 this is f = P[W >= v], W ~ Bin(r, p(ε)), valid without feedback or with one-way
    feedback. For δ > 0 the number of guesses r must be fixed in advance, missing ones count as
    wrong, and

    - ``method="steinke"`` is f + 2 n δ max_i P[v > W >= v - i] / i, capped at 1, as in the paper's
      experiments: a theorem where it is below 1/2;
    - ``method="exact"`` is 1 - (1 - f) max(0, 1 - n δ / B) with B = v P[W = v] / f: exactly the
      probability that the worst mechanism and guesser reach;
    - ``method="any order"`` also holds with full feedback. It is the exact one for v = 1 and
      v = r. Otherwise it is the least of f + n δ (1 - p(ε)²) / 2 and, for ℓ = 2, 3, ..., of
      (P[W >= v] + ... + P[W >= v - ℓ + 1] + n δ (1 - p(ε))) / ℓ.

    Parameters
    ----------
    v, r : int or array
        How many guesses were right, and how many were taken, 0 <= v <= r.
    epsilon : float or array
        The hypothetical privacy level, >= 0.
    delta : float or array
        The δ of (ε, δ)-DP, in [0, 1].
    n : int or array, optional
        The number of elements, taken and abstained, at least r; needed if δ > 0.
    method : str
        ``"steinke"``, ``"exact"`` or ``"any order"``; the same for δ = 0.

    Examples
    --------
    >>> round(p_value(75, 100, 0.5, delta=1e-4, n=1000), 6)
    0.014587
    >>> round(p_value(75, 100, 0.5, delta=1e-4, n=1000, method="exact"), 6)
    0.007542
    """
    epsilon, delta = _check.reals("epsilon", epsilon, 0), _check.reals("delta", delta, 0, 1)
    rule = P_VALUES.index(_check.one_of("method", method, P_VALUES[:SPLIT]))
    n = _number_of_elements(n, r, delta)
    shape, (v, r, n, delta, epsilon) = flat_counts(v, r, n=n, delta=delta, epsilon=epsilon)
    return float_if_single(_p_values(v, r, epsilon, n * delta, rule, 0.0).reshape(shape))


def epsilon_lower_bound(
    v: ArrayLike,
    r: ArrayLike,
    *,
    beta: ArrayLike = 0.05,
    delta: ArrayLike = 0.0,
    n: ArrayLike | None = None,
    method: str = "steinke",
) -> Any:
    """The paper's ε'_β(v, r), without or with one-way feedback; for δ > 0 r must be fixed before.

    It is the largest ε whose :func:`p_value` is at most β, also after rounding, or 0 if none is.
    With probability 1 - β such an audit returns no more than the true privacy level. For
    δ > 0 the number of guesses r must have been fixed in advance, and ``method="steinke"`` is valid
    for β <= 1/2.

    Parameters
    ----------
    v, r : int or array
        How many guesses were right, and how many were taken, 0 <= v <= r.
    beta : float or array
        How often the bound may fail, in (0, 1).
    delta : float or array
        The δ of (ε, δ)-DP, in [0, 1].
    n : int or array, optional
        The number of elements, taken and abstained, at least r; needed if δ > 0.
    method : str
        ``"steinke"``, as in the paper, or ``"exact"``, never worse where ``"steinke"`` is a
        theorem, or ``"any order"``, valid with full feedback too; the same for δ = 0.

    See Also
    --------
    epsilon_lower_bound_random_r : if r depends on the output, and δ > 0.
    oralib.epsilon_lower_bound_anytime : if the guesser saw which of its guesses were right.

    Examples
    --------
    >>> round(epsilon_lower_bound(75, 100), 6)
    0.702214
    >>> round(epsilon_lower_bound(75, 100, delta=1e-4, n=1000), 6)
    0.672985
    >>> round(epsilon_lower_bound(75, 100, delta=1e-4, n=1000, method="exact"), 6)
    0.695126
    """
    beta, delta = _check.betas_and_deltas(beta, delta)
    rule = P_VALUES.index(_check.one_of("method", method, P_VALUES[:SPLIT]))
    n = _number_of_elements(n, r, delta)
    shape, (v, r, n, delta, beta) = flat_counts(v, r, n=n, delta=delta, beta=beta)
    return float_if_single(lower_bounds(v, r, beta, n * delta, rule).reshape(shape))


def epsilon_lower_bound_random_r(
    v: ArrayLike,
    r: ArrayLike,
    *,
    beta: ArrayLike = 0.05,
    delta: ArrayLike,
    n: ArrayLike,
    split: float,
) -> Any:
    """A lower bound on ε for δ > 0, valid also if the number of guesses depends on the output.

    It holds for audits without feedback or with one-way feedback, whatever the guesser:
    for example a guesser that guesses where the privacy loss passes a threshold. It is the largest
    ε whose p-value

        max(f / (1 - λ (1 - f)), n δ / (λ B)),   f and B as in :func:`p_value`,

    is at most β, where λ is ``split``; for δ = 0 it is :func:`oralib.epsilon_lower_bound`.

    Parameters
    ----------
    v, r : int or array
        How many guesses were right, and how many were taken, 0 <= v <= r.
    beta : float or array
        How often the bound may fail, in (0, 1).
    delta : float or array
        The δ of (ε, δ)-DP, in [0, 1].
    n : int or array
        The number of elements, taken and abstained, at least r.
    split : float
        The share of β that is set aside for δ, in (0, 1). Choose it before the audit;
        :func:`oralib.bounds.split_for` plans it.

    Examples
    --------
    >>> round(epsilon_lower_bound_random_r(160, 210, delta=1e-5, n=10_000, split=0.1), 6)
    0.880954
    """
    beta, delta = _check.betas_and_deltas(beta, delta)
    split, n = _check.real("split", split, 0, 1, interval="()"), _check.integers("n", n)
    shape, (v, r, n, delta, beta) = flat_counts(v, r, n=n, delta=delta, beta=beta)
    return float_if_single(lower_bounds(v, r, beta, n * delta, SPLIT, split).reshape(shape))


def lower_bounds(
    v: Array, r: Array, beta: Array, n_delta: Array, rule: int, split: float = 0.0
) -> NDArray[np.float64]:
    """The largest ε whose p-value is at most β, or 0, for flat and checked counts."""
    cases = v, r, beta, n_delta
    first, number = distinct_rows(*cases)
    bounds = _lower_bounds(*(column[first] for column in cases), rule, split, 0.0)
    return bounds[number]


def _number_of_elements(n: ArrayLike | None, r: ArrayLike, delta: Array) -> Array:
    """n, checked; if it is not given, and does not matter as δ = 0, the number of guesses."""
    if n is not None:
        return _check.integers("n", n)
    if (delta > 0).any():
        raise ValueError(
            f"n must be given when delta > 0, got delta={delta.max():g} and n=None: "
            "the bound depends on the number of elements"
        )
    return _check.integers("r", r)


# ----------------------------------------------------------------------------------- the kernels


@jit
def _p_value(
    v: int, r: int, epsilon: float, n_delta: float, rule: int, split: float
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
        start, mean = best_mean_of_tails(v, r, q, qc, n_delta * qc)
        one = f + n_delta * qc * (1 + q) / 2
        if one <= mean:
            return one, (slope - n_delta * q * q) * qc
        # As for the best window, only the ends matter. The slope is not negative: since the next
        # tail is at least the mean, n δ (1 - q) is at most the sum of (v - j) P[W = j] from
        # j = start - 1 to v - 1, and r - j in place of v - j makes it r (1 - q) times `ends`.
        ends = tail(start - 1, r - 1, q, qc) - tail(v, r - 1, q, qc)
        return mean, (r * ends - n_delta) * q * qc / (v - start + 1)
    x = n_delta * ratio / v  # n δ / B
    # d/dε log(f / w) = E[W | W >= v] - v, and that mean is r q + (1 - q) B.
    x_slope = x * (r * q - v + qc * v / ratio)
    if rule == SPLIT:
        one, other = f / (1 - split * (1 - f)), x / split
        if one > other:
            return one, slope * qc * (1 - split) / (1 - split * (1 - f)) ** 2
        return other, x_slope / split
    if not x < 1:
        return 1.0, 0.0
    return f + x * (1 - f), slope * qc * (1 - x) + x_slope * (1 - f)


@jit
def _lower_bound(
    v: int, r: int, beta: float, n_delta: float, rule: int, split: float, least: float
) -> float:
    """The largest log-odds x >= least whose p-value is at most β, or ``least``.

    Newton's method on log p-value - log β, kept inside a bracket. β is lowered by a few units in
    its last place, so that a p-value that equals β up to rounding does not pass.
    """
    beta *= 1 - 1e-15
    if v == 0 or _p_value(v, r, least, n_delta, rule, split)[0] > beta:
        return least
    low = least
    # The bound for r right of r guesses without δ, a closed form, exceeds that for any other count.
    high = -log(np.expm1(-log(beta) / r)) + 1e-9
    x = log((v + 0.5) / (r - v + 0.5)) - 1.6 * np.sqrt(1 / (v + 0.5) + 1 / (r - v + 0.5))
    rounds = 0
    while high - low > 1e-15 * (1 + abs(low)):
        rounds += 1
        if not low < x < high or rounds > 64:
            x = 0.5 * (low + high)
            if not low < x < high:
                break
        value, slope = _p_value(v, r, x, n_delta, rule, split)
        if value > beta:
            high = x
        else:
            low = x
        # A p-value or slope that underflows to 0 tells us nothing: bisect.
        step = value * log(beta / value) / slope if value > 0 and slope > 0 else np.inf
        if abs(step) <= 1e-15 * (1 + abs(x)):
            break
        x += step
    # The last point may lie a rounding error above the root: step back until it does not.
    x = min(max(x, low), high)
    back = 1e-16 * (1 + abs(x))
    while x > low and _p_value(v, r, x, n_delta, rule, split)[0] > beta:
        x -= back
        back *= 2
    return max(x, low)


@jit
def _p_values(v: Array, r: Array, epsilon: Array, n_delta: Array, rule: int, split: float) -> Array:
    out = np.empty(v.size)
    for i in range(v.size):
        out[i] = min(_p_value(v[i], r[i], epsilon[i], n_delta[i], rule, split)[0], 1.0)
    return out


@jit
def _lower_bounds(
    v: Array, r: Array, beta: Array, n_delta: Array, rule: int, split: float, least: float
) -> Array:
    """The largest log-odds >= least whose p-value is at most β, or ``least``, for each count."""
    out = np.empty(v.size)
    for i in range(v.size):
        out[i] = _lower_bound(v[i], r[i], beta[i], n_delta[i], rule, split, least)
    return out
