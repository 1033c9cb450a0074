"""Isolated elements, one to a coordinate: the exact confidence of the best guesser in each.

Coordinates do not disturb each other, so all evidence about an element is on its own coordinate,
and a guesser sees

- the ``"sum"`` of its T noisy gradients, which the paper's guesser sorts by;
- or the ``"steps"``, all T of them, y_1, ..., y_T.

Let Λ be the log-likelihood ratio of its evidence, included against excluded; its sign is the best
guess, which is right with probability p(|Λ|). Λ rises with the sum; for all steps it is the sum
over the steps of log(1 - q + q exp((2 y_t - 1) / (2 σ²))).

*The k elements of largest |Λ| are the best to guess,* for every bound that rises with v: given all
outputs the coins are independent, so any k guesses are right independently, with probabilities that
are, in order, at most the k largest p(|Λ|). If all guesses must say "in", or "out", the same holds
for Λ, or -Λ, in place of |Λ|.

Given the k-th largest |Λ|, those above it are independent draws of the law above it, so V is
binomial, of k - 1 guesses, plus one coin; and the tail probability of the k-th largest is a beta
variable: one integral is left, which :func:`orabook.studies.ceiling.law_of_surest` computes.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import log
from typing import Any

import numpy as np
import scipy

from orabook.studies.tails import Reals, on_one_grid
from orabook.studies.tails_of_steps import step_tails
from orabook.studies.tails_of_sum import sum_tails
from oralib.dpsgd.setting import DpSgd
from oralib.ground import arguments
from oralib.ground.types import SAID, VIEWS, Said, View

__all__ = ["Confidence", "confidence", "isolated_limit"]

#: The allowed range of T q² / σ², which is roughly the information in the outputs: below it both
#: tails of Λ are alike up to rounding, above it that of wrong guesses is too small to be tabulated.
INFORMATION_RANGE = (1e-9, 1e5)
#: The smallest noise multiplier. Below it, the tail of wrong guesses is too small to be tabulated
#: even if T q² / σ² is small: one step with an element in its batch shows it almost surely.
SMALLEST_SIGMA = 0.05


@dataclass(frozen=True, eq=False)
class Confidence:
    """The confidence of guesses at isolated elements: the law of |Λ|, and its sign's errors.

    At each level, from 0 up, the logarithms of the probability that |Λ| exceeds it and the best
    guess is right, or wrong. If all guesses say "in", or "out", Λ or -Λ stands for |Λ|.
    """

    level: Reals
    log_right: Reals
    log_wrong: Reals

    @cached_property
    def _splines(self) -> list[Any]:
        log_either = np.logaddexp(self.log_right, self.log_wrong)
        log_tails = [self.log_right, self.log_wrong, log_either]
        return [scipy.interpolate.CubicSpline(self.level, log_tail) for log_tail in log_tails]

    def at(self, level: Any) -> tuple[Reals, Reals]:
        """(P[|Λ| > level, right], P[|Λ| > level, wrong])."""
        log_right, log_wrong, _ = self._splines
        return np.exp(log_right(level)), np.exp(log_wrong(level))

    def level_of(self, share: Any) -> Reals:
        """The level that |Λ| exceeds with probability ``share``."""
        spline = self._splines[2]
        log_tail = spline(self.level)
        goal = np.log(np.maximum(share, np.exp(log_tail[-1])))
        level = np.interp(-goal, -log_tail, self.level)
        for _ in range(4):  # Newton's method, from between two nodes
            step = (spline(level) - goal) / spline(level, 1)
            level = np.clip(level - step, 0, self.level[-1])
        return np.asarray(level)


def confidence(dpsgd: DpSgd, sees: View = "steps", *, side: Said = "both") -> Confidence:
    """The confidence of the best guesser in an element that has its own coordinate.

    The number of elements in a million of which it is surer than 9 to 1:

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
    low, high = INFORMATION_RANGE
    if not low <= information <= high or dpsgd.sigma < SMALLEST_SIGMA:
        raise ValueError(
            "dpsgd (or epsilon, if sigma follows from it) must show something and not everything: "
            f"steps · sample_rate² / sigma² must lie in [{low:g}, {high:g}], "
            f"and sigma be at least {SMALLEST_SIGMA:g}, "
            f"got steps={dpsgd.steps}, sample_rate={dpsgd.sample_rate:g} and sigma={dpsgd.sigma:g}"
        )
    return _confidence(dpsgd.steps, dpsgd.sample_rate, dpsgd.sigma, sees, side)


@lru_cache(maxsize=64)
def _confidence(steps: int, rate: float, sigma: float, sees: View, side: Said) -> Confidence:
    if steps == 1 or rate == 1:  # the sum of a full batch is sufficient, so both are the same
        sees = "sum"
    level, tails = _tails(sees, steps, rate, sigma)
    above_in, above_out, below_out, below_in = tails
    log_half = -log(2)  # a fair coin decides in or out
    if side == "in":
        log_right = above_in + log_half
        log_wrong = above_out + log_half
    elif side == "out":
        log_right = below_out + log_half
        log_wrong = below_in + log_half
    else:
        log_right = np.logaddexp(above_in, below_out) + log_half
        log_wrong = np.logaddexp(above_out, below_in) + log_half
    # -Λ ends early: nobody can be sure that an element was left out.
    is_finite = np.isfinite(log_right + log_wrong)
    columns = (level[is_finite], log_right[is_finite], log_wrong[is_finite])
    return Confidence(*arguments.read_only(columns))


def _tails(sees: View, steps: int, rate: float, sigma: float) -> tuple[Reals, list[Reals]]:
    """Return levels, and there the logarithms of four tails of Λ.

    The tails are Λ > level for included and excluded elements, and Λ < -level for excluded and
    included elements.
    """
    tails = sum_tails if sees == "sum" else step_tails
    return on_one_grid(*tails(steps, rate, sigma))


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
        log_right, log_wrong, _ = law._splines
        right = np.exp(log_right(epsilon))
        e_epsilon_wrong = np.exp(epsilon + log_wrong(epsilon))
        return float(right - e_epsilon_wrong) - leak / beta

    if excess(0.0) <= 0:
        return 0.0
    return float(scipy.optimize.brentq(excess, 0.0, law.level[-1], xtol=1e-12))
