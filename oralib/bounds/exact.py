"""The exact bound for (ε, δ)-DP: no valid bound for a fixed number of guesses is larger.

With W ~ Bin(r, p(ε)), f = P[W >= v] and B = v P[W = v] / f, the p-value of v right guesses is

    1 - (1 - f) max(0, 1 - n δ / B),

which is exactly the probability that the worst mechanism and guesser reach. The chapter *The exact
(ε, δ) bound* has the proof.
"""

from dataclasses import dataclass
from typing import ClassVar

from oralib.bounds.counts import Counts
from oralib.bounds.pure import pure_p_value
from oralib.bounds.rule import Audits, Rule, exact_is_proved
from oralib.bounds.search import by_search
from oralib.ground.binomial import odds, tail_and_pmf
from oralib.ground.jit import formula
from oralib.ground.types import Array

__all__ = ["Exact", "exact_bounds", "exact_p_value", "with_leak"]


@formula
def exact_p_value(
    v: int, r: int, epsilon: float, leak: float, least_b: float
) -> tuple[float, float]:
    """Return the p-value before it is capped at 1, and its derivative in ε."""
    if v == 0 or leak == 0:
        return pure_p_value(v, r, epsilon, leak, least_b)
    q, qc = odds(epsilon)
    f, w, ratio = tail_and_pmf(v, r, q, qc)
    b = v / ratio
    # d/dε log B = v - E[W | W >= v], and that mean is r q + (1 - q) B.
    b_slope = b * (v - r * q - qc * b)
    return with_leak(f, v * w * qc, leak, b, b_slope)


@formula
def with_leak(
    f: float, f_slope: float, leak: float, b: float, b_slope: float
) -> tuple[float, float]:
    """Return 1 - (1 - f) max(0, 1 - n δ / b), and its derivative from those of f and b."""
    if not leak < b:
        return 1.0, 0.0
    x = leak / b
    return f + x * (1 - f), f_slope * (1 - x) - x * b_slope / b * (1 - f)


exact_bounds, _p_values = by_search(exact_p_value)


@dataclass(frozen=True)
class Exact(Rule):
    """The exact bound for (ε, δ)-DP, for a number of guesses fixed in advance.

    It is proved if the guesser was not told of its own guesses, or had a list: a leak must be paid
    for on all counts that it turns into v right guesses, each of which costs at least B. For δ = 0
    it is :class:`oralib.bounds.Pure`.

    >>> round(Exact().lower_bound(75, 100, n=1000, delta=1e-4), 6)
    0.695126
    >>> round(Exact().p_value(75, 100, epsilon=0.5, n=1000, delta=1e-4), 6)
    0.007542
    """

    name: ClassVar[str] = "exact bound"

    def proved_for(self, counts: Counts, delta: float) -> bool:
        return exact_is_proved(counts, delta)

    def bounds(self, audits: Audits) -> Array:
        return exact_bounds(audits.v, audits.r, audits.beta, audits.leak)

    def p_values(self, audits: Audits, epsilon: Array) -> Array:
        return _p_values(audits.v, audits.r, epsilon, audits.leak)
