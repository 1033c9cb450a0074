"""Full feedback, δ > 0 and a fixed number of guesses: every strategy against linear programs.

An output o gives a function L(s) = P[o | s] of the coins, a guesser of o the set of coins where it
wins, and P[V >= v] <= f + c n δ holds for all mechanisms if L(wins) <= f |L| + c J(L) for all L,
with J(L) = Σ (L(s) - e^ε L(s^i))_+ over all s and i. The best c for a set is a linear program.
"""

from fractions import Fraction
from functools import cache
from itertools import permutations, product
from math import comb

import numpy as np
import pytest
from scipy import optimize, sparse, stats

from oralib import Channel, Counts, epsilon_lower_bound, p, p_value, valid_lower_bound, valid_rule

LEVELS = (1.0, 1.5, 4.0)  # e^ε


def luck_and_constant(k, v, q):
    """f = P[Bin(k, q) >= v] and C = f (1 - f) / (v P[Bin(k, q) = v]), also in fractions."""
    law = [comb(k, m) * q**m * (1 - q) ** (k - m) for m in range(k + 1)]
    f = sum(law[v:])
    return f, f * (1 - f) / (v * law[v])


@cache
def edges(n):
    """The two ends of all directed edges (s, i) of the cube; coin i of point s is bit i."""
    points = np.arange(2**n)
    return np.tile(points, n), np.concatenate([points ^ (1 << i) for i in range(n)])


def best_constant(wins, f, growth):
    """The largest (L(wins) - f |L|) / J(L), for e^ε = growth."""
    start, end = edges(len(wins).bit_length() - 1)
    size, many, row = len(wins), len(start), np.arange(len(start))
    losses = sparse.csr_array(
        (np.repeat([1.0, -growth, -1.0], many), (np.tile(row, 3), np.r_[start, end, size + row])),
        shape=(many, size + many),
    )
    total = sparse.csr_array([np.r_[np.zeros(size), np.ones(many)]])
    goal = np.r_[f - np.asarray(wins, dtype=float), np.zeros(many)]
    limits = np.r_[np.zeros(many), 1.0]
    return -optimize.linprog(goal, sparse.vstack([losses, total]), limits).fun


# ------------------------------------------------------------------------- every strategy there is


def strategies(n, line, *, in_order=False, skips=True, unseen=None):
    """The winning sets of all guessers of n elements, as bits of integers, but the empty one.

    They win, and stop, with ``line[r]`` right of r guesses, for any r < len(line). With
    ``line = (v,) * (k + 1)`` that is v right of k guesses, where missing ones are wrong.
    """
    points = [[s for s in range(2**n) if (s >> i & 1) == b] for i in range(n) for b in (0, 1)]
    halves = np.array([sum(1 << s for s in half) for half in points], dtype=object).reshape(n, 2)

    @cache
    def won(unseen, r, v):  # winning sets that do not look at elements seen before
        if v >= line[r]:
            return frozenset([2**2**n - 1])
        if r + 1 == len(line) or not unseen:
            return frozenset([0])
        found = set()
        for i in unseen[:1] if in_order else unseen:
            rest, (minus, plus) = tuple(x for x in unseen if x != i), halves[i]
            right, wrong = won(rest, r + 1, v + 1), won(rest, r + 1, v)
            for a, b in product(right, wrong):
                found |= {a & plus | b & minus, a & minus | b & plus}
            skipped = won(rest, r, v) if skips else ()
            found |= {a & plus | b & minus for a, b in product(skipped, skipped)}
        return frozenset(found)

    return won(tuple(range(n) if unseen is None else unseen), 0, 0) - {0}


def classes(sets, n):
    """One of each class of winning sets that are the same but for names and signs of elements."""
    cube = np.array([*product((0, 1), repeat=n)])
    powers = 2 ** np.arange(n)
    turns = [(cube[:, order] ^ flip) @ powers for order in permutations(range(n)) for flip in cube]
    bits = 2.0 ** np.array(turns)[:, np.argsort(cube @ powers)]  # of the image of s: n <= 5
    left, found = set(sets), []
    while left:
        one = left.pop()
        wins = np.array([one >> s & 1 for s in range(2**n)])
        found.append(wins)
        left.difference_update((bits @ wins).tolist())
    return found


@pytest.mark.parametrize(("n", "k"), [(2, 1), (3, 1), (3, 2), (3, 3)])
def test_all_guessers_in_a_settled_order_stay_below_the_exact_p_value(n, k):
    """Told every coin, guessing or skipping as they like; no more than k guesses."""
    for v in range(1, k + 1):
        sets = classes(strategies(n, (v,) * (k + 1), in_order=True), n)
        for growth in LEVELS:
            f, most = luck_and_constant(k, v, growth / (1 + growth))
            worst = max(best_constant(wins, f, growth) for wins in sets)
            assert worst == pytest.approx(most, rel=1e-9)  # a list attains it


# ------------------------------------------------------------------------------------ random trees

# A tree is None where it ends, (i, guess, if right, if wrong), or (i, 0, if 1, if -1) for a skip.


def drawn(rng, unseen, k, *, in_order=False, skips=0.0):
    if k == 0 or not unseen:
        return None
    i = unseen[0] if in_order else unseen[rng.integers(len(unseen))]
    rest = tuple(x for x in unseen if x != i)
    skip = len(rest) >= k and rng.random() < skips
    left = k if skip else k - 1
    branches = [drawn(rng, rest, left, in_order=in_order, skips=skips) for _ in range(2)]
    return (i, 0 if skip else int(rng.choice([-1, 1])), *branches)


def history(tree, s, k=0):
    """Which of the k guesses are right, in the order of guessing; missing ones are wrong."""
    x = []
    while tree is not None:
        i, guess, one, other = tree
        sign = 1 if s >> i & 1 else -1
        if guess:
            x.append(int(sign == guess))
        tree = one if sign == (guess or 1) else other
    return (*x, *[0] * (k - len(x)))


def winning(tree, n, v):
    return np.array([sum(history(tree, s)) >= v for s in range(2**n)])


@pytest.mark.parametrize(("n", "k", "trees"), [(5, 3, 12), (6, 4, 6)])
def test_guessers_of_more_elements_in_a_settled_order(n, k, trees):
    rng = np.random.default_rng(n)
    for _ in range(trees):
        tree = drawn(rng, tuple(range(n)), k, in_order=True, skips=0.5)
        for v, growth in product(range(1, k + 1), LEVELS[:2]):
            f, most = luck_and_constant(k, v, growth / (1 + growth))
            assert best_constant(winning(tree, n, v), f, growth) <= most * (1 + 1e-9)


def test_guessers_who_are_not_told_what_they_skip():
    """For all but one, or all but one wrong, the exact p-value holds in any order: all of k = 4."""
    rng = np.random.default_rng(4)
    for _ in range(12):
        tree = drawn(rng, tuple(range(6)), 4)
        for v, growth in product((2, 3), LEVELS[:2]):
            f, most = luck_and_constant(4, v, growth / (1 + growth))
            assert best_constant(winning(tree, 6, v), f, growth) <= most * (1 + 1e-9)


# ----------------------------------------------------------------------- the smoothing theorem


def mean_and_steps(payoff, k, q):
    """E φ(B), and the largest and least Φ(.., 1) - Φ(.., 0), over all histories."""
    values, steps = np.array([payoff[x] for x in product((0, 1), repeat=k)]), []
    while len(values) > 1:
        wrong, right = values.reshape(-1, 2).T
        steps.extend(right - wrong)
        values = q * right + (1 - q) * wrong
    return values[0], max(steps), min(steps)


def drawn_payoff(rng, k):
    """A payoff in [0, 1] of the history, at random, that no right guess lowers."""
    cube = [*product((0, 1), repeat=k)]
    base = dict(zip(cube, [0, *rng.random(2**k - 1) ** 3], strict=True))
    return {
        x: max(base[y] for y in cube if all(a <= b for a, b in zip(y, x, strict=True)))
        for x in cube
    }


def first_crossing(line, k):
    """Z = max over t of V_t - line_t, for every history."""
    return {
        x: max(v - least for v, least in zip(np.cumsum(x), line, strict=True))
        for x in product((0, 1), repeat=k)
    }


@pytest.mark.parametrize(("n", "k", "trees"), [(4, 2, 10), (4, 3, 10), (6, 4, 4)])
def test_smoothing(n, k, trees):
    """Any payoff that a right guess raises by at most c on average, any tree, all mechanisms."""
    rng, attained = np.random.default_rng(n + k), []
    for _ in range(trees):
        tree, payoff = drawn(rng, tuple(range(n)), k, skips=0.3), drawn_payoff(rng, k)
        for growth in LEVELS:
            q = growth / (1 + growth)
            mean, most, least = mean_and_steps(payoff, k, q)
            assert least >= 0
            values = [payoff[history(tree, s, k)] for s in range(2**n)]
            found = best_constant(values, mean, growth)
            assert found <= (1 - q) * most * (1 + 1e-9)
            attained.append(found / ((1 - q) * most))
    assert max(attained) > (0.99 if n == 4 else 0.5)


@pytest.mark.parametrize("line", [(1, 2, 2), (1, 2, 3), (2, 2, 2), (1, 2, 2, 3)])
def test_smoothing_for_guessers_who_may_stop(line):
    """How likely counts are ever ℓ - 1 above a line, beside how often the walk meets the line."""
    rng, k = np.random.default_rng(len(line)), len(line)
    z = first_crossing(line, k)
    for _ in range(8):
        tree = drawn(rng, tuple(range(5)), k, skips=0.3)
        for growth, window in product(LEVELS, (1, 2, 3)):
            q = growth / (1 + growth)
            met = [mean_and_steps({x: float(z[x] >= i) for x in z}, k, q)[0] for i in range(window)]
            wins = [z[history(tree, s, k)] >= window - 1 for s in range(2**5)]
            assert best_constant(wins, np.mean(met), growth) <= (1 - q) / window * (1 + 1e-9)
            assert max(met) == met[0]  # the library uses this one for all of them


# ------------------------------------------------------------------------------ steps of the proofs


def symmetrised(values, first, other=None):
    """Of values at s and at its image, the larger where coin ``first`` is 1.

    The image flips coin ``first`` or, if there is another one, exchanges the two.
    """
    points = np.arange(len(values))
    image = points ^ (1 << first)
    if other is not None:
        differ = (points >> first ^ points >> other) & 1 == 1
        image = np.where(differ, image ^ (1 << other), points)
    there = values[image]
    best = np.where(points >> first & 1, np.maximum(values, there), np.minimum(values, there))
    return np.where(image == points, values, best)


def leaks(values, growth):
    start, end = edges(len(values).bit_length() - 1)
    return sum(np.maximum(values[start] - growth * values[end], 0))


def test_symmetrising_does_not_raise_the_leaks():
    rng = np.random.default_rng(1)
    for _ in range(8):
        values = np.array([Fraction(int(x)) for x in rng.geometric(0.1, 16) ** 2])
        for growth in (Fraction(1), Fraction(3, 2), Fraction(5)):
            for first, other in product(range(4), (None, *range(4))):
                if first != other:
                    after = symmetrised(values, first, other)
                    assert after.sum() == values.sum()
                    assert leaks(after, growth) <= leaks(values, growth)


@pytest.mark.parametrize(("n", "k"), [(3, 2), (5, 3), (6, 2), (6, 4)])
def test_symmetrising_turns_a_settled_order_into_a_list(n, k):
    """The very steps of the proof: elements from the last to the first, then a list of k remains.

    Guesses that are missing in the end are made on elements of which nothing is known.
    """
    rng = np.random.default_rng(n)
    for _ in range(10):
        tree = drawn(rng, tuple(range(n)), k, in_order=True, skips=0.6)
        tree = with_dummies(tree, n, k)
        for v in range(1, k + 1):
            wins = winning(tree, n + k, v)
            for i in reversed(range(n)):
                wins = symmetrised(wins, i)
                for left in reversed(range(1, k + 1)):
                    if i + left < n + k:
                        wins = symmetrised(wins, i, i + left)
            ones = np.array([s.bit_count() for s in range(2**k)])
            assert (wins.reshape(-1, 2**k) == (ones >= v)).all()


def with_dummies(tree, n, left):
    if tree is None:
        for i in reversed(range(n, n + left)):
            tree = (i, 1, tree, tree)
        return tree
    i, guess, one, other = tree
    left -= guess != 0
    return (i, guess, with_dummies(one, n, left), with_dummies(other, n, left))


def flow_of(tree, n, k, v, q):
    """What the proof for any order puts on each edge, and where it ends: u[i, s] in fractions."""
    u = np.full((n, 2**n), Fraction(0))
    for s in range(2**n):
        node, left, needed = tree, k, v
        while node is not None and 1 < needed < left:
            i, guess, one, other = node
            sign = 1 if s >> i & 1 else -1
            if guess:
                left -= 1
                if sign == guess:
                    u[i, s] = (1 - q) * comb(left, needed - 1)
                    u[i, s] *= q ** (needed - 1) * (1 - q) ** (left - needed + 1)
                    needed -= 1
            node = one if sign == (guess or 1) else other
        if not 1 <= needed <= left:
            continue
        # Only one path matters from here on: that on which all guesses are right, or all wrong.
        listed, all_right = [], needed == left
        while node is not None:
            i, guess, one, other = node
            sign = 1 if s >> i & 1 else -1
            if guess:
                listed.append((i, sign == guess))
                node = one if all_right else other
            else:
                node = one if sign == 1 else other
        law = [comb(left, m) * q**m * (1 - q) ** (left - m) for m in range(left + 1)]
        right = sum(hit for _, hit in listed)
        for i, hit in listed:
            if hit:
                both = sum(law[max(needed, right) :]) * sum(law[: min(needed, right)])
                u[i, s] = both / (right * law[right])
    return u


@pytest.mark.parametrize("growth", [Fraction(1), Fraction(3, 2), Fraction(6)])
def test_the_flow_for_any_order(growth):
    """In fractions: 0 <= u <= (1 - q²) / 2, and what flows in and out is 1[V >= v] - f."""
    rng, q = np.random.default_rng(9), growth / (1 + growth)
    for n, k in ((5, 3), (6, 4), (7, 5)):
        tree = drawn(rng, tuple(range(n)), k, skips=0.3)
        while any_short(tree, k):
            tree = drawn(rng, tuple(range(n)), k, skips=0.3)
        for v in range(1, k + 1):
            u = flow_of(tree, n, k, v, q)
            out = sum(u[i] - growth * u[i][np.arange(2**n) ^ (1 << i)] for i in range(n))
            f, most = luck_and_constant(k, v, q)
            assert (out == winning(tree, n, v) - f).all()
            assert u.min() >= 0
            assert u.max() <= (most if v in (1, k) else (1 - q**2) / 2)


def any_short(tree, left):
    """Whether a path ends before its guesses are used up."""
    if tree is None:
        return left > 0
    return any(any_short(branch, left - (tree[1] != 0)) for branch in tree[2:])


# --------------------------------------------------------------------------------- the library


#: Right, taken, n δ, and the bound at β = 0.05.
BOUNDS = [(73, 100, 0.05, 0.573), (73, 100, 0.09, 0.543), (73, 100, 0.3, 0.444)]
BOUNDS += [(270, 350, 0.05, 0.986), (270, 350, 0.3, 0.947), (270, 350, 1, 0.873)]
BOUNDS += [(95, 100, 0.12, 2.126), (95, 100, 0.5, 1.946), (95, 100, 1, 1.750)]
BOUNDS += [(1439, 1510, 1, 2.766), (462, 600, 1, 0.965)]


@pytest.mark.parametrize(("v", "k", "budget", "bound"), BOUNDS)
def test_bounds_for_any_order(v, k, budget, bound):
    claim = {"delta": budget / 10_000, "n": 10_000}
    counts = Counts(v, k, n=10_000, r_fixed=True, feedback="full")
    assert valid_rule(counts, claim["delta"]) == "any order"
    found = valid_lower_bound(counts, delta=claim["delta"])[0]
    assert found == pytest.approx(bound, abs=1e-3)
    exact = epsilon_lower_bound(v, k, method="exact", **claim)
    listed = Counts(v, k, n=10_000, r_fixed=True, feedback="list")
    assert valid_lower_bound(listed, delta=claim["delta"])[0] == exact > found


def test_the_p_value_for_any_order_is_the_least_of_all_and_rises():
    """Single terms fall where n δ (1 - p) does; the least one never does."""
    grid, rng = np.linspace(0, 8, 2001), np.random.default_rng(3)
    for _ in range(40):
        k = int(rng.integers(1, 120))
        v, beta = int(rng.integers(k // 2, k + 1)), 10 ** rng.uniform(-4, -0.2)
        n, budget = k + int(rng.integers(1, 1000)), beta * 10 ** rng.uniform(-2, 2.3)
        delta, q = min(budget / n, 1.0), p(grid)
        if v in (0, 1, k):
            due = p_value(v, k, grid, delta=delta, n=n, method="exact")
        else:
            window = np.arange(1, v + 1)[:, None]
            tails = stats.binom.sf(v - window, k, q)
            means = (tails.cumsum(axis=0) + n * delta * (1 - q)) / window
            due = np.minimum(tails[0] + n * delta * (1 - q**2) / 2, means.min(axis=0))
            due = np.minimum(due, 1)
        found = p_value(v, k, grid, delta=delta, n=n, method="any order")
        np.testing.assert_allclose(found, due, rtol=1e-9)
        assert (np.diff(found) >= -1e-12).all()
        exact = p_value(v, k, grid, delta=delta, n=n, method="exact")
        assert (found >= exact * (1 - 1e-9)).all()
        bound = epsilon_lower_bound(v, k, beta=beta, delta=delta, n=n, method="any order")
        refuted = grid[due <= beta]
        assert bound == pytest.approx(refuted[-1] if refuted.size else 0, abs=4.1e-3)
        plain, exact = (
            epsilon_lower_bound(v, k, beta=beta, **more)
            for more in ({}, {"delta": delta, "n": n, "method": "exact"})
        )
        assert bound <= exact + 1e-9 <= plain + 2e-9


def test_a_mechanism_that_makes_the_list_bound_tight():
    """It attains the exact p-value, so with full feedback no more than that can be promised."""
    n = k = 3
    growth, delta, v = 1.5, 0.02, 2
    q = growth / (1 + growth)
    law = np.array([comb(k, m) * q**m * (1 - q) ** (k - m) for m in range(k + 1)])
    f, _ = luck_and_constant(k, v, q)
    x = n * delta * f / (v * law[v])
    law *= np.where(np.arange(k + 1) >= v, 1 - x + x / f, 1 - x)
    signs = np.array([*product((-1, 1), repeat=n)])
    right = (signs[:, None] == signs).sum(axis=2)  # [output, coins]: how many the output has right
    table = Channel(law[right] / np.array([comb(k, m) for m in range(k + 1)])[right])
    assert table.delta(np.log(growth)) == pytest.approx(delta)
    due = p_value(v, k, np.log(growth), delta=delta, n=n, method="exact")
    assert law[v:].sum() == pytest.approx(due)
    counts = Counts([v], [k], n, r_fixed=True, feedback="list")
    below, above = due * (1 - 1e-6), due * (1 + 1e-6)
    assert valid_lower_bound(counts, beta=below, delta=delta)[0] < np.log(growth)
    assert valid_lower_bound(counts, beta=above, delta=delta)[0] > np.log(growth)
