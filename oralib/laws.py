"""Exact laws of the counts (V, R) of audits too large for a table, where structure gives them.

Their mean bounds are the exact curves that the simulated points of the experiments scatter about.
"""

from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from oralib import _check
from oralib.bounds import epsilon_lower_bound
from oralib.dpsgd import DpSgd, guess_distances
from oralib.games import FEEDBACK

__all__ = [
    "Law",
    "count_in_sets_law",
    "local_laplace_law",
    "mean_bound",
    "single_step_law",
]

#: Outcomes that are rarer than this are left out.
_NEGLIGIBLE = 1e-15


@dataclass(frozen=True, eq=False)
class Law:
    """The outcomes (v, r) of an audit of n elements, and their probabilities."""

    v: NDArray[np.int64]
    r: NDArray[np.int64]
    probability: NDArray[np.float64]
    n: int


def mean_bound(law: Law, *, beta: float = 0.05, delta: float = 0.0) -> float:
    """The exact mean of the bound ε'_β(V, R).

    Examples
    --------
    >>> round(mean_bound(count_in_sets_law(2, 100, "full")), 4)
    3.9029
    """
    _check.instance("law", law, Law, "count_in_sets_law(2, 100)")
    bounds = epsilon_lower_bound(law.v, law.r, beta=beta, delta=delta, n=law.n)
    return float(law.probability @ bounds)


def local_laplace_law(epsilon: float, n: int) -> Law:
    """Local Laplace without abstentions: V ~ Bin(n, 1 - exp(-ε/2) / 2) (Proposition C.13)."""
    _check.real("epsilon", epsilon, 0, np.inf, interval="()")
    n = _check.integer("n", n, 1)
    v = np.arange(n + 1)
    probability = stats.binom.pmf(v, n, 1 - np.exp(-epsilon / 2) / 2)
    return _law(v, np.full(n + 1, n), probability, n)


def count_in_sets_law(s: int, sets: int, feedback: str = "none") -> Law:
    """Count-in-Sets with threshold τ = ∞, where every taken guess is right (Appendix E.3).

    Without feedback a set is guessed whole if all its elements agree. With feedback, one-way or
    full, the elements of a set are guessed from the last one on that differs from its successors.
    """
    s, sets = _check.integer("s", s, 1), _check.integer("sets", sets, 1)
    _check.one_of("feedback", feedback, ("none", *FEEDBACK))
    if feedback == "none":
        whole = np.arange(sets + 1)
        r, probability = s * whole, stats.binom.pmf(whole, sets, 2.0 ** (1 - s))
    else:
        one_set = 0.5 ** np.arange(s + 1)
        one_set[0], one_set[s] = 0.0, 2.0 ** (1 - s)
        probability = reduce(np.convolve, [one_set] * sets)
        r = np.arange(len(probability))
    return _law(r, r, probability, sets * s)


def single_step_law(dpsgd: DpSgd, tau: float) -> Law:
    """One full-batch step of DP-SGD, plain auditing with threshold tau.

    The guessed coordinates are binomial in number, and the right guesses in them independent.
    """
    _check.instance("dpsgd", dpsgd, DpSgd, "DpSgd(n=1000)")
    s, d = dpsgd.per_coordinate, dpsgd.used_coordinates
    distance = guess_distances(dpsgd, tau)[s]
    ones = np.arange(s + 1)
    weight = stats.binom.pmf(ones, s, 0.5)
    high = weight * stats.norm.sf(s / 2 + distance, ones, dpsgd.sigma)
    low = weight * stats.norm.cdf(s / 2 - distance, ones, dpsgd.sigma)
    right = high + low[::-1]  # of a guessed coordinate, for 0, ..., s right guesses
    guessed = right.sum()
    counts = stats.binom.pmf(np.arange(d + 1), d, guessed)
    law, parts = np.ones(1), []
    for coordinates, probability in enumerate(counts):
        if probability > _NEGLIGIBLE:
            v = np.arange(len(law))
            parts.append((v, np.full(len(v), s * coordinates), probability * law))
        elif coordinates > d * guessed:
            break
        law = np.convolve(law, right / guessed)
    v, r, probability = (np.concatenate(column) for column in zip(*parts, strict=True))
    return _law(v, r, probability, dpsgd.n)


def _law(
    v: NDArray[np.int64], r: NDArray[np.int64], probability: NDArray[np.float64], n: int
) -> Law:
    kept = probability > _NEGLIGIBLE
    return Law(v[kept], r[kept], probability[kept], n)
