"""How often bounds claim too much where their assumptions are wrong, from exact laws."""

from bisect import bisect_left
from dataclasses import dataclass
from functools import partial
from math import exp, log, nan
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from oralib import _check
from oralib.bounds import (
    epsilon_lower_bound,
    epsilon_lower_bound_fdp,
    epsilon_lower_bound_independent,
    gaussian_epsilon,
    p,
)
from oralib.bounds._arguments import float_if_single
from oralib.bounds.assumptions import normal_bounds

__all__ = ["common_size", "overclaims"]

#: Bounds that look at counts, from the weakest assumption to the strongest.
COUNT_BOUNDS = {
    "steinke": epsilon_lower_bound,
    "exact": partial(epsilon_lower_bound, method="exact"),
    "fdp": epsilon_lower_bound_fdp,
    "independent": epsilon_lower_bound_independent,
}

Reals = NDArray[np.float64]


@dataclass(frozen=True)
class SharedLaw:
    """Elements that share a state: ``sure`` guesses are then right, the others each with q."""

    weights: Reals
    sure: NDArray[np.int64]
    q: Reals

    def tail(self, v: ArrayLike, r: int) -> Any:
        """P[V >= v] for r guesses."""
        below = np.asarray(v)[..., None] - self.sure - 1
        return float_if_single(stats.binom.sf(below, r - self.sure, self.q) @ self.weights)


def common_size(mu: float, groups: int = 1) -> SharedLaw:
    """Groups of elements with one size |y| each, and a sign for each element: exactly μ-GDP.

    For each group Y ~ N(μ/2, 1), and given |Y| each sign is right with probability p(μ |Y|), as for
    Y itself. The group with the largest size is guessed. This is the law of its counts.

    Examples
    --------
    >>> law = common_size(0.5)
    >>> bool(round(law.weights @ law.q, 6) == round(stats.norm.cdf(0.25), 6))
    True
    >>> round(float(common_size(0.5, groups=10).tail(82, 100)), 3)
    0.084
    """
    mu, groups = _check.real("mu", mu, 0, 100), _check.integer("groups", groups, 1)
    edges = np.linspace(0, 9 + mu, 20_001)
    below = (stats.norm.cdf(edges - mu / 2) - stats.norm.cdf(-edges - mu / 2)) ** groups
    weights, size = np.diff(below), (edges[1:] + edges[:-1]) / 2
    return SharedLaw(weights / weights.sum(), np.zeros(size.size, dtype=np.int64), p(mu * size))


def _leaking(epsilon: float, delta: float, n: int, leaked: int) -> SharedLaw:
    """Randomized response that now and then gives ``leaked`` of n elements away: (ε, δ)-DP."""
    often = n * delta / leaked
    return SharedLaw(np.array([1 - often, often]), np.array([0, leaked]), np.full(2, p(epsilon)))


def overclaims(
    *,
    mu: float = 0.5,
    epsilon: float = 1.0,
    delta: float = 1e-5,
    beta: float = 0.05,
    trials: int = 20_000,
    seed: int = 0,
) -> pd.DataFrame:
    """How often each bound exceeds the true ε, for mechanisms that meet its assumption or not.

    The probabilities of bounds that look at counts are exact. Column ``normal`` is for the bound
    from normal scores, from ``trials`` audits, and ``normal_se`` its standard error; scores are a
    sign times a size, except for independent Gaussian noise. Column ``truth`` is the mechanism's ε.
    Ten groups of elements with one size each are guessed as :func:`common_size` says.

    Examples
    --------
    >>> table = overclaims(trials=100)
    >>> table.loc[2, ["exact", "fdp", "independent"]].astype(float).round(3).tolist()
    [0.0, 0.011, 0.125]
    """
    mu, epsilon = _check.real("mu", mu, 0, 100), _check.real("epsilon", epsilon, 0.01, 50)
    delta = _check.real("delta", delta, 0, 5e-5)  # so that 50 of 10^6 elements may leak at once
    beta, _ = _check.level(beta)
    trials, seed = _check.integer("trials", trials, 2), _check.seed(seed)
    gaussian = gaussian_epsilon(mu, delta)
    alone = SharedLaw(np.ones(1), np.zeros(1, dtype=np.int64), np.array([stats.norm.cdf(mu / 2)]))
    response = SharedLaw(np.ones(1), np.zeros(1, dtype=np.int64), np.array([p(epsilon)]))
    certain = log(exp(epsilon) - delta * (1 + exp(epsilon)))  # the ε at δ of randomized response
    shared, grouped = common_size(mu), common_size(mu, groups=10)
    leak = _leaking(epsilon, delta, 10**6, 50)
    settings: list[tuple[str, int, int, float, SharedLaw]] = [
        ("independent Gaussian noise", 1000, 1000, gaussian, alone),
        ("Gaussian noise, one size a group", 1000, 100, gaussian, grouped),
        ("Gaussian noise, one size", 1000, 500, gaussian, shared),
        ("Gaussian noise, one size", 1000, 1000, gaussian, shared),
        ("Gaussian noise, one size", 10**5, 10**5, gaussian, shared),
        ("randomized response", 1000, 500, certain, response),
        ("randomized response, leaking", 10**6, 100, epsilon, leak),
    ]
    rng = np.random.default_rng(seed)
    rows = []
    for words, n, r, truth, law in settings:
        row: dict[str, Any] = {"mechanism": words, "n": n, "r": r, "truth": truth}
        for rule, bound in COUNT_BOUNDS.items():
            above = partial(_above, bound, r, n, delta, beta, truth)
            row[rule] = law.tail(bisect_left(range(r + 1), True, key=above), r)
        share = nan  # for groups we know only the counts
        if law is not grouped:
            draw = partial(_normal_scores, mu) if law is alone else partial(_signs, law)
            found = normal_bounds(*draw(n, trials, rng), delta=delta, beta=beta)
            share = float((found > truth).mean())
        rows.append(row | {"normal": share, "normal_se": (share * (1 - share) / trials) ** 0.5})
    return pd.DataFrame(rows)


def _above(bound: Any, r: int, n: int, delta: float, beta: float, truth: float, v: int) -> bool:
    return bool(bound(v, r, n=n, delta=delta, beta=beta) > truth)


def _normal_scores(mu: float, n: int, trials: int, rng: np.random.Generator) -> tuple[Any, ...]:
    """What :func:`normal_bounds` needs of independent normal scores."""
    n_in = rng.binomial(n, 0.5, trials)
    gap = rng.normal(mu, np.sqrt(1 / n_in + 1 / (n - n_in)))
    return gap, rng.chisquare(n - 2, trials), n_in, n - n_in


def _signs(law: SharedLaw, n: int, trials: int, rng: np.random.Generator) -> tuple[Any, ...]:
    """What :func:`normal_bounds` needs of scores 1 and -1, which are right as the law says."""
    state = rng.choice(law.q.size, trials, p=law.weights)
    n_in = rng.binomial(n, 0.5, trials)
    sure_in = rng.binomial(law.sure[state], 0.5)
    sure = np.array([sure_in, law.sure[state] - sure_in])
    sizes = np.array([n_in, n - n_in])
    means = 2 * (sure + rng.binomial(sizes - sure, law.q[state])) / sizes - 1
    return means.sum(axis=0), (sizes * (1 - means**2)).sum(axis=0), *sizes
