"""Steinke et al.'s bound, which the paper uses for (ε, δ)-DP.

With W ~ Bin(r, p(ε)) and f = P[W >= v], the p-value of v right guesses is

    f + 2 n δ max_i P[v > W >= v - i] / i.

See the paper's Section 2, and Steinke, Nasr and Jagielski, "Privacy Auditing with One (1) Training
Run", NeurIPS 2023.
"""

from dataclasses import dataclass
from typing import ClassVar

from oralib.bounds.counts import Counts
from oralib.bounds.pure import pure_p_value
from oralib.bounds.rule import Audits, Rule, exact_is_proved
from oralib.bounds.search import by_search
from oralib.ground.binomial import best_window, odds, pmf, tail_and_pmf
from oralib.ground.jit import formula
from oralib.ground.types import Array

__all__ = ["Steinke"]


@formula
def _p_value(v: int, r: int, epsilon: float, leak: float, least_b: float) -> tuple[float, float]:
    """Return the p-value before it is capped at 1, and its derivative in ε."""
    if v == 0 or leak == 0:
        return pure_p_value(v, r, epsilon, leak, least_b)
    q, qc = odds(epsilon)
    f, w, _ = tail_and_pmf(v, r, q, qc)
    start, alpha = best_window(v, r, q, qc)
    slope = v * w
    # The best window stays the best under a small change of ε, so only its ends matter.
    slope += 2 * leak / (v - start) * (start * pmf(start, r, q, qc) - slope)
    return f + 2 * leak * alpha, slope * qc


_bounds, _p_values = by_search(_p_value)


@dataclass(frozen=True)
class Steinke(Rule):
    """Steinke et al.'s bound: the paper's ε'(v, r), also for δ > 0.

    For δ > 0 it is proved for β <= 1/2, if the number of guesses was fixed in advance and the
    guesser was not told of its own guesses, or had a list, since the exact p-value is never larger
    there. So :class:`oralib.bounds.Exact` is never worse. For δ = 0 it is
    :class:`oralib.bounds.Pure`.

    >>> round(Steinke().lower_bound(75, 100, n=1000, delta=1e-4), 6)
    0.672985
    >>> round(Steinke().p_value(75, 100, epsilon=0.5, n=1000, delta=1e-4), 6)
    0.014587
    """

    name: ClassVar[str] = "Steinke et al.'s bound"

    def proved_for(self, counts: Counts, delta: float) -> bool:
        return exact_is_proved(counts, delta)

    def bounds(self, audits: Audits) -> Array:
        return _bounds(audits.v, audits.r, audits.beta, audits.leak)

    def p_values(self, audits: Audits, epsilon: Array) -> Array:
        return _p_values(audits.v, audits.r, epsilon, audits.leak)
