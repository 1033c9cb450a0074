"""The bound ε'(v, r) for ε-DP, from which the other rules start.

If a mechanism is ε-DP, P[V >= v] is at most P[W >= v] for the number V of right guesses and a
binomial W ~ Bin(r, p(ε)). So the p-value of v right guesses is P[W >= v].

See the paper's Section 2, and Steinke, Nasr and Jagielski, "Privacy Auditing with One (1) Training
Run", NeurIPS 2023.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy
from numpy.typing import ArrayLike

from oralib.bounds.columns import flat_counts, float_if_single
from oralib.bounds.counts import Counts
from oralib.bounds.rule import Audits, Rule, pure_is_proved
from oralib.bounds.search import by_search
from oralib.ground import arguments
from oralib.ground.binomial import odds, tail, tail_and_pmf
from oralib.ground.jit import formula, jit
from oralib.ground.types import Array

__all__ = [
    "TIE",
    "Pure",
    "clopper_pearson_lower",
    "pure_bounds",
    "pure_line",
    "pure_p_value",
    "refuse_positive_delta",
]

#: The least log-odds to search: no success probability that a double can hold has smaller ones.
_LEAST_LOG_ODDS = -745.0
#: The largest relative difference at which a tail counts as equal to β.
TIE = 1e-12


@formula
def pure_p_value(
    v: int, r: int, epsilon: float, leak: float, least_b: float
) -> tuple[float, float]:
    """Return P[W >= v] and its derivative in ε; ``leak`` and ``least_b`` are not used."""
    if v == 0:
        return 1.0, 0.0
    q, qc = odds(epsilon)
    f, pmf, _ = tail_and_pmf(v, r, q, qc)
    return f, v * pmf * qc  # d/dε P[Bin(r, q) >= v] = v P[Bin(r, q) = v] (1 - q)


pure_bounds, _p_values = by_search(pure_p_value)


@dataclass(frozen=True)
class Pure(Rule):
    """The paper's bound ε'(v, r) for ε-DP, that is, δ = 0.

    It is proved for independent coins and at most one-way feedback. If the number of guesses was
    fixed in advance, it is proved also for feedback "full" and "list", as each guess is right with
    probability at most p(ε), whatever came before it. It is not proved for "all others".

    >>> round(Pure().lower_bound(75, 100), 6)
    0.702214
    >>> round(Pure().p_value(75, 100, epsilon=0.5), 6)
    0.004805
    """

    name: ClassVar[str] = "pure bound"

    def proved_for(self, counts: Counts, delta: float) -> bool:
        return delta == 0 and pure_is_proved(counts)

    def bounds(self, audits: Audits) -> Array:
        return pure_bounds(audits.v, audits.r, audits.beta, audits.leak)

    def p_values(self, audits: Audits, epsilon: Array) -> Array:
        return _p_values(audits.v, audits.r, epsilon, audits.leak)

    def check(self, audits: Audits) -> None:
        refuse_positive_delta(self, audits)


def refuse_positive_delta(rule: Rule, audits: Audits) -> None:
    """Raise an error unless δ = 0 in every row."""
    delta = max(audits.d_in.max(initial=0), audits.d_out.max(initial=0))
    if delta > 0:
        raise ValueError(f"delta must be 0 for the {rule.name}, got delta={delta:g}")


def clopper_pearson_lower(v: ArrayLike, r: ArrayLike, beta: ArrayLike = 0.05) -> Any:
    """Return the largest success probability q with P[Bin(r, q) >= v] <= β; 0 if there is none.

    The bound on ε for δ = 0 is its logit, where that is positive (Definition A.5).

    Parameters
    ----------
    v, r : int or array
        The numbers of right guesses and of all guesses.
    beta : float or array
        The probability with which the limit may fail, in (0, 1).

    Examples
    --------
    >>> round(clopper_pearson_lower(75, 100), 6)
    0.668678
    """
    betas, _ = arguments.betas_and_deltas(beta)
    shape, (flat_v, flat_r, flat_beta) = flat_counts(v, r, beta=betas)
    no_leak = np.zeros(flat_v.size)
    log_odds = pure_bounds(flat_v, flat_r, flat_beta, no_leak, least=_LEAST_LOG_ODDS)
    accuracy = np.where(flat_v > 0, scipy.special.expit(log_odds), 0.0)
    return float_if_single(accuracy.reshape(shape))


@jit
def pure_line(n: int, epsilon: float, beta: float) -> Array:
    """Return for r = 0, ..., n the least v whose bound exceeds ε, or r + 1 if there is none.

    One more guess moves the line up by 0 or 1.
    """
    q, qc = odds(epsilon)
    line = np.ones(n + 1, dtype=np.int64)
    for r in range(1, n + 1):
        v = line[r - 1]
        line[r] = v if tail(v, r, q, qc) < beta * (1 - TIE) else v + 1
    return line
