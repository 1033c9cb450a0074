"""Graded guesses: the exact bound, linear systems and programs over all laws, and audits."""

from itertools import product

import numpy as np
import pytest
from scipy import optimize, sparse, stats

from orabook.studies.graded import epsilon_lower_bound_graded, graded_p_value, largest_h
from oralib import epsilon_lower_bound


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


def largest_h_by_equations(s, r, weights, q):
    """The largest h over all x from its definition: f solves a linear system in all counts."""
    shape = tuple(np.array(r) + 1)
    total, law, generator = np.zeros(shape), np.ones(shape), sparse.csr_matrix((1, 1))
    for g, taken in enumerate(r):
        v, along = np.arange(taken + 1), [-1 if axis == g else 1 for axis in range(len(r))]
        total = total + weights[g] * v.reshape(along)
        law = law * stats.binom.pmf(v, taken, q).reshape(along)
        up, down = (taken - v) * q, v * (1 - q)
        one = sparse.diags([down[1:], -(up + down), up[:-1]], [-1, 0, 1])
        generator = sparse.kronsum(one, generator)
    reached = (total >= s).ravel()
    # f is unique up to a constant: let it be 0 where the binomial law is largest.
    rest, f = np.delete(np.arange(law.size), law.argmax()), np.zeros(law.size)
    luck = law.ravel() @ reached
    f[rest] = sparse.linalg.spsolve(generator.tocsc()[rest][:, rest], luck - reached[rest])
    return (1 - q) * max(np.diff(f.reshape(shape), axis=g).max() for g in range(len(r)))


@pytest.mark.parametrize(
    ("r", "weights"),
    [
        *(([1], [1]), ([1, 1], [2, 1]), ([9, 14], [1, 1]), ([3, 4, 5], [4, 2, 1])),
        *(([3, 3, 3, 3], [5, 3, 2, 1]), ([20, 40], [3, 1]), ([60, 80], [5, 2])),
    ],
)
@pytest.mark.parametrize("epsilon", [0.0, 0.8, 1.7])
def test_the_integral_solves_the_equations(r, weights, epsilon):
    """Also for 140 guesses, where fewer nodes are used than would be exact."""
    arrays, q = (np.array(r), np.array(weights)), 1 / (1 + np.exp(-epsilon))
    most = int(np.dot(r, weights))
    for s in {1, most // 2, *range(int(0.7 * most), int(0.7 * most) + 4), most}:
        found = largest_h(s, *arrays, q)
        assert found == pytest.approx(largest_h_by_equations(s, r, weights, q), abs=2e-11)


@pytest.mark.parametrize("r", [[1], [7], [30], [100], [4] * 6, [700]])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
def test_equal_weights_have_the_exact_p_value(r, epsilon):
    many, q = sum(r), 1 / (1 + np.exp(-epsilon))
    law = stats.binom(many, q)
    for s in {int(0.8 * many * q) + 1, int(many * q) + 1, many - many // 20, many}:
        tail = law.pmf(np.arange(s, many + 1)).sum()
        grades = np.array(r), np.ones(len(r), dtype=int)
        assert graded_p_value(s, *grades, epsilon, 0.0) == pytest.approx(tail, rel=1e-9)
        unlucky = law.pmf(np.arange(s)).sum()  # 1 - luck, without cancellation
        price = s * law.pmf(s) / tail
        assert largest_h(s, *grades, q) == pytest.approx(unlucky / price, rel=1e-6, abs=2e-11)


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
    arrays = s, np.array(r), np.array(weights), epsilon
    luck, value = (graded_p_value(*arrays, some) for some in (0.0, leaks))
    worst = worst_law(s, r, weights, epsilon, leaks)
    assert worst <= value + 1e-9
    assert value <= worst + 0.6 * (value - luck) + 1e-9  # and it is not far off


def test_rejections_of_a_mechanism_that_leaks():
    """Randomized response, and all leaks in one run out of a few, on the surest guesses."""
    rng = np.random.default_rng(1)
    epsilon, r, weights, leaks, trials = 1.0, np.array([20, 40]), np.array([3, 1]), 0.5, 20_000
    right = rng.binomial(r, 1 / (1 + np.exp(-epsilon)), (trials, 2))
    right[rng.random(trials) < leaks / 20, 0] = 20  # 20 leaks at once
    values = [graded_p_value(s, r, weights, epsilon, leaks) for s in range(60, 101)]
    least = next(60 + i for i, value in enumerate(values) if value <= 0.05)
    rejected = (right @ weights >= least).mean()
    assert 0.01 < rejected <= 0.05


def test_the_bound_is_the_largest_level_that_is_refuted():
    r, weights, given = np.array([30, 50]), np.array([5, 2]), dict(n=500, delta=1e-3)
    for v in ([29, 40], [25, 43], [30, 50]):
        bound = epsilon_lower_bound_graded(v, r, weights, **given)
        s = int(np.dot(v, weights))
        assert graded_p_value(s, r, weights, bound, 0.5) <= 0.05
        assert graded_p_value(s, r, weights, bound + 1e-6, 0.5) > 0.05
    assert epsilon_lower_bound_graded([10, 20], r, weights, **given) == 0.0
