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

from collections.abc import Callable
from math import exp, log, sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oralib import _check, _special
from oralib._binomial import best_window, deviance, log_pmf_at_mean, odds, pmf, tail, tail_over_pmf
from oralib._jit import jit
from oralib.bounds.logistic import counts_of, plain

__all__ = [
    "clopper_pearson_lower",
    "epsilon_lower_bound",
    "epsilon_lower_bound_random_r",
    "p_value",
]


Array = NDArray[Any]

METHODS = ("steinke", "exact", "any order")

# The rules as kernels see them. With plain integers Numba would compile kernels once for each.
_STEINKE, _EXACT, _ANY_ORDER, _SPLIT = np.arange(4)


def clopper_pearson_lower(v: ArrayLike, r: ArrayLike, beta: ArrayLike = 0.05) -> Any:
    """The largest success probability q with P[Bin(r, q) >= v] <= beta; 0 if there is none.

    With probability 1 - β it does not exceed the success probability of r independent trials, v of
    which succeeded (Definition A.5). The plain bound on ε is its logit, where that is positive.

    Examples
    --------
    >>> round(clopper_pearson_lower(75, 100), 6)
    0.668678
    """
    v, r = counts_of(v, r)
    beta = _check.reals("beta", beta, 0, 1, interval="()")
    v, r, beta = _check.broadcast(v=v, r=r, beta=beta)
    log_odds = _log_odds_bounds(v.flatten(), r.flatten(), beta.flatten()).reshape(v.shape)
    return plain(_special.expit(log_odds))


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

    For δ = 0 this is f = P[W >= v], W ~ Bin(r, p(ε)), valid for any plain or one-way audit. For
    δ > 0 the number of guesses r must be fixed in advance (missing ones count as wrong), and

    - ``method="steinke"`` is f + 2 n δ max_i P[v > W >= v - i] / i, capped at 1, as in the paper's
      experiments: a theorem where it is below 1/2;
    - ``method="exact"`` is 1 - (1 - f) max(0, 1 - n δ / B) with B = v P[W = v] / f: exactly the
      probability that the worst mechanism and guesser reach;
    - ``method="any order"`` is the same for v = 1 and v = r, and otherwise f + n δ (1 - p(ε)²) / 2.
      It also holds with full feedback. At small ε it falls as ε grows.

    Parameters
    ----------
    v, r : how many guesses were right, and how many were taken, 0 <= v <= r.
    epsilon : the hypothetical privacy level, >= 0.
    delta : the δ of (ε, δ)-DP, in [0, 1].
    n : the number of elements, taken and abstained, at least r; needed if δ > 0.
    method : ``"steinke"``, ``"exact"`` or ``"any order"``; the same for δ = 0.

    Examples
    --------
    >>> round(p_value(75, 100, 0.5, delta=1e-4, n=1000), 6)
    0.014587
    >>> round(p_value(75, 100, 0.5, delta=1e-4, n=1000, method="exact"), 6)
    0.007542
    """
    epsilon = _check.reals("epsilon", epsilon, 0)
    rule = METHODS.index(_check.one_of("method", method, METHODS))
    return _over_counts(_p_values, v, r, delta, n, rule, 0.0, epsilon=epsilon)


def epsilon_lower_bound(
    v: ArrayLike,
    r: ArrayLike,
    *,
    beta: ArrayLike = 0.05,
    delta: ArrayLike = 0.0,
    n: ArrayLike | None = None,
    method: str = "steinke",
) -> Any:
    """The paper's ε'_β(v, r), for plain and one-way audits: valid for δ = 0, or for r fixed before.

    It is the largest ε whose :func:`p_value` is at most β, also after rounding, or 0 if none is.
    With probability 1 - β a plain or one-way audit returns no more than the true privacy level. For
    δ > 0 the number of guesses r must have been fixed in advance, and ``method="steinke"`` is valid
    for β <= 1/2.

    Parameters
    ----------
    v, r : how many guesses were right, and how many were taken, 0 <= v <= r.
    beta : how often the bound may fail, in (0, 1).
    delta : the δ of (ε, δ)-DP, in [0, 1].
    n : the number of elements, taken and abstained, at least r; needed if δ > 0.
    method : ``"steinke"``, as in the paper, or ``"exact"``, never worse where ``"steinke"`` is a
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
    beta = _check.reals("beta", beta, 0, 1, interval="()")
    rule = METHODS.index(_check.one_of("method", method, METHODS))
    return _over_counts(_lower_bounds, v, r, delta, n, rule, 0.0, beta=beta)


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

    It holds for plain audits and for adaptive audits with one-way feedback, whatever the guesser:
    for example a guesser that guesses where the privacy loss passes a threshold. It is the largest
    ε whose p-value

        max(f / (1 - λ (1 - f)), n δ / (λ B)),   f and B as in :func:`p_value`,

    is at most β, where λ is ``split``; for δ = 0 it is the plain bound.

    Parameters
    ----------
    v, r : how many guesses were right, and how many were taken, 0 <= v <= r.
    beta : how often the bound may fail, in (0, 1).
    delta : the δ of (ε, δ)-DP, in [0, 1].
    n : the number of elements, taken and abstained, at least r.
    split : the share of β that is set aside for δ, in (0, 1). Choose it before the audit;
        :func:`oralib.bounds.split_for` plans it.

    Examples
    --------
    >>> round(epsilon_lower_bound_random_r(160, 210, delta=1e-5, n=10_000, split=0.1), 6)
    0.880954
    """
    beta = _check.reals("beta", beta, 0, 1, interval="()")
    split = _check.real("split", split, 0, 1, interval="()")
    return _over_counts(_lower_bounds, v, r, delta, n, _SPLIT, split, beta=beta)


def _over_counts(
    kernel: Callable[..., Array], v: Any, r: Any, delta: Any, n: Any, *rule: Any, **level: Array
) -> Any:
    """Check the counts of an audit and run a kernel over (v, r, level, n δ) under a rule."""
    ((name, x),) = level.items()
    if x.ndim == 0 and _is_one_audit(v, r, delta, n):
        budget = 0.0 if n is None else float(n * delta)
        one = np.array([v]), np.array([r]), np.array([float(x)]), np.array([budget])
        return float(kernel(*one, *rule)[0])
    v, r = counts_of(v, r)
    delta = _check.reals("delta", delta, 0, 1)
    if n is None and (delta > 0).any():
        raise ValueError(
            f"n must be given when delta > 0, got delta={delta.max():g} and n=None: "
            "the bound depends on the number of elements"
        )
    n = r if n is None else _check.integers("n", n)
    v, r, delta, n, x = _check.broadcast(v=v, r=r, delta=delta, n=n, **{name: x})
    _check.at_most("r", r, "n", n)
    # flatten copies, so that the kernel sees one type of array: contiguous and writable.
    arrays = v.flatten(), r.flatten(), x.flatten(), (n * delta).flatten()
    return plain(_once(kernel, *arrays, *rule).reshape(v.shape))


def _is_one_audit(v: Any, r: Any, delta: Any, n: Any) -> bool:
    """Whether these are plain, valid numbers: arrays with one entry take longer to check.

    Anything odd takes the longer route and gets its error there.
    """
    whole, most = _check.is_plain_integer, _check.LARGEST_COUNT
    if not (whole(v) and whole(r) and _check.is_plain_real(delta)):
        return False
    in_order = 0 <= v <= r <= most and 0 <= delta <= 1
    return in_order and (delta == 0 if n is None else whole(n) and r <= n <= most)


def _once(
    kernel: Callable[..., Array], v: Array, r: Array, x: Array, budget: Array, *rule: Any
) -> Array:
    """The kernel, run once per distinct (v, r) if all else is the same: trials repeat counts."""
    if v.size and r.max() < 2**31 and (x == x[0]).all() and (budget == budget[0]).all():
        _, first, back = np.unique(v * 2**31 + r, return_index=True, return_inverse=True)
        distinct: Array = kernel(v[first], r[first], x[first], budget[first], *rule)
        return distinct[back.ravel()]
    return kernel(v, r, x, budget, *rule)


@jit
def _tail_and_ratio(v: int, r: int, q: float, qc: float) -> tuple[float, float, float]:
    """(f, w, f / w) with f = P[Bin(r, q) >= v] and w = P[Bin(r, q) = v], for v >= 1.

    The ratio keeps all its digits even where f and w are too small for a double.
    """
    w = pmf(v, r, q, qc)
    if v > r * q:
        ratio = tail_over_pmf(v, r, q, qc)
        return w * ratio, w, ratio
    f = tail(v, r, q, qc)
    return f, w, f / w


@jit
def _p_value(
    v: int, r: int, epsilon: float, budget: float, rule: int, split: float
) -> tuple[float, float]:
    """(p-value before it is capped at 1, its derivative in ε), with budget = n δ."""
    if v == 0:
        return 1.0, 0.0
    q, qc = odds(epsilon)
    f, w, ratio = _tail_and_ratio(v, r, q, qc)
    slope = v * w  # times qc: d/dε P[Bin(r, q) >= k] = k pmf(k) (1 - q)
    if budget == 0:
        return f, slope * qc
    if rule == _STEINKE:
        start, alpha = best_window(v, r, q, qc)
        f += 2 * budget * alpha
        # The best window stays the best under a small change of ε, so only its ends matter.
        slope += 2 * budget / (v - start) * (start * pmf(start, r, q, qc) - slope)
        return f, slope * qc
    if rule == _ANY_ORDER and 1 < v < r:
        return f + budget * qc * (1 + q) / 2, (slope - budget * q * q) * qc
    x = budget * ratio / v  # n δ / B
    # d/dε log(f / w) = E[W | W >= v] - v, and that mean is r q + (1 - q) B.
    x_slope = x * (r * q - v + qc * v / ratio)
    if rule == _SPLIT:
        one, other = f / (1 - split * (1 - f)), x / split
        if one > other:
            return one, slope * qc * (1 - split) / (1 - split * (1 - f)) ** 2
        return other, x_slope / split
    if not x < 1:
        return 1.0, 0.0
    return f + x * (1 - f), slope * qc * (1 - x) + x_slope * (1 - f)


@jit
def _lower_bound(
    v: int, r: int, beta: float, budget: float, rule: int, split: float, least: float
) -> float:
    """The largest log-odds x >= least whose p-value is at most β, or ``least``.

    Newton's method on log p-value - log β, kept inside a bracket. β is lowered by a few units in
    its last place, so that a p-value that equals β up to rounding does not pass.
    """
    beta *= 1 - 1e-15
    if v == 0 or _p_value(v, r, least, budget, rule, split)[0] > beta:
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
        value, slope = _p_value(v, r, x, budget, rule, split)
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
    while x > low and _p_value(v, r, x, budget, rule, split)[0] > beta:
        x -= back
        back *= 2
    return max(x, low)


@jit
def _exact_bound(v: int, r: int, beta: float, budget: float) -> float:
    """Like _lower_bound, for the exact rule and δ > 0, mostly with two evaluations of the p-value.

    Pratt's closed form for Clopper and Pearson's limit (Blyth, 1986) is so close that Newton's
    method on sqrt(-log p-value), almost a straight line, ends at once. The error of its last step
    is smaller than the margin that is subtracted, so the bound never overclaims.
    """
    if 2 < v < r and 2 * v > r:
        wrong = r - v + 1.0
        z = _normal_quantile(beta)
        root = sqrt(9 * wrong * v * (9 * r + 5 - z * z) + r + 1)
        cube = (81 * wrong * v - 9 * r - 8 - 3 * z * root) / (
            81 * wrong * wrong - 9 * wrong * (2 + z * z) + 1
        )
        x = 2 * log(wrong / v) + 3 * log(cube) if cube > 0 else -1.0
        spread = sqrt(1 / v + 1 / wrong)
        log_w, goal = log_pmf_at_mean(v, r), sqrt(-log(beta))
        for _ in range(4):
            q, qc = odds(x)
            if not (x > 0 and v > r * q):
                break
            w = exp(log_w - deviance(v, r * q) - deviance(r - v, r * qc))
            ratio = tail_over_pmf(v, r, q, qc)
            f, y = w * ratio, budget * ratio / v
            value = f + y * (1 - f)
            if not (0 < value < 1 and y < 0.5 * beta):
                break
            slope = v * w * qc * (1 - y) + y * (r * q - v + qc * v / ratio) * (1 - f)
            height = sqrt(-log(value))
            step = 2 * value * height * (height - goal) / slope
            x += step
            if x > 1e-6 and abs(step) < 5e-6 * spread:
                return x - 1e-11 * (1 + x)
    return _lower_bound(v, r, beta, budget, _EXACT, 0.0, 0.0)


@jit
def _any_order_bound(v: int, r: int, beta: float, budget: float) -> float:
    """Like _lower_bound, for a p-value that falls before it rises: the largest ε counts.

    Its slope has the sign of v P[W = v] / q² - n δ, which grows until the odds are (v-2) : (r-v).
    So bisection up to that point finds its least value. Beyond it, once the p-value falls again, it
    is at least 1, its limit.
    """
    if not 1 < v < r:
        return _exact_bound(v, r, beta, budget)
    low, high = 0.0, log((v - 2) / (r - v)) if 2 * v > r + 2 else 0.0
    while high - low > 1e-9:
        middle = 0.5 * (low + high)
        if _p_value(v, r, middle, budget, _ANY_ORDER, 0.0)[1] < 0:
            low = middle
        else:
            high = middle
    if _p_value(v, r, high, budget, _ANY_ORDER, 0.0)[0] > beta * (1 - 1e-15):
        return 0.0
    return _lower_bound(v, r, beta, budget, _ANY_ORDER, 0.0, high)


@jit
def _normal_quantile(beta: float) -> float:
    """z with P[N > z] = beta, to three digits (Hastings, 1955)."""
    t = sqrt(-2 * log(min(beta, 1 - beta)))
    z = t - (2.515517 + t * (0.802853 + t * 0.010328)) / (
        1 + t * (1.432788 + t * (0.189269 + t * 0.001308))
    )
    return z if beta < 0.5 else -z


@jit
def _p_values(v: Array, r: Array, epsilon: Array, budget: Array, rule: int, split: float) -> Array:
    out = np.empty(v.size)
    for i in range(v.size):
        out[i] = min(_p_value(v[i], r[i], epsilon[i], budget[i], rule, split)[0], 1.0)
    return out


@jit
def _lower_bounds(v: Array, r: Array, beta: Array, budget: Array, rule: int, split: float) -> Array:
    out = np.empty(v.size)
    for i in range(v.size):
        if rule == _EXACT and budget[i] > 0:
            out[i] = _exact_bound(v[i], r[i], beta[i], budget[i])
        elif rule == _ANY_ORDER and budget[i] > 0:
            out[i] = _any_order_bound(v[i], r[i], beta[i], budget[i])
        else:
            out[i] = _lower_bound(v[i], r[i], beta[i], budget[i], rule, split, 0.0)
    return out


@jit
def _log_odds_bounds(v: Array, r: Array, beta: Array) -> Array:
    out = np.empty(v.size)
    for i in range(v.size):
        # No success probability that a double can hold has log-odds below -745.
        bound = _lower_bound(v[i], r[i], beta[i], 0.0, _STEINKE, 0.0, -745.0)
        out[i] = bound if v[i] > 0 else -np.inf
    return out
