"""The ceiling that knows d: against linear programs, exact laws, enumerations and simulation.

And canaries that meet again, for which it is none.
"""

from itertools import product

import numpy as np
import pytest
from scipy import optimize, sparse, special, stats

from ledger.placements import step_law
from orabook.studies import confidence, isolated_law, joint_decoding, placement_ceiling
from orabook.studies.decoding import decode, hop, score
from orabook.studies.placement import _increments, _Placing
from oralib import DpSgd, Dropping, simulate_hopping


def best_of_two_steps(dpsgd, k, cells):
    """Right guesses of the best policy, by a program for how many canaries do what.

    In the first step they are put at each load, or dropped. What they see, as a cell, divides
    them into groups; each group is divided anew in the second step, and so are those who are
    guessed in the end.
    """
    laws = ((1 / load, *step_law(load, dpsgd, cells)) for load in range(1, dpsgd.n + 1))
    plays = [(0.0, np.zeros(1), np.ones(1)), *laws]
    entries = []  # row, variable, coefficient
    limits, gains = [dpsgd.n, dpsgd.d, dpsgd.d, k], []

    def variable(group, row, cost, gain=0.0):
        gains.append(gain)
        entries.extend([(group, len(gains) - 1, 1.0), (row, len(gains) - 1, cost)])
        return len(gains) - 1

    def group(parent, share):
        limits.append(0.0)
        entries.append((len(limits) - 1, parent, -share))
        return len(limits) - 1

    for cost, ratio, mass in plays:
        first = variable(0, 1, cost)
        for before, share in zip(ratio, mass * (1 + np.exp(ratio)) / 2, strict=True):
            seen = group(first, share)
            for more, ratio_2, mass_2 in plays:
                second, after = variable(seen, 2, more), before + ratio_2
                shares = mass_2 * (1 + np.exp(after)) / (1 + np.exp(before))
                for end, part in zip(after, shares, strict=True):
                    variable(group(second, part), 3, 1.0, 1 / (1 + np.exp(-abs(end))))
    rows, columns, values = zip(*entries, strict=True)
    matrix = sparse.csr_matrix((values, (rows, columns)))
    return -optimize.linprog(-np.array(gains), A_ub=matrix, b_ub=limits).fun


@pytest.mark.parametrize(
    ("n", "d", "k", "rate", "sigma"),
    [(6, 2, 2, 0.5, 1.0), (4, 1, 4, 1.0, 0.5), (6, 1, 3, 1.0, 0.3), (4, 2, 3, 0.5, 0.2)],
)
def test_two_steps_by_linear_programming(n, d, k, rate, sigma):
    """Strong duality: the ceiling is what the best policy reaches, which sees cells of outputs."""
    dpsgd = DpSgd(n=n, d=d, steps=2, sample_rate=rate, sigma=sigma)
    best, ceiling = best_of_two_steps(dpsgd, k, 12), placement_ceiling(dpsgd, k)
    assert best <= ceiling <= 1.01 * best


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
    placing = _Placing(dpsgd, cells=16, spacing=0.02)
    for price, guess in product((0.0, 0.01, 0.05), (0.5, 0.7, 0.9)):
        assert placing.dual(np.array([price]), guess, 1)[0] >= ceiling - 1e-3


@pytest.mark.parametrize(
    ("n", "steps", "rate", "sigma", "k"),
    [
        (10, 30, 1.0, 1.0, 10),  # all are guessed: a guess is free
        (10, 1, 1.0, 1.5, 10),
        (50, 1, 1.0, 0.2, 20),  # little noise
        (50, 1, 1.0, 0.3, 20),
        (50, 4, 1.0, 0.05, 20),
        (400, 20, 0.2, 2.4, 40),
    ],
)
def test_isolated_canaries_stay_below_and_nobody_has_more(n, steps, rate, sigma, k):
    dpsgd = DpSgd(n=n, d=n, steps=steps, sample_rate=rate, sigma=sigma)
    law, each = isolated_law(dpsgd, k), confidence(dpsgd)
    right, _ = each.at(each.level_of(k / n))  # if k were only the mean number of guesses
    ceiling = placement_ceiling(dpsgd, k)
    assert law.probability @ law.v <= ceiling + 1e-9
    assert ceiling <= min(k, n * float(right) * 1.001)


def test_more_coordinates_never_hurt_and_more_guesses_neither():
    shape = dict(n=400, steps=20, sample_rate=0.2, sigma=2.4)
    ceilings = [placement_ceiling(DpSgd(d=d, **shape), 40) for d in (4, 100, 400)]
    assert (np.diff(ceilings) > -0.01).all()
    assert ceilings[1] > ceilings[0] + 0.3
    little = DpSgd(n=20, d=5, steps=3, sample_rate=1.0, sigma=0.4)
    ceilings = [placement_ceiling(little, k) for k in (1, 10, 20)]
    assert (np.diff(ceilings) > -0.01).all()
    assert ceilings[-1] < 20


@pytest.mark.parametrize(("rate", "sigma", "load"), [(0.1, 2.4, 5), (1.0, 0.3, 4), (0.5, 0.2, 3)])
def test_the_law_of_a_step_is_rounded_to_the_safe_side(rate, sigma, load):
    """Who sees it guesses right at least as often, whatever was known before, and hardly more."""
    dpsgd = DpSgd(n=8, d=2, steps=3, sample_rate=rate, sigma=sigma)
    seen, weight = step_law(load, dpsgd, 2000)  # somewhat less than all of y
    placing = _Placing(dpsgd, cells=4, spacing=0.01)
    ratio = placing.width * np.arange(-placing.radius, placing.radius + 1)
    for at, mass in (_increments(load, rate, sigma), (ratio, placing.kernels[load - 1])):
        assert mass.min() >= 0
        disclosed = 1 - np.array([mass.sum(), mass @ np.exp(at)])  # what is left of each coin
        assert disclosed.min() > -1e-9
        for prior in (0.1, 0.5, 0.8):
            exact = weight @ np.maximum(prior * np.exp(seen), 1 - prior)
            safe = mass @ np.maximum(prior * np.exp(at), 1 - prior) + disclosed @ [1 - prior, prior]
            assert exact <= safe + 1e-9
            assert safe <= exact + 0.01


@pytest.mark.parametrize(("rate", "sigma"), [(0.3, 1.5), (1.0, 0.3)])
def test_a_finer_grid_lowers_the_ceiling(rate, sigma):
    """Each grid has all scores of the one before it, so its value cannot be above that one's."""
    dpsgd = DpSgd(n=100, d=5, steps=10, sample_rate=rate, sigma=sigma)
    prices = np.geomspace(0.04, 0.01, 10)
    grids = [_Placing(dpsgd, cells, 0.08) for cells in (10.0, 20.0, 40.0)]
    totals = [grid.dual(prices, 0.7, 50)[0] for grid in grids]
    assert totals[2] - 1e-9 <= totals[1] <= totals[0] + 1e-9
    assert totals[0] < 1.01 * totals[2]


def test_simulated_designs_stay_below():
    dpsgd = DpSgd(n=800, d=40, steps=12, sample_rate=0.3, sigma=2.0)
    ceiling = placement_ceiling(dpsgd, 30)
    for dropping in (None, Dropping(3, 0.8), Dropping(2, 0.9, 1.65, (3, 20))):
        right = simulate_hopping(dpsgd, 30, dropping=dropping, trials=1000, seed=1).v
        assert right.mean() <= ceiling + 4 * right.std() / np.sqrt(1000)
    assert right.mean() > ceiling - 1.5  # the last design comes close


@pytest.mark.parametrize("sigma", [0.3, 1.5])
def test_a_policy_that_keeps_to_its_coordinates_is_below_all_prices(sigma):
    """Followed forwards, the best policy for some prices has what its value says."""
    dpsgd = DpSgd(n=1000, d=50, steps=10, sample_rate=0.3, sigma=sigma)
    placing, prices, guess = _Placing(dpsgd, 4.0, 0.1), np.geomspace(0.004, 0.001, 10), 0.8
    value, best = placing.worth(prices, guess)
    used, guesses, right = placing.follow(best, guess)
    assert 1000 * value == pytest.approx(right - used @ prices - guesses * guess, abs=1e-7)


def exact_odds(dpsgd, places, y):
    """The log-odds of each coin, by enumeration of all coins."""
    coins = (np.arange(2**dpsgd.n)[:, None] >> np.arange(dpsgd.n)) % 2
    logs, batch = np.zeros(len(coins)), np.arange(dpsgd.n + 1)
    for (t, j), seen in np.ndenumerate(y):
        included = coins[:, places[t, j]].sum(axis=1)
        weight = stats.binom.pmf(batch, included[:, None], dpsgd.sample_rate)
        logs += np.log(weight @ stats.norm.pdf(seen, batch, dpsgd.sigma))
    law = np.exp(logs - logs.max())
    return np.log(law @ coins) - np.log(law @ (1 - coins))


def test_decoding_is_exact_without_cycles():
    """Three canaries: the first two meet, then the last two; each is alone in the other step."""
    dpsgd = DpSgd(n=4, d=2, steps=2, sample_rate=0.7, sigma=0.6)
    places = np.array([[[0, 1], [2, 3]], [[1, 2], [0, 3]]])[:, :1]  # one coordinate is not seen
    y = np.array([[1.3], [0.2]])
    assert decode(dpsgd, places, y) == pytest.approx(exact_odds(dpsgd, places, y), abs=1e-6)


@pytest.mark.parametrize(("rate", "sigma"), [(1.0, 0.7), (0.5, 0.7), (0.2, 1.5)])
def test_decoding_against_enumeration(rate, sigma):
    """In small graphs, which have many cycles, it has nearly as many right guesses as can be."""
    dpsgd = DpSgd(n=9, d=3, steps=6, sample_rate=rate, sigma=sigma)
    rng, right = np.random.default_rng(1), []
    for _ in range(80):
        coins, places, y = hop(dpsgd, rng)
        ways = decode(dpsgd, places, y), exact_odds(dpsgd, places, y)
        ways += (score(dpsgd, places, y, np.full(9, 0.5)),)
        told = special.expit(np.abs(score(dpsgd, places, y, coins.astype(float)))).sum()
        right.append([*(((odds > 0) == coins).sum() for odds in ways), told])
    decoded, exact, alone, told = np.mean(right, axis=0)
    assert exact - 0.1 < decoded < exact + 0.1
    assert alone - 0.1 < exact < told + 0.1
    if rate == 1:
        assert decoded > alone + 0.3


def test_real_neighbours_can_beat_the_ceiling_of_strangers():
    dpsgd = DpSgd(n=100, d=5, steps=20, sample_rate=1.0, sigma=0.7)
    decoded = joint_decoding(dpsgd, 90, trials=20, seed=1).loc["decoded"]
    assert decoded["right"] - 4 * decoded["right_se"] > placement_ceiling(dpsgd, 90)
