"""Audits of isolated elements: the exact law of the best one, and the ceiling of its mean bounds.

Nothing is simulated; :func:`oralib.dpsgd.simulate_likelihood` plays these audits.
"""

from collections.abc import Iterable
from functools import lru_cache
from itertools import product
from math import log

import numpy as np
import pandas as pd
import scipy
from tqdm import tqdm

from orabook.laws import Law, law_of, likely_counts, mean_bound
from orabook.studies.isolated import Confidence, confidence
from oralib import DpSgd
from oralib.bounds import Exact, Rule, Steinke
from oralib.ground import arguments
from oralib.ground.binomial import log_pmfs
from oralib.ground.types import Said, View

__all__ = ["best_guesses", "isolated_ceiling", "isolated_law", "law_of_surest"]


def isolated_law(
    dpsgd: DpSgd,
    k: int,
    *,
    sees: View = "steps",
    counts: int | None = None,
    side: Said = "both",
) -> Law:
    """The law of k guesses at elements of largest |Λ|, in DP-SGD with a coordinate for each.

    No guesser with k guesses that sees no more than this has stochastically more right guesses;
    :mod:`orabook.studies.isolated` says why.

    With ``counts`` there are about ``counts`` equally spaced values of v, each with the probability
    of its neighbours. For means of smooth functions of v a few dozen are as good as all of them.

    >>> law = isolated_law(DpSgd(n=1000, sigma=2.4224), 100)
    >>> round(float(law.probability @ law.v), 2)
    70.91
    """
    return law_of_surest(confidence(dpsgd, sees, side=side), dpsgd.n, k, counts=counts)


def law_of_surest(elements: Confidence, n: int, k: int, *, counts: int | None = None) -> Law:
    """The law of right guesses at the k surest of n elements, all alike and independent."""
    k = arguments.integer("k", k, 1, n)
    largest_share = _share_with_a_guess(elements)
    if k > 0.9 * largest_share * n and largest_share < 0.99:
        raise ValueError(f"k must be well below n · {largest_share:.2f}, got k={k} and n={n}")
    # The tail probability of the k-th largest, at the nodes of a Gaussian quadrature.
    nodes, weights = np.polynomial.hermite_e.hermegauss(20 if k > 40 else 60)
    weights /= weights.sum()
    shape = (k, n - k + 1)
    share = np.where(
        nodes < 0,
        scipy.special.betaincinv(*shape, scipy.special.ndtr(nodes)),
        scipy.special.betainccinv(*shape, scipy.special.ndtr(-nodes)),
    )
    level = elements.level_of(share)
    right, wrong = elements.at(level)
    accuracy = right / (right + wrong)  # of the guesses above that level
    last = scipy.special.expit(level)  # the chance that the k-th guess is right
    v = likely_counts(k, accuracy)
    stride = 1 if counts is None else max(1, (v.size - 1) // counts)
    v = v[::stride]
    # Of the k - 1 others, v - 1 are right if the last one is, and otherwise v.
    if_last_is_wrong = np.exp(log_pmfs(v, k - 1, accuracy[:, None]))
    if_last_is_right = np.exp(log_pmfs(v - 1, k - 1, accuracy[:, None]))
    probability = weights @ (
        if_last_is_wrong * (1 - last)[:, None] + if_last_is_right * last[:, None]
    )
    return law_of(v, np.full(v.size, k), np.minimum(stride * probability, 1.0), n)


def _share_with_a_guess(elements: Confidence) -> float:
    """The share of elements at which a guesser of the allowed sides can guess at all."""
    return float(np.exp(elements.log_right[0]) + np.exp(elements.log_wrong[0]))


def isolated_ceiling(
    sizes: Iterable[int],
    *,
    sees: Iterable[View] = ("sum", "steps"),
    rules: Iterable[Rule] = (Steinke(), Exact()),
    epsilon: float = 2.0,
    delta: float = 1e-5,
    steps: int = 100,
    sample_rate: float = 0.1,
    beta: float = 0.05,
    side: Said = "both",
) -> pd.DataFrame:
    """The best mean bound on DP-SGD with a coordinate for each element, against n.

    The guesser ``sees`` the ``"sum"`` of all steps or the ``"steps"``; ``rules`` are those of the
    bounds, named in column ``rule``; ``side`` is that of all guesses. Column ``k`` is the best
    number of guesses, of a grid with steps of 5%, and ``bound`` its mean bound.


    >>> isolated_ceiling([1000], sees=["sum"], rules=[Exact()]).round(3)
      sees         rule     n    k  bound
    0  sum  exact bound  1000  119  0.493
    """
    points = product(sees, rules, sizes)
    rows = []
    for view, rule, n in tqdm(list(points), disable=None, leave=False):
        dpsgd = DpSgd.calibrated(epsilon, delta, n=n, d=n, steps=steps, sample_rate=sample_rate)
        k, bound = best_guesses(dpsgd, view, rule, beta, delta, side)
        rows.append({"sees": view, "rule": rule.name, "n": n, "k": k, "bound": bound})
    return pd.DataFrame(rows)


def best_guesses(
    dpsgd: DpSgd, view: View, rule: Rule, beta: float, delta: float, side: Said = "both"
) -> tuple[int, float]:
    """The best number of guesses on a grid, and its mean bound."""
    leak = delta if side == "both" else delta / 2
    grid = np.unique(np.round(1.05 ** np.arange(0, log(dpsgd.n) / log(1.05) + 1)).astype(int))
    share = _share_with_a_guess(confidence(dpsgd, view, side=side))
    grid = grid[grid <= (dpsgd.n if share >= 0.99 else 0.9 * share * dpsgd.n)]
    means: dict[int, float] = {}  # by the place on the grid

    def mean(i: int) -> float:
        if i not in means:
            law = _isolated_law(dpsgd, int(grid[i]), view, side)
            means[i] = mean_bound(law, beta=beta, delta=leak, rule=rule)
        return means[i]

    # Go up the grid in long steps until the bound is well below its best; then search around that.
    for i in range(0, len(grid), 8):
        if mean(i) < 0.9 * max(means.values()):
            break
    for stride in (4, 2, 1):
        top = max(means, key=lambda i: means[i])
        for i in (top - stride, top + stride):
            if 0 <= i < len(grid):
                mean(i)
    top = max(means, key=lambda i: means[i])
    return int(grid[top]), means[top]


@lru_cache(maxsize=1024)
def _isolated_law(dpsgd: DpSgd, guesses: int, view: View, side: Said) -> Law:
    """The law of the best audit, which is computed once for all rules."""
    return isolated_law(dpsgd, guesses, sees=view, counts=80, side=side)
