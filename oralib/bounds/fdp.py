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
probability β, and f is rejected at level β. Once b stops growing, it never grows again.

**From curves to ε.** In a family of curves with one parameter, the curves with enough privacy are
rejected. The bound is the ε at δ of the least private of these. No curve with
g(β v / n) <= β (r - v) / n is ever rejected, however large r is: an f-DP mechanism may be bad with
probability β and otherwise say nothing.

**What it assumes.** The bound is guaranteed if the mechanism's own curve is in the family: a
Gaussian mechanism for :class:`GaussianCurve`, DP-SGD with this number of steps and this sample rate
for :class:`SubsampledGaussianCurve`. It is not guaranteed for an arbitrary mechanism, and
:func:`oralib.valid_lower_bound` never chooses it. The number of guesses r must be fixed in advance
(guesses that were not taken count as wrong), without feedback.

See Also
--------
Mahloujifar, Melis and Chaudhuri, "Auditing f-Differential Privacy in One Run", ICML 2025.
Dong, Roth and Su, "Gaussian Differential Privacy", JRSS B 2022.
"""

from dataclasses import dataclass
from math import erfc, exp, inf, log, pi, sqrt
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from oralib import _check
from oralib._binomial import odds
from oralib._jit import jit
from oralib.bounds.approximate import _STEINKE, _lower_bound, _normal_quantile
from oralib.bounds.logistic import counts_of, plain

__all__ = ["GaussianCurve", "epsilon_lower_bound_fdp"]

Array = NDArray[Any]

_SQRT_2, _SQRT_2_PI = sqrt(2), sqrt(2 * pi)
#: This many guesses take seconds, at worst.
LARGEST_R = 10**8
#: Past this multiple of its goal the recursion need not go on.
_FAR = 8.0
#: A start below this has lost digits, so nothing is claimed.
_LEAST_START = 1e-290
#: The relative precision of μ: it is this much too low, far more than any rounding error.
_CLOSE = 1e-9
_LEAST_SIGMA, _LARGEST_SIGMA = 0.1, 1e6


@dataclass(frozen=True)
class GaussianCurve:
    """The trade-off curves of μ-GDP, those of a Gaussian mechanism with noise 1 / μ.

    The curve of μ is β(α) = Φ(Φ^-1(1 - α) - μ), (ε, δ)-DP for δ = Φ(μ/2 - ε/μ) - e^ε Φ(-μ/2 - ε/μ).

    Examples
    --------
    >>> round(GaussianCurve().epsilon(1.0, 1e-5), 6)
    4.377178
    """

    def epsilon(self, mu: ArrayLike, delta: ArrayLike) -> Any:
        """The ε at which the curve of ``mu`` is (ε, δ)-DP: inf at δ = 0, unless ``mu`` is 0."""
        mu = _check.reals("mu", mu, 0, 1e6)
        mu, delta = _check.broadcast(mu=mu, delta=_check.reals("delta", delta, 0, 1))
        return plain(_gaussian_epsilon(mu, delta))

    def _bounds(self, v: Array, r: Array, n: Array, delta: Array, beta: Array) -> Array:
        return _gaussian_epsilon(_largest_mus(v, r, n, beta), delta)


def epsilon_lower_bound_fdp(
    v: ArrayLike,
    r: ArrayLike,
    *,
    n: ArrayLike,
    delta: ArrayLike,
    beta: ArrayLike = 0.05,
    curve: Any = GaussianCurve(),  # noqa: B008, it is frozen
) -> Any:
    """A lower bound on ε at δ for a mechanism whose trade-off curve is in a known family.

    With probability 1 - β it does not exceed the ε at δ of a mechanism in the family, if the number
    of guesses was fixed in advance and the guesser had no feedback. For a mechanism outside the
    family it only says that no curve of the family up to this ε describes it; it is *not*
    guaranteed to bound the mechanism's ε. It is 0 if no curve is rejected, and at δ = 0 it is inf
    as soon as any curve is rejected.

    Parameters
    ----------
    v, r : how many guesses were right, and how many were taken, 0 <= v <= r <= 10^8.
    n : the number of elements, taken and abstained, at least r.
    delta : the δ of (ε, δ)-DP, in [0, 1].
    beta : how often the bound may fail, in (0, 1).
    curve : ``GaussianCurve()``, or ``SubsampledGaussianCurve(steps=..., sample_rate=...)``, which
        takes seconds for each new count.

    Examples
    --------
    >>> round(epsilon_lower_bound_fdp(75, 100, n=1000, delta=1e-5), 5)
    1.00592
    >>> round(epsilon_lower_bound_fdp(700, 1000, n=5000, delta=1e-5), 5)
    1.07608
    """
    v, r = counts_of(v, r)
    _check.integers("r", r, 0, LARGEST_R)
    n, delta = _check.integers("n", n), _check.reals("delta", delta, 0, 1)
    beta = _check.reals("beta", beta, 0, 1, interval="()")
    if not hasattr(curve, "_bounds"):
        raise TypeError(
            "curve must be like GaussianCurve() or SubsampledGaussianCurve(100, 0.1), "
            f"got curve={curve!r}"
        )
    v, r, n, delta, beta = _check.broadcast(v=v, r=r, n=n, delta=delta, beta=beta)
    _check.at_most("r", r, "n", n)
    # flatten makes a copy, so kernels see one type of array: contiguous and writable.
    flat = curve._bounds(*(array.flatten() for array in (v, r, n, delta, beta)))
    return plain(flat.reshape(v.shape))


# -------------------------------------------------------------------------------- the recursion


@jit
def _reach(v: int, r: int, n: int, beta: float, mu: float, lines: Array) -> float:
    """log((a + b) / (r / n)) at the end of the recursion; the curve is rejected if it is positive.

    The curve is Gaussian if there are no ``lines``, and otherwise the maximum of the lines: rows of
    (slope, value at 0), by increasing slope. Stopping early is safe, since a + b only grows.
    """
    goal = r / n
    a, b = beta * v / n, beta * (r - v) / n
    if a < _LEAST_START:
        return -inf
    before, line = inf, 0
    for i in range(v - 1, -1, -1):
        if lines.shape[0] == 0:
            # A little to the left, so that rounding cannot make g too high.
            needed = 0.5 * erfc((_upper_quantile(a * (1 - 1e-15)) + mu) / _SQRT_2)
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
        if a >= 1 or a + b > _FAR * goal:
            return log(_FAR)
        # After its peak the mass falls faster and faster: is what may follow below rounding?
        if grown < before and grown * r / (r - i) * i < 1e-15 * goal:
            break
        before = grown
    return log((a + b) / goal)


@jit
def _upper_quantile(x: float) -> float:
    """z with P[N > z] = x to full precision: two steps of Halley's method from three digits."""
    small = max(x if x < 0.5 else 1 - x, _LEAST_START)
    z = _normal_quantile(small)
    for _ in range(2):
        error = (0.5 * erfc(z / _SQRT_2) - small) * _SQRT_2_PI * exp(0.5 * z * z)
        z += error / (1 - 0.5 * z * error)
    return z if x < 0.5 else -z


# ------------------------------------------------------------------------------ Gaussian curves


@jit
def _largest_mu(v: int, r: int, n: int, beta: float) -> float:
    """The largest μ that is rejected, or 0: the secant method, kept inside a bracket."""
    # Fair coins have μ = 0, so their binomial law must be rejected first.
    none = np.empty((0, 2))
    level = _lower_bound(v, r, beta, 0.0, _STEINKE, 0.0, 0.0)
    if 2 * v <= r or level == 0 or _reach(v, r, n, beta, 0.0, none) <= 0:
        return 0.0
    # At this μ, which large r come very close to, the recursion stops at its start.
    edge = inf
    if beta * (r - v) / n > _LEAST_START:
        edge = _upper_quantile(beta * (r - v) / n) - _upper_quantile(beta * v / n)
        if _reach(v, r, n, beta, edge * (1 - _CLOSE), none) > 0:
            return edge * (1 - _CLOSE)
    # Start with the curve through the accuracy that plain ε-DP must have.
    q, qc = odds(level)
    x = min(_upper_quantile(qc * r / n) - _upper_quantile(q * r / n), 0.9 * edge)
    low, high = 0.0, edge
    last, last_value, tolerance = inf, 0.0, 0.1 * _CLOSE * x
    for rounds in range(200):
        value = _reach(v, r, n, beta, x, none)
        low, high = (x, high) if value > 0 else (low, x)
        # Values beyond these say little about where the root is.
        telling = log(beta) + 0.01 < value < log(_FAR)
        slope = (value - last_value) / (x - last) if telling and last < inf else 0.0
        last, last_value = (x, value) if telling else (inf, 0.0)
        step = -value / slope if slope < 0 and rounds % 10 < 9 else inf
        if abs(value) < 1e-10:  # possibly just rounding
            break
        if min(abs(step), high - low) < tolerance:
            x = min(max(x + step, low), high) if abs(step) < inf else low
            break
        if low < x + step < high:
            x += step
        elif last < inf and low < x + 0.02 * value * x < high:
            x += 0.02 * value * x  # a second point for the secant
        elif high == inf:
            x *= 1.5
        elif edge < inf:  # the root is more likely to be near the edge
            x = edge - sqrt((edge - low) * max(edge - high, _CLOSE * edge))
        else:
            x = 0.5 * (low + high)
    # A rounding error must not lead to an overclaim: step back from the root.
    back = _CLOSE * x
    x -= back
    while x > 0 and _reach(v, r, n, beta, x, none) <= 0:
        x -= back
        back *= 2
    return max(x, 0.0)


@jit
def _largest_mus(v: Array, r: Array, n: Array, beta: Array) -> Array:
    out = np.empty(v.size)
    for i in range(v.size):
        out[i] = _largest_mu(v[i], r[i], n[i], beta[i])
    return out


def _gaussian_epsilon(mu: NDArray[np.float64], delta: NDArray[np.float64]) -> NDArray[np.float64]:
    """The ε of μ-GDP at δ, lowered by a factor 1 - 10^-11: Newton's method, kept in a bracket.

    With t = ε / μ - μ / 2 it is δ = φ(t) (R(t) - R(t + μ)), with R = P[N > t] / φ(t), Mills's
    ratio, so that neither large ε nor tiny δ lose digits.
    """
    epsilon = np.zeros(mu.shape)
    epsilon[(delta == 0) & (mu > 0)] = inf
    # erf(x) is P[|N| < x sqrt(2)]: the δ of ε = 0.
    some = (delta > 0) & (delta < scipy.special.erf(mu / (2 * _SQRT_2)))
    if not some.any():
        return epsilon
    m, goal = mu[some], np.log(delta[some])

    def mills(t: NDArray[np.float64]) -> NDArray[np.float64]:
        return scipy.special.erfcx(t / _SQRT_2) * (_SQRT_2_PI / 2)

    def log_delta(t: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """log δ and its derivative in t."""
        left, right = scipy.special.log_ndtr(-t), mills(t + m)
        # For t << 0 the first term is about 1, and Mills's ratio is too large for a double.
        with np.errstate(over="ignore", invalid="ignore"):
            start = np.maximum(t, -8.0)
            middle = start + m / 2
            # The difference of two ratios that are nearly equal is the slope between them.
            fall = np.where(m < 1e-5, m * (1 - middle * mills(middle)), mills(start) - right)
            gap = np.where(
                t > -8.0,
                np.log(fall) - 0.5 * t * t - log(_SQRT_2_PI),
                np.log1p(-right * np.exp(-0.5 * t * t - log(_SQRT_2_PI) - left)) + left,
            )
            slope = -m * right * np.exp(-0.5 * t * t - log(_SQRT_2_PI) - gap)
        return gap, slope

    low = -m / 2
    high = np.maximum(low, np.sqrt(-2 * goal)) + 1  # where even P[N > t] is below δ
    t = 0.5 * (low + high)
    for rounds in range(100):
        value, slope = log_delta(t)
        low, high = np.where(value > goal, t, low), np.where(value > goal, high, t)
        newton = t - (value - goal) / np.where(slope < 0, slope, -1.0)
        inside = (slope < 0) & (low < newton) & (newton < high) & (rounds % 8 < 7)
        following = np.where(inside, newton, 0.5 * (low + high))
        done = np.abs(following - t) <= 1e-13 * (1 + np.abs(t))
        t = following
        if done.all():
            break
    epsilon[some] = np.maximum((t + m / 2) * m * (1 - 1e-11), 0.0)
    return epsilon


# ------------------------------------------------------------------- curves of subsampled noise
