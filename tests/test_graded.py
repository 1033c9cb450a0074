"""Graded guesses: the exact bound, linear programs over all laws, and an audit."""

from itertools import product

import numpy as np
import pytest
from scipy import optimize, sparse, stats

from oralib import epsilon_lower_bound, epsilon_lower_bound_graded
from oralib.bounds.graded import graded_luck


def worst_law(s, r, weights, epsilon, leaks):
    """max P[S >= s] over laws of the counts whose leaks are at most this, by linear programming.

    Laws that are symmetric within grades: others are no worse, as a mixture over permutations
    has the same S and no larger leaks.
    """
    shape = [taken + 1 for taken in r]
    counts = list(product(*map(range, shape)))
    entries, rows = [], 0
    for here, v in enumerate(counts):
        for g, taken in enumerate(r):
            if v[g]:
                below = np.ravel_multi_index([a - (i == g) for i, a in enumerate(v)], shape)
                price = np.exp(epsilon) * (taken - v[g] + 1)
                entries += [(rows, here, v[g]), (rows, below, -price)]
                entries.append((rows, len(counts) + rows, -1.0))
                rows += 1
    size = len(counts) + rows
    entries += [(rows, len(counts) + i, 1.0) for i in range(rows)]
    i, j, value = zip(*entries, strict=True)
    limits = sparse.csr_matrix((value, (i, j)), shape=(rows + 1, size))
    one = np.zeros(size)
    one[: len(counts)] = 1
    gain = one.copy()
    gain[: len(counts)] = [np.dot(v, weights) >= s for v in counts]
    most = [0.0] * rows + [leaks]
    solved = optimize.linprog(-gain, limits, most, [one], [1.0], method="highs")
    return -solved.fun


@pytest.mark.parametrize("r", [1, 7, 30, 100])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
def test_one_grade_is_the_exact_p_value(r, epsilon):
    law = stats.binom(r, 1 / (1 + np.exp(-epsilon)))
    for s in {1, r // 2 + 1, r - r // 10, r}:
        luck, worth = graded_luck(s, np.array([r]), np.array([1]), epsilon)
        tail = law.pmf(np.arange(s, r + 1)).sum()
        assert luck == pytest.approx(tail, rel=1e-9)
        price = s * law.pmf(s) / tail
        unlucky = law.pmf(np.arange(s)).sum()  # 1 - luck, without cancellation
        assert worth == pytest.approx(unlucky / price, rel=1e-6)


def test_equal_weights_give_the_exact_bound():
    known = dict(n=5000, delta=1e-4)
    exact = epsilon_lower_bound(50, 60, method="exact", **known)
    for v, r in (([50], [60]), ([20, 30], [20, 40]), ([10, 10, 30], [12, 10, 38])):
        graded = epsilon_lower_bound_graded(v, r, [1] * len(r), **known)
        assert graded == pytest.approx(exact, abs=1e-4)


@pytest.mark.parametrize(
    ("r", "weights", "s"),
    [([3, 5], [2, 1], 9), ([5, 10], [3, 1], 22), ([6, 12], [2, 1], 20), ([3, 4, 5], [4, 2, 1], 21)],
)
@pytest.mark.parametrize("epsilon", [0.0, 0.8])
@pytest.mark.parametrize("leaks", [0.0, 0.05, 0.3])
def test_no_law_is_worse(r, weights, s, epsilon, leaks):
    luck, worth = graded_luck(s, np.array(r), np.array(weights), epsilon)
    worst = worst_law(s, r, weights, epsilon, leaks)
    assert worst <= luck + leaks * worth + 1e-9
    assert luck + leaks * worth <= worst + 0.6 * leaks * worth + 1e-9  # and it is not far off


def test_rejections_of_a_mechanism_that_leaks():
    """Randomized response, and all leaks in one run out of a few, on the surest guesses."""
    rng = np.random.default_rng(1)
    epsilon, r, weights, leaks, trials = 1.0, np.array([20, 40]), np.array([3, 1]), 0.5, 20_000
    right = rng.binomial(r, 1 / (1 + np.exp(-epsilon)), (trials, 2))
    right[rng.random(trials) < leaks / 20, 0] = 20  # 20 leaks at once
    values = [graded_luck(s, r, weights, epsilon) for s in range(60, 101)]
    least = next(60 + i for i, (luck, worth) in enumerate(values) if luck + leaks * worth <= 0.05)
    rejected = (right @ weights >= least).mean()
    assert 0.01 < rejected <= 0.05
