"""Bounds that hold whenever guessing stops, even if that depends on which guesses were right.

The other bounds hold if the number of guesses does not depend on which of them were right. With
full feedback it may. But each guess, whatever came before it, is still right with probability at
most p(ε). So (v, r) is dominated by a random walk, and a bound fails at most as often as the walk
ever crosses the line where the bound exceeds ε.

See Also
--------
Howard, Ramdas, McAuliffe and Sekhon, "Time-uniform, nonparametric, nonasymptotic confidence
sequences", Annals of Statistics 2021.
"""

from collections.abc import Callable
from functools import lru_cache
from math import ceil, floor, inf, log
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oralib import _check
from oralib._binomial import log_pmf, odds, tail, tail_over_pmf
from oralib._jit import jit
from oralib.bounds._arguments import flat_counts, float_if_single
from oralib.bounds.crossing import crossing_constants

__all__ = ["adaptive_failure_probability", "epsilon_lower_bound_anytime"]

Array = NDArray[Any]
Bound = Callable[[Array, Array], Any]

#: This many guesses take seconds.
LARGEST_WALK = 10**6
#: Places that the walk reaches more rarely are dropped: all together they stay far below 1e-12.
_LEAST_PROBABILITY = 1e-25
#: A tail or bound that differs from β or ε by no more than this counts as equal to it.
_TIE = 1e-12


def adaptive_failure_probability(
    epsilon: float, n: ArrayLike, beta: float = 0.05, *, bound: str | Bound = "pure"
) -> Any:
    """W_n(ε, β): at worst, how often a bound can exceed ε if guessing may stop at a success.

    It is the probability that a walk with n independent steps, each a success with probability
    p(ε), ever meets counts (v, r) whose bound exceeds ε. The bound fails no more often for any ε-DP
    mechanism and any adaptive guesser with full feedback. It fails exactly this often for
    ε-randomized response and the guesser that stops as soon as the bound exceeds ε.

    Parameters
    ----------
    epsilon : float
        The true privacy level, >= 0.
    n : int or array
        The number of elements, up to 10^6; an array gives one value for each entry.
    beta : float
        The failure probability that the bound is made for, in (0, 1).
    bound : str or function
        ``"pure"`` for ``epsilon_lower_bound(v, r, beta=beta)``, ``"anytime"`` for
        ``epsilon_lower_bound_anytime(v, r, beta=beta)``, or a function (v, r) -> bound of arrays
        that does not decrease in v.

    Examples
    --------
    >>> round(adaptive_failure_probability(1.0, 1000), 6)
    0.321355
    >>> round(adaptive_failure_probability(1.0, 1000, bound="anytime"), 6)
    0.037696
    """
    epsilon = _check.real("epsilon", epsilon, 0)
    sizes = _check.integers("n", n, 0, LARGEST_WALK)
    beta, _ = _check.beta_and_delta(beta)
    lines = {"pure": _pure_line, "anytime": _anytime_line}
    if not callable(bound):
        _check.one_of("bound", bound, tuple(lines))
    if epsilon == inf or not sizes.size:
        return float_if_single(np.zeros(sizes.shape))
    most = int(sizes.max())
    above = epsilon + _TIE * (1 + epsilon) if bound == "anytime" else epsilon
    line = _line(bound, most, epsilon) if callable(bound) else lines[bound](most, above, beta)
    return float_if_single(_crossing(line, epsilon)[sizes])


def epsilon_lower_bound_anytime(v: ArrayLike, r: ArrayLike, *, beta: ArrayLike = 0.05) -> Any:
    """A lower bound on ε for any adaptive audit of a pure-DP mechanism, whenever it stopped.

    With probability 1 - β it never exceeds the true privacy level, at any number of guesses, even
    if the guesser saw each outcome and stopped where it liked. It is the largest ε whose e-process

        M = ∫ (q/p)^v ((1-q)/(1-p))^(r-v) dq / (1-p),   q from p = p(ε) to 1,

    is at least 1/β (for β > 1/e only those ε count for which p(ε) <= v / (r + 1)). For δ > 0 see
    :func:`oralib.valid_lower_bound`.

    Parameters
    ----------
    v, r : int or array
        How many guesses were right, and how many were taken, 0 <= v <= r.
    beta : float or array
        How often the bound may fail, in (0, 1).

    Examples
    --------
    >>> round(epsilon_lower_bound_anytime(731, 1000), 6)
    0.7737
    """
    beta, _ = _check.betas_and_deltas(beta)
    shape, (v, r, beta) = flat_counts(v, r, beta=beta)
    return float_if_single(anytime_bounds(v, r, beta).reshape(shape))


def free_to_stop_bounds(
    v: Array, r: Array, n: int, delta: float, beta: float
) -> NDArray[np.float64]:
    """Bounds for (ε, δ)-DP of guessers with full feedback who stop when they like.

    For δ > 0 the first guesses count for less: a few of the right ones are taken away (``shift``),
    and β is a little smaller. The anytime bound of what is left is rounded down to a multiple of
    0.001, and reported only if it has a certificate: right guesses of an (ε, δ)-DP mechanism meet
    the line of that bound with probability at most β. Otherwise the next smaller one is tried. This
    is valid however many steps it takes; that one is nearly always enough was found by trying.
    """
    if delta == 0:
        return anytime_bounds(v, r, np.full(v.size, beta))
    steps = np.arange(r.max(initial=0) + 1)
    fewer = np.maximum(v - _shift(steps, n * delta, beta)[r], 0)
    level = _level(n * delta, beta)
    bounds = anytime_bounds(fewer, r, np.full(v.size, level))
    certified = {b: _certified(floor(b * 1000), n, n * delta, beta) for b in {*bounds.tolist()}}
    return np.array([certified[b] for b in bounds.tolist()])


def _certified(thousandths: int, n: int, n_delta: float, beta: float) -> float:
    """The largest multiple of 0.001 with a certificate, from a number of them downwards."""

    def certified(first: int, last: int) -> bool:
        f, c = certificate(first, n, n_delta, beta, last)
        return f + c * n_delta <= beta

    while thousandths > 0:
        first = thousandths // 10 * 10
        if certified(first, first + 9) or certified(thousandths, thousandths):
            return thousandths / 1000
        thousandths -= 1
    return 0.0


@lru_cache(maxsize=4096)
def certificate(
    first: int, n: int, n_delta: float, beta: float, last: int | None = None
) -> tuple[float, float]:
    """(f, c) for n guesses and the line on which the bound reaches ``first`` thousandths of ε.

    They are for mechanisms of a privacy level up to ``last`` thousandths. As the lines of larger
    bounds are not below this one, all bounds from ``first`` to ``last`` share the certificate.
    """
    line = _anytime_line(n, first / 1000 - 1e-9, _level(n_delta, beta))
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


# ------------------------------------------------------------------------ the walk and the line


def _line(bound: Bound, n: int, epsilon: float) -> NDArray[np.int64]:
    """For r = 0, ..., n the least v whose bound exceeds ε, by bisection; r + 1 if none does."""
    r = np.arange(n + 1)
    low, high = np.full(n + 1, -1), r + 1  # the bound exceeds ε at high, not at low
    while (high - low > 1).any():
        middle = np.clip((low + high) // 2, 0, r)
        try:
            values = np.asarray(bound(middle, r), dtype=float)
        except TypeError as error:
            raise TypeError(f"bound must be a function of (v, r), got {bound!r}: {error}") from None
        exceeds = values > epsilon + _TIE * (1 + epsilon)
        high = np.where(exceeds, np.minimum(middle, high), high)
        low = np.where(exceeds, low, np.maximum(middle, low))
    return high


@jit
def _pure_line(n: int, epsilon: float, beta: float) -> Array:
    """For r = 0, ..., n the least v whose bound for δ = 0 exceeds ε: P[Bin(r, p(ε)) >= v] < β."""
    q, qc = odds(epsilon)
    line = np.ones(n + 1, dtype=np.int64)
    for r in range(1, n + 1):
        # One more guess moves the line up by 0 or 1.
        line[r] = line[r - 1]
        if tail(line[r], r, q, qc) >= beta * (1 - _TIE):
            line[r] += 1
    return line


@jit
def _anytime_line(n: int, epsilon: float, beta: float) -> Array:
    """For r = 0, ..., n the least v whose anytime bound is at least ε > 0; r + 1 if none is."""
    line = np.ones(n + 1, dtype=np.int64)
    for r in range(1, n + 1):
        # One more guess moves the line up by 0 or 1.
        line[r] = line[r - 1]
        if not _anytime_reaches(line[r], r, epsilon, beta):
            line[r] += 1
    return line


@jit
def _anytime_reaches(v: int, r: int, epsilon: float, beta: float) -> bool:
    """Whether the anytime bound of (v, r) is at least ε: see _anytime_bound."""
    if 2 * v <= r + 1 or epsilon > log(v / (r + 1 - v)):
        return False
    return _log_e_value(v, r, epsilon) >= -log(beta)


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


# ------------------------------------------------------------------------------- the e-process


@jit
def _log_e_value(v: int, r: int, epsilon: float) -> float:
    """log M: the integral is P[Bin(r + 1, p) <= v] / ((r + 1 - v) P[Bin(r + 1, p) = v])."""
    q, qc = odds(epsilon)
    if v <= (r + 1) * q:  # the ratio itself, where the law function is small
        return log(tail_over_pmf(r + 1 - v, r + 1, qc, q) / (r + 1 - v))
    return np.log1p(-tail(v + 1, r + 1, q, qc)) - log(r + 1 - v) - log_pmf(v, r + 1, q, qc)


@jit
def _anytime_bound(v: int, r: int, beta: float) -> float:
    """The largest ε >= 0 with M >= 1/β and p(ε) <= v / (r + 1), where M falls; 0 if none.

    For β < 1/e the second condition follows from the first. The search is written out, since a
    kernel that takes a function cannot be cached.
    """
    if 2 * v <= r + 1:
        return 0.0
    low, high = 0.0, log(v / (r + 1 - v))
    if _log_e_value(v, r, low) < -log(beta):
        return 0.0
    if _log_e_value(v, r, high) >= -log(beta):
        return high
    while True:
        middle = 0.5 * (low + high)
        if not low < middle < high or high - low < 1e-14 * (1 + low):
            return low
        if _log_e_value(v, r, middle) >= -log(beta):
            low = middle
        else:
            high = middle


@jit
def anytime_bounds(v: Array, r: Array, beta: Array) -> Array:
    """The anytime bounds of flat and checked counts."""
    out = np.empty(v.size)
    for i in range(v.size):
        out[i] = _anytime_bound(v[i], r[i], beta[i])
    return out
