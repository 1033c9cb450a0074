"""From counts to ε: v right of r taken guesses give a lower bound on the privacy level.

Arguments are always (v, r), as scalars or as arrays that broadcast together.

See Also
--------
Keinan, Shenfeld and Ligett, "How Well Can Differential Privacy Be Audited in One Run?", Section 2.
Steinke, Nasr and Jagielski, "Privacy Auditing with One (1) Training Run", NeurIPS 2023.
"""

from collections.abc import Callable
from math import log
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from oralib import _check
from oralib._binomial import best_window, odds, pmf, tail
from oralib._jit import jit

__all__ = [
    "clopper_pearson_lower",
    "epsilon_estimate",
    "epsilon_lower_bound",
    "p",
    "p_inv",
    "p_value",
]


Array = NDArray[Any]


def p(epsilon: ArrayLike) -> Any:
    """The logistic function: how often ε-randomized response tells the truth.

    Extended by p(-inf) = 0 and p(inf) = 1.

    Examples
    --------
    >>> round(p(1.0), 6)
    0.731059
    """
    return plain(special.expit(_check.reals("epsilon", epsilon)))


def p_inv(accuracy: ArrayLike) -> Any:
    """The logit, inverse of :func:`p`: the ε at which randomized response has this accuracy.

    Extended by p_inv(0) = -inf and p_inv(1) = inf.

    Examples
    --------
    >>> round(p_inv(0.75), 6)
    1.098612
    """
    return plain(special.logit(_check.reals("accuracy", accuracy, 0, 1)))


def epsilon_estimate(v: ArrayLike, r: ArrayLike) -> Any:
    """The privacy level that the accuracy alone suggests, p_inv(v / r); not a bound.

    It is inf when every guess is right, negative when most are wrong, and nan when r = 0.

    Examples
    --------
    >>> round(epsilon_estimate(75, 100), 6)
    1.098612
    """
    v, r = counts_of(v, r)
    with np.errstate(invalid="ignore", divide="ignore"):
        return plain(special.logit(v / r))


def clopper_pearson_lower(v: ArrayLike, r: ArrayLike, beta: ArrayLike = 0.05) -> Any:
    """The largest success probability q with P[Bin(r, q) >= v] <= beta; 0 if there is none.

    Examples
    --------
    >>> round(clopper_pearson_lower(75, 100), 6)
    0.668678
    """
    v, r = counts_of(v, r)
    beta = _check.reals("beta", beta, 0, 1, interval="()")
    v, r, beta = _check.broadcast(v=v, r=r, beta=beta)
    log_odds = _log_odds_bounds(v.flatten(), r.flatten(), beta.flatten()).reshape(v.shape)
    return plain(special.expit(log_odds))


def p_value(
    v: ArrayLike,
    r: ArrayLike,
    epsilon: ArrayLike,
    *,
    delta: ArrayLike = 0.0,
    n: ArrayLike | None = None,
) -> Any:
    """How likely v or more of r guesses are right, at most, if the mechanism is (ε, δ)-DP.

    For δ = 0 this is P[Bin(r, p(ε)) >= v], valid for any plain one-run audit. For δ > 0 it is the
    p-value of Steinke et al., for a number of guesses r that is fixed in advance,

        P[W >= v] + 2 n δ max_i P[v > W >= v - i] / i,   W ~ Bin(r, p(ε)),

    capped at 1, a theorem where it is below 1/2.

    Parameters
    ----------
    v, r : how many guesses were right, and how many were taken, 0 <= v <= r.
    epsilon : the hypothetical privacy level, >= 0.
    delta : the δ of (ε, δ)-DP, in [0, 1].
    n : the number of elements, taken and abstained, at least r; needed if δ > 0.

    Examples
    --------
    >>> round(p_value(75, 100, 0.5, delta=1e-4, n=1000), 6)
    0.014587
    """
    epsilon = _check.reals("epsilon", epsilon, 0)
    return _over_counts(_p_values, v, r, delta, n, epsilon=epsilon)


def epsilon_lower_bound(
    v: ArrayLike,
    r: ArrayLike,
    *,
    beta: ArrayLike = 0.05,
    delta: ArrayLike = 0.0,
    n: ArrayLike | None = None,
) -> Any:
    """The paper's ε'_β(v, r): the largest ε whose p-value is at most β, or 0 if none is.

    With probability 1 - β a plain one-run audit returns no more than the true privacy level: for
    δ = 0 whatever the guesser, for δ > 0 (the bound of Steinke et al.) if r is fixed in advance.
    It never overclaims by rounding: :func:`p_value` at a returned ε > 0 is at most β.

    Parameters
    ----------
    v, r : how many guesses were right, and how many were taken, 0 <= v <= r.
    beta : how often the bound may fail, in (0, 1).
    delta : the δ of (ε, δ)-DP, in [0, 1].
    n : the number of elements, taken and abstained, at least r; needed if δ > 0.

    Examples
    --------
    >>> round(epsilon_lower_bound(75, 100), 6)
    0.702214
    >>> round(epsilon_lower_bound(75, 100, delta=1e-4, n=1000), 6)
    0.672985
    """
    beta = _check.reals("beta", beta, 0, 1, interval="()")
    return _over_counts(_lower_bounds, v, r, delta, n, beta=beta)


def counts_of(v: ArrayLike, r: ArrayLike) -> list[NDArray[np.int64]]:
    """Checked counts, broadcast together."""
    v, r = _check.broadcast(v=_check.integers("v", v), r=_check.integers("r", r))
    _check.at_most("v", v, "r", r)
    return [v, r]


def _over_counts(
    kernel: Callable[..., NDArray[np.float64]],
    v: ArrayLike,
    r: ArrayLike,
    delta: ArrayLike,
    n: ArrayLike | None,
    **level: NDArray[np.float64],
) -> Any:
    """Check the counts of an audit and run a kernel over (v, r, level, 2 n δ)."""
    v, r = counts_of(v, r)
    delta = _check.reals("delta", delta, 0, 1)
    if n is None and (delta > 0).any():
        raise ValueError(
            f"n must be given when delta > 0, got delta={delta.max():g} and n=None: "
            "the bound depends on the number of elements"
        )
    n = r if n is None else _check.integers("n", n)
    v, r, delta, n, x = _check.broadcast(v=v, r=r, delta=delta, n=n, **level)
    _check.at_most("r", r, "n", n)
    # flatten copies, so that the kernel sees one type of array: contiguous and writable.
    flat = kernel(v.flatten(), r.flatten(), x.flatten(), (2 * n * delta).flatten())
    return plain(flat.reshape(v.shape))


def plain(array: NDArray[np.float64]) -> Any:
    """A float for scalar arguments, an array otherwise."""
    return array if np.ndim(array) else float(array)


@jit
def _p_value(v: int, r: int, epsilon: float, weight: float) -> tuple[float, float]:
    """(p-value before it is capped at 1, its derivative in ε), with weight = 2 n δ."""
    if v == 0:
        return 1.0, 0.0
    q, qc = odds(epsilon)
    f = tail(v, r, q, qc)
    slope = v * pmf(v, r, q, qc)  # times qc: d/dε P[Bin(r, q) >= k] = k pmf(k) (1 - q)
    if weight > 0:
        start, alpha = best_window(v, r, q, qc)
        f += weight * alpha
        # The best window stays the best for a small change of ε, so only its ends matter.
        slope += weight / (v - start) * (start * pmf(start, r, q, qc) - slope)
    return f, slope * qc


@jit
def _lower_bound(v: int, r: int, beta: float, weight: float, least: float) -> float:
    """The largest log-odds x >= least whose p-value is at most β, or ``least``.

    Newton's method on log p-value - log β, kept inside a bracket.
    """
    if v == 0 or _p_value(v, r, least, weight)[0] > beta:
        return least
    low = least
    # The bound of r right of r guesses without δ, a closed form, exceeds that of any other count.
    high = -log(np.expm1(-log(beta) / r)) + 1e-9
    x = log((v + 0.5) / (r - v + 0.5)) - 1.6 * np.sqrt(1 / (v + 0.5) + 1 / (r - v + 0.5))
    while high - low > 1e-15 * (1 + abs(low)):
        if not low < x < high:
            x = 0.5 * (low + high)
            if not low < x < high:
                break
        value, slope = _p_value(v, r, x, weight)
        if value > beta:
            high = x
        else:
            low = x
        # A p-value or slope of 0, by underflow, tells nothing: bisect.
        step = value * log(beta / value) / slope if value > 0 and slope > 0 else np.inf
        if abs(step) <= 1e-15 * (1 + abs(x)):
            break
        x += step
    # The last point may lie a rounding error above the root: step back until it does not.
    x = min(max(x, low), high)
    back = 1e-16 * (1 + abs(x))
    while x > low and _p_value(v, r, x, weight)[0] > beta:
        x -= back
        back *= 2
    return max(x, low)


@jit
def _p_values(v: Array, r: Array, epsilon: Array, weight: Array) -> Array:
    out = np.empty(v.size)
    for i in range(v.size):
        out[i] = min(_p_value(v[i], r[i], epsilon[i], weight[i])[0], 1.0)
    return out


@jit
def _lower_bounds(v: Array, r: Array, beta: Array, weight: Array) -> Array:
    out = np.empty(v.size)
    for i in range(v.size):
        out[i] = _lower_bound(v[i], r[i], beta[i], weight[i], 0.0)
    return out


@jit
def _log_odds_bounds(v: Array, r: Array, beta: Array) -> Array:
    out = np.empty(v.size)
    for i in range(v.size):
        # No success probability that a double can hold has log-odds below -745.
        out[i] = _lower_bound(v[i], r[i], beta[i], 0.0, -745.0) if v[i] > 0 else -np.inf
    return out
