"""Counts and a trade-off curve f (an attacker's two error rates): an ε that holds under f-DP.

**What is tested.** A mechanism is f-DP if, whatever the other elements are, an event of probability
x under "element i is in" has a probability of at least g(x) = f(1 - x) under "element i is out",
and the other way round; g is convex and increasing. For μ-GDP it is Φ(Φ⁻¹(x) - μ).

**What f-DP says about counts.** Let r of n elements be guessed, r fixed in advance, and V of them
correctly. Pick an element at random and turn its coin over: in outputs where it was guessed
correctly and V was at least i, it is now guessed wrongly, and V is at least i - 1. As g is convex,
averages keep the inequality:

    b(i - 1) >= g(a(i)),   a(i) = E[V; V >= i] / n,   b(i) = E[r - V; V >= i] / n.

**The recursion.** Among all measures that have mass β on V >= v and satisfy the inequality, one has
the least total mass: it puts β on v, and then, going down, on i = v - 1, ..., 0 just what the
inequality demands. That is

    a = β v / n,  b = β (r - v) / n,  then for each i:
    b' = max(b, g(a)),  a' = a + (b' - b) i / (r - i),

because mass on i adds to a and b in the ratio i : r - i. (Any other such measure has an a larger by
some D_a >= 0 and a b that differs by some D_b, with D_a >= D_b i / (r - i) at every i, since its
additional mass lies at i or above.) A law has mass 1, so a + b ends at r / n: if the recursion ends
above that, f is rejected. Once b stops growing, it never grows again. The bound is the ε at δ of
the least private rejected curve of a family, here that of Gaussian mechanisms. It is not
guaranteed for a mechanism outside the family.

See Mahloujifar, Melis and Chaudhuri, "Auditing f-Differential Privacy in One Run", ICML 2025.
Dong, Roth and Su, "Gaussian Differential Privacy", JRSS B 2022.
"""

from collections.abc import Callable
from functools import partial
from math import erfc, exp, inf, log, pi, sqrt
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from oralib.bounds._arguments import flat_counts, float_if_single, for_distinct_rows, one_by_one
from oralib.bounds.approximate import EXACT, lower_bounds
from oralib.ground import arguments
from oralib.ground.binomial import odds
from oralib.ground.jit import formula, jit
from oralib.ground.solve import largest_passing
from oralib.ground.types import Array

_SQRT_2, _SQRT_2_PI, _R_0 = sqrt(2), sqrt(2 * pi), sqrt(pi / 2)
#: This many guesses take seconds, at worst.
LARGEST_R = 10**8
#: In plain Python this many guesses take a second, at worst.
_LARGEST_PLAIN_R = 10**6
#: The recursion ends once it has passed this multiple of its goal.
_SURPLUS = 8.0
#: A probability below this has lost digits, so nothing is claimed.
_LEAST_PROBABILITY = 1e-290
#: No curve with a larger μ is ever rejected.
_LARGEST_MU = 80.0
#: The precision of μ, and by how much it is lowered, relatively: far more than rounding errors.
MU_PRECISION, MU_MARGIN = 1e-11, 1e-9
#: A curve is rejected if the recursion ends further above its goal than this.
_LEAST_REACH = 1e-14
_NO_LINES = np.empty((0, 2))


def gaussian_epsilon(mu: ArrayLike, delta: ArrayLike) -> Any:
    """The least ε for which a Gaussian mechanism with noise 1 / μ, which is μ-GDP, is (ε, δ)-DP.

    It solves δ = Φ(μ/2 - ε/μ) - e^ε Φ(-μ/2 - ε/μ), lowered by a factor of 1 - 10^-11 so that it is
    never too large. It is inf at δ = 0, unless μ is 0. Here μ is at most 10^6.

    >>> round(gaussian_epsilon(1.0, 1e-5), 6)
    4.377178
    """
    mu, delta = arguments.reals("mu", mu, 0, 1e6), arguments.reals("delta", delta, 0, 1)
    return float_if_single(epsilon_of_mu(*arguments.broadcast(mu=mu, delta=delta)))


def epsilon_lower_bound_fdp(
    v: ArrayLike, r: ArrayLike, *, n: ArrayLike, delta: ArrayLike, beta: ArrayLike = 0.05
) -> Any:
    """A lower bound on ε at δ for a mechanism with the trade-off curve of Gaussian noise.

    With probability at least 1 - β it does not exceed the ε at δ of a Gaussian mechanism, if the
    number of guesses was fixed in advance and the guesser had no feedback. For another mechanism
    the bound only says that no Gaussian curve up to this ε fits; it is *not* guaranteed to bound
    the mechanism's ε. At δ = 0 it is 0 or inf.

    Parameters
    ----------
    v, r, n, delta, beta
        As in :func:`oralib.epsilon_lower_bound`; r is at most 10^8.

    Examples
    --------
    >>> round(epsilon_lower_bound_fdp(75, 100, n=1000, delta=1e-5), 5)
    1.00592
    """
    n, (beta, delta) = arguments.integers("n", n), arguments.betas_and_deltas(beta, delta)
    shape, (v, r, n, delta, beta) = flat_counts(v, r, most=LARGEST_R, n=n, delta=delta, beta=beta)
    return float_if_single(epsilon_of_mu(largest_mus(v, r, n, beta), delta).reshape(shape))


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


@formula
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


def largest_mus(v: Array, r: Array, n: Array, beta: Array) -> NDArray[np.float64]:
    """The largest μ that is rejected, or 0, for flat and checked counts."""
    # Fair coins have μ = 0, so their binomial law must be rejected first.
    pure_bounds = lower_bounds(v, r, beta, np.zeros(v.size), EXACT)
    # That of a single count is computed in plain Python, which needs no compiler.
    recursion = reach.plain if v.size == 1 and r[0] <= _LARGEST_PLAIN_R else reach
    largest_mu = one_by_one(partial(_largest_mu, recursion))
    return for_distinct_rows(largest_mu, v, r, n, beta, pure_bounds)


def _largest_mu(
    recursion: Callable[..., float], v: int, r: int, n: int, beta: float, pure_bound: float
) -> float:
    if pure_bound == 0:
        return 0.0
    # Start with the curve through the accuracy that ε-DP must have.
    q, qc = odds(pure_bound)
    most, guess = _LARGEST_MU, upper_quantile(qc * r / n) - upper_quantile(q * r / n)
    if beta * (r - v) / n > _LEAST_PROBABILITY:
        # At this μ, which large r come very close to, the recursion stops at its start.
        most = upper_quantile(beta * (r - v) / n) - upper_quantile(beta * v / n)
        most, guess = most * (1 - MU_MARGIN), min(guess, 0.9 * most)

    def excess(mu: float) -> float:
        return _LEAST_REACH - float(recursion(v, r, n, beta, mu, _NO_LINES))

    mu = largest_passing(excess, 0.0, most, guess=guess, precision=MU_PRECISION)
    return mu * (1 - MU_MARGIN)


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

    def mills(x: Array) -> Array:  # over R(0), a factor by which it could overflow
        return np.asarray(scipy.special.erfcx(x / _SQRT_2))

    # For t << 0 Mills's ratio is too large for a double, and the quotient next to 0. For a small μ
    # the quotient is nearly 1, and its logarithm is the slope of log R, which is t - 1 / R(t).
    middle, quotient = t + mu / 2, np.maximum(mills(t + mu) / mills(t), _LEAST_PROBABILITY)
    log_quotient = np.where(mu < 1e-5, mu * (middle - 1 / _R_0 / mills(middle)), np.log(quotient))
    return scipy.special.log_ndtr(-t) + np.log(-np.expm1(log_quotient)) - log_delta
