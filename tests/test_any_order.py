"""Full feedback and δ > 0 in any order: all guessers of up to five elements.

A guesser wins on a set of coins, and P[it wins] <= f + c n δ for all (ε, δ)-DP mechanisms, at every
δ at once, if and only if no L has a larger (L(wins) - f |L|) / J(L) than c (test_full_feedback).
"""

from fractions import Fraction
from functools import cache
from itertools import product
from math import exp, log

import numpy as np
import pytest
from scipy import optimize, sparse
from test_full_feedback import (
    LEVELS,
    best_constant,
    classes,
    edges,
    luck_and_constant,
    strategies,
)

from oralib import p_value


def best_constants(sets, f, growth):
    """What best_constant finds, for many sets and in a third of the time.

    By duality 1 / c is the largest t for which some flow u on the edges, 0 <= u <= 1, has
    Σ_i (u_i(s) - e^ε u_i(s^i)) >= t (1[s wins] - f) for all s. Twenty sets are one program.
    """
    start, end = edges(len(sets[0]).bit_length() - 1)
    size, many, row = len(sets[0]), len(start), np.arange(len(start))
    flow = sparse.csr_array(
        (np.repeat([-1.0, growth], many), (np.r_[start, end], np.tile(row, 2))), shape=(size, many)
    )
    found = []
    for few in (sets[i : i + 20] for i in range(0, len(sets), 20)):
        due = sparse.block_diag([np.asarray(wins, dtype=float)[:, None] - f for wins in few])
        matrix = sparse.hstack([sparse.kron(sparse.eye_array(len(few)), flow), due])
        upper = np.repeat([1.0, np.inf], [many * len(few), len(few)])
        goal = np.repeat([0.0, -1.0], [many * len(few), len(few)])
        limits = np.c_[np.zeros(len(upper)), upper]
        program = optimize.linprog(goal, matrix, np.zeros(size * len(few)), bounds=limits)
        assert program.success
        found.extend(1 / program.x[many * len(few) :])
    return np.array(found)


@cache
def all_classes(n, line):
    return classes(strategies(n, line), n)


def test_both_programs_find_the_same():
    sets = all_classes(4, (2,) * 3)
    assert len(sets) > 20  # more than one program
    for growth in LEVELS:
        f, _ = luck_and_constant(2, 2, growth / (1 + growth))
        due = [best_constant(wins, f, growth) for wins in sets]
        np.testing.assert_allclose(best_constants(sets, f, growth), due, rtol=1e-7)


# --------------------------------------------------------------------------------- three of five


@cache
def three_of_five():
    """The winning sets of all guessers of all five elements, one of each class.

    The first guess is that element 0 is 1; if it is right, two more of the other four are needed,
    and these sets are taken only up to names and signs of the four. To skip would be to lose a
    guess, as every element is needed for five: it only makes the set smaller.
    """
    one = sum(1 << s for s in range(32) if s & 1)
    right, wrong = (
        strategies(5, (needed,) * 5, skips=False, unseen=range(1, 5)) for needed in (2, 3)
    )
    assert len(right) == len(wrong) == 2288
    first = [sum(1 << s for s in np.flatnonzero(wins).tolist()) for wins in classes(right, 5)]
    assert len(first) == 11
    return classes({a & one | b & ~one for a, b in product(first, wrong)}, 5)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0, 1, 2])
def test_three_of_five_in_any_order_stay_below_the_exact_p_value(epsilon):
    """The least case, if all elements are guessed, in which no proof says so.

    The exact p-value is f + C n δ, up to 1. For ε > 0 only one class attains it: the sets of all
    points with at least three of five given coins, as of a guesser with a list.
    """
    sets, growth = three_of_five(), exp(epsilon)
    assert len(sets) == 12_004
    f, most = luck_and_constant(5, 3, growth / (1 + growth))
    exact = p_value(3, 5, epsilon, delta=0.01, n=5, method="exact")
    assert exact == pytest.approx(f + most * 0.05, rel=1e-12)
    found = best_constants(sets, f, growth)
    assert found.max() == pytest.approx(most, rel=1e-9)
    attained = [sets[i] for i in np.flatnonzero(found > most * (1 - 1e-3))]
    assert len(attained) == (1 if epsilon else 40)
    cube = range(32)
    lists = [[(s ^ guesses).bit_count() <= 2 for s in cube] for guesses in cube]
    assert sum(wins.tolist() in lists for wins in attained) == 1


# --------------------------------------------------------------------- the theorem for any order


def naive_constants(line, growth):
    """f and c of the theorem for any order: P[the guesser ever meets the line] <= f + c n δ.

    It meets the line with ``line[r]`` right of r guesses, r < len(line); for v right of k that is
    ``(v,) * (k + 1)``. From the last guess back, by the definition; in fractions, or in numbers of
    many digits (mpmath) where 1 - f may be tiny.
    """
    q = growth / (1 + growth)

    @cache
    def after(r, v):
        if v >= line[r] or r + 1 == len(line):
            return int(v >= line[r]), 0
        (f1, c1), (f0, c0) = after(r + 1, v + 1), after(r + 1, v)
        rise = f1 - f0
        terms = [q * c1 + (1 - q) * c0, (1 - q) * rise]
        if c1 > 0:
            terms.append((1 - f1 + (1 - q) * rise) / ((1 - f1) / c1 + 1))
            terms += [c1 / (1 + c1), c1 * (1 - (1 - q) * rise / f1)]
        if c0 > 0:
            terms.append((f0 + q * rise) / (f0 / c0 + growth))
            terms += [c0 / (1 + growth * c0), c0 * (1 - q * rise / (1 - f0))]
        return q * f1 + (1 - q) * f0, max(terms)

    return after(0, 0)


def test_constants_in_fractions():
    """Two of three at ε = 0 is the least case in which the theorem is not the exact p-value."""
    half = Fraction(1, 2)
    assert naive_constants((2,) * 4, Fraction(1)) == (half, Fraction(3, 8))
    assert luck_and_constant(3, 2, half) == (half, Fraction(1, 3))
    for k, growth in product(range(1, 8), (Fraction(1), Fraction(3, 2), Fraction(6))):
        q = growth / (1 + growth)
        for v in range(1, k + 1):
            f, c = naive_constants((v,) * (k + 1), growth)
            luck, exact = luck_and_constant(k, v, q)
            assert f == luck
            assert c == exact if v in (1, k) else exact < c <= (1 - q**2) / 2


@pytest.mark.parametrize("n", [1, 2, 3, pytest.param(4, marks=pytest.mark.slow)])
def test_all_guessers_in_any_order(n):
    """They may skip elements and are told every coin. So far the exact p-value holds for all."""
    for k, growth in product(range(1, n + 1), LEVELS):
        for v in range(1, k + 1):
            f, c = naive_constants((v,) * (k + 1), growth)
            _, exact = luck_and_constant(k, v, growth / (1 + growth))
            worst = best_constants(all_classes(n, (v,) * (k + 1)), f, growth).max()
            assert worst == pytest.approx(exact, rel=1e-7)
            assert worst <= c * (1 + 1e-7)
            library = p_value(v, k, log(growth), delta=1e-4, n=n, method="any order")
            assert library >= f + worst * n * 1e-4 - 1e-12


@pytest.mark.parametrize("n", [2, 3, pytest.param(4, marks=pytest.mark.slow)])
def test_all_guessers_who_may_stop(n):
    """Whatever the line, even one that falls (on four elements: that does not)."""
    ratios = []
    for line in product(*(range(1, r + 2) for r in range(n + 1))):
        if n == 4 and line != tuple(sorted(line)):
            continue
        for growth in LEVELS:
            f, c = naive_constants(line, growth)
            if 0 < f < 1:
                worst = best_constants(all_classes(n, line), f, growth).max()
                ratios.append(worst / c)
    assert max(ratios) == pytest.approx(1, abs=1e-7)
    assert min(ratios) > 0.85
