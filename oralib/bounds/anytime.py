"""The anytime bound for ε-DP: it holds whenever guessing stops, whatever was right so far.

Each guess, whatever came before it, is right with probability at most p(ε). So (v, r) is dominated
by a random walk, and for p = p(ε)

    M = ∫ (q/p)^v ((1-q)/(1-p))^(r-v) dq / (1-p),   q from p to 1,

is a test martingale: it ever reaches 1/β with probability at most β. The chapter *Making adaptive
auditing valid* has the proof.

See Howard, Ramdas, McAuliffe and Sekhon, "Time-uniform, nonparametric, nonasymptotic confidence
sequences", Annals of Statistics 2021.
"""

from dataclasses import dataclass
from math import exp, log, log1p
from typing import ClassVar

import numpy as np

from oralib.bounds.columns import for_distinct_rows, one_by_one
from oralib.bounds.counts import Counts
from oralib.bounds.pure import refuse_positive_delta
from oralib.bounds.rule import Audits, Rule
from oralib.ground.binomial import log_pmf, odds, tail, tail_over_pmf
from oralib.ground.jit import formula, jit
from oralib.ground.types import Array

__all__ = [
    "LARGEST_BETA",
    "Anytime",
    "anytime_bounds",
    "anytime_is_proved",
    "anytime_line",
    "log_e_value",
    "significance",
]

#: For β up to this the bound needs no further condition, so that it holds at any level below.
LARGEST_BETA = exp(-1)


@formula
def log_e_value(v: int, r: int, epsilon: float) -> float:
    """Return log M: the integral is P[Bin(r + 1, p) <= v] / ((r + 1 - v) P[Bin(r + 1, p) = v])."""
    q, qc = odds(epsilon)
    if v <= (r + 1) * q:  # the ratio itself, where the law function is small
        return log(tail_over_pmf(r + 1 - v, r + 1, qc, q) / (r + 1 - v))
    return log1p(-tail(v + 1, r + 1, q, qc)) - log(r + 1 - v) - log_pmf(v, r + 1, q, qc)


@formula
def _reaches(v: int, r: int, epsilon: float, beta: float) -> bool:
    """Return whether M >= 1/β and p(ε) <= v / (r + 1), where M falls.

    The latter follows for β < 1/e.
    """
    if 2 * v <= r + 1 or epsilon > log(v / (r + 1 - v)):
        return False
    return log_e_value(v, r, epsilon) >= -log(beta)


@formula
def _bound(v: int, r: int, beta: float) -> float:
    """Return the largest ε that is reached, or 0, by bisection.

    It is written out, since a kernel that takes a function cannot be cached.
    """
    if not _reaches(v, r, 0.0, beta):
        return 0.0
    high = log(v / (r + 1 - v))
    low = high if _reaches(v, r, high, beta) else 0.0
    while high - low >= 1e-14 * (1 + low):
        middle = 0.5 * (low + high)
        if _reaches(v, r, middle, beta):
            low = middle
        else:
            high = middle
    return low


@jit
def _bounds(v: Array, r: Array, beta: Array) -> Array:
    out = np.empty(v.size)
    for i in range(v.size):
        out[i] = _bound(v[i], r[i], beta[i])
    return out


def anytime_bounds(v: Array, r: Array, beta: Array) -> Array:
    """Return the bound of each row, that of a single one without a compiler."""
    if v.size == 1:
        return np.array([_bound(v.item(), r.item(), beta.item())])
    return np.asarray(_bounds(v, r, beta))


def significance(v: int, r: int, epsilon: float) -> float:
    """Return the level 1 / M at which counts are significant, or 1."""
    if 2 * v <= r + 1 or epsilon > log(v / (r + 1 - v)):
        return 1.0
    return min(float(np.exp(-log_e_value(v, r, epsilon))), 1.0)


_p_values = one_by_one(significance)


@dataclass(frozen=True)
class Anytime(Rule):
    """The anytime bound for ε-DP, that is, δ = 0, whenever guessing stops.

    It is proved for any feedback but that of all other coins, and for any reason to stop, since M
    is a test martingale. It is the largest ε for which M is at least 1/β; for β > 1/e only those ε
    count for which p(ε) <= v / (r + 1). For δ > 0 there is :class:`oralib.bounds.Certified`.

    >>> round(Anytime().lower_bound(731, 1000), 6)
    0.7737
    >>> round(Anytime().p_value(731, 1000, epsilon=0.7), 6)
    0.000931
    """

    name: ClassVar[str] = "anytime bound"

    def proved_for(self, counts: Counts, delta: float) -> bool:
        return delta == 0 and anytime_is_proved(counts)

    def bounds(self, audits: Audits) -> Array:
        return anytime_bounds(audits.v, audits.r, audits.beta)

    def p_values(self, audits: Audits, epsilon: Array) -> Array:
        return for_distinct_rows(_p_values, audits.v, audits.r, epsilon)

    def check(self, audits: Audits) -> None:
        refuse_positive_delta(self, audits)


def anytime_is_proved(counts: Counts) -> bool:
    """Return whether guessing was such that each guess is right with probability at most p(ε)."""
    return counts.coins == "independent" and counts.feedback != "all others"


@jit
def anytime_line(n: int, epsilon: float, beta: float) -> Array:
    """Return for r = 0, ..., n the least v whose bound reaches ε, or r + 1 if there is none.

    One more guess moves the line up by 0 or 1.
    """
    line = np.ones(n + 1, dtype=np.int64)
    for r in range(1, n + 1):
        v = line[r - 1]
        line[r] = v if _reaches(v, r, epsilon, beta) else v + 1
    return line
