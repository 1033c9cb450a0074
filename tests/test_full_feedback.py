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
from scipy import optimize, sparse

from oralib import Channel, Counts, p_value, valid_lower_bound

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


def history(tree, s):
    """Which guesses are right, in the order of guessing."""
    x = []
    while tree is not None:
        i, guess, one, other = tree
        sign = 1 if s >> i & 1 else -1
        if guess:
            x.append(int(sign == guess))
        tree = one if sign == (guess or 1) else other
    return x


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
    assert valid_lower_bound(counts, beta=below, delta=delta) < np.log(growth)
    assert valid_lower_bound(counts, beta=above, delta=delta) > np.log(growth)
