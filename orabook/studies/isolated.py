"""Isolated elements, one to a coordinate: how sure the best guesser can be of each, exactly.

Coordinates do not disturb each other, so all evidence about an element is on its own coordinate:

- ``"sum"``: the sum of its T noisy gradients, which the paper's guesser sorts by;
- ``"steps"``: all T of them, y_1, ..., y_T, which is all there is to know.

Let Λ be the log-likelihood ratio of what is seen, included against excluded; its sign is the best
guess, which is right with probability p(|Λ|). For the sum it is a monotone function of it; for
all steps it is the sum over the steps of log(1 - q + q exp((2 y_t - 1) / (2 σ²))).

*The k elements of largest |Λ| are the best to guess,* for every bound that rises with v: given all
outputs the coins are independent, so any k guesses are right independently, with probabilities that
are, in order, at most the k largest p(|Λ|). If all guesses must say "in", or "out", the same holds
for Λ, or -Λ, in place of |Λ|.

Given the k-th largest |Λ|, those above it are independent draws of the law above it, so V is
binomial, of k - 1 guesses, plus one coin; and the tail probability of the k-th largest is a beta
variable: one integral is left. The tails of Λ for all steps are integrated along a contour in the
plane of its moment generating function, with errors below rounding, and interpolated by splines.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import log, log1p, pi, sqrt
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from oralib.dpsgd.setting import DpSgd
from oralib.ground import arguments
from oralib.ground.types import SAID, VIEWS, Said, View

Reals = NDArray[Any]  # of doubles

#: Probabilities below exp(-_NEGLIGIBLE_EXPONENT), about 1e-18, are left out.
_NEGLIGIBLE_EXPONENT = 42.0
#: Tails are tabulated down to exp(-_TAIL_DEPTH).
_TAIL_DEPTH = 80.0
#: Points of the integrals along a contour, each of which is a sum over points of y.
_MOST_WORK = 1e8
#: The allowed range of T q² / σ², about the information in the outputs, and the least σ: elsewhere
#: both tails of Λ are alike up to rounding, or that of wrong guesses is too small to be tabulated.
_INFORMATION_RANGE, _LEAST_SIGMA = (1e-9, 1e5), 0.05


@dataclass(frozen=True, eq=False)
class Confidence:
    """How sure a guess at an isolated element can be: the law of |Λ|, and its sign's errors.

    At each level, from 0 up, the logarithms of the probability that |Λ| exceeds it and the best
    guess is right, or wrong. If all guesses say "in", or "out", Λ or -Λ stands for |Λ|.
    """

    level: Reals
    log_right: Reals
    log_wrong: Reals

    @cached_property
    def _splines(self) -> list[Any]:
        tails = self.log_right, self.log_wrong, np.logaddexp(self.log_right, self.log_wrong)
        return [scipy.interpolate.CubicSpline(self.level, logs) for logs in tails]

    def at(self, level: Any) -> tuple[Reals, Reals]:
        """(P[|Λ| > level, right], P[|Λ| > level, wrong])."""
        right, wrong, _ = self._splines
        return np.exp(right(level)), np.exp(wrong(level))

    def level_of(self, share: Any) -> Reals:
        """The level that |Λ| exceeds with probability ``share``."""
        spline = self._splines[2]
        tail = spline(self.level)
        goal = np.log(np.maximum(share, np.exp(tail[-1])))
        level = np.interp(-goal, -tail, self.level)
        for _ in range(4):  # Newton's method, from between two nodes
            step = (spline(level) - goal) / spline(level, 1)
            level = np.clip(level - step, 0, self.level[-1])
        return np.asarray(level)


def confidence(dpsgd: DpSgd, sees: View = "steps", *, side: Said = "both") -> Confidence:
    """How sure the best guesser can be of an element that has its own coordinate.

    For how many elements in a million can it be surer than 9 to 1?

    >>> law = confidence(DpSgd(n=1000, sigma=2.4224))
    >>> right, wrong = law.at(log(9))
    >>> round(1e6 * float(right + wrong), 1)
    1.9
    """
    arguments.one_of("sees", sees, VIEWS)
    arguments.one_of("side", side, SAID)
    if dpsgd.n > dpsgd.d:
        raise ValueError(
            "dpsgd must have a coordinate for each element, n <= d, "
            f"got n={dpsgd.n} and d={dpsgd.d}"
        )
    information = dpsgd.steps * dpsgd.sample_rate**2 / dpsgd.sigma**2
    least, most = _INFORMATION_RANGE
    if not least <= information <= most or dpsgd.sigma < _LEAST_SIGMA:
        raise ValueError(
            "dpsgd (or epsilon, if sigma follows from it) must show something and not everything: "
            f"steps · sample_rate² / sigma² must lie in [{least:g}, {most:g}], "
            f"and sigma be at least {_LEAST_SIGMA:g}, "
            f"got steps={dpsgd.steps}, sample_rate={dpsgd.sample_rate:g} and sigma={dpsgd.sigma:g}"
        )
    return _confidence(dpsgd.steps, dpsgd.sample_rate, dpsgd.sigma, sees, side)


@lru_cache(maxsize=64)
def _confidence(steps: int, rate: float, sigma: float, sees: View, side: Said) -> Confidence:
    if steps == 1 or rate == 1:  # the sum of a full batch is sufficient, so both are the same
        sees = "sum"
    tails = _sum_tails if sees == "sum" else _step_tails
    level, logs = tails(steps, rate, sigma)
    # P[Λ > level] and P[Λ < -level], each for included (1) and excluded (0).
    above1, above0, below0, below1 = logs
    half = log(2)
    right, wrong = {
        "both": (np.logaddexp(above1, below0) - half, np.logaddexp(above0, below1) - half),
        "in": (above1 - half, above0 - half),
        "out": (below0 - half, below1 - half),
    }[side]
    some = np.isfinite(right + wrong)  # -Λ ends early: nobody can be sure of being left out
    return Confidence(*arguments.read_only((level[some], right[some], wrong[some])))


def isolated_limit(
    dpsgd: DpSgd,
    *,
    sees: View = "steps",
    beta: float = 0.05,
    delta: float,
    side: Said = "both",
) -> float:
    """The limit of the best guesser's exact (ε, δ) bound with more and more isolated elements.

    With v right and w wrong guesses among n elements, all of them many, the exact p-value is at
    most β where v - e^ε w >= n δ / β. Both sides grow like n, and the left one is largest for
    guesses where |Λ| > ε. So the bound ends at the ε with

        P[|Λ| > ε, right] - e^ε P[|Λ| > ε, wrong] = δ / β.

    If all guesses say "in", or "out", δ / 2 stands for δ.

    >>> round(isolated_limit(DpSgd(n=1000, sigma=2.4224), delta=1e-5), 3)
    1.353
    """
    law = confidence(dpsgd, sees, side=side)
    leak = delta if side == "both" else delta / 2

    def excess(epsilon: float) -> float:
        right, wrong, _ = law._splines
        return float(np.exp(right(epsilon)) - np.exp(epsilon + wrong(epsilon))) - leak / beta

    if excess(0.0) <= 0:
        return 0.0
    return float(scipy.optimize.brentq(excess, 0.0, law.level[-1], xtol=1e-12))


# --------------------------------------------------------------------------------------- sum


def _sum_tails(steps: int, rate: float, sigma: float) -> tuple[Reals, list[Reals]]:
    """Levels, and the logarithms of four tails of Λ there, for the sum of all steps."""
    noise = sigma * sqrt(steps)
    total = np.arange(steps + 1)  # in how many steps an element can be
    log_weight = scipy.stats.binom.logpmf(total, steps, rate)
    kept = log_weight > -2 * _TAIL_DEPTH
    total, log_weight = total[kept], log_weight[kept]

    def ratio(x: Reals) -> Reals:
        """Λ, which rises with the sum x."""
        return scipy.special.logsumexp(
            log_weight + (2 * x[:, None] * total - total**2) / (2 * noise**2), axis=1
        )

    def tail(side: int, included: bool, x: Reals) -> Reals:
        if not included:
            return scipy.special.log_ndtr(-side * x / noise)
        return scipy.special.logsumexp(
            log_weight + scipy.special.log_ndtr(-side * (x[:, None] - total) / noise), axis=1
        )

    zero = scipy.optimize.brentq(
        lambda x: ratio(np.array([x]))[0], -40 * noise, 40 * noise + steps, xtol=1e-12
    )
    reach = 1.3 * sqrt(2 * _TAIL_DEPTH) * noise + steps
    x = zero + reach * np.linspace(0, 1, 1500) ** 1.5
    up = (ratio(x), tail(1, True, x), tail(1, False, x))
    x = zero - reach * np.linspace(0, 1, 1500) ** 1.5
    down = (-ratio(x), tail(-1, False, x), tail(-1, True, x))
    return _merged(up, down)


def _merged(
    up: tuple[Reals, Reals, Reals], down: tuple[Reals, Reals, Reals]
) -> tuple[Reals, list[Reals]]:
    """Four log-tails on one grid of levels.

    Excluded elements are seldom surer than some level, so the lower tails end before the others.
    """
    tails = []
    reach = up[0][up[1] > -_TAIL_DEPTH][-1]
    level = reach * np.linspace(0, 1, 2000) ** 1.2
    for levels, *logs in (up, down):
        levels = np.concatenate([[0.0], levels[1:]])  # where Λ is 0 up to rounding
        kept = np.concatenate([[True], np.diff(levels) > 1e-9]) & (logs[0] > -6 * _TAIL_DEPTH)
        for each in logs:
            spline = scipy.interpolate.CubicSpline(levels[kept], each[kept])
            inside = level <= levels[kept][-1]
            value = np.full(level.size, -np.inf)
            value[inside] = spline(level[inside])
            tails.append(value)
    return level, tails


# --------------------------------------------------------------------------------- all steps


def _step_tails(steps: int, rate: float, sigma: float) -> tuple[Reals, list[Reals]]:
    """Levels, and the logarithms of four tails of Λ there, for all steps one by one."""
    step = _Step(steps, rate, sigma)
    middle = scipy.optimize.brentq(lambda theta: step.slopes(theta)[1], 0.0, 1.0, xtol=1e-13)
    sides: list[Any] = []
    for sign, poles in ((1, (1, 0)), (-1, (0, 1))):
        # Saddle points for levels of 0 and more, denser near 0.
        end = _end(step, sign, poles[0])
        theta = middle + (end - middle) * np.linspace(0, 1, 300) ** 1.5
        value, x, spread = (np.array(each) for each in zip(*map(step.slopes, theta), strict=True))
        logs = [step.log_tails(theta, value, x, spread, sign, pole) for pole in poles]
        sides.append((sign * x, *logs))
    return _merged(*sides)


def _end(step: "_Step", sign: int, pole: int) -> float:
    """A saddle point beyond which the tail is negligible, by Chernoff's bound."""
    theta = pole + 0.5 * sign
    while abs(theta) <= 1e4:  # Λ has a least value, with hardly any tail
        value, x, _ = step.slopes(theta)
        if (theta - pole) * x - value > _TAIL_DEPTH:
            break
        theta = pole + 1.25 * (theta - pole)
    return theta


@dataclass(frozen=True)
class _Step:
    """The log-likelihood ratio L of one step, a function of a normal y, and sums of such."""

    steps: int
    rate: float
    sigma: float

    def ratio(self, y: Reals) -> Reals:
        """L at y."""
        shift = (2 * y - 1) / (2 * self.sigma**2)
        return np.logaddexp(log1p(-self.rate), log(self.rate) + shift)

    def grid(self, least: float, most: float, step: float) -> tuple[Reals, Reals]:
        """L, and the log-weights of excluded y, wherever exp(θ L) between two θ has any weight."""
        low, high = min(least, 0.0) - 10 * self.sigma, max(most, 0.0) + 10 * self.sigma
        y = np.linspace(low, high, int((high - low) / step) + 2)
        return self.ratio(y), scipy.stats.norm.logpdf(y, 0, self.sigma) + log(y[1] - y[0])

    def slopes(self, theta: float) -> tuple[float, float, float]:
        """K(θ) = T log E[exp(θ L)] of an excluded element, and its first two derivatives."""
        ratio, logs = self.grid(theta, theta, self.sigma / 16)
        logs = logs + theta * ratio
        most = logs.max()
        weight = np.exp(logs - most)
        total = weight.sum()
        mean = weight @ ratio / total
        variance = weight @ (ratio - mean) ** 2 / total
        return self.steps * (log(total) + most), self.steps * mean, self.steps * variance

    def log_tails(
        self, theta: Reals, value: Reals, x: Reals, spread: Reals, sign: int, pole: int
    ) -> Reals:
        """log P[Λ > x], or of Λ < x if ``sign`` is -1; included elements have their pole at 1.

        ``theta`` are the saddle points of x, and ``value``, ``spread`` are K and K'' there.
        """
        least = 1 / sqrt(float(spread[0]))
        c = pole + sign * np.maximum(sign * (theta - pole), least)
        moved = c != theta
        value, spread = value.copy(), spread.copy()
        for i in np.flatnonzero(moved):
            value[i], _, spread[i] = self.slopes(c[i])
        scale = value - (c - pole) * x  # the tail is at most that, by Chernoff
        gap = (_NEGLIGIBLE_EXPONENT - np.minimum(scale, 0)) / np.abs(c - pole)
        step = 2 * pi / max(float(gap.max()), 24 * sqrt(float(spread.max())))
        most = 12 / sqrt(float(spread.min()))
        reach = max(float(c.max()), 0) - min(float(c.min()), 0) + 20 * self.sigma  # of y
        while True:
            if reach / self.spacing(most) * (most / step) > _MOST_WORK:
                raise ValueError(
                    "dpsgd must have a law of all steps that is smooth enough to be integrated in "
                    f"a minute, got steps={self.steps}, sample_rate={self.rate:g} and "
                    f"sigma={self.sigma:g}; more steps or more noise make it smoother, and "
                    "sees='sum' needs neither"
                )
            if np.abs(self.characteristic(c, np.array([most]))).max() < np.exp(
                -_NEGLIGIBLE_EXPONENT
            ):
                break
            most *= 1.5
        t = step * np.arange(int(most / step) + 2)
        power = self.characteristic(c, t)
        trapezoid = np.where(t == 0, 0.5, 1.0) * step / pi
        z = (c - pole)[:, None] + 1j * t
        terms = power * np.exp(-1j * t * x[:, None]) / z
        return np.log(np.abs(terms.real @ trapezoid)) + scale

    def spacing(self, most: float) -> float:
        """The spacing of y that does not alias the fastest waves of exp(i t L) to slow ones."""
        return 2 * pi / (most / self.sigma**2 + 16 / self.sigma)

    def characteristic(self, c: Reals, t: Reals) -> NDArray[np.complex128]:
        """exp(K(c + i t) - K(c)), a row for each c."""
        ratio, logs = self.grid(float(c.min()), float(c.max()), self.spacing(float(t[-1])))
        tilted = logs + c[:, None] * ratio
        weight = np.exp(tilted - tilted.max(axis=1, keepdims=True))
        weight /= weight.sum(axis=1, keepdims=True)
        out = np.empty((c.size, t.size), dtype=complex)
        for i in range(0, t.size, 256):
            waves = np.outer(ratio, t[i : i + 256])
            out[:, i : i + 256] = weight @ np.cos(waves) + 1j * (weight @ np.sin(waves))
        with np.errstate(divide="ignore"):
            size, angle = np.log(np.abs(out)), np.angle(out)
        return np.exp(self.steps * size) * np.exp(1j * self.steps * angle)
