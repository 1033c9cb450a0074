"""The audit of Section 6 in O(k): only the coordinates that are guessed are drawn, exactly.

With k guesses, k/2 for the highest elements and k/2 for the lowest, a trial depends on the ``top``
highest and the ``bottom`` lowest of the d coordinates, at most k together. Only these are drawn,
whatever d, n and the number of steps are.

*Which quantiles.* The scores of the d coordinates are independent with one continuous law, so
their upper tail probabilities P are independent and uniform, and the order of the scores is that of
the P. By Rényi's representation the P of the h-th highest is G / (G + G'), G and G' independent
gamma variables of shapes h and d - h + 1; and given it, the h - 1 above it are, in any order,
independent and uniform below that P, the d - h others independent and uniform above (the joint
density of all is constant, so it factors). The same holds once more for the l-th lowest of those
d - h others if l + h <= d, and gives both ends the right dependence. If l + h = d + 1, the most
that k <= n allows, both ends meet in one coordinate, and all others are above or below it.

*Which elements are included.* Given all scores, the coins of different coordinates are independent,
and those of one depend on its own score alone, since pairs (score, coins) of different coordinates
are independent of each other. For a coordinate with s elements, a of them guessed, all we need is
the number J of included elements among these a. Its law given the score x is

    P[J = j | x] ∝ C(a, j) f_j(x),   f_j the density of Bin(j T, q) + Bin(M T, q) + σ √T Z,

M ~ Bin(s - a, 1/2), as elements of a coordinate are exchangeable. So J is drawn from that law at
the score of tail probability P, and the right guesses have the law of the whole audit.

What is tabulated is P[J <= j] at equal steps of y = log((1 - P) / P). The densities and tails have
closed characteristic functions, and are integrated on a contour through the saddle point, which
keeps all digits even far out in the tail: no binomial is replaced by a normal. The steps are halved
until the interpolation error is below 1e-9, too small to show in any sample that fits on a machine.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, log, pi, sqrt
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.random import Generator
from numpy.typing import NDArray

from oralib._jit import jit
from oralib.dpsgd.training import DpSgd, ones_among
from oralib.mechanisms import Array

Reals = NDArray[Any]  # of doubles

#: The largest error of a tabulated probability.
_ERROR = 1e-9
#: Integrands and probabilities below exp(-_NEGLIGIBLE_EXPONENT), about 1e-18, are left out.
_NEGLIGIBLE_EXPONENT = 42.0
#: More than this takes too long to tabulate: points of an integral, integrands of a table.
_MOST_POINTS, _MOST_WORK = 4 * 10**6, 3 * 10**8
#: Integrands that are computed at once, which limits the memory.
_CHUNK = 2 * 10**5


class End(NamedTuple):
    """One end of the order: how many coordinates are guessed there, and their tables.

    On the innermost coordinate ``part`` elements are guessed, on the others all. Tables hold
    P[J <= j | y] for j = 0, 1, ... in their columns, at y = start + step i in their rows.
    """

    coordinates: int
    part: int
    start: float
    step: float
    border: Reals
    whole: Reals


class Extremes(NamedTuple):
    """Both ends of the order of d coordinates with s elements each.

    If both ends guess elements of one coordinate, the table of the high end has it for both.
    """

    s: int
    d: int
    high: End
    low: End


def coordinates_needed(dpsgd: DpSgd, k: int) -> int:
    """How many coordinates k guesses involve."""
    s = dpsgd.per_coordinate
    return min(ceil_ratio(k - k // 2, s) + ceil_ratio(k // 2, s), dpsgd.used_coordinates)


def ceil_ratio(a: int, b: int) -> int:
    """a / b rounded up."""
    return -(-a // b)


@lru_cache(maxsize=32)
def extremes_of(dpsgd: DpSgd, k: int) -> Extremes:
    """The tables that k guesses need; a ValueError where the noise is too small for them."""
    s, d = dpsgd.per_coordinate, dpsgd.used_coordinates
    law = _Score(s, dpsgd.steps, dpsgd.sample_rate, dpsgd.sigma**2 * dpsgd.steps)
    top, bottom = ceil_ratio(k - k // 2, s), ceil_ratio(k // 2, s)
    high, low = k - k // 2 - (top - 1) * s, k // 2 - (bottom - 1) * s
    far = log(d) + _NEGLIGIBLE_EXPONENT  # no y is farther from 0, but for a negligible chance
    if top + bottom > d:  # one coordinate is drawn for both ends, anywhere in the order
        both = high + low
        tables = _tabulate(law, both, s if d > 1 else both, -far, far)
        return Extremes(s, d, End(top, high, *tables), End(bottom, low, *tables))
    tables = _tabulate(law, high, s if top > 1 else high, -_innermost_log_odds(top, d, far), far)
    upper = End(top, high, *tables)
    if bottom == 0:
        return Extremes(s, d, upper, End(0, 0, *tables))
    inner = _innermost_log_odds(bottom, d, far)
    tables = _tabulate(law, low, s if bottom > 1 else low, -far, inner)
    return Extremes(s, d, upper, End(bottom, low, *tables))


def _innermost_log_odds(number: int, d: int, far: float) -> float:
    """Log-odds that the tail probability of an end's innermost coordinate does not exceed."""
    most = scipy.special.betainccinv(number, d - number + 1, np.exp(-_NEGLIGIBLE_EXPONENT))
    return min(float(scipy.special.logit(most)), far)


# --------------------------------------------------------------------- the law of a coordinate


@dataclass(frozen=True)
class _Score:
    """The score of a coordinate, by its cumulant generating function K.

    exp K(z) = ((1 + φ(z)) / 2)^s exp(variance z² / 2) with φ(z) = (1 - q + q e^z)^T for an included
    element.
    """

    s: int
    steps: int
    rate: float
    variance: float

    def included(self, z: Any) -> Any:
        """log φ, without cancellation even where e^z is almost 0."""
        if self.rate > 0.5:
            return self.steps * (z + _log1p((1 - self.rate) * np.expm1(-z)))
        return self.steps * _log1p(self.rate * np.expm1(z))

    def slopes(self, theta: Reals) -> tuple[Reals, Reals, Reals]:
        """K and its first two derivatives, for real arguments."""
        element = self.included(theta)
        tilted = 1 / (1 + (1 - self.rate) / self.rate * np.exp(-theta))
        w = scipy.special.expit(element)
        mean = self.steps * tilted
        value = self.s * np.log1p(np.expm1(element) / 2) + self.variance * theta**2 / 2
        first = self.s * w * mean + self.variance * theta
        second = self.s * w * ((1 - w) * mean**2 + mean * (1 - tilted)) + self.variance
        return value, first, second

    def logs(self, c: Reals, t: Reals) -> tuple[NDArray[np.complex128], NDArray[np.complex128]]:
        """log φ and log((1 + φ) / 2) at c + i t, up to multiples of 2πi that exp does not see."""
        element = self.included(c[:, None] + 1j * t)
        return element, _log1p(np.expm1(element) / 2)


def _log1p(z: Any) -> Any:
    """log(1 + z) with all digits for small z, unlike NumPy's; -1e4 for log 0."""
    if not np.iscomplexobj(z):
        return np.log1p(z)
    with np.errstate(divide="ignore"):
        real = 0.5 * np.log1p(np.maximum(z.real * (2 + z.real) + z.imag**2, -1.0))
    return np.maximum(real, -1e4) + 1j * np.arctan2(z.imag, 1 + z.real)


@dataclass(frozen=True, eq=False)
class _Contours:
    """Where to integrate: x and saddle points to interpolate in, and the points t of the integrals.

    ``least`` is how close a contour may come to the pole of a tail, at 0.
    """

    law: _Score
    x: Reals
    y: Reals
    theta: Reals
    least: float
    step: float
    t: Reals

    def near(self, x: Reals, upper: NDArray[np.bool_]) -> Reals:
        """The saddle points of these x, on the side of their tail."""
        theta = np.interp(x, self.x, self.theta)
        return np.where(upper, np.maximum(theta, self.least), np.minimum(theta, -self.least))


@lru_cache(maxsize=8)
def _contours(law: _Score, farthest: float) -> _Contours:
    """Contours for all x whose tails are no smaller than exp(-farthest)."""
    sd = sqrt(float(law.slopes(np.zeros(1))[2][0]))
    ends = []
    for sign in (-1, 1):
        end = sign / sd
        while True:  # until Chernoff's bound says that the tail is smaller
            if abs(end) > 30 or abs(law.included(np.float64(end))) > 600:
                raise ValueError(_too_small(law))
            value, place, _ = (float(each[0]) for each in law.slopes(np.array([end])))
            if end * place - value > farthest + 3:
                break
            end *= 1.25
        ends.append(end)
    theta = np.concatenate([np.linspace(ends[0], 0, 800), np.linspace(0, ends[1], 800)[1:]])
    k, x, spread = law.slopes(theta)
    w = np.sign(theta) * np.sqrt(2 * np.maximum(theta * x - k, 0))
    # Lugannani and Rice's approximation, to start from.
    y = scipy.special.log_ndtr(w) - scipy.special.log_ndtr(-w)
    least = 1 / sd
    # The trapezoidal rule adds what lies a period away: a tail of 1, damped by exp(-c period).
    c = np.maximum(np.abs(theta), least)
    period = max(
        float(((np.abs(y) + _NEGLIGIBLE_EXPONENT) / c).max()), 24 * sqrt(float(spread.max()))
    )
    step = 2 * pi / period
    most = sqrt(2 * _NEGLIGIBLE_EXPONENT / law.variance) / step
    if most > _MOST_POINTS:
        raise ValueError(_too_small(law))
    return _Contours(law, x, y, theta, least, step, _points(law, theta, least, step, ceil(most)))


def _points(law: _Score, theta: Reals, least: float, step: float, most: int) -> Reals:
    """The multiples of ``step`` at which an integrand is not negligible.

    Only every fourth place is checked: there are dozens per standard deviation.
    """
    tried = np.array([theta[0], -least, least, theta[-1]])
    at_zero = law.s * law.logs(tried, np.zeros(1))[1].real
    kept = []
    for first in range(0, most + 1, _CHUNK):
        places = np.arange(first, min(first + _CHUNK, most + 4), 4)
        t = step * places
        size = law.s * law.logs(tried, t)[1].real - law.variance * t**2 / 2 - at_zero
        kept.append(places[(size > -_NEGLIGIBLE_EXPONENT - 10).any(axis=0)])
    every = np.concatenate(kept)[:, None] + np.arange(-3, 4)
    return step * np.unique(every[every >= 0])


def _too_small(law: _Score) -> str:
    return (
        "sigma must be large enough to blur the counts of a coordinate, and k small enough to "
        "tabulate them, or method='collapsed', "
        f"got sigma={sqrt(law.variance / law.steps):g} with steps={law.steps}, "
        f"sample_rate={law.rate:g} and n / d = {law.s}"
    )


def _integrals(
    on: _Contours, x: Reals, c: Reals, a: int | None
) -> tuple[Reals, Reals, NDArray[np.float64]]:
    """(log tail, log density, weights of J) at each x, integrated along c + i t.

    The tail is the upper one for c > 0, the lower one for c < 0; the weights are those of J = 0,
    ..., a, and sum to 1 up to rounding. If ``a`` is None there are no weights.
    """
    law, t = on.law, on.t
    element, pair = law.logs(c, t)
    k = law.slopes(c)[0]
    trapezoid = np.where(t == 0, 0.5, 1.0) * on.step / pi
    noise = law.variance * (c[:, None] * 1j * t - t**2 / 2) - 1j * t * x[:, None]
    start = law.s * law.logs(c, np.zeros(1))[1].real
    whole = np.exp(law.s * pair - start + noise) * trapezoid
    density = whole.real.sum(axis=1)
    tail = np.abs((whole / (c[:, None] + 1j * t)).real.sum(axis=1))
    scale = k - c * x
    weights = np.empty((x.size, 0 if a is None else a + 1))
    if a is not None:
        rest = (law.s - a) * pair - start + noise
        j = np.arange(a + 1)
        # The logarithm of C(a, j) / 2^a.
        chosen = -scipy.special.betaln(j + 1, a - j + 1) - log(a + 1) - a * log(2)
        for i in j:
            power = rest + i * element
            terms = np.exp(power.real + chosen[i]) * np.cos(power.imag)
            weights[:, i] = terms @ trapezoid
        weights /= density[:, None]
    return np.log(tail) + scale, np.log(density) + scale, weights


def _blocks(on: _Contours, x: Reals, c: Reals, a: int | None) -> tuple[Reals, Reals, Reals]:
    """Like _integrals, a few x at a time."""
    size = max(1, _CHUNK // on.t.size)
    parts = [_integrals(on, x[i : i + size], c[i : i + size], a) for i in range(0, x.size, size)]
    return tuple(np.concatenate(part) for part in zip(*parts, strict=True))  # type: ignore[return-value]


def _scores_at(on: _Contours, y: Reals) -> tuple[Reals, Reals]:
    """The scores x with log P[score <= x] / P[score > x] = y, and contours for them."""
    upper = y >= 0
    goal = -np.logaddexp(0, np.abs(y))  # the log of the smaller tail
    x = np.interp(y, on.y, on.x)
    sd = 1 / on.least
    for _ in range(50):
        c = on.near(x, upper)
        tail, density, _ = _blocks(on, x, c, None)
        # log tails are concave, so Newton's method cannot diverge.
        move = np.where(upper, 1, -1) * (tail - goal) * np.exp(tail - density)
        x = x + move
        if np.abs(move).max() < 1e-11 * sd:
            break
    return x, on.near(x, upper)


def _tabulate(
    law: _Score, border: int, whole: int, start: float, end: float
) -> tuple[float, float, Reals, Reals]:
    """(first y, step, and tables of P[J <= j | y] for both numbers of elements).

    Equal numbers of elements share a table. The step is halved until it is small enough.
    """
    step = 0.25
    sizes = sorted({border, whole})
    on = _contours(law, max(abs(start), abs(end)) + 3)
    start -= 2 * step
    y = start + step * np.arange(ceil((end - start) / step) + 4)
    tables: list[Reals] | None = None
    while True:
        if len(y) * on.t.size * (sum(sizes) + 2) > _MOST_WORK:
            raise ValueError(_too_small(law))
        if tables is None:
            tables = _cumulative(on, y, sizes)
        middle = y[:-1] + step / 2
        between = _cumulative(on, middle, sizes)
        pairs = list(zip(tables, between, strict=True))
        missed = max(float(np.abs(_midpoints(rows) - new[2:-2]).max()) for rows, new in pairs)
        places = np.arange(1, len(y))
        tables = [np.insert(rows, places, new, axis=0) for rows, new in pairs]
        y, step = np.insert(y, places, middle), step / 2
        if missed < 32 * _ERROR:  # halving the step has divided it by 64
            return start, step, tables[sizes.index(border)], tables[sizes.index(whole)]


def _cumulative(on: _Contours, y: Reals, sizes: list[int]) -> list[Reals]:
    x, c = _scores_at(on, y)
    weights = [_blocks(on, x, c, a)[2] for a in sizes]
    return [np.clip(np.cumsum(w, axis=1)[:, :-1], 0, 1) for w in weights]


def _midpoints(rows: Reals) -> Reals:
    """Between six rows, by the polynomial through them."""
    weights = np.array([3, -25, 150, 150, -25, 3]) / 256
    return sum(w * rows[i : len(rows) - 5 + i] for i, w in enumerate(weights))


# ---------------------------------------------------------------------------------- the trials


@jit
def play_extremes(extremes: Extremes, trials: int, rng: Generator) -> Array:
    """Right guesses in each of several audits.

    In each audit, draw the tail probability of the high end's innermost coordinate by two gamma
    variables, and those of the coordinates above it as uniform numbers beyond. Do the same at the
    low end, among the coordinates below. For each of them draw how many of its guessed elements are
    included, from the table at its tail probability.
    """
    s, d, high, low = extremes
    v = np.empty(trials, dtype=np.int64)
    weights = np.empty(6)
    top, bottom = high.coordinates, low.coordinates
    meet = top + bottom > d
    for trial in range(trials):
        # The innermost coordinate of the high end, and the shares of the line above and below it.
        one, other = rng.standard_gamma(top), rng.standard_gamma(d - top + 1)
        above, below = one / (one + other), other / (one + other)
        right = _draw(log(other / one), high.start, high.step, high.border, weights, rng)
        if meet:
            drawn = ones_among(high.part, right, high.part + low.part, rng)
            right = drawn + low.part - (right - drawn)
        for _ in range(top - 1):
            share = above * (1 - rng.random())
            y = log((1 - share) / share)
            right += _draw(y, high.start, high.step, high.whole, weights, rng)
        if bottom > 0 and not meet:
            # The innermost coordinate of the low end is one of those below.
            one, other = rng.standard_gamma(bottom), rng.standard_gamma(d - top - bottom + 1)
            below *= one / (one + other)
            y = log(below / (1 - below))
            right += low.part - _draw(y, low.start, low.step, low.border, weights, rng)
        for _ in range(bottom - 1):
            share = below * (1 - rng.random())
            y = log(share / (1 - share))
            right += s - _draw(y, low.start, low.step, low.whole, weights, rng)
        v[trial] = right
    return v


@jit
def _draw(
    y: float, start: float, step: float, cumulative: Array, weights: Array, rng: Generator
) -> int:
    """J at y: interpolate P[J <= j] between six rows, where bisection looks for a uniform."""
    place = min(max((y - start) / step, 2.0), cumulative.shape[0] - 4.0)
    row = int(place)
    f = place - row
    weights[0] = -(f + 1) * f * (f - 1) * (f - 2) * (f - 3) / 120
    weights[1] = (f + 2) * f * (f - 1) * (f - 2) * (f - 3) / 24
    weights[2] = -(f + 2) * (f + 1) * (f - 1) * (f - 2) * (f - 3) / 12
    weights[3] = (f + 2) * (f + 1) * f * (f - 2) * (f - 3) / 12
    weights[4] = -(f + 2) * (f + 1) * f * (f - 1) * (f - 3) / 24
    weights[5] = (f + 2) * (f + 1) * f * (f - 1) * (f - 2) / 120
    u = rng.random()
    first, last = 0, cumulative.shape[1]
    while first < last:
        j = (first + last) // 2
        value = 0.0
        for i in range(6):
            value += weights[i] * cumulative[row - 2 + i, j]
        if value > u:
            last = j
        else:
            first = j + 1
    return first
