"""Full feedback, δ > 0 and a fixed number of guesses: the steps of the proofs.

An output o gives a function L(s) = P[o | s] of the coins, a guesser of o the set of coins where it
wins, and P[V >= v] <= f + c n δ holds for all mechanisms if L(wins) <= f |L| + c J(L) for all L,
with J(L) = Σ (L(s) - e^ε L(s^i))_+ over all s and i. Orders that are not settled: test_any_order.
"""

from fractions import Fraction
from functools import cache
from itertools import product
from math import comb

import numpy as np
import pytest


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


# ------------------------------------------------------------------------------------ random trees

# A tree is None where it ends, (i, guess, if right, if wrong), or (i, 0, if 1, if -1) for a skip.


def drawn(rng, unseen, k):
    if k == 0 or not unseen:
        return None
    i, *rest = unseen
    skip = len(rest) >= k and rng.random() < 0.6
    branches = [drawn(rng, rest, k if skip else k - 1) for _ in range(2)]
    return (i, 0 if skip else int(rng.choice([-1, 1])), *branches)


def winning(tree, n, v):
    """The coins for which at least v guesses are right."""
    wins = []
    for s in range(2**n):
        node, right = tree, 0
        while node is not None:
            i, guess, one, other = node
            sign = 1 if s >> i & 1 else -1
            right += sign == guess
            node = one if sign == (guess or 1) else other
        wins.append(right >= v)
    return np.array(wins)


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
        tree = with_dummies(drawn(rng, range(n), k), n, k)
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
