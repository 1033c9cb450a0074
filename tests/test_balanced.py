"""Coins that balance: linear programs over all mechanisms, and known numbers."""

from itertools import product
from math import comb, exp, prod

import numpy as np
import pytest
from scipy import optimize

from oralib import Counts, valid_lower_bound
from oralib.bounds import Balanced
from oralib.bounds.refuting import like


def worst(v, r, n, epsilon, delta, r_in):
    """max P[V >= v] over all (ε, δ)-DP mechanisms, whose outputs are guesses.

    Of two numbers δ the first is for elements that go out, the second for those that come in.
    By symmetry P[output | s] depends on how many of the elements guessed "included", guessed "left
    out" and not guessed are in s: the states. Then come their excesses over their neighbours.
    """
    sizes = (r_in, r - r_in, n - r)
    states = [*product(*(range(size + 1) for size in sizes))]
    ways = {x: prod(map(comb, sizes, x)) / comb(n, sum(x)) for x in states}
    flips = [*product(states, range(3), (-1, 1))]
    flips = [(x, i, up) for x, i, up in flips if 0 <= x[i] + up <= sizes[i]]
    rows, budgets = np.zeros((len(flips), len(states))), np.zeros((2 * n + 2, len(flips)))
    for row, (x, i, up) in enumerate(flips):
        y = (*x[:i], x[i] + up, *x[i + 1 :])
        share = (sizes[i] - x[i]) / (n - sum(x)) if up > 0 else x[i] / sum(x)
        rows[row, states.index(x)] = share
        rows[row, states.index(y)] = -share * exp(epsilon) * ways[x] / ways[y]
        budgets[2 * sum(x) + (up > 0), row] = 1
    return -optimize.linprog(
        [-(2 * sum(x) == n and x[0] + sizes[1] - x[1] >= v) for x in states] + [0] * len(flips),
        A_ub=np.block([[rows, -np.eye(len(flips))], [np.zeros((2 * n + 2, len(states))), budgets]]),
        b_ub=[0] * len(flips) + [*np.broadcast_to(delta, 2)] * (n + 1),
        A_eq=[[sum(x) == k for x in states] + [0] * len(flips) for k in range(n + 1)],
        b_eq=np.ones(n + 1),
    ).fun


def test_no_mechanism_does_better():
    assert worst(2, 2, 2, 1.0, 0.0, 1) == pytest.approx(1 - exp(-1) / 2)  # as in the chapter
    cases = [(4, v, r, r_in) for r in range(1, 5) for r_in in range(r + 1) for v in range(1, r + 1)]
    cases += [(6, v, r, r_in) for r, r_in in ((3, 3), (4, 2), (5, 1), (6, 3)) for v in (r - 1, r)]
    for (n, v, r, r_in), epsilon, delta in product(cases, (0.0, 0.5, 1.5), (0.0, 0.01, 0.1)):
        limit = Balanced(r_in).p_value(v, r, epsilon=epsilon, n=n, delta=delta)
        assert worst(v, r, n, epsilon, delta, r_in) <= limit + 1e-7


def test_known_bounds_and_counts_that_cannot_be():
    known = [(160, 210, 1000, 0.8072, 0.7678), (75, 100, 1000, 0.5702, 0.5371)]
    known += [(95, 100, 1000, 1.9367, 1.8757), (270, 350, 8000, 0.9137, 0.9037)]
    for v, r, n, *bounds in known:
        for r_in, bound in zip((r, r // 2), bounds, strict=True):
            counts = Counts(v, r, n, r_fixed=True, coins="balanced", r_in=r_in)
            assert valid_lower_bound(counts, delta=1e-5) == pytest.approx(bound, abs=5e-5)
            claims = {"epsilon": np.arange(0, 3, 0.01), "n": n, "delta": 1e-5}
            levels = Balanced(r_in).p_value(v, r, **claims)
            assert (np.diff(levels) >= 0).all()
    # Of 600 guesses "included" 500 can be right.
    case = {"r": 600, "epsilon": 0.5, "n": 1000, "delta": 1e-5}
    assert 0 < Balanced(600).p_value(500, **case) == Balanced(600).p_value(600, **case)


def test_counts_alike_keep_the_share_of_guesses_in():
    assert like(Counts(30, 51, 400, coins="balanced", r_in=26), 100, 100, 400).r_in == 50
