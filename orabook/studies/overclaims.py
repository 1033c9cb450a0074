"""Bounds that claim too much where their assumptions are wrong: how often, from exact laws."""

from bisect import bisect_right
from dataclasses import dataclass
from functools import partial
from math import exp, log, nan
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import special, stats

from orabook.studies.assumptions import normal_bounds
from oralib.bounds import Exact, Gaussian, Independent, Rule, Steinke, gaussian_epsilon, p
from oralib.bounds.columns import float_if_single

__all__ = ["SharedLaw", "common_size", "overclaims"]

#: The level μ of the Gaussian mechanisms, and the ε of randomized response.
MU = 0.5
EPSILON = 1.0
#: The δ of all claims, and the probability with which a bound may fail.
DELTA = 1e-5
BETA = 0.05

#: Bounds that look at counts, from the weakest assumption to the strongest.
COUNT_RULES: dict[str, Rule] = {
    "steinke": Steinke(),
    "exact": Exact(),
    "fdp": Gaussian(),
    "independent": Independent(),
}

Reals = NDArray[np.float64]


@dataclass(frozen=True)
class SharedLaw:
    """The law of right guesses at elements that share a state.

    Given the state, ``sure`` guesses are right, and each other one with probability q.
    """

    weights: Reals
    sure: NDArray[np.int64]
    q: Reals

    def tail(self, v: ArrayLike, r: int) -> Any:
        """P[V >= v] for r guesses."""
        below = np.asarray(v)[..., None] - self.sure - 1
        return float_if_single(special.bdtrc(below, r - self.sure, self.q) @ self.weights)


def common_size(mu: float, groups: int = 1) -> SharedLaw:
    """The law of groups of elements with one size |y| each, and a sign each: exactly μ-GDP.

    For each group Y ~ N(μ/2, 1), and given |Y| each sign is right with probability p(μ |Y|), as for
    Y itself. The group with the largest size is guessed. This is the law of its counts.
    """
    edges = np.linspace(0, 9 + mu, 20_001)
    below = (stats.norm.cdf(edges - mu / 2) - stats.norm.cdf(-edges - mu / 2)) ** groups
    weights = np.diff(below)
    size = (edges[1:] + edges[:-1]) / 2
    return SharedLaw(weights / weights.sum(), np.zeros(size.size, dtype=np.int64), p(mu * size))


def _leaking(epsilon: float, delta: float, n: int, leaked: int) -> SharedLaw:
    """The law of (ε, δ)-DP randomized response that at times gives ``leaked`` elements away."""
    chance = n * delta / leaked
    weights = np.array([1 - chance, chance])
    return SharedLaw(weights, np.array([0, leaked]), np.full(2, p(epsilon)))


def overclaims(trials: int = 20_000) -> pd.DataFrame:
    """The share of audits whose bound exceeds the true ε, of mechanisms that fit it or not.

    The probabilities of bounds that look at counts are exact. Column ``normal`` is for the bound
    from normal scores, from ``trials`` audits, and ``normal_se`` its standard error; scores are a
    sign times a size, except for independent Gaussian noise. Column ``truth`` is the mechanism's ε.
    Ten groups of elements with one size each are guessed as :func:`common_size` says.
    """
    gaussian = gaussian_epsilon(MU, DELTA)
    alone = SharedLaw(np.ones(1), np.zeros(1, dtype=np.int64), np.array([stats.norm.cdf(MU / 2)]))
    response = SharedLaw(np.ones(1), np.zeros(1, dtype=np.int64), np.array([p(EPSILON)]))
    certain = log(exp(EPSILON) - DELTA * (1 + exp(EPSILON)))  # the ε at δ of randomized response
    shared = common_size(MU)
    grouped = common_size(MU, groups=10)
    leak = _leaking(EPSILON, DELTA, 10**6, 50)
    settings: list[tuple[str, int, int, float, SharedLaw]] = [
        ("independent Gaussian noise", 1000, 1000, gaussian, alone),
        ("Gaussian noise, one size a group", 1000, 100, gaussian, grouped),
        ("Gaussian noise, one size", 1000, 500, gaussian, shared),
        ("Gaussian noise, one size", 1000, 1000, gaussian, shared),
        ("Gaussian noise, one size", 10**5, 10**5, gaussian, shared),
        ("randomized response", 1000, 500, certain, response),
        ("randomized response, leaking", 10**6, 100, EPSILON, leak),
    ]
    rng = np.random.default_rng(0)
    rows = []
    for mechanism, n, r, truth, law in settings:
        row: dict[str, Any] = {"mechanism": mechanism, "n": n, "r": r, "truth": truth}
        for column, rule in COUNT_RULES.items():
            bound_of = partial(rule.lower_bound, r=r, n=n, delta=DELTA, beta=BETA)
            v = bisect_right(range(r + 1), truth, key=bound_of)
            row[column] = law.tail(v, r)
        share = nan  # for groups we know only the counts
        if law is not grouped:
            draw = _normal_scores if law is alone else partial(_signs, law)
            bounds = normal_bounds(*draw(n, trials, rng), delta=DELTA, beta=BETA)
            share = float((bounds > truth).mean())
        rows.append(row | {"normal": share, "normal_se": (share * (1 - share) / trials) ** 0.5})
    return pd.DataFrame(rows)


def _normal_scores(n: int, trials: int, rng: np.random.Generator) -> tuple[Any, ...]:
    """Draw the statistics of independent normal scores that :func:`normal_bounds` needs."""
    n_in = rng.binomial(n, 0.5, trials)
    gap = rng.normal(MU, np.sqrt(1 / n_in + 1 / (n - n_in)))
    return gap, rng.chisquare(n - 2, trials), n_in, n - n_in


def _signs(law: SharedLaw, n: int, trials: int, rng: np.random.Generator) -> tuple[Any, ...]:
    """Draw those statistics of scores 1 and -1, which are right as the law says."""
    state = rng.choice(law.q.size, trials, p=law.weights)
    n_in = rng.binomial(n, 0.5, trials)
    sure_in = rng.binomial(law.sure[state], 0.5)
    sure = np.array([sure_in, law.sure[state] - sure_in])
    sizes = np.array([n_in, n - n_in])
    means = 2 * (sure + rng.binomial(sizes - sure, law.q[state])) / sizes - 1
    return means.sum(axis=0), (sizes * (1 - means**2)).sum(axis=0), *sizes
