"""Bounds that hold whenever guessing stops, even if that depends on which guesses were right.

Each guess, whatever came before it, is right with probability at most p(ε). So (v, r) is dominated
by a random walk, and a bound fails at most with the probability that the walk crosses the line
where the bound exceeds ε. The chapter *Making adaptive auditing valid* has the proofs.

See Howard, Ramdas, McAuliffe and Sekhon, "Time-uniform, nonparametric, nonasymptotic confidence
sequences", Annals of Statistics 2021.
"""

from functools import lru_cache
from math import ceil, floor, inf, log, log1p
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oralib.bounds._arguments import flat_counts, float_if_single, for_distinct_rows, one_by_one
from oralib.bounds.crossing import crossing_constants
from oralib.ground import arguments
from oralib.ground.binomial import log_pmf, odds, tail, tail_over_pmf
from oralib.ground.jit import formula, jit
from oralib.ground.types import Array

#: This many guesses take seconds.
LARGEST_WALK = 10**6
#: Places that the walk reaches more rarely are dropped: all together they stay far below 1e-12.
_LEAST_PROBABILITY = 1e-25
#: A tail or bound that differs from β or ε by no more than this counts as equal to it.
_TIE = 1e-12


def adaptive_failure_probability(
    epsilon: float, n: ArrayLike, beta: float = 0.05, *, bound: Literal["pure", "anytime"] = "pure"
) -> Any:
    """W_n(ε, β): how often, in the worst case, a bound exceeds ε if guessing may stop at will.

    It is the probability that a walk with n independent steps, each a success with probability
    p(ε), ever meets counts (v, r) whose bound exceeds ε. ε-randomized response attains it.

    Parameters
    ----------
    epsilon : float
        The true privacy level, >= 0.
    n : int or array
        The number of elements, up to 10^6.
    beta : float
        The failure probability that the bound is made for, in (0, 1).
    bound : str
        ``"pure"`` for ``epsilon_lower_bound(v, r, beta=beta)``, or ``"anytime"`` for
        ``epsilon_lower_bound_anytime(v, r, beta=beta)``.

    Examples
    --------
    >>> round(adaptive_failure_probability(1.0, 1000), 6)
    0.321355
    >>> round(adaptive_failure_probability(1.0, 1000, bound="anytime"), 6)
    0.037696
    """
    epsilon = arguments.real("epsilon", epsilon, 0)
    sizes = arguments.integers("n", n, 0, LARGEST_WALK)
    beta, _ = arguments.beta_and_delta(beta)
    arguments.one_of("bound", bound, ("pure", "anytime"))
    if epsilon == inf or not sizes.size:
        return float_if_single(np.zeros(sizes.shape))
    anytime = bound == "anytime"
    reached = epsilon + _TIE * (1 + epsilon) if anytime else epsilon
    line = _line(int(sizes.max()), reached, beta, anytime)
    return float_if_single(_crossing(line, epsilon)[sizes])


def epsilon_lower_bound_anytime(v: ArrayLike, r: ArrayLike, *, beta: ArrayLike = 0.05) -> Any:
    """A lower bound on ε for any adaptive audit of a pure-DP mechanism, whenever guessing stops.

    With probability at least 1 - β it never exceeds the true privacy level, even if the guesser saw
    each outcome and stopped where it liked. It is the largest ε for which

        M = ∫ (q/p)^v ((1-q)/(1-p))^(r-v) dq / (1-p),   q from p = p(ε) to 1,

    is at least 1/β (for β > 1/e only those ε count for which p(ε) <= v / (r + 1)). For δ > 0 see
    :func:`oralib.valid_lower_bound`, for the parameters :func:`oralib.epsilon_lower_bound`.

    >>> round(epsilon_lower_bound_anytime(731, 1000), 6)
    0.7737
    """
    beta, _ = arguments.betas_and_deltas(beta)
    shape, (v, r, beta) = flat_counts(v, r, beta=beta)
    return float_if_single(anytime_bounds(v, r, beta).reshape(shape))


def free_to_stop_bounds(v: Array, r: Array, n: int, n_delta: float, beta: float) -> Array:
    """Bounds for (ε, δ)-DP of guessers with full feedback who stop when they like.

    If n δ > 0, some right guesses are taken away (``_shift``), and β is a little smaller. The
    anytime bound of what is left is rounded down to a multiple of 0.001, and reported only if it
    has a certificate: right guesses of an (ε, δ)-DP mechanism meet the line of that bound with
    probability at most β. Otherwise the next smaller one is tried.
    """
    if n_delta == 0:
        return anytime_bounds(v, r, np.full(v.size, beta))
    steps = np.arange(r.max(initial=0) + 1)
    fewer = np.maximum(v - _shift(steps, n_delta, beta)[r], 0)
    bounds = anytime_bounds(fewer, r, np.full(v.size, _level(n_delta, beta)))

    def has_certificate(first: int, last: int) -> bool:
        f, c = certificate(first, n, n_delta, beta, last)
        return f + c * n_delta <= beta

    @one_by_one
    def certified(bound: float) -> float:
        for thousandths in range(floor(bound * 1000), 0, -1):
            first = thousandths // 10 * 10
            if has_certificate(first, first + 9) or has_certificate(thousandths, thousandths):
                return thousandths / 1000
        return 0.0

    return for_distinct_rows(certified, bounds)


def free_to_stop_p_values(
    v: Array, r: Array, n: int, epsilon: Array, n_delta: Array, planned: Array, beta: float
) -> Array:
    """P-values of (ε, δ)-DP for guessers with full feedback who stop when they like.

    As many right guesses are taken away as for a bound with ``planned`` for n δ. What is left is
    significant at the level 1 / M, and so are the counts on a line. The p-value is the limit on how
    often right guesses meet that line, or for δ = 0 the level itself, which is at least that.
    """

    @one_by_one
    def p_value(v: int, r: int, epsilon: float, n_delta: float, planned: float) -> float:
        discounts = _shift(np.arange(n + 1), planned, beta) if n_delta > 0 else np.zeros(n + 1, int)
        fewer = v - int(discounts[r])
        if 2 * fewer <= r + 1 or epsilon > log(fewer / (r + 1 - fewer)):
            return 1.0
        level = float(np.exp(-_log_e_value(fewer, r, epsilon)))
        if level >= 1 or n_delta == 0:
            return min(level, 1.0)
        # A little more, so that rounding does not put these counts below their own line.
        line = _line(n, epsilon, level * (1 + 1e-9), True) + discounts
        f, c = crossing_constants(line, epsilon)
        return min(1.0, f + c * n_delta)

    return for_distinct_rows(p_value, v, r, epsilon, n_delta, planned)


@lru_cache(maxsize=4096)
def certificate(
    first: int, n: int, n_delta: float, beta: float, last: int | None = None
) -> tuple[float, float]:
    """(f, c) for n guesses and the line on which the bound reaches ``first`` thousandths of ε.

    They are for mechanisms of a privacy level up to ``last`` thousandths. As the lines of larger
    bounds are not below this one, all bounds from ``first`` to ``last`` share the certificate.
    """
    line = _line(n, first / 1000 - 1e-9, _level(n_delta, beta), True)
    line += _shift(np.arange(n + 1), n_delta, beta)
    return crossing_constants(line, (first if last is None else last) / 1000)


def _shift(steps: Array, n_delta: float, beta: float) -> NDArray[np.int64]:
    """How many right guesses are taken away after each number of guesses; found by scans."""
    ratio = min(n_delta / beta, 1e6)  # by which all guesses are taken away
    last = max(1, ceil(ratio**2 / 5 + 10 * ratio))
    first = max(0, ceil(ratio / 2 - 0.25))
    return -(-first * np.maximum(last - steps, 0) // last)


def _level(n_delta: float, beta: float) -> float:
    """What is left of β."""
    return beta - min(n_delta / 4, beta / 20)


@jit
def _line(n: int, epsilon: float, beta: float, anytime: bool) -> Array:
    """For r = 0, ..., n the least v whose pure bound exceeds ε, or whose anytime bound reaches it.

    It is r + 1 if there is none. One more guess moves the line up by 0 or 1.
    """
    q, qc = odds(epsilon)
    line = np.ones(n + 1, dtype=np.int64)
    for r in range(1, n + 1):
        v = line[r - 1]
        if anytime:
            line[r] = v if _anytime_reaches(v, r, epsilon, beta) else v + 1
        else:
            line[r] = v if tail(v, r, q, qc) < beta * (1 - _TIE) else v + 1
    return line


@jit
def _crossing(line: Array, epsilon: float) -> Array:
    """The probability that the walk has met the line by its step r, for each r."""
    q, qc = odds(epsilon)
    n = line.size - 1
    met = np.zeros(n + 1)
    inside = np.zeros(n + 2)  # by v: the probability of being there without having met the line
    if line[0] <= 0:
        met[:] = 1.0
        return met
    inside[0] = 1.0
    low, high = 0, 0
    for r in range(1, n + 1):
        high += 1
        for v in range(high, low, -1):
            inside[v] = inside[v] * qc + inside[v - 1] * q
        inside[low] *= qc
        met[r] = met[r - 1]
        while high >= low and high >= line[r]:
            met[r] += inside[high]
            inside[high] = 0.0
            high -= 1
        while low < high and inside[low] < _LEAST_PROBABILITY:
            inside[low] = 0.0
            low += 1
    return met


@formula
def _log_e_value(v: int, r: int, epsilon: float) -> float:
    """log M: the integral is P[Bin(r + 1, p) <= v] / ((r + 1 - v) P[Bin(r + 1, p) = v])."""
    q, qc = odds(epsilon)
    if v <= (r + 1) * q:  # the ratio itself, where the law function is small
        return log(tail_over_pmf(r + 1 - v, r + 1, qc, q) / (r + 1 - v))
    return log1p(-tail(v + 1, r + 1, q, qc)) - log(r + 1 - v) - log_pmf(v, r + 1, q, qc)


@formula
def _anytime_reaches(v: int, r: int, epsilon: float, beta: float) -> bool:
    """Whether M >= 1/β and p(ε) <= v / (r + 1), where M falls; the latter follows for β < 1/e."""
    if 2 * v <= r + 1 or epsilon > log(v / (r + 1 - v)):
        return False
    return _log_e_value(v, r, epsilon) >= -log(beta)


def anytime_bounds(v: Array, r: Array, beta: Array) -> Array:
    """The largest ε that the anytime bound reaches, or 0, for flat and checked counts.

    That of a single count is computed in plain Python, which needs no compiler.
    """
    if v.size == 1:
        return np.array([_anytime_bound(v.item(), r.item(), beta.item())])
    return np.asarray(_anytime_bounds(v, r, beta))


@jit
def _anytime_bounds(v: Array, r: Array, beta: Array) -> Array:
    out = np.empty(v.size)
    for i in range(v.size):
        out[i] = _anytime_bound(v[i], r[i], beta[i])
    return out


@formula
def _anytime_bound(v: int, r: int, beta: float) -> float:
    """The bisection is written out, since a kernel that takes a function cannot be cached."""
    if not _anytime_reaches(v, r, 0.0, beta):
        return 0.0
    high = log(v / (r + 1 - v))
    low = high if _anytime_reaches(v, r, high, beta) else 0.0
    while high - low >= 1e-14 * (1 + low):
        middle = 0.5 * (low + high)
        if _anytime_reaches(v, r, middle, beta):
            low = middle
        else:
            high = middle
    return low
