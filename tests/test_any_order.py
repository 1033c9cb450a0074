"""Full feedback in any order: P[right guesses ever meet a line] <= f + c n δ.

By a naive recursion, which the library must follow, and which no guesser of up to five elements may
exceed; from it, the bound for any order and the certified one for guessers who are free to stop.
"""

from fractions import Fraction
from functools import cache
from itertools import permutations, product
from math import exp, log

import numpy as np
import pytest
from scipy import optimize, sparse
from test_full_feedback import edges, luck_and_constant

from oralib import (
    Counts,
    epsilon_lower_bound,
    p,
    p_value,
    valid_lower_bound,
)
from oralib.bounds import AnyOrder, Anytime, Exact, certified
from oralib.bounds.crossing import crossing_constants

LEVELS = (1.0, 1.5, 4.0)  # e^ε


def naive(line, growth):
    """(f, c) from the last guess back, in fractions or floats, by all terms of the theorem."""
    q, after = growth / (1 + growth), {}
    for t in reversed(range(len(line))):
        for u in range(t + 1):
            if u >= line[t] or t + 1 == len(line):
                after[t, u] = (1, 0, 0) if u >= line[t] else (0, 1, 0)
                continue
            (f1, g1, c1), (f0, g0, c0) = after[t + 1, u + 1], after[t + 1, u]
            gain = f1 - f0 if f1 < 0.5 else g0 - g1
            terms = [q * c1 + (1 - q) * c0, (1 - q) * gain]
            if c1 > 0:
                terms += [(g1 + (1 - q) * gain) / (g1 / c1 + 1), c1 / (1 + c1)]
                terms.append(c1 * (1 - (1 - q) * gain / f1))
            if c0 > 0:
                terms += [(f0 + q * gain) / (f0 / c0 + growth), c0 / (1 + growth * c0)]
                terms.append(c0 * (1 - q * gain / g0))
            after[t, u] = q * f1 + (1 - q) * f0, q * g1 + (1 - q) * g0, max(terms)
    return after[0, 0][0], after[0, 0][2]


def test_lines_that_rise_and_fall():
    rng = np.random.default_rng(1)
    for n, epsilon in product((1, 2, 7, 25, 60), (0.0, 0.4, 1.5, 4.0)):
        rises = (np.arange(n + 1) * p(epsilon) + 1).astype(int)
        for line in (rises + 2, rises + rng.integers(0, 4, n + 1), np.full(n + 1, n // 2 + 1)):
            due = naive(line.tolist(), np.exp(epsilon))
            np.testing.assert_allclose(crossing_constants(line, epsilon), due, rtol=1e-11)


def test_constants_in_fractions():
    """Two of three at ε = 0 is the least case in which the theorem is not the exact p-value."""
    half = Fraction(1, 2)
    assert naive((2,) * 4, Fraction(1)) == (half, Fraction(3, 8))
    assert luck_and_constant(3, 2, half) == (half, Fraction(1, 3))
    for k, growth in product(range(1, 8), (Fraction(1), Fraction(3, 2), Fraction(6))):
        q = growth / (1 + growth)
        for v in range(1, k + 1):
            f, c = naive((v,) * (k + 1), growth)
            luck, exact = luck_and_constant(k, v, q)
            assert f == luck
            assert c == exact if v in (1, k) else exact < c <= (1 - q**2) / 2


# ---------------------------------------------------------------------------------------- any order


@pytest.mark.parametrize("k", [1, 2, 3, 5, 17, 60])
def test_the_p_value_for_any_order(k):
    """Exactly the recursion; at both ends the exact p-value, and never below it."""
    for v, epsilon in product({1, 2, k // 2, (3 * k) // 4, k - 1, k} - {0}, (0.0, 0.7, 3.0)):
        v, q, claim = min(v, k), p(epsilon), {"delta": 0.01, "n": 3 * k}
        f, c = naive([v] * (k + 1), np.exp(epsilon))
        found = p_value(v, k, epsilon, rule=AnyOrder(), **claim)
        assert found == pytest.approx(min(1, f + 0.03 * k * c), abs=1e-12)
        exact = p_value(v, k, epsilon, rule=Exact(), **claim)
        assert found == pytest.approx(exact, rel=1e-12) if v in (1, k) else found >= exact
        assert k == 1 or c <= (1 - q**2) / 2 * (1 + 1e-12)


@pytest.mark.parametrize(("v", "epsilon"), [(330, 0.0), (462, 1.0), (570, 2.6)])
def test_shortcuts_of_long_audits_hardly_matter(v, epsilon):
    """Walks that are far behind are put back, those far ahead count as having met the line."""
    f, c = naive([v] * 601, np.exp(epsilon))
    for budget in (1e-3, 0.3, 1.0):
        found = p_value(v, 600, epsilon, delta=budget / 600, n=600, rule=AnyOrder())
        assert -1e-13 <= found - (f + c * budget) <= 1e-8


def test_the_p_value_for_any_order_rises():
    """The proof does not need it, the search for the bound does."""
    rng, grid = np.random.default_rng(3), np.linspace(0, 6, 601)
    for _ in range(20):
        k = int(rng.integers(3, 120))
        v, beta = int(rng.integers(k // 2, k + 1)), 10 ** rng.uniform(-4, -0.4)
        claim = {"n": k, "delta": beta * 10 ** rng.uniform(-2, 2) / k, "rule": AnyOrder()}
        found = p_value(v, k, grid, **claim)
        assert (np.diff(found)[found[1:] < 0.5] >= -1e-12).all()
        refuted = grid[found <= beta]
        bound = epsilon_lower_bound(v, k, beta=beta, **claim)
        assert bound == pytest.approx(refuted[-1] if refuted.size else 0, abs=0.0101)


# --------------------------------------------------------------------------------- free to stop

#: Right, taken, elements, n δ, and the certified bound at β = 0.05.
STOPPED = [(160, 210, 1000, 0.01, 0.692), (40, 40, 1000, 0.3, 1.363)]
STOPPED += [(73, 100, 10_000, 0.09, 0.356), (95, 100, 10_000, 0.1, 1.855)]
STOPPED += [(95, 100, 10_000, 1, 1.194), (270, 350, 10_000, 1, 0.837)]
STOPPED += [(1439, 1510, 10_000, 1, 2.659), (4000, 5000, 10_000, 8, 1.242)]


@pytest.mark.parametrize(("v", "r", "n", "budget", "bound"), STOPPED)
def test_certified_bounds(v, r, n, budget, bound):
    counts = Counts(v, r, n, feedback="full")
    assert valid_lower_bound(counts, delta=budget / n) == bound
    assert bound < Anytime().lower_bound(v, r)
    f, c = certified.certificate(round(1000 * bound), n, budget, 0.05)  # its own, not that of ten
    assert f + c * budget <= 0.05


def least_right(n, n_delta, beta, epsilon):
    """The line of a bound ε, from bounds of all counts with fewer right guesses and less of β."""
    ratio, level = n_delta / beta, beta - min(n_delta / 4, beta / 20)
    last, first = np.ceil(ratio**2 / 5 + 10 * ratio), max(0, np.ceil(ratio / 2 - 0.25))
    line = []
    for t in range(n + 1):
        reached = Anytime().lower_bound(np.arange(t + 1), t, beta=level) >= epsilon - 1e-9
        least = t + 1 if not reached.any() or epsilon == 0 == t else int(reached.argmax())
        line.append(least + int(np.ceil(round(first * max(0, 1 - t / last), 9))))
    return line


@pytest.mark.parametrize(("budget", "thousandths"), [(0.1, 500), (0.3, 1000), (1.0, 200)])
def test_certificates(budget, thousandths):
    """Those of the line along which bounds reach the level, by all terms of the theorem."""
    due = naive(least_right(100, budget, 0.05, thousandths / 1000), exp(thousandths / 1000))
    found = certified.certificate(thousandths, 100, budget, 0.05)
    np.testing.assert_allclose(found, due, rtol=1e-9)


def test_trials_share_certificates():
    """One for each ten thousandths, however many trials; if it fails, one for each value."""
    n, v = 500, np.arange(60, 101)
    counts = Counts(np.repeat(v, 50), np.full(50 * v.size, 100), n, feedback="full")
    certified.certificate.cache_clear()
    bounds = valid_lower_bound(counts, delta=0.1 / n)
    values = np.unique(np.round(1000 * bounds[bounds > 0]).astype(int))
    assert len(values) > 20
    assert certified.certificate.cache_info().misses == len({*(values // 10)})
    f, c = np.transpose([certified.certificate(int(s), n, 0.1, 0.05) for s in values])
    assert (f + 0.1 * c <= 0.05).all()


def test_without_a_certificate_the_bound_is_smaller(monkeypatch):
    counts = Counts(75, 100, 200, feedback="full")
    due = round(1000 * valid_lower_bound(counts, delta=1e-4))
    fails = lambda first, n, n_delta, beta, last: (float(last > due - 3), 0.0)  # noqa: E731
    monkeypatch.setattr(certified, "certificate", fails)
    assert valid_lower_bound(counts, delta=1e-4) == (due - 3) / 1000


@pytest.mark.parametrize(("budget", "epsilon"), [(0.1, 0.5), (0.3, 1.0), (1.0, 0.2)])
def test_a_mechanism_that_nearly_attains_it(budget, epsilon):
    """With probability n δ / j it gives j random elements away, which are guessed first.

    All others are randomized response. The guesser stops once the bound exceeds ε.
    """
    n, q = 200, p(epsilon)
    v, r = np.indices((n + 1, n + 1))
    counts = Counts(np.minimum(v, r).ravel(), r.ravel(), n, feedback="full")
    bounds = valid_lower_bound(counts, delta=budget / n).reshape(v.shape)
    met = (bounds > epsilon - 5e-4) & (v <= r)  # a little below: bounds of ε count as failures
    after = met[:, n].astype(float)
    ahead = np.empty(n + 1)  # the chance to fail after j right guesses of j
    for t in reversed(range(n + 1)):
        if t < n:
            after[:-1] = q * after[1:] + (1 - q) * after[:-1]
        after[met[:, t]] = 1
        ahead[t] = after[t]
    j = np.arange(1, n)
    worst = (ahead[0] + budget / j * (ahead[1:-1] - ahead[0]))[budget <= j].max()
    f, c = certified.certificate(round(1000 * epsilon), n, budget, 0.05)
    assert ahead[0] == pytest.approx(f, rel=1e-9)
    assert 0.97 * (f + c * budget) <= worst <= f + c * budget + 1e-12
    assert f + c * budget <= 0.05


# --------------------------------------------------------------------------- every guesser there is


def strategies(n, line, *, skips=True, unseen=None):
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
        for i in unseen:
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


def best_constants(sets, f, growth):
    """The largest (L(wins) - f |L|) / J(L) of test_full_feedback, for many sets of coins.

    P[a guesser wins] <= f + c n δ for all (ε, δ)-DP mechanisms, at every δ, if and only if no L has
    more than c. By duality 1 / c is the largest t for which some flow u on the edges, 0 <= u <= 1,
    has Σ_i (u_i(s) - e^ε u_i(s^i)) >= t (1[s wins] - f) for all s. Twenty sets are one program.
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


@pytest.mark.parametrize("n", [1, 2, 3, pytest.param(4, marks=pytest.mark.slow)])
def test_all_guessers_in_any_order(n):
    """They may skip elements and are told every coin. So far the exact p-value holds for all."""
    for k, growth in product(range(1, n + 1), LEVELS):
        for v in range(1, k + 1):
            f, c = naive((v,) * (k + 1), growth)
            _, exact = luck_and_constant(k, v, growth / (1 + growth))
            worst = best_constants(all_classes(n, (v,) * (k + 1)), f, growth).max()
            assert worst == pytest.approx(exact, rel=1e-7)
            assert worst <= c * (1 + 1e-7)
            library = p_value(v, k, log(growth), delta=1e-4, n=n, rule=AnyOrder())
            assert library >= f + worst * n * 1e-4 - 1e-12


@pytest.mark.parametrize("n", [2, 3, pytest.param(4, marks=pytest.mark.slow)])
def test_all_guessers_who_may_stop(n):
    """Whatever the line, even one that falls (on four elements: that does not)."""
    ratios = []
    for line in product(*(range(1, r + 2) for r in range(n + 1))):
        if n == 4 and line != tuple(sorted(line)):
            continue
        for growth in LEVELS:
            f, c = naive(line, growth)
            if 0 < f < 1:
                worst = best_constants(all_classes(n, line), f, growth).max()
                ratios.append(worst / c)
    assert max(ratios) == pytest.approx(1, abs=1e-7)
    assert min(ratios) > 0.85


# --------------------------------------------------------------------------------- three of five


@cache
def three_of_five():
    """The winning sets of all guessers of all five elements, one of each class.

    The first guess is that element 0 is 1; if it is right, two more of the other four are needed,
    and these sets are taken only up to names and signs of the four. To skip would be to lose a
    guess, as every element is needed for five: it only makes the set smaller.
    """
    one = sum(1 << s for s in range(32) if s & 1)
    right, wrong = (strategies(5, (k,) * 5, skips=False, unseen=range(1, 5)) for k in (2, 3))
    assert len(right) == len(wrong) == 2288
    first = [sum(1 << s for s in np.flatnonzero(wins).tolist()) for wins in classes(right, 5)]
    assert len(first) == 11
    return classes({a & one | b & ~one for a, b in product(first, wrong)}, 5)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0, 1, 2])
def test_any_order_stays_below_the_exact_p_value(epsilon):
    """The least case, if all elements are guessed, in which no proof says so.

    The exact p-value is f + C n δ, up to 1. For ε > 0 only one class attains it: the sets of all
    points with at least three of five given coins, as of a guesser with a list.
    """
    sets, growth = three_of_five(), exp(epsilon)
    assert len(sets) == 12_004
    f, most = luck_and_constant(5, 3, growth / (1 + growth))
    exact = p_value(3, 5, epsilon, delta=0.01, n=5, rule=Exact())
    assert exact == pytest.approx(f + most * 0.05, rel=1e-12)
    found = best_constants(sets, f, growth)
    assert found.max() == pytest.approx(most, rel=1e-9)
    attained = [sets[i] for i in np.flatnonzero(found > most * (1 - 1e-3))]
    assert len(attained) == (1 if epsilon else 40)
    cube = range(32)
    lists = [[(s ^ guesses).bit_count() <= 2 for s in cube] for guesses in cube]
    assert sum(wins.tolist() in lists for wins in attained) == 1
