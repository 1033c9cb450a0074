"""Counts, v right of r guesses: their laws, and the bound on ε that they yield."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from oralib.bounds import epsilon_lower_bound

__all__ = [
    "accuracy_values",
    "binomial_counts",
    "chance",
    "critical_betas",
    "exceeds",
    "failure",
    "mean_bound",
]


def binomial_counts(r: int, q: float) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """(v, P[Bin(r, q) = v]) for every v that matters."""
    spread = 9 * np.sqrt(r * q * (1 - q)) + 9
    v = np.arange(max(0, int(r * q - spread)), min(r, int(r * q + spread)) + 1)
    return v, stats.binom.pmf(v, r, q)


def mean_bound(r: int, q: float, beta: float = 0.05) -> float:
    """The mean bound of r guesses that are each right with probability q."""
    v, weight = binomial_counts(r, q)
    return float(weight @ epsilon_lower_bound(v, r, beta=beta))


def chance(q: float, r: int, event: Callable[[Any], Any]) -> float:
    """P[event(V)] for V ~ Bin(r, q)."""
    v, weight = binomial_counts(r, q)
    return float(weight @ np.asarray(event(v), dtype=float))


def failure(law: NDArray[np.float64], epsilon: float, beta: float) -> float:
    """The probability that the bound exceeds ε, if (V, R) has the law."""
    v, r = np.nonzero(law)
    return float(law[v, r] @ _exceeds(v, r, epsilon, beta))


@cache
def exceeds(n: int, epsilon: float, beta: float) -> NDArray[np.float64]:
    """1 where the bound of (v, r) exceeds ε by more than rounding, for v, r up to n."""
    v, r = np.indices((n + 1, n + 1))
    return np.where(v <= r, _exceeds(np.minimum(v, r), r, epsilon, beta), 0.0)


def _exceeds(v: Any, r: Any, epsilon: float, beta: float) -> Any:
    return (epsilon_lower_bound(v, r, beta=beta) > epsilon * (1 + 1e-9) + 1e-9).astype(float)


def critical_betas(r: int, q: float, spread: float = 0.003) -> list[float]:
    """Values of β at which a test of Bin(r, q) has no slack: any more would be too much.

    Just below each tail P[Bin(r, q) >= v]: with a slightly larger β the count v would be
    rejected, with a probability above β.
    """
    tails = stats.binom.sf(np.arange(r), r, q)
    betas = tails[(tails > 1e-3) & (tails < 0.9)] / (1 + spread)
    return [float(beta) for beta in betas]


def accuracy_values(n: int, least: int) -> NDArray[np.float64]:
    """v / r where at least ``least`` guesses are taken; elsewhere a value that is never best."""
    v, r = np.indices((n + 1, n + 1))
    return np.where((r >= least) & (v <= r), v / np.maximum(r, 1), -1e6)
