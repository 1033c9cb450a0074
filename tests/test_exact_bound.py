"""The exact (ε, δ) bound against linear programs over all mechanisms and guessers, 40 digits,
brute force on small tables, and the mechanism that attains it."""

from itertools import product
from math import exp, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import exact_p_value
from scipy import optimize, sparse, special, stats
from test_channel import random_channel

from ledger.cases.worst_cases import ExtremalResponse, best_mean, worst_case_rejection
from oralib import (
    Channel,
    Counts,
    TopGuesser,
    channel,
    epsilon_lower_bound,
    p,
    p_value,
    valid_lower_bound,
)
from oralib.bounds import Exact, RandomR, random_r
from oralib.games import one_run_law

# ---------------------------------------------------------------------------- linear programs


def best_of_all_laws(reject, n, epsilon, delta):
    """max P[reject(V, R)] over all laws on {-1, 0, 1}^n with excess <= δ for each element.

    These are the success vectors of all plain, or one-way, guessers of (ε, δ)-DP mechanisms.
    """
    points = list(product((-1, 0, 1), repeat=n))
    place = {x: j for j, x in enumerate(points)}
    excesses = [(j, i) for j, x in enumerate(points) for i in range(n) if x[i]]
    size = len(points) + len(excesses)
    rows, limits = [], []
    for index, (j, i) in enumerate(excesses):
        x = points[j]
        flipped = place[(*x[:i], -x[i], *x[i + 1 :])]
        row = np.zeros(size)
        row[j], row[flipped], row[len(points) + index] = 1, -exp(epsilon), -1
        rows.append(row)
        limits.append(0)
    for i in range(n):
        row = np.zeros(size)
        row[[len(points) + k for k, (_, element) in enumerate(excesses) if element == i]] = 1
        rows.append(row)
        limits.append(delta)
    counts = [(x.count(1), x.count(1) + x.count(-1)) for x in points]
    objective = np.r_[[reject(v, r) for v, r in counts], np.zeros(len(excesses))]
    total = np.r_[np.ones(len(points)), np.zeros(len(excesses))]
    how = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    found = optimize.linprog(
        -objective, sparse.csr_array(rows), limits, [total], [1.0], method="highs", options=how
    )
    assert found.status == 0
    return -found.fun


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_both_rules_are_the_linear_program(n):
    """Thresholds for all numbers of guesses; or at most k of them, where missing ones are wrong."""
    rng = np.random.default_rng(n)
    for _ in range(20 if n < 4 else 7):
        c = [int(rng.integers(1, r + 2)) for r in range(1, n + 1)]
        k = int(rng.integers(1, n + 1))
        least = int(rng.integers(1, k + 1))
        epsilon, delta = float(rng.uniform(0, 2)), float(10 ** rng.uniform(-4, -0.3))
        audit, given = (n, epsilon, delta), {"delta": delta, "n": n}
        free = best_of_all_laws(lambda v, r, c=c: r > 0 and v >= c[r - 1], *audit)
        assert free == pytest.approx(worst_case_rejection(c, epsilon, **given), abs=1e-8)
        most = best_of_all_laws(lambda v, r, x=(least, k): v >= x[0] and r <= x[1], *audit)
        exact = p_value(least, k, epsilon, rule=Exact(), **given)
        assert most == pytest.approx(exact, abs=1e-8)


def columns(*arguments):
    """Flat and of one length: v, r, and numbers."""
    v, r, *others = (column.ravel() for column in np.broadcast_arrays(*arguments))
    return v, r, *(other.astype(float) for other in others)


def random_r_p_value(v, r, epsilon, budget, least_b):
    v, r, epsilon, budget, least_b = columns(v, r, epsilon, budget, least_b)
    return random_r._p_values(v, r, epsilon, budget, least_b)


def random_r_bound(v, r, budget, least_b, beta=0.05):
    v, r, beta, budget, least_b = columns(v, r, beta, budget, least_b)
    return random_r._bounds(v, r, beta, budget, least_b)


def test_random_r_p_value_is_valid_for_laws():
    """At each level that it attains, over all mechanisms; the worst come near to the level."""
    pairs = [(v, r) for r in range(4) for v in range(r + 1)]
    v, r = np.array(pairs).T
    most = []
    for epsilon, delta, b in product((0.0, 0.7, 2.0), (0.003, 0.03, 0.1), (0.0, 1.2, 2.0)):
        values = dict(zip(pairs, random_r_p_value(v, r, epsilon, 3 * delta, b), strict=True))
        for beta in sorted({value for value in values.values() if value < 1}):
            rejected = {pair for pair in pairs if values[pair] <= beta}
            passed = best_of_all_laws(lambda *x, s=rejected: x in s, 3, epsilon, delta)
            most.append(passed / beta)
    assert len(most) > 80
    assert 0.999 < max(most) <= 1 + 1e-8


# ------------------------------------------------------------------------------- small tables


def tables_with_delta():
    """Small tables and an ε at which they have a δ strictly between 0 and 1."""
    shown = np.concatenate([0.9 * np.full((1, 8), 1.0), 0.1 * np.eye(8)])
    yield Channel(shown), 0.2
    for seed in range(6):
        n = 1 + seed % 3
        dense, sparse_one = random_channel(n, 4, seed, 0.0), random_channel(n, 4, seed + 50, 0.6)
        mixed = np.concatenate([0.8 * dense.table, 0.2 * sparse_one.table])
        yield Channel(mixed), 0.3 * n
    yield channel(ExtremalResponse(0.5, 0.05, 2, 3), 3), 0.5


def rejects(n, rule):
    return np.array([[float(v <= r and rule(v, r)) for r in range(n + 1)] for v in range(n + 1)])


@pytest.mark.parametrize("feedback", ["none", "one-way"])
def test_no_guesser_exceeds_the_exact_p_value(feedback):
    rng = np.random.default_rng(5)
    for table, epsilon in tables_with_delta():
        n, delta = table.n, table.delta(epsilon)
        assert 0 < delta < 1
        for r in range(1, n + 1):
            for v in range(1, r + 1):
                value = rejects(n, lambda a, b, v=v, r=r: b == r and a >= v)
                worst = p_value(v, r, epsilon, delta=delta, n=n, rule=Exact())
                assert best_mean(table, value, feedback=feedback) <= worst + 1e-9
        for _ in range(5):
            c = [int(rng.integers(1, r + 2)) for r in range(1, n + 1)]
            value = rejects(n, lambda a, b, c=c: b > 0 and a >= c[b - 1])
            worst = worst_case_rejection(c, epsilon, delta=delta, n=n)
            assert best_mean(table, value, feedback=feedback) <= worst + 1e-9


def test_full_feedback_is_not_covered():
    """The same tables, the same rule, but seeing which guesses were right: more is possible."""
    table = channel(ExtremalResponse(0.0, 0.01, 2, 3), 3)
    value = rejects(3, lambda v, r: r > 0 and v >= (1, 2, 2)[r - 1])
    worst = worst_case_rejection((1, 2, 2), 0.0, delta=0.01, n=3)
    assert best_mean(table, value, feedback="one-way") <= worst + 1e-12
    assert best_mean(table, value, feedback="full") > worst + 0.05


# ----------------------------------------------------------- full feedback about a fixed list


def most_with_feedback(coins, v):
    """The largest measure of V >= v if each coin is told before the next one is guessed."""
    if v <= 0 or coins.ndim == 0:
        return coins.sum() if v <= 0 else 0.0
    return max(
        most_with_feedback(coins[right], v - 1) + most_with_feedback(coins[1 - right], v)
        for right in (0, 1)
    )


def law_of_the_best(coins):
    """α of the proof."""
    if coins.ndim == 0:
        return coins[None]
    x, y = law_of_the_best(coins[1]), law_of_the_best(coins[0])
    return np.append(0, np.maximum(x, y)) + np.append(np.minimum(x, y), 0)


def leaked(coins, e):
    flips = (np.flip(coins, axis) for axis in range(coins.ndim))
    return sum(np.maximum(coins - e * other, 0).sum() for other in flips)


@given(st.integers(0, 10**6), st.integers(0, 5), st.floats(0, 3), st.integers(1, 4))
def test_claims_that_cover_feedback_about_a_list(seed, r, epsilon, values):
    rng, e = np.random.default_rng(seed), exp(epsilon)
    few = rng.integers(0, values + 1, size=(2,) * r).astype(float)  # many ties, many zeros
    coins = few if seed % 2 else rng.exponential(size=(2,) * r) ** rng.choice([1, 4])
    alpha, k = law_of_the_best(coins), np.arange(1, r + 1)
    more = coins + rng.integers(0, 2, size=coins.shape) * rng.random(coins.shape)
    assert (law_of_the_best(more) >= alpha - 1e-12).all()  # (a)
    assert np.allclose(law_of_the_best(e * coins), e * alpha)
    assert alpha.sum() == pytest.approx(coins.sum())
    for v in range(r + 1):  # (b), with equality
        assert most_with_feedback(coins, v) == pytest.approx(alpha[v:].sum(), abs=1e-12)
    rows = k * alpha[1:] - e * (r - k + 1) * alpha[:-1]
    assert np.maximum(rows, 0).sum() <= leaked(coins, e) + 1e-9  # (c)


def test_full_feedback_about_lists_that_the_output_decides():
    """Each output has a list of its own; one coin that is not on the list may be revealed first."""
    rng = np.random.default_rng(8)
    closest = np.inf
    for table, epsilon in [*tables_with_delta()][:-1] * 4:
        n, delta = table.n, table.delta(epsilon)
        c = [int(rng.integers(1, r + 1)) for r in range(1, n + 1)]
        reached = 0.0
        for row in table.table / 2**n:
            coins = row.reshape((2,) * n)  # of one output: one axis for each element
            order = rng.permutation(n)
            shown, rest = order[0], np.delete(np.arange(n), order[0])
            if rng.random() < 0.5 and n > 1:  # two lists, by the coin of an element on neither
                parts = [np.moveaxis(coins, shown, 0)[side] for side in (0, 1)]
            else:
                parts, rest = [coins], np.arange(n)
            for part in parts:
                length = int(rng.integers(1, len(rest) + 1))
                places = rng.permutation(len(rest))
                part = part.transpose(places).reshape((2,) * length + (-1,)).sum(axis=-1)
                reached += most_with_feedback(part, c[length - 1])
        worst = worst_case_rejection(c, epsilon, delta=delta, n=n)
        assert reached <= worst + 1e-12
        closest = min(closest, worst - reached)
    assert closest < 0.1  # the bound is not out of reach


# ------------------------------------------------------------------- the mechanism that attains it


@pytest.mark.parametrize(
    ("level", "delta", "v", "r", "n"),
    [
        (0.0, 0.05, 1, 3, 3),
        (0.5, 0.05, 2, 3, 4),
        (1.0, 0.02, 3, 3, 3),
        (1.0, 0.02, 1, 1, 4),
        (0.3, 0.9, 2, 2, 4),  # n δ > B: the p-value is 1, and δ is not used up
        (2.0, 0.0, 2, 3, 4),
    ],
)
def test_extremal_response_attains_the_p_value(level, delta, v, r, n):
    mechanism = ExtremalResponse(level, delta, v, r)
    table = channel(mechanism, n)
    exact = p_value(v, r, level, delta=delta, n=n, rule=Exact())
    assert table.delta(level) <= delta + 1e-12
    if exact < 1:
        assert table.delta(level) == pytest.approx(delta, abs=1e-12)
    law = one_run_law(table, TopGuesser(r))
    assert law[v:, r].sum() == pytest.approx(exact, abs=1e-12)
    counts = Counts(v, r, n, r_fixed=True, feedback="list")  # no more than that can be promised
    below, above = (
        valid_lower_bound(counts, beta=min(exact * (1 + change), 0.999), delta=delta)
        for change in (-1e-6, 1e-6)
    )
    assert below <= level
    assert above > level or exact == 1


# ------------------------------------------------------- Steinke's p-value: where it is a theorem


def test_steinke_is_not_a_theorem_for_large_tails():
    exact = p_value(1, 3, 0.0, delta=0.05, n=3, rule=Exact())
    assert exact == pytest.approx(147 / 160, abs=1e-15)
    assert p_value(1, 3, 0.0, delta=0.05, n=3) == pytest.approx(73 / 80, abs=1e-15)


def test_exact_p_value_is_at_most_steinkes():
    for r, epsilon in product((1, 2, 5, 20, 60), (0.0, 0.3, 1.0, 3.0)):
        v = np.arange(1, r + 1)
        small = p_value(v, r, epsilon) <= p(epsilon)
        for delta in (1e-5, 1e-2):
            steinke = p_value(v, r, epsilon, delta=delta, n=r + 3)
            exact = p_value(v, r, epsilon, delta=delta, n=r + 3, rule=Exact())
            assert (exact <= steinke + 1e-12)[small].all()


# ------------------------------------------------------------------------------------- digits


@pytest.mark.parametrize(
    ("r", "epsilon"), [*product((1, 10, 1000), (0.0, 1.0, 50.0)), (10**6, 1.0), (10**9, 0.0)]
)
def test_p_values_to_nine_digits(r, epsilon):
    q = p(epsilon)
    spread = np.sqrt(r * q * (1 - q)) + 1
    distances = (-6, 0, 2, 8) if r < 10**9 else (8,)  # 40 digits take their time
    places = {int(min(r, max(1, round(r * q + z * spread)))) for z in distances} | {r}
    for v in places:
        for delta, n in ((1e-12, r), (1e-5, r + 7), (0.1, 2 * r)):
            found = p_value(v, r, epsilon, delta=delta, n=n, rule=Exact())
            expected = exact_p_value(v, r, epsilon, delta, n)
            assert found == pytest.approx(float(expected), rel=1e-9), (v, delta)


def test_small_p_values_keep_their_digits():
    """Where the tail underflows: B = r, 2^-100000 is no double, and 2^-1500 is not 0."""
    found = p_value(10**5, 10**5, 0.0, delta=1e-9, n=10**5, rule=Exact())
    assert found == pytest.approx(1e-9, rel=1e-12)
    assert random_r_p_value(1500, 1500, 0.0, 100, 0.0) == pytest.approx(1 / 15, rel=1e-11)
    assert random_r_bound(1500, 1500, 100, 0.0) == 0


counts = st.integers(1, 1000).flatmap(lambda r: st.tuples(st.integers(0, r), st.just(r)))


@given(counts, st.floats(1e-4, 0.9), st.floats(0, 0.1), st.integers(0, 10**5))
def test_exact_bound_is_valid_and_no_smaller(count, beta, delta, more):
    v, r = count
    n = r + more
    found = epsilon_lower_bound(v, r, beta=beta, delta=delta, n=n, rule=Exact())
    if found > 0:
        assert p_value(v, r, found, delta=delta, n=n, rule=Exact()) <= beta
    above = found * (1 + 1e-9) + 1e-9
    # Where n δ / B alone is nearly β the p-value hardly depends on ε.
    assert p_value(v, r, above, delta=delta, n=n, rule=Exact()) > beta * (1 - 1e-12)
    assert found <= epsilon_lower_bound(v, r, beta=beta)


def as_written(v, r, epsilon, budget, least_b):
    """The p-value for a random number of guesses."""
    masses, log_q = stats.binom.logpmf(np.arange(v, r + 1), r, p(epsilon)), log(p(epsilon))
    log_f = special.logsumexp(masses)
    if v == 0 or v * exp(masses[0] - log_f) < least_b * (1 - 1e-9):
        return 1.0
    return 1 + np.expm1(log_f) * max(0.0, 1 - budget / max(least_b, log_f / log_q, 1e-300))


def split_p_value(v, r, epsilon, budget, share):
    """Of a bound that sets aside a share of β for leaks: f must be small, and B large."""
    f, log_f = p_value(v, r, epsilon), stats.binom.logsf(v - 1, r, p(epsilon))
    log_ratio = min(log_f - stats.binom.logpmf(v, r, p(epsilon)), 700)
    return max(f / (1 - share * (1 - f)), budget * exp(log_ratio) / (v * share))


@given(counts, st.floats(1e-3, 0.9), st.floats(1e-5, 1), st.floats(0.05, 0.95))
def test_random_r_bound_inverts_its_p_value(count, beta, budget, share):
    """It is nowhere below the split bound, whatever its share."""
    v, r = count
    b, delta = budget / (beta * share), budget / r
    (found,) = random_r_bound(v, r, budget, b, beta)
    assert found - 1e-12 <= epsilon_lower_bound(v, r, beta=beta, delta=delta, n=r, rule=Exact())
    if found > 0:
        assert as_written(v, r, found, budget, b) <= beta * (1 + 1e-9)
    if v > 0:
        above = found * (1 + 1e-7) + 1e-7
        assert as_written(v, r, above, budget, b) > beta * (1 - 1e-6)
        assert split_p_value(v, r, above, budget, share) > beta * (1 - 1e-9)


@given(counts, st.floats(1e-4, 0.5), st.floats(0, 0.01), st.floats(0, 30))
def test_monotone(count, beta, delta, b):
    v, r = count
    for bound in (
        lambda v, delta, n: epsilon_lower_bound(v, r, beta=beta, delta=delta, n=n, rule=Exact()),
        lambda v, delta, n: random_r_bound(v, r, n * delta, b, beta)[0],
    ):
        one = bound(v, delta, r)
        assert bound(min(v + 1, r), delta, r) >= one - 1e-12
        assert bound(v, delta, r + 50) <= one + 1e-12
        assert bound(v, delta + 1e-3, r) <= one + 1e-12
    values = random_r_p_value(v, r, np.linspace(0, 8, 60), r * delta, b)
    assert (np.diff(values) >= -1e-12 * values[1:]).all()


def test_without_delta_all_methods_are_the_plain_bound():
    v = np.arange(0, 101, 7)
    plain = epsilon_lower_bound(v, 100)
    for found in (
        epsilon_lower_bound(v, 100, rule=Exact()),
        epsilon_lower_bound(v, 100, delta=0.0, n=10**6, rule=Exact()),
        RandomR().lower_bound(v, 100, delta=0.0, n=500),
    ):
        np.testing.assert_array_equal(found, plain)
    nearly = epsilon_lower_bound(v, 100, delta=1e-14, n=100, rule=Exact())
    np.testing.assert_allclose(nearly, plain, atol=1e-10)


def test_worst_case_edges():
    assert worst_case_rejection([2, 3, 4], 1.0, delta=0.1, n=3) == 0
    assert worst_case_rejection([1, 0, 2], 1.0, delta=0.0, n=3) == 1
    assert worst_case_rejection([1], log(3), delta=0.0, n=1) == pytest.approx(0.75)
    assert worst_case_rejection([1], log(3), delta=1.0, n=5) == 1
