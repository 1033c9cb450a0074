"""The ceiling that knows d: against linear programs, enumerated policies and simulated designs."""

from itertools import product

import numpy as np
import pytest
from scipy import optimize, sparse, stats

from orabook.studies import confidence, placement_ceiling
from orabook.studies.placement import _Placing
from oralib import DpSgd, Dropping, simulate_hopping


def step_law(load, dpsgd, cells):
    """What one step adds to a score, and with which probability if excluded: y by midpoints."""
    others = np.arange(load)
    weight = stats.binom.pmf(others, load - 1, dpsgd.sample_rate / 2)
    y = np.linspace(-7 * dpsgd.sigma, load + 7 * dpsgd.sigma, cells)
    excluded, shifted = (
        stats.norm.pdf((y - a)[:, None], others, dpsgd.sigma) @ weight for a in (0, 1)
    )
    ratio = np.log((1 - dpsgd.sample_rate) + dpsgd.sample_rate * shifted / excluded)
    return ratio, excluded / excluded.sum()


def by_linear_program(dpsgd, k, loads, cells):
    """The best policy of two steps, as a program for how many canaries do what, tree by tree.

    After the first step canaries stand at one of ``cells`` scores for each load (or at 0, if
    dropped); each such group is split anew, and of each group some are guessed in the end.
    """
    groups = [(0.0, -1, 1.0)]  # score, first load, share of the included and excluded there
    for i, load in enumerate(loads):
        ratio, mass = step_law(load, dpsgd, cells)
        groups += [(r, i, m * (1 + np.exp(r)) / 2) for r, m in zip(ratio, mass, strict=True)]
    choices = [*range(len(loads)), -1]
    names = [("first", i) for i in choices]
    names += [("second", g, i) for g, i in product(range(len(groups)), choices)]
    at = {name: j for j, name in enumerate(names)}
    ends = []  # (number of the second choice, share, probability to be right)
    for g, (score, _, _) in enumerate(groups):
        ends.append((at["second", g, -1], 1.0, 1 / (1 + np.exp(-abs(score)))))
        for i, load in enumerate(loads):
            ratio, mass = step_law(load, dpsgd, cells)
            after = score + ratio
            share = mass * (1 + np.exp(after)) / (1 + np.exp(score))
            right = 1 / (1 + np.exp(-np.abs(after)))
            ends += [(at["second", g, i], s, p) for s, p in zip(share, right, strict=True)]
    size = len(names) + len(ends)
    rows, limits = [], []

    def row(entries, limit):
        line = np.zeros(size)
        for j, value in entries:
            line[j] += value
        rows.append(line)
        limits.append(limit)

    row([(at["first", i], 1.0) for i in choices], dpsgd.n)
    row([(at["first", i], 1 / load) for i, load in enumerate(loads)], dpsgd.d)
    seconds = product(range(len(groups)), enumerate(loads))
    row([(at["second", g, i], 1 / load) for g, (i, load) in seconds], dpsgd.d)
    for g, (_, first, share) in enumerate(groups):
        out = [(at["second", g, i], 1.0) for i in choices]
        row([*out, (at["first", first], -share)], 0)
    for e, (second, share, _) in enumerate(ends):
        row([(len(names) + e, 1.0), (second, -share)], 0)
    row([(len(names) + e, 1.0) for e in range(len(ends))], k)
    gain = np.array([0.0] * len(names) + [right for *_, right in ends])
    solved = optimize.linprog(-gain, A_ub=sparse.csr_matrix(rows), b_ub=limits, method="highs")
    return -solved.fun


@pytest.mark.parametrize(("n", "d", "k"), [(12, 4, 3), (8, 8, 3), (30, 3, 2)])
def test_two_steps_by_linear_programming(n, d, k):
    """Strong duality: with all loads the ceiling is what the best policy of the model reaches."""
    dpsgd = DpSgd(n=n * 2 if n % d else n, d=d, steps=2, sample_rate=0.5, sigma=1.0)
    loads = [1, 2, 4, 8] if dpsgd.n >= 8 else [1, 2, 4]
    best = by_linear_program(dpsgd, k, loads, 16)
    ceiling = placement_ceiling(dpsgd, k)
    assert best <= ceiling * 1.005
    assert ceiling <= best * 1.02  # which has more loads, and a finer grid


def test_enumerated_policies_of_two_canaries():
    """One coordinate, one step, one guess: nobody, one of them, or both on it, by integration."""
    dpsgd = DpSgd(n=2, d=1, steps=1, sample_rate=0.5, sigma=0.8)
    reached = [0.5]
    for load in (1, 2):
        ratio, mass = step_law(load, dpsgd, 4001)
        reached.append(float(mass @ np.maximum(1, np.exp(ratio))) / 2)
    ceiling = placement_ceiling(dpsgd, 1)
    assert max(reached) <= ceiling
    # All prices are valid, and the ceiling has the best of them.
    placing = _Placing(dpsgd)
    for price, guess in product((0.0, 0.01, 0.05), (0.5, 0.7, 0.9)):
        value, _ = placing.worth(np.array([price]), guess)
        assert 2 * value + price + guess >= ceiling - 1e-3


def test_more_coordinates_never_hurt_and_in_the_end_canaries_are_isolated():
    shape = dict(n=400, steps=20, sample_rate=0.2, sigma=2.4)
    ceilings = [placement_ceiling(DpSgd(d=d, **shape), 40) for d in (4, 20, 100, 400, 10**6)]
    assert (np.diff(ceilings) > -0.01).all()
    assert ceilings[2] > ceilings[0] + 0.3
    law = confidence(DpSgd(d=400, **shape))
    right, _ = law.at(law.level_of(40 / 400))
    assert ceilings[-1] == pytest.approx(400 * float(right), rel=1e-3)


def test_simulated_designs_stay_below():
    dpsgd = DpSgd(n=800, d=40, steps=12, sample_rate=0.3, sigma=2.0)
    ceiling = placement_ceiling(dpsgd, 30)
    for dropping in (None, Dropping(3, 0.8), Dropping(2, 0.9, 1.65, (3, 20))):
        right = simulate_hopping(dpsgd, 30, dropping=dropping, trials=1000, seed=1).v
        assert right.mean() <= ceiling + 4 * right.std() / np.sqrt(1000)
    assert right.mean() > ceiling - 1.5  # the last design comes close


def test_a_policy_that_keeps_to_its_coordinates_is_below_all_prices():
    """Followed forwards, the best policy for some prices has what its value says."""
    placing = _Placing(DpSgd(n=1000, d=50, steps=10, sample_rate=0.3, sigma=1.5))
    prices, guess = np.geomspace(0.004, 0.001, 10), 0.8
    value, best = placing.worth(prices, guess)
    used, guesses, right = placing.follow(best, guess)
    assert 1000 * value == pytest.approx(right - used @ prices - guesses * guess, abs=0.02)
