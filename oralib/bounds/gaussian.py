"""The f-DP bound, for mechanisms with the trade-off curve of Gaussian noise.

A trade-off curve f says which two error rates an attacker can have at best.

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
from dataclasses import dataclass
from functools import partial
from math import erfc, exp, inf, log, pi, sqrt
from typing import Any, ClassVar

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from oralib.bounds.columns import float_if_single, for_distinct_rows, one_by_one
from oralib.bounds.counts import Counts
from oralib.bounds.pure import pure_bounds
from oralib.bounds.rule import Audits, Rule
from oralib.ground import arguments
from oralib.ground.binomial import odds, tail
from oralib.ground.jit import formula, jit
from oralib.ground.solve import largest_passing
from oralib.ground.types import Array

__all__ = [
    "LARGEST_R",
    "MU_MARGIN",
    "MU_PRECISION",
    "Gaussian",
    "epsilon_of_mu",
    "gaussian_epsilon",
    "largest_mus",
    "mu_of_epsilon",
    "reach",
    "upper_quantile",
]

_SQRT_2 = sqrt(2)
_SQRT_2_PI = sqrt(2 * pi)
#: Mills's ratio at 0.
_R_0 = sqrt(pi / 2)
#: The largest number of guesses, which takes seconds at worst.
LARGEST_R = 10**8
#: The largest number of guesses for plain Python, which takes a second at worst.
_LARGEST_PLAIN_R = 10**6
#: The recursion ends once it has passed this multiple of its goal.
_SURPLUS = 8.0
#: A probability below this has lost digits, so nothing is claimed.
_LEAST_PROBABILITY = 1e-290
#: No curve with a larger μ is ever rejected.
_LARGEST_MU = 80.0
#: The precision of μ.
MU_PRECISION = 1e-11
#: The share by which a bound on μ is lowered: far more than rounding errors.
MU_MARGIN = 1e-9
#: The precision of the logarithm of a p-value.
_LOG_PRECISION = 1e-12
#: A curve is rejected if the recursion ends further above its goal than this.
_LEAST_REACH = 1e-14
_NO_LINES = np.empty((0, 2))


def gaussian_epsilon(mu: ArrayLike, delta: ArrayLike) -> Any:
    """Return the least ε for which a Gaussian mechanism with noise 1 / μ is (ε, δ)-DP.

    That mechanism is μ-GDP. The ε solves δ = Φ(μ/2 - ε/μ) - e^ε Φ(-μ/2 - ε/μ), and is lowered by
    a factor of 1 - 10^-11 so that it is never too large. It is inf at δ = 0, unless μ is 0.

    Parameters
    ----------
    mu : float or array
        The μ of μ-GDP, in [0, 10^6].
    delta : float or array
        The δ of (ε, δ)-DP, in [0, 1].

    Examples
    --------
    >>> round(gaussian_epsilon(1.0, 1e-5), 6)
    4.377178
    """
    curves = arguments.reals("mu", mu, 0, 1e6)
    deltas = arguments.reals("delta", delta, 0, 1)
    return float_if_single(epsilon_of_mu(*arguments.broadcast(mu=curves, delta=deltas)))


@jit
def reach(v: int, r: int, n: int, beta: float, mu: float, lines: Array) -> float:
    """Return log((a + b) / (r / n)) at the end of the recursion; a positive one rejects the curve.

    The curve is Gaussian if there are no ``lines``, and otherwise the maximum of the lines: rows of
    (slope, value at 0), by increasing slope. Stopping early is safe, since a + b only grows.
    """
    goal = r / n
    a = beta * v / n
    b = beta * (r - v) / n
    if a < _LEAST_PROBABILITY:
        return -inf
    before = inf
    line = 0
    for i in range(v - 1, -1, -1):
        if lines.shape[0] == 0:
            # A little to the left, so that rounding cannot make g too high.
            demanded = 0.5 * erfc((upper_quantile(a * (1 - 1e-15)) + mu) / _SQRT_2)
        else:
            demanded = lines[line, 0] * a + lines[line, 1]
            while line + 1 < lines.shape[0]:  # a grows, so the best line only moves on
                other = lines[line + 1, 0] * a + lines[line + 1, 1]
                if other < demanded:
                    break
                demanded = other
                line += 1
        grown = demanded - b
        if grown <= 2e-15 * b:  # nothing, or no more than rounding
            break
        b = demanded
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
    """Return z with P[N > z] = x, to full precision."""
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
    """Return the largest μ that is rejected, or 0, for flat and checked counts."""
    # Fair coins have μ = 0, so their binomial law must be rejected first.
    above_fair = pure_bounds(v, r, beta, np.zeros(v.size))
    largest_mu = one_by_one(partial(_largest_mu, _recursion(r)))
    return for_distinct_rows(largest_mu, v, r, n, beta, above_fair)


def _recursion(r: Array) -> Callable[..., float]:
    """Return the function ``reach``, which for a single count needs no compiler."""
    return reach.plain if r.size == 1 and r[0] <= _LARGEST_PLAIN_R else reach


def _largest_mu(
    recursion: Callable[..., float], v: int, r: int, n: int, beta: float, pure_bound: float
) -> float:
    """Return the largest μ that is rejected, or 0 if fair coins are not."""
    if pure_bound == 0:
        return 0.0
    # Start with the curve through the accuracy that ε-DP must have.
    q, qc = odds(pure_bound)
    guess = upper_quantile(qc * r / n) - upper_quantile(q * r / n)
    largest = _LARGEST_MU
    if beta * (r - v) / n > _LEAST_PROBABILITY:
        # At this μ, which large r come very close to, the recursion stops at its start.
        at_start = upper_quantile(beta * (r - v) / n) - upper_quantile(beta * v / n)
        largest = at_start * (1 - MU_MARGIN)
        guess = min(guess, 0.9 * at_start)

    def excess(mu: float) -> float:
        return _LEAST_REACH - float(recursion(v, r, n, beta, mu, _NO_LINES))

    mu = largest_passing(excess, 0.0, largest, guess=guess, precision=MU_PRECISION)
    return mu * (1 - MU_MARGIN)


def _p_value(recursion: Callable[..., float], v: int, r: int, n: int, mu: float) -> float:
    """Return the least β at which the curve of μ, and with it fair coins, are rejected."""
    if v == 0 or mu > _LARGEST_MU:
        return 1.0
    of_fair_coins = tail(v, r, 0.5, 0.5)
    if of_fair_coins == 0:
        return 0.0

    def excess(log_beta: float) -> float:
        return float(recursion(v, r, n, exp(log_beta), mu, _NO_LINES)) - _LEAST_REACH

    low = log(of_fair_coins)
    log_beta = largest_passing(excess, low, 0.0, guess=0.5 * low, precision=_LOG_PRECISION)
    return min(1.0, exp(log_beta + _LOG_PRECISION))


def epsilon_of_mu(mu: NDArray[np.float64], delta: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the ε of :func:`gaussian_epsilon`, for checked arrays of one shape."""
    from scipy.optimize import elementwise  # here, because few need it and it is slow to import

    epsilon = np.where((delta == 0) & (mu > 0), inf, 0.0)
    # erf(x) is P[|N| < x sqrt(2)]: the δ of ε = 0.
    positive = (delta > 0) & (delta < scipy.special.erf(mu / (2 * _SQRT_2)))
    if positive.any():
        m = mu[positive]
        log_delta = np.log(delta[positive])
        low = -m / 2 - 1  # here ε < 0
        high = np.maximum(low, np.sqrt(-2 * log_delta)) + 1  # here even P[N > t] is below δ
        t = elementwise.find_root(_excess_log_delta, (low, high), args=(m, log_delta)).x
        # Far more than the rounding errors of t are taken off.
        epsilon[positive] = np.maximum((t - 1e-13 + m / 2) * m * (1 - 1e-11), 0.0)
    return epsilon


@one_by_one
def mu_of_epsilon(epsilon: float, delta: float) -> float:
    """Return the largest μ for which μ-GDP is (ε, δ)-DP, rounded up; inf if all are."""
    if epsilon == inf or delta >= 1:
        return inf
    if delta == 0:
        return 0.0
    log_delta = log(delta)
    far = sqrt(-2 * log_delta) + 1  # here P[N > t] is below δ

    def excess(mu: float) -> float:
        if epsilon >= mu * (far + mu / 2):
            return -1.0
        t = epsilon / mu - mu / 2
        return float(_excess_log_delta(t, mu, log_delta))

    guess = epsilon / far
    mu = largest_passing(excess, 0.0, _LARGEST_MU + 1, guess=guess, precision=MU_PRECISION)
    return (mu + MU_PRECISION) * (1 + MU_MARGIN)


def _excess_log_delta(t: Any, mu: Any, log_delta: Any) -> Any:
    """Return log of the δ of μ-GDP at ε = μ t + μ² / 2, minus ``log_delta``.

    It is δ = P[N > t] (1 - R(t + μ) / R(t)), with Mills's ratio R(t) = P[N > t] / φ(t), so that
    it keeps its digits for large ε and for tiny δ.
    """

    def mills(x: Array) -> Array:  # over R(0), a factor by which it could overflow
        return np.asarray(scipy.special.erfcx(x / _SQRT_2))

    # For t << 0 Mills's ratio is too large for a double, and the quotient next to 0. For a small μ
    # the quotient is nearly 1, and its logarithm is the slope of log R, which is t - 1 / R(t).
    middle = t + mu / 2
    quotient = np.maximum(mills(t + mu) / mills(t), _LEAST_PROBABILITY)
    log_quotient = np.where(mu < 1e-5, mu * (middle - 1 / _R_0 / mills(middle)), np.log(quotient))
    return scipy.special.log_ndtr(-t) + np.log(-np.expm1(log_quotient)) - log_delta


@dataclass(frozen=True)
class Gaussian(Rule):
    """The f-DP bound, for mechanisms with the trade-off curve of Gaussian noise.

    It is proved for these, if the number of guesses was fixed in advance and the guesser had no
    feedback: turning over one coin at random changes accuracies as far as the curve allows. For
    another mechanism it only says that no Gaussian curve up to this ε fits; it is *not* guaranteed
    to bound the mechanism's ε. At δ = 0 it is 0 or inf. There are at most 10^8 guesses.

    >>> round(Gaussian().lower_bound(75, 100, n=1000, delta=1e-5), 5)
    1.00592
    >>> round(Gaussian().p_value(75, 100, epsilon=0.9, n=1000, delta=1e-5), 5)
    0.0291
    """

    name: ClassVar[str] = "f-DP bound"
    needs_n: ClassVar[bool] = True

    def proved_for(self, counts: Counts, delta: float) -> bool:
        return counts.r_fixed and counts.feedback == "none" and counts.coins == "independent"

    def bounds(self, audits: Audits) -> Array:
        return epsilon_of_mu(largest_mus(audits.v, audits.r, audits.n, audits.beta), audits.d_in)

    def p_values(self, audits: Audits, epsilon: Array) -> Array:
        mu = for_distinct_rows(mu_of_epsilon, epsilon, audits.d_in)
        p_values = one_by_one(partial(_p_value, _recursion(audits.r)))
        return for_distinct_rows(p_values, audits.v, audits.r, audits.n, mu)

    def check(self, audits: Audits) -> None:
        arguments.integers("r", audits.r, 0, LARGEST_R)
