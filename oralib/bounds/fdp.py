"""Counts and a whole trade-off curve: an ε that holds if the mechanism has such a curve.

**What is tested.** A mechanism is f-DP if, whatever the other elements are, no test that tells
"element i is in" from "element i is out" beats the trade-off curve f, in either direction: an event
of probability x under the one has a probability of at least g(x) = f(1 - x) under the other; g is
convex and increasing, and g(0) = 0. For μ-GDP it is Φ(Φ⁻¹(x) - μ). Too many right guesses refute
f-DP.

**What f-DP says about counts.** Let n independent fair coins choose the elements, and let r of them
be guessed, V of them correctly. Pick one of the n elements at random, and look at the event that it
was guessed correctly and that V is at least i. Turn its coin over: in the same outputs it is now
guessed wrongly, and V is at least i - 1. As g is convex, the average over elements, over the two
values of the coin, and over all other coins keeps the inequality:

    b(i - 1) >= g(a(i)),   a(i) = E[V; V >= i] / n,   b(i) = E[r - V; V >= i] / n.

**The recursion.** Suppose that P[V >= v] is β. Among all such laws of V, one has the least total
mass: it puts β on v itself, and then, going down, on i = v - 1, v - 2, ..., 0 just what the
inequality demands. That is

    a = β v / n,  b = β (r - v) / n,  then for each i:
    b' = max(b, g(a)),  a' = a + (b' - b) i / (r - i),

because mass on i adds to a and b in the ratio i : r - i. (Any other law stays ahead of it: if it
is ahead by D_a >= 0 in a and by D_b in b, then D_a >= D_b i / (r - i) at every i, since its
additional mass lies no lower, and this is kept from step to step.) All probabilities add up to 1,
so a + b ends at r / n. If the recursion ends above it, no f-DP mechanism reaches V >= v with
probability β, and f is rejected. Once b stops growing, it never grows again.

**From curves to ε.** In a family of curves with one parameter, the curves with enough privacy are
rejected. The bound is the ε at δ of the least private of these. No curve with
g(β v / n) <= β (r - v) / n is ever rejected, however large r is: an f-DP mechanism may be bad with
probability β and otherwise say nothing.

**What it assumes.** The bound is guaranteed if the mechanism's own curve is in the family, here
that of Gaussian mechanisms. It is not guaranteed for an arbitrary mechanism, and
:func:`oralib.valid_lower_bound` never chooses it. The number of guesses r must be fixed in advance
(guesses that were not taken count as wrong), without feedback.

See Also
--------
Mahloujifar, Melis and Chaudhuri, "Auditing f-Differential Privacy in One Run", ICML 2025.
Dong, Roth and Su, "Gaussian Differential Privacy", JRSS B 2022.
"""

from math import erfc, exp, inf, log, pi, sqrt
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from oralib import _check
from oralib._binomial import odds
from oralib._jit import jit
from oralib._types import Array
from oralib.bounds._arguments import flat_counts, float_if_single
from oralib.bounds.approximate import EXACT, lower_bounds

__all__ = ["epsilon_lower_bound_fdp", "gaussian_epsilon"]


_SQRT_2, _SQRT_2_PI = sqrt(2), sqrt(2 * pi)
#: This many guesses take seconds, at worst.
LARGEST_R = 10**8
#: The recursion ends once it has passed this multiple of its goal.
_SURPLUS = 8.0
#: A probability below this has lost digits, so nothing is claimed.
_LEAST_PROBABILITY = 1e-290
#: The relative precision of μ: it is this much too low, far more than any rounding error.
MU_MARGIN = 1e-9


def gaussian_epsilon(mu: ArrayLike, delta: ArrayLike) -> Any:
    """The ε at which μ-GDP, as a Gaussian mechanism with noise 1 / μ has it, is (ε, δ)-DP.

    The trade-off curve of μ-GDP is β(α) = Φ(Φ^-1(1 - α) - μ). It is (ε, δ)-DP for
    δ = Φ(μ/2 - ε/μ) - e^ε Φ(-μ/2 - ε/μ). The ε is never too large: it is lowered by a factor of
    1 - 10^-11. It is inf at δ = 0, unless μ is 0.

    Parameters
    ----------
    mu : float or array
        The parameter of the curve, from 0 to 10^6.
    delta : float or array
        The δ of (ε, δ)-DP, in [0, 1].

    Examples
    --------
    >>> round(gaussian_epsilon(1.0, 1e-5), 6)
    4.377178
    """
    mu, delta = _check.reals("mu", mu, 0, 1e6), _check.reals("delta", delta, 0, 1)
    return float_if_single(epsilon_of_mu(*_check.broadcast(mu=mu, delta=delta)))


def epsilon_lower_bound_fdp(
    v: ArrayLike, r: ArrayLike, *, n: ArrayLike, delta: ArrayLike, beta: ArrayLike = 0.05
) -> Any:
    """A lower bound on ε at δ for a mechanism with the trade-off curve of Gaussian noise.

    With probability 1 - β it does not exceed the ε at δ of a Gaussian mechanism, if the number of
    guesses was fixed in advance and the guesser had no feedback. For another mechanism it only says
    that no Gaussian curve up to this ε describes it; it is *not* guaranteed to bound the
    mechanism's ε. It is 0 if no curve is rejected, and at δ = 0 it is inf as soon as any curve is
    rejected.

    Parameters
    ----------
    v, r : int or array
        How many guesses were right, and how many were taken, 0 <= v <= r <= 10^8.
    n : int or array
        The number of elements, taken and abstained, at least r.
    delta : float or array
        The δ of (ε, δ)-DP, in [0, 1].
    beta : float or array
        How often the bound may fail, in (0, 1).

    Examples
    --------
    >>> round(epsilon_lower_bound_fdp(75, 100, n=1000, delta=1e-5), 5)
    1.00592
    >>> round(epsilon_lower_bound_fdp(700, 1000, n=5000, delta=1e-5), 5)
    1.07608
    """
    n, (beta, delta) = _check.integers("n", n), _check.betas_and_deltas(beta, delta)
    shape, (v, r, n, delta, beta) = flat_counts(v, r, most=LARGEST_R, n=n, delta=delta, beta=beta)
    return float_if_single(epsilon_of_mu(largest_mus(v, r, n, beta), delta).reshape(shape))


# -------------------------------------------------------------------------------- the recursion


@jit
def reach(v: int, r: int, n: int, beta: float, mu: float, lines: Array) -> float:
    """log((a + b) / (r / n)) at the end of the recursion; the curve is rejected if it is positive.

    The curve is Gaussian if there are no ``lines``, and otherwise the maximum of the lines: rows of
    (slope, value at 0), by increasing slope. Stopping early is safe, since a + b only grows.
    """
    goal = r / n
    a, b = beta * v / n, beta * (r - v) / n
    if a < _LEAST_PROBABILITY:
        return -inf
    before, line = inf, 0
    for i in range(v - 1, -1, -1):
        if lines.shape[0] == 0:
            # A little to the left, so that rounding cannot make g too high.
            needed = 0.5 * erfc((upper_quantile(a * (1 - 1e-15)) + mu) / _SQRT_2)
        else:
            needed = lines[line, 0] * a + lines[line, 1]
            while line + 1 < lines.shape[0]:  # a grows, so the best line only moves on
                other = lines[line + 1, 0] * a + lines[line + 1, 1]
                if other < needed:
                    break
                needed = other
                line += 1
        grown = needed - b
        if grown <= 2e-15 * b:  # nothing, or no more than rounding
            break
        b = needed
        a += grown * i / (r - i)
        if a >= 1 or a + b > _SURPLUS * goal:
            return log(_SURPLUS)
        # After its peak the mass falls faster and faster: is what may follow below rounding?
        if grown < before and grown * r / (r - i) * i < 1e-15 * goal:
            break
        before = grown
    return log((a + b) / goal)


@jit
def upper_quantile(x: float) -> float:
    """z with P[N > z] = x to full precision."""
    small = max(x if x < 0.5 else 1 - x, _LEAST_PROBABILITY)
    # Three digits (Hastings, 1955), then two steps of Halley's method.
    t = sqrt(-2 * log(small))
    z = t - (2.515517 + t * (0.802853 + t * 0.010328)) / (
        1 + t * (1.432788 + t * (0.189269 + t * 0.001308))
    )
    for _ in range(2):
        error = (0.5 * erfc(z / _SQRT_2) - small) * _SQRT_2_PI * exp(0.5 * z * z)
        z += error / (1 - 0.5 * z * error)
    return z if x < 0.5 else -z


# ------------------------------------------------------------------------------ Gaussian curves


def largest_mus(v: Array, r: Array, n: Array, beta: Array) -> NDArray[np.float64]:
    """The largest μ that is rejected, or 0, for flat and checked counts."""
    # Fair coins have μ = 0, so their binomial law must be rejected first.
    pure_bounds = lower_bounds(v, r, beta, np.zeros(v.size), EXACT)
    return _largest_mus(v, r, n, beta, pure_bounds)


@jit
def _largest_mus(v: Array, r: Array, n: Array, beta: Array, pure_bounds: Array) -> Array:
    out = np.zeros(v.size)
    for i in range(v.size):
        if pure_bounds[i] > 0:
            out[i] = _largest_mu(v[i], r[i], n[i], beta[i], pure_bounds[i])
    return out


@jit
def _largest_mu(v: int, r: int, n: int, beta: float, pure_bound: float) -> float:
    """The largest μ that is rejected, or 0: false position in a bracket, by the Illinois rule.

    It is written out, since a kernel that takes a function cannot be cached.
    """
    no_lines = np.empty((0, 2))
    low, low_value = 0.0, reach(v, r, n, beta, 0.0, no_lines)
    if low_value <= 0:
        return 0.0
    # Start with the curve through the accuracy that ε-DP must have.
    q, qc = odds(pure_bound)
    x = upper_quantile(qc * r / n) - upper_quantile(q * r / n)
    high, high_value = inf, log(beta)
    if beta * (r - v) / n > _LEAST_PROBABILITY:
        # At this μ, which large r come very close to, the recursion stops at its start.
        high = upper_quantile(beta * (r - v) / n) - upper_quantile(beta * v / n)
        if reach(v, r, n, beta, high * (1 - MU_MARGIN), no_lines) > 0:
            return high * (1 - MU_MARGIN)
        x = min(x, 0.9 * high)
    last = 0.0
    while abs(x - last) > 0.1 * MU_MARGIN * x and low < x < high:
        value = reach(v, r, n, beta, x, no_lines)
        # The end that stays counts for half if it has stayed before, so that it moves soon.
        if value > 0:
            high_value *= 0.5 if last == low else 1.0
            low, low_value = x, value
        else:
            low_value *= 0.5 if last == high else 1.0
            high, high_value = x, value
        last = x
        x = 2 * x if high == inf else low + (high - low) * low_value / (low_value - high_value)
    # A rounding error must not lead to an overclaim: step back from the root.
    back = MU_MARGIN * x
    x -= back
    while x > 0 and reach(v, r, n, beta, x, no_lines) <= 0:
        x -= back
        back *= 2
    return max(x, 0.0)


def epsilon_of_mu(mu: NDArray[np.float64], delta: NDArray[np.float64]) -> NDArray[np.float64]:
    """Like :func:`gaussian_epsilon`, for checked arrays of one shape."""
    from scipy.optimize import elementwise  # here, because few need it and it is slow to import

    epsilon = np.where((delta == 0) & (mu > 0), inf, 0.0)
    # erf(x) is P[|N| < x sqrt(2)]: the δ of ε = 0.
    some = (delta > 0) & (delta < scipy.special.erf(mu / (2 * _SQRT_2)))
    if some.any():
        m, log_delta = mu[some], np.log(delta[some])
        least = -m / 2 - 1  # here ε < 0
        most = np.maximum(least, np.sqrt(-2 * log_delta)) + 1  # here even P[N > t] is below δ
        t = elementwise.find_root(_excess_log_delta, (least, most), args=(m, log_delta)).x
        # Far more than the rounding errors of t are taken off.
        epsilon[some] = np.maximum((t - 1e-13 + m / 2) * m * (1 - 1e-11), 0.0)
    return epsilon


def _excess_log_delta(t: Array, mu: Array, log_delta: Array) -> Array:
    """log of the δ of μ-GDP at ε = μ t + μ² / 2, minus ``log_delta``.

    It is δ = P[N > t] (1 - R(t + μ) / R(t)), with Mills's ratio R(t) = P[N > t] / φ(t), so that
    neither large ε nor tiny δ lose digits.
    """

    def mills(x: Array) -> Array:
        return scipy.special.erfcx(x / _SQRT_2) * (_SQRT_2_PI / 2)

    # For t << 0 Mills's ratio is too large for a double, and the quotient next to 0. For a small μ
    # the quotient is nearly 1, and its logarithm is the slope of log R, which is t - 1 / R(t).
    middle, quotient = t + mu / 2, np.maximum(mills(t + mu) / mills(t), _LEAST_PROBABILITY)
    log_quotient = np.where(mu < 1e-5, mu * (middle - 1 / mills(middle)), np.log(quotient))
    return scipy.special.log_ndtr(-t) + np.log(-np.expm1(log_quotient)) - log_delta
