"""Tails of Λ of an isolated element, for all steps of DP-SGD one by one.

Λ is the sum over the steps of L(y_t) = log(1 - q + q exp((2 y_t - 1) / (2 σ²))). Its tails are
integrated along a contour in the plane of its moment generating function, through a saddle point,
with errors below rounding.
"""

from dataclasses import dataclass
from math import log, log1p, pi, sqrt

import numpy as np
import scipy
from numpy.typing import NDArray

from orabook.studies.tails import TAIL_DEPTH, Reals, Side

__all__ = ["step_tails"]

#: Terms of an integral below exp(-NEGLIGIBLE_EXPONENT), about 1e-18, are left out.
NEGLIGIBLE_EXPONENT = 42.0
#: The most points of an integral along a contour, each of which is a sum over points of y.
LARGEST_WORK = 1e8


def step_tails(steps: int, rate: float, sigma: float) -> tuple[Side, Side]:
    """The tails of Λ above 0 and below, for all steps one by one."""
    step = _Step(steps, rate, sigma)
    middle = scipy.optimize.brentq(lambda theta: step.slopes(theta)[1], 0.0, 1.0, xtol=1e-13)
    above = _side(step, middle, 1, (1, 0))
    below = _side(step, middle, -1, (0, 1))
    return above, below


def _side(step: "_Step", middle: float, sign: int, poles: tuple[int, int]) -> Side:
    """The tails at saddle points for levels of 0 and more, denser near 0."""
    end = _end(step, sign, poles[0])
    theta = middle + (end - middle) * np.linspace(0, 1, 300) ** 1.5
    columns = zip(*map(step.slopes, theta), strict=True)
    value, x, spread = (np.array(column) for column in columns)
    first, second = (step.log_tails(theta, value, x, spread, sign, pole) for pole in poles)
    return sign * x, first, second


def _end(step: "_Step", sign: int, pole: int) -> float:
    """A saddle point beyond which the tail is negligible, by Chernoff's bound."""
    theta = pole + 0.5 * sign
    while abs(theta) <= 1e4:  # Λ has a smallest value, with hardly any tail
        value, x, _ = step.slopes(theta)
        if (theta - pole) * x - value > TAIL_DEPTH:
            break
        theta = pole + 1.25 * (theta - pole)
    return theta


@dataclass(frozen=True)
class _Step:
    """The log-likelihood ratio L of one step, a function of a normal y, and sums over all steps."""

    steps: int
    rate: float
    sigma: float

    def ratio(self, y: Reals) -> Reals:
        """L at y."""
        shift = (2 * y - 1) / (2 * self.sigma**2)
        return np.logaddexp(log1p(-self.rate), log(self.rate) + shift)

    def grid(self, smallest: float, largest: float, step: float) -> tuple[Reals, Reals]:
        """L, and the log-weights of excluded y, wherever exp(θ L) between two θ has any weight."""
        low = min(smallest, 0.0) - 10 * self.sigma
        high = max(largest, 0.0) + 10 * self.sigma
        y = np.linspace(low, high, int((high - low) / step) + 2)
        return self.ratio(y), scipy.stats.norm.logpdf(y, 0, self.sigma) + log(y[1] - y[0])

    def slopes(self, theta: float) -> tuple[float, float, float]:
        """K(θ) = T log E[exp(θ L)] of an excluded element, and its first two derivatives."""
        ratio, logs = self.grid(theta, theta, self.sigma / 16)
        logs = logs + theta * ratio
        largest = logs.max()
        weight = np.exp(logs - largest)
        total = weight.sum()
        mean = weight @ ratio / total
        variance = weight @ (ratio - mean) ** 2 / total
        return self.steps * (log(total) + largest), self.steps * mean, self.steps * variance

    def log_tails(
        self, theta: Reals, value: Reals, x: Reals, spread: Reals, sign: int, pole: int
    ) -> Reals:
        """log P[Λ > x], or of Λ < x if ``sign`` is -1; included elements have their pole at 1.

        ``theta`` are the saddle points of x, and ``value``, ``spread`` are K and K'' there.
        """
        smallest = 1 / sqrt(float(spread[0]))
        c = pole + sign * np.maximum(sign * (theta - pole), smallest)  # where the contours cross
        value = value.copy()
        spread = spread.copy()
        for i in np.flatnonzero(c != theta):
            value[i], _, spread[i] = self.slopes(c[i])
        scale = value - (c - pole) * x  # the tail is at most that, by Chernoff
        gap = (NEGLIGIBLE_EXPONENT - np.minimum(scale, 0)) / np.abs(c - pole)
        step = 2 * pi / max(float(gap.max()), 24 * sqrt(float(spread.max())))
        t = step * np.arange(int(self.length(c, spread, step) / step) + 2)
        power = self.characteristic(c, t)
        trapezoid = np.where(t == 0, 0.5, 1.0) * step / pi
        z = (c - pole)[:, None] + 1j * t
        terms = power * np.exp(-1j * t * x[:, None]) / z
        return np.log(np.abs(terms.real @ trapezoid)) + scale

    def length(self, c: Reals, spread: Reals, step: float) -> float:
        """The length of contours beyond which their terms are negligible."""
        length = 12 / sqrt(float(spread.min()))
        reach = max(float(c.max()), 0) - min(float(c.min()), 0) + 20 * self.sigma  # of y
        while True:
            if reach / self.spacing(length) * (length / step) > LARGEST_WORK:
                raise ValueError(
                    "dpsgd must have a law of all steps that is smooth enough to be integrated in "
                    f"a minute, got steps={self.steps}, sample_rate={self.rate:g} and "
                    f"sigma={self.sigma:g}; more steps or more noise make it smoother, and "
                    "sees='sum' needs neither"
                )
            last = np.abs(self.characteristic(c, np.array([length])))
            if last.max() < np.exp(-NEGLIGIBLE_EXPONENT):
                return length
            length *= 1.5

    def spacing(self, largest_t: float) -> float:
        """The spacing of y that does not alias the fastest waves of exp(i t L) to slow ones."""
        return 2 * pi / (largest_t / self.sigma**2 + 16 / self.sigma)

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
            log_size = np.log(np.abs(out))
        angle = np.angle(out)
        return np.exp(self.steps * log_size) * np.exp(1j * self.steps * angle)
