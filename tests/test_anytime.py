"""Counts that grow: the worst case against walks in fractions, the repair against its integral."""

from fractions import Fraction
from itertools import product
from math import comb, log

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_channel import random_channel

from ledger.cases.worst_cases import best_mean
from oralib import (
    LocalRandomizedResponse,
    adaptive_failure_probability,
    channel,
    epsilon_lower_bound,
)
from oralib.bounds import Anytime, Pure
from oralib.bounds.anytime import anytime_line
from oralib.bounds.pure import pure_line


def walk(n, success, beta):
    """W_n in fractions: the walk stops where the tail of the binomial is below β."""
    inside, met = {0: Fraction(1)}, Fraction(0)
    for r in range(1, n + 1):
        moved = {}
        for v, weight in inside.items():
            moved[v + 1] = moved.get(v + 1, 0) + weight * success
            moved[v] = moved.get(v, 0) + weight * (1 - success)
        inside = {}
        for v, weight in moved.items():
            tail = sum(comb(r, k) * success**k * (1 - success) ** (r - k) for k in range(v, r + 1))
            if tail < beta:
                met += weight
            else:
                inside[v] = weight
    return met


def test_known_worst_cases_of_many_guesses():
    found = [adaptive_failure_probability(epsilon, 10**4) for epsilon in (0.0, 1.0, 4.0)]
    np.testing.assert_allclose(found, [0.4554319809, 0.4417408019, 0.3109792310], atol=1e-9)


@pytest.mark.parametrize(
    ("success", "beta"),
    [
        (Fraction(1, 2), Fraction(1, 20)),
        (Fraction(1, 2), Fraction(1, 4)),  # ties: tails of fair coins are quarters, eighths, ...
        (Fraction(3, 4), Fraction(1, 20)),
        (Fraction(3, 4), Fraction(11, 20)),
        (Fraction(9, 10), Fraction(3, 10)),
    ],
)
def test_worst_case_is_the_walk_in_fractions(success, beta):
    epsilon = log(success / (1 - success))
    sizes = [0, 1, 2, 3, 8, 18, 40]
    exact = [float(walk(n, success, beta)) for n in sizes]
    np.testing.assert_allclose(
        adaptive_failure_probability(epsilon, sizes, float(beta)), exact, rtol=0, atol=1e-13
    )


@pytest.mark.parametrize("beta", [0.01, 0.05, 0.3, 0.9])
def test_lines_are_where_the_bounds_exceed_epsilon(beta):
    """Kernels follow the lines step by step; here all bounds are computed and compared with ε."""
    v, r = np.indices((122, 121))
    for rule in (Pure(), Anytime()):
        bounds = rule.lower_bound(np.minimum(v, r), r, beta=beta)
        for epsilon in (0.0, 0.3, 1.0, 4.0):
            exceeds = (bounds > epsilon + 1e-12 * (1 + epsilon)) | (v > r)
            line = (pure_line if rule == Pure() else anytime_line)(120, epsilon, beta)
            assert (line == exceeds.argmax(axis=0)).all()


@given(st.integers(1, 3), st.integers(1, 4), st.integers(0, 2**32), st.floats(0.2, 0.9))
def test_no_adaptive_guesser_exceeds_the_worst_case(n, outputs, seed, beta):
    table = random_channel(n, outputs, seed, 0.0)
    v, r = np.indices((n + 1, n + 1))
    bound = epsilon_lower_bound(np.minimum(v, r), r, beta=beta)
    value = (bound > table.epsilon * (1 + 1e-9) + 1e-9).astype(float)
    worst = adaptive_failure_probability(table.epsilon, n, beta)
    assert best_mean(table, value, feedback="full") <= worst + 1e-9


@pytest.mark.parametrize(("epsilon", "beta"), [(0.0, 0.55), (log(3), 0.6), (0.4, 0.65)])
def test_randomized_response_attains_the_worst_case(epsilon, beta):
    table = channel(LocalRandomizedResponse(epsilon), 4)
    v, r = np.indices((5, 5))
    bound = epsilon_lower_bound(np.minimum(v, r), r, beta=beta)
    value = (bound > epsilon + 1e-9).astype(float)
    worst = adaptive_failure_probability(epsilon, 4, beta)
    assert best_mean(table, value, feedback="full") == pytest.approx(worst, abs=1e-12)
    assert best_mean(table, value, feedback="none") <= beta
    assert best_mean(table, value, feedback="one-way") <= beta


def test_edges_of_the_worst_case():
    assert adaptive_failure_probability(np.inf, 100) == 0
    assert adaptive_failure_probability(1.0, 0) == 0
    assert isinstance(adaptive_failure_probability(1.0, 10), float)
    assert adaptive_failure_probability(1.0, [[10], [20]]).shape == (2, 1)
    assert adaptive_failure_probability(50.0, 1000) == 0
    rising = adaptive_failure_probability(0.3, np.arange(200))
    assert (np.diff(rising) >= 0).all()


def e_value(v, r, epsilon):
    """The e-process by integration to 30 digits."""
    with mp.workdps(30):
        p = 1 / (1 + mp.exp(-mp.mpf(epsilon)))

        def ratio(q):
            return (q / p) ** v * ((1 - q) / (1 - p)) ** (r - v)

        top = mp.mpf(v) / r if r else p
        nodes = [p, max(p, top), 1] if p < top < 1 else [p, 1]
        return mp.quad(ratio, nodes) / (1 - p)


@pytest.mark.parametrize(
    ("v", "r", "beta"),
    [(731, 1000, 0.05), (95, 100, 0.05), (100, 100, 0.05), (9, 10, 0.3), (60, 60, 0.001)],
)
def test_anytime_bound_inverts_the_integral(v, r, beta):
    epsilon = Anytime().lower_bound(v, r, beta=beta)
    assert float(e_value(v, r, epsilon) * beta) == pytest.approx(1, rel=1e-9)
    assert e_value(v, r, epsilon * (1 + 1e-8)) * beta < 1


def test_anytime_bound_survives_the_worst_case():
    for epsilon, beta in product((0.0, 0.5, 1.0, 3.0), (0.01, 0.05, 0.4, 0.9)):
        assert adaptive_failure_probability(epsilon, 2000, beta, rule=Anytime()) <= beta


@given(st.integers(1, 2000), st.data(), st.floats(1e-4, 0.3))
def test_anytime_bound_is_smaller_and_rises_with_v(r, data, beta):
    v = np.sort(data.draw(st.lists(st.integers(0, r), min_size=1, max_size=8)))
    anytime = Anytime().lower_bound(v, r, beta=beta)
    assert (anytime <= epsilon_lower_bound(v, r, beta=beta) + 1e-12).all()
    assert (np.diff(anytime) >= -1e-12).all()


def test_anytime_edges():
    assert Anytime().lower_bound(0, 0) == 0
    assert Anytime().lower_bound(0, 10) == 0
    assert Anytime().lower_bound(5, 10) == 0
    big = Anytime().lower_bound(750_000_000, 10**9)
    assert log(3) - 1e-3 < big < log(3)
    assert Anytime().lower_bound([[9], [10]], 10, beta=[0.05, 0.3]).shape == (2, 2)
